// A set of CPUs that ranks exchange.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace ucg::capi {

/// A set of CPUs as it is exchanged. CPU numbers beyond its size share bits, which can only make
/// the set look smaller: the wait ladder then yields sooner than it must.
struct CpuMask {
    std::array<std::uint64_t, 16> words = {};

    void add(std::uint32_t cpu) { words[cpu / 64 % words.size()] |= std::uint64_t{1} << cpu % 64; }
    void add(const CpuMask& other) {
        for (std::size_t i = 0; i < words.size(); ++i) {
            words[i] |= other.words[i];
        }
    }
    unsigned count() const {
        unsigned total = 0;
        for (const std::uint64_t word : words) {
            total += static_cast<unsigned>(std::popcount(word));
        }
        return total;
    }
};

} // namespace ucg::capi
