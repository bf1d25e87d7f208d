#include "ucg_coll/transport/ucx/lines.hpp"

#include <atomic>
#include <bit>

namespace ucg::transport::ucx {

namespace {

constexpr std::size_t kWords = sizeof(RingLine) / sizeof(std::uint64_t);
using Words = std::array<std::uint64_t, kWords>;

/// All are odd, so that a difference in one word always shows. A difference in several words shows
/// but for a chance of 2^-64.
constexpr Words kFactors = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb,
                            0xd6e8feb86659fd93, 0xa0761d6478bd642f, 0xe7037ed1a0b428db,
                            0x8ebc6af09c88c6e3, 0x589965cc75374cc3};

std::uint64_t check_of(const Words& words, std::uint32_t number) {
    std::uint64_t sum = (number + 1ULL) * kFactors[0]; // Never that of memory full of zeros.
    for (std::size_t i = 1; i < kWords; ++i) {
        sum += words[i] * kFactors[i];
    }
    return sum;
}

} // namespace

std::uint64_t check_of(const RingLine& line, std::uint32_t number) {
    return check_of(std::bit_cast<Words>(line), number);
}

/// The words may come in any order, so each needs only to be read as a whole.
std::optional<RingLine> LineReader::take() {
    const std::size_t place = taken_ % kLinesPerRing;
    auto* source = reinterpret_cast<std::uint64_t*>(&ring_[place]);
    Words words;
    words[0] = std::atomic_ref(source[0]).load(std::memory_order_relaxed);
    if (words[0] == seen_[place]) {
        return std::nullopt;
    }
    for (std::size_t i = 1; i < kWords; ++i) {
        words[i] = std::atomic_ref(source[i]).load(std::memory_order_relaxed);
    }
    if (words[0] != check_of(words, taken_)) {
        return std::nullopt;
    }
    seen_[place] = words[0];
    ++taken_;
    return std::bit_cast<RingLine>(words);
}

} // namespace ucg::transport::ucx
