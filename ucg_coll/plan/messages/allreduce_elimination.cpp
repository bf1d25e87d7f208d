// Recursive doubling allreduce with 3-2 eliminations (elimination.hpp). Groups combine as (lower,
// upper), so that all ranks evaluate one and the same expression, in rank order.
#include <array>

#include "ucg_coll/plan/messages/elimination.hpp"
#include "ucg_coll/plan/messages/fold.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    return oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense), 6 * request.bytes, [&](const Link& link) {
            return allreduce_elimination_ns(link, request.rank_count, request.bytes);
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kAllreduceElimination.name);
    allreduce_elimination(builder, Team::whole(request.rank_count, rank),
                          contribution(builder, request), builder.output(0, request.bytes));
    return builder.finish();
}

/// The program of one member.
class Member {
  public:
    Member(Builder& builder, const Team& team, Slice source, Slice target)
        : builder_(builder), team_(team), plan_(team.size(), team.index()), partial_(source),
          target_(target) {}

    void append() {
        Arrivals next = receive(0);
        for (unsigned round = 0; round < plan_.leaves_at(); ++round) {
            const Arrivals now = next;
            if (now.taken.length > 0) {
                partial_ = reduce_to_scratch(builder_, std::array{now.taken, partial_});
            }
            const bool last = round + 1 == plan_.rounds();
            builder_.send(team_.rank(plan_.partner(round)), partial_);
            if (last) {
                tell();
            }
            next = receive(round + 1); // Posted before the wait for this round's messages.
            const std::array operands = plan_.is_upper(round) ? std::array{now.other, partial_}
                                                              : std::array{partial_, now.other};
            if (last) {
                reduce_to(builder_, operands, target_);
            } else {
                partial_ = reduce_to_scratch(builder_, operands);
            }
        }
        if (plan_.leaves_at() < plan_.rounds()) {
            leave();
        }
    }

  private:
    /// What comes in a round: `taken` from an eliminated member, `other` from the partner. Empty if
    /// nothing comes.
    struct Arrivals {
        Slice taken;
        Slice other;
    };

    Arrivals receive(unsigned round) {
        Arrivals arrivals;
        if (round < plan_.leaves_at()) {
            if (const Rank from = plan_.taken_from(round); from != kNoRank) {
                arrivals.taken = receive_from(from);
            }
            arrivals.other = receive_from(plan_.partner(round));
        }
        return arrivals;
    }

    Slice receive_from(Rank index) {
        const Slice vector = builder_.scratch(partial_.length);
        builder_.recv(team_.rank(index), vector);
        return vector;
    }

    void tell() {
        for (Rank number = plan_.first_told(); number < plan_.eliminated();
             number += plan_.tell_stride()) {
            builder_.send(team_.rank(plan_.eliminated_member(number)), partial_);
        }
    }

    void leave() {
        builder_.send(team_.rank(plan_.taker()), partial_);
        const Slice lower = receive_from(plan_.teller(plan_.number(), false));
        const Slice upper = receive_from(plan_.teller(plan_.number(), true));
        reduce_to(builder_, std::array{lower, upper}, target_);
    }

    Builder& builder_;
    const Team& team_;
    Elimination plan_;
    Slice partial_;
    Slice target_;
};

} // namespace

void allreduce_elimination(Builder& builder, const Team& team, Slice source, Slice target) {
    if (team.size() == 1) {
        builder.copy(source, target);
        return;
    }
    Member(builder, team, source, target).append();
}

double allreduce_elimination_ns(const Link& link, Rank count, std::uint64_t bytes) {
    if (count == 1) {
        return 0;
    }
    const unsigned messages = tree_depth(count, 2); // Including one for all eliminations.
    // A member that dropped out is sent both results of the last round, each by a member that sends
    // to its partner, too, and to at most two that dropped out.
    const Rank told =
        folds(count)
            ? (Elimination(count, 0).eliminated() - 1) / Elimination(count, 0).tell_stride() + 1
            : 0;
    const auto further_ns = [&](const Link& round) {
        return round.message_ns(bytes, Source::fresh);
    };
    return link.within(2).message_ns(bytes) +
           link.rounds_ns(1, messages, 2, Link::Partners::aligned, further_ns) +
           told * link.gap_ns(bytes) + messages * link.reduce_ns(2, bytes);
}

const Algorithm kAllreduceElimination = {
    .name = "elimination",
    .collective = graph::Collective::allreduce,
    .summary = "recursive doubling with 3-2 eliminations (Rabenseifner, Traeff 2004)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
