#include "ucg_coll/base/copy.hpp"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <chrono>

#include "ucg_coll/base/copy_lines.hpp"

namespace ucg {
namespace {

using Copy = void (*)(std::byte* target, const std::byte* source, std::size_t bytes);

void by_memcpy(std::byte* target, const std::byte* source, std::size_t bytes) {
    std::memcpy(target, source, bytes);
}

void by_vectors(std::byte* target, const std::byte* source, std::size_t bytes) {
    const std::size_t done = copy_lines(
        target, source, bytes, [](__m128i* to, __m128i vector) { _mm_storeu_si128(to, vector); });
    std::memcpy(target + done, source + done, bytes - done);
}

constexpr std::size_t kTimedBytes = std::size_t{16} << 10;

struct Ends {
    alignas(kAliasedBytes) std::array<std::byte, kTimedBytes> source;
    alignas(kAliasedBytes) std::array<std::byte, kTimedBytes + kAliasedBytes> target;
};

/// The time of one copy out of two in a row: a single one may still be as fast as elsewhere.
std::chrono::nanoseconds time_of(Copy copy, Ends& ends) {
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t kAbove = 16;
    constexpr int kInRow = 2;
    constexpr int kTimes = 3; // The first brings all into the cache; the least is undisturbed.
    auto least = std::chrono::nanoseconds::max();
    for (int i = 0; i < kTimes; ++i) {
        const Clock::time_point start = Clock::now();
        for (int k = 0; k < kInRow; ++k) {
            copy(ends.target.data() + kAbove, ends.source.data(), kTimedBytes);
            asm volatile("" ::: "memory"); // The copies must not be merged.
        }
        least = std::min<std::chrono::nanoseconds>(least, Clock::now() - start);
    }
    return least / kInRow;
}

/// What it chooses has no effect but the time.
Copy faster_copy() {
    static Ends ends; // No allocation, which might fail, in the middle of a collective.
    // Elsewhere memcpy is the better one by far less than two times.
    return time_of(by_memcpy, ends) > 2 * time_of(by_vectors, ends) ? by_vectors : by_memcpy;
}

} // namespace

void copy_little_above(std::byte* target, const std::byte* source, std::size_t bytes) {
    static const Copy copy = faster_copy();
    copy(target, source, bytes);
}

} // namespace ucg

#else

namespace ucg {

void copy_little_above(std::byte* target, const std::byte* source, std::size_t bytes) {
    std::memcpy(target, source, bytes);
}

} // namespace ucg

#endif
