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

/// Returns the time of one copy, measured over two in a row, since the first one may still be fast
/// where further ones are slow.
std::chrono::nanoseconds time_of(Copy copy, Ends& ends) {
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t kAbove = 16;
    constexpr int kInRow = 2;
    constexpr int kTimes = 3; // The first fills the cache; the least time is the undisturbed one.
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

/// Returns the faster way to copy. The choice has no effect but on time.
Copy faster_copy() {
    static Ends ends; // An allocation might fail in the middle of a collective.
    // On processors without the problem, memcpy is better, by far less than a factor of two.
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
