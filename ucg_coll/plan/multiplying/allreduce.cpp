// Recursive multiplying allreduce, by a schedule of schedule.hpp: Ruefenacht, Bull, Booth,
// "Generalisation of recursive doubling for AllReduce: Now with simulation", 2017. The operands of
// a phase stand for neighbouring ranks, the lower first, so all ranks evaluate one expression.
#include <algorithm>

#include "ucg_coll/plan/multiplying/choice.hpp"
#include "ucg_coll/plan/multiplying/piece.hpp"
#include "ucg_coll/plan/multiplying/rows.hpp"
#include "ucg_coll/plan/multiplying/seats.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/parts/steps.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;
using Slices = std::vector<Slice>;

bool multiplies(const Phase& phase) {
    return phase.kind != PhaseKind::collapse && phase.kind != PhaseKind::expand;
}

/// Appends the ops of one member.
class Multiplication {
  public:
    Multiplication(Builder& builder, const Team& team, const MultiplyingSchedule& schedule,
                   Slice source, Slice target)
        : builder_(builder), team_(team), seats_(schedule, team.size()), source_(source),
          target_(target) {
        std::copy_if(schedule.phases.begin(), schedule.phases.end(), std::back_inserter(phases_),
                     multiplies);
    }

    void append() {
        const Rank actor = seats_.actor(team_.index());
        if (actor != team_.index()) {
            builder_.send(team_.rank(actor), source_);
            builder_.recv(team_.rank(actor), target_);
            return;
        }
        if (seats_.collapsed(team_.index())) {
            collapse();
        }
        const MultiplyingSeats::Part part = seats_.part_of(team_.index());
        if (part.member != kNoRank) {
            remain(part.member);
        } else {
            work(part.worker);
        }
        if (seats_.collapsed(team_.index())) {
            expand();
        }
    }

  private:
    /// Receives the vectors of its group of the collapse and combines them with its own. From then
    /// on the result stands for its own vector.
    void collapse() {
        Slices operands;
        for (Rank index = team_.index() - seats_.fold() + 1; index < team_.index(); ++index) {
            operands.push_back(receive(index));
        }
        operands.push_back(source_);
        source_ = reduce(operands, phases_.empty());
    }

    void expand() {
        for (Rank index = team_.index() - seats_.fold() + 1; index < team_.index(); ++index) {
            builder_.send(team_.rank(index), target_);
        }
    }

    /// Appends the part of a member of the remainder: it sends its vector to one group of the first
    /// phase, and combines what one group of the last phase sends.
    void remain(Rank member) {
        const Phase& merge = phases_.front();
        const Phase& inverse = phases_.back();
        const Rank first = member % merge.groups * merge.base;
        for (Rank worker = first; worker < first + merge.base; ++worker) {
            send(seats_.index_of_worker(worker), source_);
        }
        Slices operands;
        for (Rank place = 0; place < inverse.base; ++place) {
            const Rank worker = member % inverse.groups + place * inverse.groups;
            operands.push_back(receive(seats_.index_of_worker(worker)));
        }
        reduce(operands, true);
    }

    void work(Rank worker) {
        Slice partial = source_;
        Slices operands;
        Rank distance = 1;
        for (std::size_t i = 0; i < phases_.size(); ++i) {
            send_all(phases_[i], worker, distance, partial);
            if (i == 0) {
                operands = receive_all(phases_[i], worker, distance);
            }
            const Rank place = worker / distance % phases_[i].base;
            operands[operands.size() - static_cast<std::size_t>(phases_[i].base - place)] = partial;
            distance *= phases_[i].base;
            Slices next;
            if (i + 1 < phases_.size()) { // Posted before the wait for this phase's operands.
                next = receive_all(phases_[i + 1], worker, distance);
            }
            partial = reduce(operands, i + 1 == phases_.size());
            operands = std::move(next);
        }
    }

    /// Sends to the others of the group, beginning with the next one, so that not all send to the
    /// same rank at a time.
    void send_all(const Phase& phase, Rank worker, Rank distance, Slice partial) {
        const Rank place = worker / distance % phase.base;
        const Rank first = worker - place * distance;
        for (Rank hop = 1; hop < phase.base; ++hop) {
            const Rank peer = first + (place + hop) % phase.base * distance;
            send(seats_.index_of_worker(peer), partial);
        }
        if (phase.kind == PhaseKind::inverse_merge) {
            for (Rank member = worker % phase.groups; member < seats_.remainder();
                 member += phase.groups) {
                send(seats_.index_of_member(member), partial);
            }
        }
    }

