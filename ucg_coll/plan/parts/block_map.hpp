// Where the blocks of a team's members lie in one rank's buffer: the view through which the
// algorithms that move blocks (allgather, alltoall, gather, scatter, reduce_scatter) see equal
// blocks and block vectors alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/graph.hpp"

namespace ucg::plan {

/// A list of blocks, each of them a slice.
class BlockMap {
  public:
    /// Returns blocks of which block i is bytes [i * block_bytes, (i + 1) * block_bytes) of
    /// `buffer`.
    /// REQUIRES: buffer.length == count * block_bytes.
    static BlockMap equal(graph::Slice buffer, Rank count, std::uint64_t block_bytes);

    /// Cuts `buffer` into `count` blocks of equal length: the shortest that is whole units and
    /// suffices. Blocks at the end may be shorter, or empty. REQUIRES: unit > 0.
    static BlockMap cut(graph::Slice buffer, Rank count, std::uint64_t unit);
    /// Returns the length of the blocks into which cut() cuts a buffer of `bytes`.
    static std::uint64_t cut_bytes(std::uint64_t bytes, Rank count, std::uint64_t unit) {
        return round_up(divide_up(bytes, static_cast<std::uint64_t>(count)), unit);
    }

    /// Returns blocks of which block i is bytes [offsets[i], offsets[i] + bytes[i]) from the start
    /// of `buffer`, whose length is ignored. Blocks may overlap if they are only read.
    static BlockMap vectors(graph::Slice buffer, const graph::Blocks& blocks);

    /// Returns blocks of the given lengths, end to end from the start of `buffer`.
    static BlockMap end_to_end(graph::Slice buffer, std::span<const std::uint64_t> bytes);

    /// Returns the blocks listed.
    static BlockMap of(std::vector<graph::Slice> blocks);

    Rank count() const { return count_; }
    graph::Slice block(Rank index) const;
    std::uint64_t bytes(Rank index) const { return block(index).length; }
    /// Returns the length of the longest block; 0 if there is none.
    std::uint64_t bytes_max() const;

    /// Returns the blocks first, first + 1, ..., `count` of them, starting over after the last, in
    /// as few slices as hold them in this order. Equal blocks take constant time, and at most two
    /// slices.
    /// REQUIRES: 0 <= first < this->count(), 0 <= count <= this->count().
    std::vector<graph::Slice> runs(Rank first, Rank count) const;

    /// Returns the length of all blocks that runs() returns.
    std::uint64_t run_bytes(Rank first, Rank count) const;

  private:
    BlockMap() = default;
    /// Returns where block `index` of buffer_ begins; for index == count(), where the last one
    /// ends.
    std::uint64_t offset(Rank index) const {
        return std::min(static_cast<std::uint64_t>(index) * block_bytes_, buffer_.length);
    }

    graph::Slice buffer_;              // Of equal() or cut() blocks.
    std::uint64_t block_bytes_ = 0;    // The length of such blocks.
    std::vector<graph::Slice> slices_; // All other blocks; empty for equal() and cut() ones.
    Rank count_ = 0;
};

/// Returns the length of all slices together.
std::uint64_t total_bytes(std::span<const graph::Slice> slices);

/// Appends `slice`, or lengthens the last slice if the two are adjacent. Drops empty ones.
void append_slice(std::vector<graph::Slice>& slices, const graph::Slice& slice);

/// Copies `sources`, one after the other, to `target`. REQUIRES: equal total length.
void pack(graph::Builder& builder, std::span<const graph::Slice> sources, graph::Slice target);

/// Returns where a message for `targets` is received: in the target itself if there is one only,
/// else in new scratch, from which unpack() moves it on.
graph::Slice landing_place(graph::Builder& builder, std::span<const graph::Slice> targets);

/// Copies `source` to `targets`, filling one after the other. It copies nothing where `source` is
/// the target itself.
/// REQUIRES: equal total length.
void unpack(graph::Builder& builder, graph::Slice source, std::span<const graph::Slice> targets);

/// Returns the bytes of `sources` as one slice: the source itself if there is one only, else a
/// packed copy in new scratch.
graph::Slice packed(graph::Builder& builder, std::span<const graph::Slice> sources);

} // namespace ucg::plan
