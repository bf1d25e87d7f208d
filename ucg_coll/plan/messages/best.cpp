#include "ucg_coll/plan/messages/best.hpp"

#include <array>

#include "ucg_coll/plan/messages/block_best.hpp"
#include "ucg_coll/plan/multiplying/choice.hpp"
#include "ucg_coll/plan/multiplying/piece.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

// Each collective has a table of its pieces. The price of a piece and the call that appends it
// stand together, each with the parameters that cost least.

/// Says of a piece that it serves all teams.
template <typename... Case>
bool always(Case... /*of*/) {
    return true;
}

/// Does a circulant graph serve? In its rounds the ranks of one host would share the link.
bool circulates(const Link& link, Rank count) {
    return link.is_across_hosts() && count > 2;
}

/// A piece with the lowest price; of several the first in its table.
template <typename Piece>
struct Cheapest {
    const Piece* piece = nullptr;
    double ns = 0;
};

template <typename Piece, std::size_t kCount, typename... Case>
Cheapest<Piece> cheapest(const std::array<Piece, kCount>& pieces, const Case&... of) {
    Cheapest<Piece> best;
    for (const Piece& piece : pieces) {
        if (!piece.serves(of...)) {
            continue;
        }
        const double ns = piece.ns(of...);
        if (best.piece == nullptr || ns < best.ns) {
            best = {&piece, ns};
        }
    }
    UCG_ASSERT(best.piece != nullptr);
    return best;
}

struct BcastPiece {
    bool (*serves)(const Link& link, Rank count, std::uint64_t bytes);
    double (*ns)(const Link& link, Rank count, std::uint64_t bytes);
    void (*append)(Builder& builder, const Team& team, const Link& link, Rank root, Slice data);
};

constexpr std::array kBcastPieces = {
    BcastPiece{always,
               [](const Link& link, Rank count, std::uint64_t bytes) {
                   return bcast_knomial_ns(link, count, bytes,
                                           bcast_knomial_radix(link, count, bytes));
               },
               [](Builder& builder, const Team& team, const Link& link, Rank root, Slice data) {
                   bcast_knomial(builder, team, root, data,
                                 bcast_knomial_radix(link, team.size(), data.length));
               }},
    BcastPiece{always,
               [](const Link& link, Rank count, std::uint64_t bytes) {
                   return bcast_chain_ns(link, count, bytes,
                                         bcast_chain_segment(link, count, bytes));
               },
               [](Builder& builder, const Team& team, const Link& link, Rank root, Slice data) {
                   bcast_chain(builder, team, root, data,
                               bcast_chain_segment(link, team.size(), data.length));
               }},
    BcastPiece{[](const Link& link, Rank count, std::uint64_t) { return circulates(link, count); },
               [](const Link& link, Rank count, std::uint64_t bytes) {
                   return bcast_circulant_ns(link, count, bytes,
                                             bcast_circulant_phases(link, count, bytes));
               },
               [](Builder& builder, const Team& team, const Link& link, Rank root, Slice data) {
                   bcast_circulant(builder, team, root, data,
                                   bcast_circulant_phases(link, team.size(), data.length));
               }},
    BcastPiece{always,
               [](const Link& link, Rank count, std::uint64_t bytes) {
                   return bcast_scatter_allgather_ns(link, count, bytes,
                                                     bcast_choices(link, count, bytes));
               },
               [](Builder& builder, const Team& team, const Link& link, Rank root, Slice data) {
                   bcast_scatter_allgather(builder, team, root, data,
                                           bcast_choices(link, team.size(), data.length));
               }},
};

/// A reduction, as a piece sees it.
struct Reduction {
    const Link& link;
    Rank count;
    Rank root;
    std::uint64_t bytes;
    Operator op;
};

struct ReducePiece {
    bool (*serves)(const Reduction& of);
    double (*ns)(const Reduction& of);
    void (*append)(Builder& builder, const Team& team, const Reduction& of, Slice source,
                   Slice target);
};

