// Reduction of a vector in blocks over a circulant graph: the broadcast backwards, as Träff 2024
// has it. A member that receives a block there sends here what it has combined of it, and a member
// that sends it there receives it here and combines.
#include <algorithm>
#include <array>

#include "ucg_coll/plan/messages/circulant.hpp"
#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/needs.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;
using Rounds = std::span<const CirculantPhase::Round>;

/// Places for what comes in a phase: it is combined before the next phase but one receives there.
constexpr std::uint32_t kRotation = 2;

/// Whether a contribution to a block is the first or the last one, in the order in which they come.
struct Contribution {
    bool first = true;
    bool last = true;
};

/// The contributions that come to one member. Block numbers that differ by a multiple of the rounds
/// stand for the same blocks, in different phases.
class Contributions {
  public:
    explicit Contributions(Rounds rounds) : rounds_(rounds) {}

    /// Returns which contribution to its block comes in that round of a phase. `of_last`: is it the
    /// last block?
    Contribution in_round(std::size_t round, bool of_last) const {
        Contribution found;
        for (std::size_t other = 0; other < rounds_.size(); ++other) {
            if (other != round && comes(other) && same(rounds_[round].sent, other, of_last)) {
                const bool before = of_last ? other > round : time(other) > time(round);
                (before ? found.first : found.last) = false;
            }
        }
        return found;
    }
    /// Does any contribution come for the block that the member sends in that round?
    bool for_sent(std::size_t round, bool of_last) const {
        for (std::size_t other = 0; other < rounds_.size(); ++other) {
            if (comes(other) && same(rounds_[round].received, other, of_last)) {
                return true;
            }
        }
        return false;
    }
    /// Does a contribution come in that round?
    bool comes(std::size_t round) const { return rounds_[round].to != 0; }

  private:
    /// Does that round's contribution have the same block as `number`? Numbers stand for the last
    /// block in the last phase alone, and there only those that are not negative.
    bool same(int number, std::size_t round, bool of_last) const {
        const int other = rounds_[round].sent;
        return of_last ? other >= 0 : (number - other) % static_cast<int>(rounds_.size()) == 0;
    }
    /// Returns when the broadcast would send that round's block. Run backwards, the latest comes
    /// first.
    int time(std::size_t round) const { return static_cast<int>(round) - rounds_[round].sent; }

    Rounds rounds_;
};

/// One member's part.
class Member {
  public:
    Member(Builder& builder, const Team& from_root, const CirculantPhase& phase, Slice source,
           Slice target, const CirculantBlocks& blocks)
        : builder_(builder), from_root_(from_root), rounds_(phase.rounds()),
          contributions_(rounds_), source_(source), target_(target), blocks_(blocks) {
        partial_ = builder.scratch(is_root() ? blocks.last_bytes() : source.length);
    }

    /// Appends one phase. `inbox` has a place for what comes in each round. move_block() and
    /// move_place() make slices of blocks and places move from phase to phase in a repeat.
    template <typename MoveBlock, typename MovePlace>
    void one_phase(std::uint64_t phase, Slice inbox, MoveBlock move_block, MovePlace move_place) {
        const std::uint64_t place = inbox.length / rounds_.size();
        const auto place_of = [&](std::size_t round, const Slice& block) {
            return move_place(part(inbox, round * place, block.length));
        };
        for (std::size_t round = rounds_.size(); round-- > 0;) {
            if (const Slice block = coming(round, phase); block.length > 0) {
                builder_.recv(from_root_.rank(rounds_[round].to), place_of(round, block));
            }
        }
        // A block is combined no sooner than it is sent on: waiting for what comes would hold up
        // what this member has to send.
        std::vector<bool> combined(rounds_.size(), false);
        const auto combine_all = [&](std::size_t end, auto is_wanted) {
            for (std::size_t round = rounds_.size(); round-- > end;) {
                const Slice block = coming(round, phase);
                if (block.length > 0 && !combined[round] && is_wanted(block)) {
                    combine(round, phase, place_of(round, block), move_block);
                    combined[round] = true;
                }
            }
        };
        for (std::size_t round = rounds_.size(); round-- > 0 && !is_root();) {
            const Slice sent = blocks_.of(source_, rounds_[round].received, phase);
            combine_all(round + 1, [&](const Slice& block) { return block == sent; });
            send(round, phase, move_block);
        }
        combine_all(0, [](const Slice& /*block*/) { return true; });
    }

  private:
    bool is_root() const { return from_root_.index() == 0; }
    bool of_last(int number, std::uint64_t phase) const {
        return number >= 0 && blocks_.is_last_phase(phase);
    }
    Slice coming(std::size_t round, std::uint64_t phase) const {
        return contributions_.comes(round) ? blocks_.of(source_, rounds_[round].sent, phase)
                                           : Slice{};
    }
    /// Returns where the partial result of a block lies. At the root only the last block, which
    /// alone is combined in several steps there, has a place.
    Slice partial(int number, std::uint64_t phase) const {
        return blocks_.of(partial_, number, phase);
    }

    template <typename Move>
    void send(std::size_t round, std::uint64_t phase, Move move) {
        const int number = rounds_[round].received;
        const Slice own = blocks_.of(source_, number, phase);
        if (own.length == 0) {
            return;
        }
        const bool combined = contributions_.for_sent(round, of_last(number, phase));
        builder_.send(from_root_.rank(rounds_[round].from),
                      move(combined ? partial(number, phase) : own));
    }

