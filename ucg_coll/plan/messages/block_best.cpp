#include "ucg_coll/plan/messages/block_best.hpp"

#include <algorithm>
#include <bit>

namespace ucg::plan {

using graph::Builder;
using graph::Slice;

namespace {

using Piece = ReduceScatterChoice::Piece;

/// Can recursive doubling take the place of these rounds? It can if every base is 2 and the number
/// of members is a power of two.
bool doubles(Rank count, const DisseminationRounds& rounds) {
    return rounds.rounds > 0 && rounds.base_of(0) == 2 && rounds.base_of(rounds.rounds - 1) == 2 &&
           std::has_single_bit(static_cast<std::uint32_t>(count));
}

} // namespace

AllgatherChoice allgather_choice(const Link& link, Rank count, std::uint64_t total,
                                 std::uint64_t longest) {
    AllgatherChoice best = {.ring = false,
                            .rounds = allgather_dissemination_rounds(link, count, total, longest)};
    double best_ns = allgather_ns(link, count, total, longest, best);
    const auto consider = [&](const AllgatherChoice& choice) {
        const double ns = allgather_ns(link, count, total, longest, choice);
        if (ns < best_ns) {
            best = choice;
            best_ns = ns;
        }
    };
    if (count > 1) {
        consider({.ring = false, .rounds = balanced_rounds(count, tree_depth(count, 2))});
    }
    consider({.ring = true, .rounds = {}});
    return best;
}

double allgather_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest,
                    const AllgatherChoice& choice) {
    if (choice.ring) {
        return allgather_ring_ns(link, count, longest);
    }
    return doubles(count, choice.rounds)
               ? allgather_recursive_doubling_ns(link, count, longest)
               : allgather_n_way_dissemination_ns(link, count, total, longest, choice.rounds);
}

void allgather(Builder& builder, const Team& team, const AllgatherChoice& choice, Slice own,
               const BlockMap& target, BlocksHeld held) {
    if (choice.ring) {
        allgather_ring(builder, team, own, target, held);
    } else if (doubles(team.size(), choice.rounds)) { // Nothing is packed, and most peers are near.
        allgather_recursive_doubling(builder, team, own, target, held);
    } else {
        allgather_n_way_dissemination(builder, team, choice.rounds.schedule(), own, target, held);
    }
}

Rank allgather_sends(Rank count, const AllgatherChoice& choice) {
    if (choice.ring) {
        return count - 1;
    }
    Rank sends = 0;
    for (unsigned round = 0; round < choice.rounds.rounds; ++round) {
        sends += choice.rounds.base_of(round) - 1;
    }
    return sends;
}

void allgather_best(Builder& builder, const Team& team, const Link& link, Slice own,
                    const BlockMap& target) {
    const Rank count = team.size();
    allgather(builder, team,
              allgather_choice(link, count, target.run_bytes(0, count), target.bytes_max()), own,
              target);
}

double allgather_best_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest) {
    return allgather_ns(link, count, total, longest, allgather_choice(link, count, total, longest));
}

double reduce_scatter_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest,
                         const ReduceScatterChoice& choice) {
    switch (choice.piece) {
    case Piece::halving: return reduce_scatter_recursive_halving_ns(link, count, total, longest);
    case Piece::dissemination:
        return reduce_scatter_n_way_dissemination_ns(link, count, total, longest, choice.rounds);
    case Piece::ring: return reduce_scatter_ring_ns(link, count, longest);
    case Piece::pairwise: return reduce_scatter_pairwise_ns(link, count, longest);
    case Piece::reduce_then_scatter:
        return reduce_then_scatter_ns(link, count, total, longest, choice.through_root);
    }
    UCG_ASSERT(false);
    return 0;
}

ReduceScatterChoice reduce_scatter_choice(const Link& link, Rank count, std::uint64_t total,
                                          std::uint64_t longest, Operator op) {
    ReduceScatterChoice best = {.piece = Piece::pairwise, .rounds = {}};
    if (!op.commutative) {
        const ReduceScatterChoice through_root = {
            .piece = Piece::reduce_then_scatter,
            .rounds = {},
            .through_root = reduce_then_scatter_choice(link, count, total, longest, op)};
        return reduce_scatter_ns(link, count, total, longest, through_root) <
                       reduce_scatter_ns(link, count, total, longest, best)
                   ? through_root
                   : best;
    }
    const ReduceScatterChoice others[] = {
        {.piece = Piece::ring, .rounds = {}},
        {.piece = Piece::dissemination,
         .rounds = reduce_scatter_dissemination_rounds(link, count, total, longest)},
        {.piece = Piece::halving, .rounds = {}}};
    double best_ns = reduce_scatter_ns(link, count, total, longest, best);
    for (const ReduceScatterChoice& choice : others) {
        const double ns = reduce_scatter_ns(link, count, total, longest, choice);
        if (ns <= best_ns) {
            best = choice;
            best_ns = ns;
        }
    }
    return best;
}

