// The work that `ucg_tune memory` times: copies and reductions of blocks and vectors.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tools/ucg_tune/crew.hpp"
#include "ucg_coll/base/copy.hpp"
#include "ucg_coll/engine/operators.hpp"

namespace ucg::tools {

/// Vectors of up to this length are repeated within a round, so that the time of a clock reading,
/// 25 ns, and the clock's steps do not show.
inline constexpr std::uint64_t kRoundBytes = 64 << 10;
/// Each block of a round begins on a page of its own, so that a prefetcher does not run from one to
/// the next, and at another offset within its page than the others, since equal offsets would all
/// fall into one set of an L1.
inline constexpr std::uint64_t kPage = 4096;
inline constexpr std::uint64_t kSkew = 5 * kCacheLine;
inline constexpr std::array<std::uint32_t, 3> kOperands = {2, 4, 8};

inline double elapsed_ns(Clock::time_point start) {
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

inline void fence() {
    asm volatile("" ::: "memory"); // Keeps the compiler from merging, moving or removing copies.
}

inline std::uint64_t whole_lines(std::uint64_t bytes) {
    return bytes / kCacheLine * kCacheLine;
}

/// Returns lengths in whole lines, each twice as long as the one before, and `longest` at the end.
inline std::vector<std::uint64_t> sets_between(std::uint64_t shortest, std::uint64_t longest) {
    std::vector<std::uint64_t> sets;
    for (std::uint64_t set = shortest; set > 0 && set < longest; set *= 2) {
        sets.push_back(whole_lines(set));
    }
    sets.push_back(whole_lines(longest));
    return sets;
}

/// The blocks that one round copies at a given length.
struct CopyBlocks {
    std::uint64_t bytes;
    std::uint64_t stride;
    std::uint64_t count;

    explicit CopyBlocks(std::uint64_t length)
        : bytes(length), stride(round_up(length, kPage) + kSkew),
          count(std::clamp<std::uint64_t>(kRoundBytes / length, 1, 16)) {}
    std::uint64_t span() const { return count * stride; }
};

/// Returns the time per block of copying the blocks by `copy(target, source, bytes)`.
template <typename Copy>
double copy_blocks(std::byte* target, const std::byte* source, const CopyBlocks& blocks,
                   Copy copy) {
    const Clock::time_point start = Clock::now();
    for (std::uint64_t i = 0; i < blocks.count; ++i) {
        copy(target + i * blocks.stride, source + i * blocks.stride, blocks.bytes);
    }
    fence();
    return elapsed_ns(start) / static_cast<double>(blocks.count);
}

inline void copy_cached(std::byte* target, const std::byte* source, std::uint64_t bytes) {
    copy_bytes(target, source, bytes);
}

/// Vectors of doubles that only the driver accesses.
class Vectors {
  public:
    /// `cached`: a cache holds them, and so is to hold them before they are timed.
    explicit Vectors(std::uint64_t bytes, bool cached = true)
        : memory_(bytes / sizeof(double), 1.0), cached_(cached) {}

    /// Returns the vector at this offset. Vectors lie one after another.
    std::byte* at(std::uint64_t offset) {
        return reinterpret_cast<std::byte*>(memory_.data()) + offset;
    }

    double copy_ns(std::uint64_t bytes) {
        return repeat(2 * bytes, [&] { std::memcpy(at(bytes), at(0), bytes); });
    }

    double reduce_ns(std::uint32_t operands, std::uint64_t bytes) {
        const engine::CombineFn sum =
            engine::find_operator(engine::OperatorKind::sum, engine::ElementType::float64);
        std::array<const std::byte*, kOperands.back()> pointers;
        for (std::uint32_t k = 0; k < operands; ++k) {
            pointers[k] = at(k * bytes);
        }
        return repeat((operands + 1) * bytes, [&] {
            sum(nullptr, pointers.data(), operands, at(operands * bytes), bytes);
        });
    }

  private:
    /// After a fork the first write to a page copies it. No copy or reduction is to be timed with
    /// that.
    void own_pages() {
        for (std::uint64_t i = 0; !owned_ && i < memory_.size(); i += kPage / sizeof(double)) {
            memory_[i] = 2.0;
        }
        owned_ = true;
    }

    template <typename Action>
    double repeat(std::uint64_t touched_bytes, Action action) {
        own_pages();
        const std::uint64_t times =
            std::clamp<std::uint64_t>(16 * kRoundBytes / touched_bytes, 1, 1000);
        if (cached_) {
            action(); // Brings it into the cache.
        }
        const Clock::time_point start = Clock::now();
        for (std::uint64_t i = 0; i < times; ++i) {
            action();
            fence();
        }
        return elapsed_ns(start) / static_cast<double>(times);
    }

    std::vector<double> memory_;
    bool cached_;
    bool owned_ = false;
};

} // namespace ucg::tools