constexpr std::array kReducePieces = {
    ReducePiece{
        always,
        [](const Reduction& of) {
            return reduce_knomial_ns(of.link, of.count, of.root, of.bytes, of.op,
                                     reduce_knomial_radix(of.link, of.count, of.bytes));
        },
        [](Builder& builder, const Team& team, const Reduction& of, Slice source, Slice target) {
            reduce_knomial(builder, team, of.root, source, target, of.op,
                           reduce_knomial_radix(of.link, of.count, of.bytes));
        }},
    ReducePiece{
        always,
        [](const Reduction& of) {
            return reduce_chain_ns(
                of.link, of.count, of.root, of.bytes,
                reduce_chain_segment(of.link, of.count, of.root, of.bytes, of.op));
        },
        [](Builder& builder, const Team& team, const Reduction& of, Slice source, Slice target) {
            reduce_chain(builder, team, of.root, source, target,
                         reduce_chain_segment(of.link, of.count, of.root, of.bytes, of.op));
        }},
    ReducePiece{
        [](const Reduction& of) { return circulates(of.link, of.count) && of.op.commutative; },
        [](const Reduction& of) {
            return reduce_circulant_ns(of.link, of.count, of.bytes, of.op,
                                       reduce_circulant_phases(of.link, of.count, of.bytes, of.op));
        },
        [](Builder& builder, const Team& team, const Reduction& of, Slice source, Slice target) {
            reduce_circulant(builder, team, of.root, source, target, of.op,
                             reduce_circulant_phases(of.link, of.count, of.bytes, of.op));
        }},
    ReducePiece{
        always,
        [](const Reduction& of) {
            return reduce_rabenseifner_ns(of.link, of.count, of.bytes, of.op.element_bytes);
        },
        [](Builder& builder, const Team& team, const Reduction& of, Slice source, Slice target) {
            reduce_rabenseifner(builder, team, of.root, source, target, of.op);
        }},
    ReducePiece{
        always,
        [](const Reduction& of) {
            return reduce_scatter_gather_ns(
                of.link, of.count, of.bytes, of.op,
                reduce_scatter_gather_choices(of.link, of.count, of.bytes, of.op));
        },
        [](Builder& builder, const Team& team, const Reduction& of, Slice source, Slice target) {
            reduce_scatter_gather(
                builder, team, of.root, source, target, of.op,
                reduce_scatter_gather_choices(of.link, of.count, of.bytes, of.op));
        }},
};

/// An allreduce has no root.
constexpr Rank kNoRoot = 0;

constexpr std::array kAllreducePieces = {
    ReducePiece{always,
                [](const Reduction& of) {
                    return allreduce_recursive_doubling_ns(of.link, of.count, of.bytes);
                },
                [](Builder& builder, const Team& team, const Reduction&, Slice source,
                   Slice target) { allreduce_recursive_doubling(builder, team, source, target); }},
    ReducePiece{
        [](const Reduction& of) { return of.op.commutative; },
        [](const Reduction& of) { return allreduce_ring_ns(of.link, of.count, of.bytes, of.op); },
        [](Builder& builder, const Team& team, const Reduction& of, Slice source, Slice target) {
            allreduce_ring(builder, team, source, target, of.op);
        }},
    ReducePiece{always,
                [](const Reduction& of) {
                    return allreduce_rabenseifner_ns(of.link, of.count, of.bytes, of.op);
                },
                [](Builder& builder, const Team& team, const Reduction& of, Slice source,
                   Slice target) { allreduce_rabenseifner(builder, team, source, target, of.op); }},
    ReducePiece{
        always,
        [](const Reduction& of) {
            return allreduce_recursive_multiplying_ns(of.link, of.count, of.bytes);
        },
        [](Builder& builder, const Team& team, const Reduction& of, Slice source, Slice target) {
            allreduce_recursive_multiplying(
                builder, team,
                allreduce_recursive_multiplying_schedule(of.link, of.count, of.bytes), source,
                target);
        }},
    ReducePiece{
        always,
        [](const Reduction& of) { return allreduce_elimination_ns(of.link, of.count, of.bytes); },
        [](Builder& builder, const Team& team, const Reduction&, Slice source, Slice target) {
            allreduce_elimination(builder, team, source, target);
        }},
    ReducePiece{
        always,
        [](const Reduction& of) {
            return allreduce_reduce_scatter_allgather_ns(
                of.link, of.count, of.bytes, of.op,
                allreduce_reduce_scatter_allgather_choices(of.link, of.count, of.bytes, of.op));
        },
        [](Builder& builder, const Team& team, const Reduction& of, Slice source, Slice target) {
            allreduce_reduce_scatter_allgather(
                builder, team, source, target, of.op,
                allreduce_reduce_scatter_allgather_choices(of.link, of.count, of.bytes, of.op));
        }},
};

} // namespace

void bcast_best(Builder& builder, const Team& team, const Link& link, Rank root, Slice data) {
    cheapest(kBcastPieces, link, team.size(), data.length)
        .piece->append(builder, team, link, root, data);
}

double bcast_best_ns(const Link& link, Rank count, std::uint64_t bytes) {
    return cheapest(kBcastPieces, link, count, bytes).ns;
}

void reduce_best(Builder& builder, const Team& team, const Link& link, Rank root, Slice source,
                 Slice target, Operator op) {
    const Reduction of{link, team.size(), root, source.length, op};
    cheapest(kReducePieces, of).piece->append(builder, team, of, source, target);
}

double reduce_best_ns(const Link& link, Rank count, Rank root, std::uint64_t bytes, Operator op) {
    return cheapest(kReducePieces, Reduction{link, count, root, bytes, op}).ns;
}

void allreduce_best(Builder& builder, const Team& team, const Link& link, Slice source,
                    Slice target, Operator op) {
    const Reduction of{link, team.size(), kNoRoot, source.length, op};
    cheapest(kAllreducePieces, of).piece->append(builder, team, of, source, target);
}

double allreduce_best_ns(const Link& link, Rank count, std::uint64_t bytes, Operator op) {
    return cheapest(kAllreducePieces, Reduction{link, count, kNoRoot, bytes, op}).ns;
}

} // namespace ucg::plan
