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

/// How a vector is cut in halves, again and again; the lower half has the odd element.
class Halving {
  public:
    Halving(std::uint64_t bytes, std::uint64_t element_bytes)
        : bytes_(bytes), element_bytes_(element_bytes) {}

    /// The stretch that `position` is left with when partners at distances below `distance`, a
    /// power of two, have shared their work; 1 gives the whole vector.
    Extent kept(Rank position, Rank distance) const;

  private:
    std::uint64_t bytes_;
    std::uint64_t element_bytes_;
};

/// Bytes of a vector, of which `slice` holds those from `offset` on.
struct VectorView {
    graph::Slice slice;
    std::uint64_t offset = 0;

    graph::Slice at(const Extent& extent) const {
        return part(slice, extent.offset - offset, extent.length);
    }
};

/// Combines `source` of all acting members; each is left with the result for its stretch,
/// kept(position, fold.size()), at that place in `target`. REQUIRES: fold.acts(), fold.size() > 1.
void reduce_scatter_halving(graph::Builder& builder, const Team& team, const Fold& fold,
                            const Halving& halving, graph::Slice source, const VectorView& target);

/// The reverse: members who hold their stretches in `target` are left with all of it.
/// REQUIRES: fold.acts().
void allgather_doubling(graph::Builder& builder, const Team& team, const Fold& fold,
                        const Halving& halving, graph::Slice target);

/// Half of it: only the member at position `root` is left with all. `held` has room for what this
/// member gets to hold, stretch_to_gather().
/// REQUIRES: fold.acts().
void gather_doubling(graph::Builder& builder, const Team& team, const Fold& fold,
                     const Halving& halving, Rank root, const VectorView& held);
Extent stretch_to_gather(const Fold& fold, const Halving& halving, Rank root);

/// An exchange by halving, without the combining.
double halving_ns(const Link& link, Rank size, std::uint64_t bytes, price::Source first);
/// The exchange by doubling that puts the results together again.
double doubling_ns(const Link& link, Rank size, std::uint64_t bytes, Sender sender,
                   std::uint64_t least_bytes = 0);
/// The combining that goes with the halving.
double halving_reduce_ns(const Link& link, Rank size, std::uint64_t bytes,
                         std::uint64_t vector_bytes);

} // namespace ucg::plan