void reduce_scatter(Builder& builder, const Team& team, const ReduceScatterChoice& choice,
                    const BlockMap& source, Slice target) {
    switch (choice.piece) {
    case Piece::halving:
        reduce_scatter_recursive_halving(builder, team, source, target,
                                         source.run_bytes(0, source.count()));
        break;
    case Piece::dissemination:
        reduce_scatter_n_way_dissemination(builder, team, choice.rounds.schedule(), source, target);
        break;
    case Piece::ring: reduce_scatter_ring(builder, team, source, target); break;
    case Piece::pairwise: reduce_scatter_pairwise(builder, team, source, target); break;
    case Piece::reduce_then_scatter:
        reduce_then_scatter(builder, team, choice.through_root, source, target);
        break;
    }
}

void reduce_scatter_best(Builder& builder, const Team& team, const Link& link,
                         const BlockMap& source, Slice target, Operator op) {
    const Rank count = team.size();
    reduce_scatter(
        builder, team,
        reduce_scatter_choice(link, count, source.run_bytes(0, count), source.bytes_max(), op),
        source, target);
}

double reduce_scatter_best_ns(const Link& link, Rank count, std::uint64_t total,
                              std::uint64_t longest, Operator op) {
    return reduce_scatter_ns(link, count, total, longest,
                             reduce_scatter_choice(link, count, total, longest, op));
}

RootedPiece rooted_choice(const Link& link, Rank count, std::uint64_t block_bytes, Root root) {
    return rooted_ns(link, count, block_bytes, root, RootedPiece::linear) <=
                   rooted_ns(link, count, block_bytes, root, RootedPiece::binomial)
               ? RootedPiece::linear
               : RootedPiece::binomial;
}

double rooted_ns(const Link& link, Rank count, std::uint64_t block_bytes, Root root,
                 RootedPiece piece) {
    return piece == RootedPiece::linear
               ? link.shared_by(1).root_blocks_ns(count, block_bytes, root)
               : binomial_blocks_ns(link.in_trees(), count, block_bytes, root);
}

double rooted_once_ns(const Link& link, Rank count, std::uint64_t block_bytes, Root root,
                      RootedPiece piece) {
    return piece == RootedPiece::linear
               ? link.shared_by(1).root_blocks_once_ns(count, block_bytes, root)
               : binomial_blocks_once_ns(link.in_trees(), count, block_bytes, root);
}

void gather(Builder& builder, const Team& team, RootedPiece piece, Rank root, Slice own,
            const BlockMap& target) {
    if (piece == RootedPiece::linear) {
        gather_linear(builder, team, root, own, target);
    } else {
        gather_binomial(builder, team, root, own, target);
    }
}

void gather_best(Builder& builder, const Team& team, const Link& link, Rank root, Slice own,
                 const BlockMap& target, std::uint64_t block_bytes) {
    gather(builder, team, rooted_choice(link, team.size(), block_bytes, Root::receives), root, own,
           target);
}

double gather_best_ns(const Link& link, Rank count, std::uint64_t block_bytes) {
    return rooted_ns(link, count, block_bytes, Root::receives,
                     rooted_choice(link, count, block_bytes, Root::receives));
}

void scatter(Builder& builder, const Team& team, RootedPiece piece, Rank root,
             const BlockMap& source, Slice own) {
    if (piece == RootedPiece::linear) {
        scatter_linear(builder, team, root, source, own);
    } else {
        scatter_binomial(builder, team, root, source, own);
    }
}

void scatter_best(Builder& builder, const Team& team, const Link& link, Rank root,
                  const BlockMap& source, Slice own, std::uint64_t block_bytes) {
    scatter(builder, team, rooted_choice(link, team.size(), block_bytes, Root::sends), root, source,
            own);
}

double scatter_best_ns(const Link& link, Rank count, std::uint64_t block_bytes) {
    return rooted_ns(link, count, block_bytes, Root::sends,
                     rooted_choice(link, count, block_bytes, Root::sends));
}

} // namespace ucg::plan