    /// Receives the operands of a phase and returns them in rank order; the own one is still to be
    /// filled in.
    Slices receive_all(const Phase& phase, Rank worker, Rank distance) {
        Slices operands;
        if (phase.kind == PhaseKind::merge) {
            for (Rank member = worker / phase.base; member < seats_.remainder();
                 member += phase.groups) {
                operands.push_back(receive(seats_.index_of_member(member)));
            }
        }
        const Rank place = worker / distance % phase.base;
        const Rank first = worker - place * distance;
        for (Rank other = 0; other < phase.base; ++other) {
            const Rank peer = first + other * distance;
            operands.push_back(other == place ? Slice{} : receive(seats_.index_of_worker(peer)));
        }
        return operands;
    }

    void send(Rank index, Slice slice) { builder_.send(team_.rank(index), slice); }

    Slice receive(Rank index) {
        const Slice vector = builder_.scratch(source_.length);
        builder_.recv(team_.rank(index), vector);
        return vector;
    }

    Slice reduce(const Slices& operands, bool last) {
        if (!last) {
            return reduce_to_scratch(builder_, operands);
        }
        reduce_to(builder_, operands, target_);
        return target_;
    }

    Builder& builder_;
    const Team& team_;
    MultiplyingSeats seats_;
    Slice source_;
    Slice target_;
    std::vector<Phase> phases_; ///< Without collapse and expand.
};

graph::Schedule build_as(const graph::Request& request, Rank rank,
                         const MultiplyingSchedule& schedule) {
    Builder builder(request, rank,
                    fmt::format("{}:{}", kAllreduceRecursiveMultiplying.name, to_text(schedule)));
    allreduce_recursive_multiplying(builder, Team::whole(request.rank_count, rank), schedule,
                                    contribution(builder, request),
                                    builder.output(0, request.bytes));
    return builder.finish();
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::dense);
    const Rank count = request.rank_count;
    const std::uint64_t bytes = request.bytes;
    if (facts.ranks_per_cpu <= 1) {
        return allreduce_recursive_multiplying_ns(link, count, bytes);
    }
    const MultiplyingSchedule schedule =
        allreduce_recursive_multiplying_schedule(link, count, bytes);
    return oversubscribed_exchange_ns(facts, link, 6 * bytes, [&](const Link& prices) {
        return allreduce_recursive_multiplying_ns(prices, schedule, bytes);
    });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    return build_as(request, rank,
                    allreduce_recursive_multiplying_schedule(flat_link(facts, Traffic::dense),
                                                             request.rank_count, request.bytes));
}

Result<graph::Schedule> build_with(const Facts& facts, const graph::Request& request, Rank rank,
                                   std::string_view argument) {
    static_cast<void>(facts);
    const Result<MultiplyingSchedule> schedule = parse_multiplying_schedule(argument);
    if (!schedule.ok()) {
        return schedule.status();
    }
    if (Status status = fits(*schedule, request.rank_count); !status.ok()) {
        return status;
    }
    return build_as(request, rank, *schedule);
}

} // namespace

void allreduce_recursive_multiplying(Builder& builder, const Team& team,
                                     const MultiplyingSchedule& schedule, Slice source,
                                     Slice target) {
    UCG_ASSERT(fits(schedule, team.size()).ok());
    if (team.size() == 1) {
        builder.copy(source, target);
        return;
    }
    Multiplication(builder, team, schedule, source, target).append();
}

const Algorithm kAllreduceRecursiveMultiplying = {
    .name = "recursive_multiplying",
    .collective = graph::Collective::allreduce,
    .summary = "whole vectors are exchanged in growing groups (Ruefenacht, Bull, Booth 2017)",
    .cost_ns = cost_ns,
    .build = build,
    .build_with = build_with,
    .argument = "the phases, such as a4,a2 or m1g2a3,n1g3a2",
};

} // namespace ucg::plan
