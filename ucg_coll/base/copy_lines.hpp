// The loop that copies by vector instructions.
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <emmintrin.h>

namespace ucg {

/// Copies the whole 64-byte lines of the given bytes by SSE2, which every x86-64 processor has:
/// wider vectors gain nothing where lines come from another core.
/// `store(__m128i* to, __m128i vector)` writes a quarter of a line. Returns how many bytes were
/// copied.
template <typename Store>
std::size_t copy_lines(std::byte* target, const std::byte* source, std::size_t bytes, Store store) {
    constexpr std::size_t kLine = 64;
    std::size_t done = 0;
    for (; done + kLine <= bytes; done += kLine) {
        const auto* from = reinterpret_cast<const __m128i*>(source + done);
        auto* to = reinterpret_cast<__m128i*>(target + done);
        const __m128i a = _mm_loadu_si128(from);
        const __m128i b = _mm_loadu_si128(from + 1);
        const __m128i c = _mm_loadu_si128(from + 2);
        const __m128i d = _mm_loadu_si128(from + 3);
        store(to, a);
        store(to + 1, b);
        store(to + 2, c);
        store(to + 3, d);
    }
    return done;
}

} // namespace ucg

#endif