    template <typename Move>
    void combine(std::size_t round, std::uint64_t phase, Slice come, Move move) {
        const int number = rounds_[round].sent;
        const Contribution is = contributions_.in_round(round, of_last(number, phase));
        const Slice left = is.first ? blocks_.of(source_, number, phase) : partial(number, phase);
        const Slice to =
            is_root() && is.last ? blocks_.of(target_, number, phase) : partial(number, phase);
        builder_.reduce(std::array{move(left), come}, move(to));
    }

    Builder& builder_;
    const Team& from_root_;
    Rounds rounds_;
    Contributions contributions_;
    Slice source_;
    Slice target_;
    Slice partial_;
    const CirculantBlocks& blocks_;
};

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::sparse);
    const Rank count = request.rank_count;
    const std::uint64_t phases =
        reduce_circulant_phases(link, count, request.bytes, operator_of(request));
    const double span_ns =
        reduce_circulant_ns(link, count, request.bytes, operator_of(request), phases);
    const std::uint64_t blocks = circulant_block_count(count, phases);
    const std::uint64_t block = request.bytes / blocks;
    return oversubscribed_pieces_ns(facts, link, request, span_ns, blocks, [&](const Work& work) {
        return work.link().message_ns(block) + work.link().reduce_ns(2, block);
    });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceCirculant.name);
    const Link link = flat_link(facts, Traffic::sparse);
    const Operator op = operator_of(request);
    reduce_circulant(builder, Team::whole(request.rank_count, rank), request.root,
                     contribution(builder, request), builder.output(0, request.bytes), op,
                     reduce_circulant_phases(link, request.rank_count, request.bytes, op));
    return builder.finish();
}

} // namespace

void reduce_circulant(Builder& builder, const Team& team, Rank root, Slice source, Slice target,
                      Operator op, std::uint64_t phases) {
    if (team.size() == 1) {
        builder.copy(source, target);
        return;
    }
    if (source.length == 0) {
        return;
    }
    const auto stay = [](const Slice& slice) { return slice; };
    const Team from_root = team.starting_at(root);
    const CirculantPhase phase(team.size(), from_root.index());
    const std::size_t rounds = phase.rounds().size();
    const CirculantBlocks blocks(source.length, static_cast<unsigned>(rounds), phases,
                                 op.element_bytes, CirculantBlocks::Order::falling);
    Member member(builder, from_root, phase, source, target, blocks);
    member.one_phase(phases - 1, builder.scratch(rounds * blocks.last_bytes()), stay, stay);
    if (phases == 1) {
        return;
    }
    const Slice inbox = builder.rotating_scratch(blocks.phase_bytes(), kRotation);
    if (phases > 2) {
        builder.begin_repeat((phases - 2) * blocks.phase_bytes(), blocks.phase_bytes(), kRotation);
        member.one_phase(phases - 2, inbox, graph::advance, graph::rotate);
        builder.end_repeat();
    }
    member.one_phase(0, inbox, stay, stay);
}

/// Partners wait for one another in every round, since the ops by which they send next stand behind
/// those by which they combine: a round takes as long as a whole message, as in the paper.
double reduce_circulant_ns(const Link& link, Rank count, std::uint64_t bytes, Operator op,
                           std::uint64_t phases) {
    if (count == 1 || bytes == 0) {
        return link.copy_ns(bytes);
    }
    const unsigned rounds = circulant_round_count(count);
    const auto further = static_cast<double>((phases - 1) * rounds);
    const CirculantBlocks blocks(bytes, rounds, phases, op.element_bytes,
                                 CirculantBlocks::Order::falling);
    const std::uint64_t block = blocks.phase_bytes() / rounds;
    const auto round_ns = [&](const Link& hop, std::uint64_t length) {
        return hop.message_ns(length) + link.in_segments().reduce_ns(2, length, bytes);
    };
    // The last block, which may be longer, has a phase of its own.
    const auto last_ns = [&](const Link& hop) { return round_ns(hop, blocks.last_bytes()); };
    return link.rounds_ns(0, rounds, 2, Link::Partners::rotated, last_ns) +
           further * round_ns(link, block) +
           std::max(link.receives_before_ns(1, bytes),
                    link.relays_before_ns(further + rounds, block));
}

std::uint64_t reduce_circulant_phases(const Link& link, Rank count, std::uint64_t bytes,
                                      Operator op) {
    const auto rounds = static_cast<Rank>(circulant_round_count(count));
    const double round_ns = link.message_ns(0) + link.reduce_ns(2, 0);
    const double per_byte_ns =
        link.gap_per_byte_ns() + (link.reduce_ns(2, 1) - link.reduce_ns(2, 0));
    const std::uint64_t block =
        pipeline_segment(bytes, rounds, round_ns, per_byte_ns, op.element_bytes);
    return circulant_phases(count, bytes, block, op.element_bytes, [&](std::uint64_t phases) {
        return reduce_circulant_ns(link, count, bytes, op, phases);
    });
}

constexpr Need kNeeds[] = {kHostEach, kMoreThanTwoRanks, kCommutative};

const Algorithm kReduceCirculant = {
    .name = "circulant",
    .collective = graph::Collective::reduce,
    .summary = "in blocks over a circulant graph, in the fewest rounds (Träff 2024)",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kNeeds,
};

} // namespace ucg::plan
