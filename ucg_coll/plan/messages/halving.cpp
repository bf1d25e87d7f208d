#include "ucg_coll/plan/messages/halving.hpp"

#include <array>

namespace ucg::plan {

using graph::Builder;
using graph::Slice;

Extent Halving::kept(Rank position, Rank distance) const {
    Extent extent{0, bytes_};
    for (Rank bit = 1; bit < distance; bit *= 2) {
        const std::uint64_t lower = longer_half(extent.length, element_bytes_);
        extent = (position & bit) == 0 ? Extent{extent.offset, lower}
                                       : Extent{extent.offset + lower, extent.length - lower};
    }
    return extent;
}

void reduce_scatter_halving(Builder& builder, const Team& team, const Fold& fold,
                            const Halving& halving, Slice source, const VectorView& target) {
    const Rank position = fold.position();
    const auto receive = [&](Rank distance) {
        const Slice half = builder.scratch(halving.kept(position, 2 * distance).length);
        builder.recv(team.rank(fold.member(position ^ distance)), half);
        return half;
    };
    VectorView partial{source, 0};
    Slice next{};
    for (Rank distance = 1; distance < fold.size(); distance *= 2) {
        const Rank other = position ^ distance;
        const Extent keep = halving.kept(position, 2 * distance);
        const bool last = 2 * distance == fold.size();
        builder.send(team.rank(fold.member(other)), partial.at(halving.kept(other, 2 * distance)));
        const Slice received = distance == 1 ? receive(distance) : next;
        if (!last) {
            next = receive(2 * distance); // Posted before the wait for this round's message.
        }
        const Slice own = partial.at(keep);
        const std::array operands =
            position < other ? std::array{own, received} : std::array{received, own};
        if (last) {
            reduce_to(builder, operands, target.at(keep));
        } else {
            partial = {reduce_to_scratch(builder, operands), keep.offset};
        }
    }
}

void allgather_doubling(Builder& builder, const Team& team, const Fold& fold,
                        const Halving& halving, Slice target) {
    const VectorView all{target, 0};
    for (Rank distance = fold.size() / 2; distance > 0; distance /= 2) {
        const Rank other = fold.position() ^ distance;
        const Rank peer = team.rank(fold.member(other));
        // The receive is posted first, since the send waits for the receive of the round before.
        builder.recv(peer, all.at(halving.kept(other, 2 * distance)));
        builder.send(peer, all.at(halving.kept(fold.position(), 2 * distance)));
    }
}

void gather_doubling(Builder& builder, const Team& team, const Fold& fold, const Halving& halving,
                     Rank root, const VectorView& held) {
    for (Rank distance = fold.size() / 2; distance > 0; distance /= 2) {
        const Rank other = fold.position() ^ distance;
        const Rank peer = team.rank(fold.member(other));
        if (((fold.position() ^ root) & distance) != 0) {
            builder.send(peer, held.at(halving.kept(fold.position(), 2 * distance)));
            return;
        }
        builder.recv(peer, held.at(halving.kept(other, 2 * distance)));
    }
}

Extent stretch_to_gather(const Fold& fold, const Halving& halving, Rank root) {
    const Rank differing = fold.position() ^ root;
    if (differing == 0) {
        return halving.kept(root, 1);
    }
    // Distances go from the largest down. The member sends at the first one at which its position
    // differs from the root's.
    const auto first = static_cast<Rank>(floor_power_of_two(static_cast<std::uint32_t>(differing)));
    return halving.kept(fold.position(), 2 * first);
}

double halving_ns(const Link& link, Rank size, std::uint64_t bytes, std::uint64_t element_bytes,
                  Source first) {
    double total_ns = 0;
    for (Rank distance = 1; distance < size; distance *= 2) {
        bytes = Halving::longer_half(bytes, element_bytes);
        const Link round = link.exchanged(static_cast<std::uint64_t>(distance));
        total_ns += round.message_ns(bytes, distance == 1 ? first : Source::fresh);
    }
    return total_ns;
}

double doubling_ns(const Link& link, Rank size, std::uint64_t bytes, std::uint64_t element_bytes,
                   Sender sender, std::uint64_t least_bytes) {
    double total_ns = 0;
    for (Rank distance = 1; distance < size && bytes >= least_bytes; distance *= 2) {
        bytes = Halving::longer_half(bytes, element_bytes);
        total_ns += link.exchanged(static_cast<std::uint64_t>(distance))
                        .message_ns(bytes, Source::fresh, sender);
    }
    return total_ns;
}

double halving_reduce_ns(const Link& link, Rank size, std::uint64_t bytes,
                         std::uint64_t element_bytes, std::uint64_t vector_bytes) {
    double total_ns = 0;
    for (Rank distance = 1; distance < size; distance *= 2) {
        bytes = Halving::longer_half(bytes, element_bytes);
        total_ns +=
            link.exchanged(static_cast<std::uint64_t>(distance)).combining_ns(bytes, vector_bytes);
    }
    return total_ns;
}

} // namespace ucg::plan
