// Recursive halving and doubling of a vector among the acting members of a fold: in round i
// partners are 2^i positions apart. Neighbours meet first, when the vector is longest, and what a
// member has combined always comes from contiguous ranks.
#pragma once

#include "ucg_coll/plan/messages/fold.hpp"

namespace ucg::plan {

/// A stretch of a vector, in bytes from its start.
struct Extent {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

/// A vector of `bytes` that is cut in halves again and again. If the number of elements is odd, the
/// lower half has one more.
class Halving {
  public:
    Halving(std::uint64_t bytes, std::uint64_t element_bytes)
        : bytes_(bytes), element_bytes_(element_bytes) {}

    /// Returns the stretch that is left for `position` after the rounds with partners at distances
    /// below `distance`, a power of two; for distance 1, the whole vector.
    Extent kept(Rank position, Rank distance) const;

    /// Returns the longer half of a stretch of `bytes`.
    static std::uint64_t longer_half(std::uint64_t bytes, std::uint64_t element_bytes) {
        return divide_up(bytes / element_bytes, 2) * element_bytes;
    }

  private:
    std::uint64_t bytes_;
    std::uint64_t element_bytes_;
};

/// A part of a vector: `slice` holds the vector's bytes from `offset` on.
struct VectorView {
    graph::Slice slice;
    std::uint64_t offset = 0;

    /// Returns the slice of that stretch of the vector.
    graph::Slice at(const Extent& extent) const {
        return part(slice, extent.offset - offset, extent.length);
    }
};

/// Combines `source` of all acting members. Each gets the result for its stretch, which is
/// kept(position, fold.size()), at the stretch's place in `target`. REQUIRES: fold.acts(),
/// fold.size() > 1.
void reduce_scatter_halving(graph::Builder& builder, const Team& team, const Fold& fold,
                            const Halving& halving, graph::Slice source, const VectorView& target);

/// Reverses reduce_scatter_halving(): acting members, each of which has its stretch in `target`,
/// get all of `target`. REQUIRES: fold.acts().
void allgather_doubling(graph::Builder& builder, const Team& team, const Fold& fold,
                        const Halving& halving, graph::Slice target);

/// Like allgather_doubling(), but only the member at position `root` gets the whole vector. `held`
/// has room for what this member collects, stretch_to_gather(). REQUIRES: fold.acts().
void gather_doubling(graph::Builder& builder, const Team& team, const Fold& fold,
                     const Halving& halving, Rank root, const VectorView& held);
/// Returns the stretch that this member has when it sends to another; at the root, the whole
/// vector.
Extent stretch_to_gather(const Fold& fold, const Halving& halving, Rank root);

// Prices. Stretches are halved at whole elements, of `element_bytes`.

/// Returns the price of an exchange by halving among `size` members, without the combining. `first`
/// says what each member sends first.
double halving_ns(const Link& link, Rank size, std::uint64_t bytes, std::uint64_t element_bytes,
                  Source first);
/// Returns the price of the exchange by doubling that puts the results together again. Stretches of
/// less than `least_bytes` were not halved.
double doubling_ns(const Link& link, Rank size, std::uint64_t bytes, std::uint64_t element_bytes,
                   Sender sender, std::uint64_t least_bytes = 0);
/// Returns the price of the combining that goes with the halving of `bytes`, which are part of
/// vectors of `vector_bytes`.
double halving_reduce_ns(const Link& link, Rank size, std::uint64_t bytes,
                         std::uint64_t element_bytes, std::uint64_t vector_bytes);

} // namespace ucg::plan
