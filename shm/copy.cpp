#include "shm/copy.hpp"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ucg::shm {

#if defined(__x86_64__)

void copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes) {
    constexpr std::size_t kLine = 64;
    const auto misplaced = reinterpret_cast<std::uintptr_t>(target) % kLine;
    const std::size_t head = std::min(bytes, misplaced == 0 ? 0 : kLine - misplaced);
    std::memcpy(target, source, head);
    std::size_t done = head;
    for (; done + kLine <= bytes; done += kLine) {
        const auto* from = reinterpret_cast<const __m128i*>(source + done);
        auto* to = reinterpret_cast<__m128i*>(target + done);
        const __m128i a = _mm_loadu_si128(from);
        const __m128i b = _mm_loadu_si128(from + 1);
        const __m128i c = _mm_loadu_si128(from + 2);
        const __m128i d = _mm_loadu_si128(from + 3);
        _mm_stream_si128(to, a);
        _mm_stream_si128(to + 1, b);
        _mm_stream_si128(to + 2, c);
        _mm_stream_si128(to + 3, d);
    }
    std::memcpy(target + done, source + done, bytes - done);
    // Streaming stores are not ordered by a later release store, which is a plain move here.
    _mm_sfence();
}

#else

void copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes) {
    std::memcpy(target, source, bytes);
}

#endif

} // namespace ucg::shm
