#include "shm/copy.hpp"

#include <algorithm>

#include "ucg_coll/base/copy_lines.hpp"

namespace ucg::shm {

#if defined(__x86_64__)

void copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes) {
    constexpr std::size_t kLine = 64;
    const auto misplaced = reinterpret_cast<std::uintptr_t>(target) % kLine;
    const std::size_t head = std::min(bytes, misplaced == 0 ? 0 : kLine - misplaced);
    std::memcpy(target, source, head);
    const std::size_t done =
        head + copy_lines(target + head, source + head, bytes - head,
                          [](__m128i* to, __m128i vector) { _mm_stream_si128(to, vector); });
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
