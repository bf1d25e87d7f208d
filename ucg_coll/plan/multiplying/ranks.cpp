#include "ucg_coll/plan/multiplying/ranks.hpp"

#include <algorithm>

namespace ucg::plan {

void MultiplyingRanks::start(Rank workers, Rank members) {
    for (auto* actors : {&workers_, &members_}) {
        actors->resize(static_cast<std::size_t>(actors == &workers_ ? workers : members));
        for (Actor& actor : *actors) {
            actor.clock_ns = actor.gap_over_ns = actor.left_ns = 0;
            actor.arrivals_ns.clear();
        }
    }
}

void MultiplyingRanks::send(Actor& from, Actor& to) const {
    from.clock_ns += message_.issue_ns;
    from.left_ns = std::max(from.clock_ns, from.gap_over_ns) + message_.inject_ns;
    from.gap_over_ns = from.left_ns + message_.gap_ns;
    to.arrivals_ns.push_back(from.left_ns + message_.flight_ns);
}

double MultiplyingRanks::reduce_ns(Rank operands) {
    if (operands != reduced_operands_) {
        reduced_operands_ = operands;
        reduced_ns_ = link_.reduce_ns(static_cast<unsigned>(operands), bytes_);
    }
    return reduced_ns_;
}

void MultiplyingRanks::take_and_reduce(Actor& actor, Rank operands) {
    std::sort(actor.arrivals_ns.begin(), actor.arrivals_ns.end());
    for (const double arrival_ns : actor.arrivals_ns) {
        actor.clock_ns = std::max(actor.clock_ns, arrival_ns) + message_.take_ns;
    }
    actor.arrivals_ns.clear();
    actor.clock_ns += reduce_ns(operands);
}

void MultiplyingRanks::collapse(const MultiplyingSeats& seats, const Phase& phase) {
    for (Rank index = phase.base - 1; index < phase.count; index += phase.base) {
        Actor& acting = actor(seats.part_of(index));
        for (Rank other = 1; other < phase.base; ++other) {
            Actor silent;
            send(silent, acting);
        }
        take_and_reduce(acting, phase.base);
    }
}

/// Sends messages in the order of the schedule (allreduce.cpp).
void MultiplyingRanks::multiply(const Phase& phase, Rank distance) {
    const auto workers = static_cast<Rank>(workers_.size());
    const auto members = static_cast<Rank>(members_.size());
    const auto worker = [&](Rank number) -> Actor& {
        return workers_[static_cast<std::size_t>(number)];
    };
    const auto member = [&](Rank number) -> Actor& {
        return members_[static_cast<std::size_t>(number)];
    };
    for (Rank number = 0; number < workers; ++number) {
        const Rank place = number / distance % phase.base;
        const Rank first = number - place * distance;
        for (Rank hop = 1; hop < phase.base; ++hop) {
            const Rank to = workers == 1 ? 0 : first + (place + hop) % phase.base * distance;
            send(worker(number), worker(to)); // One stands for all: it gets what it sends.
        }
        if (phase.kind == PhaseKind::inverse_merge) {
            for (Rank told = number % phase.groups; told < members; told += phase.groups) {
                send(worker(number), member(told));
            }
        }
    }
    if (phase.kind == PhaseKind::merge) {
        for (Rank joining = 0; joining < members; ++joining) {
            const Rank first = joining % phase.groups * phase.base;
            for (Rank place = 0; place < phase.base; ++place) {
                send(member(joining), worker(first + place));
            }
        }
    }
    for (Actor& one : workers_) {
        take_and_reduce(one, static_cast<Rank>(one.arrivals_ns.size()) + 1);
    }
    if (phase.kind == PhaseKind::inverse_merge) {
        for (Actor& one : members_) {
            take_and_reduce(one, phase.base);
        }
    }
}

/// Returns when the last of the ranks is done that did not act.
double MultiplyingRanks::expand_ns(const MultiplyingSeats& seats, const Phase& phase) {
    double last_ns = 0;
    for (Rank index = phase.base - 1; index < phase.count; index += phase.base) {
        Actor silent;
        for (Rank other = 1; other < phase.base; ++other) {
            send(actor(seats.part_of(index)), silent);
        }
        last_ns = std::max(last_ns, silent.arrivals_ns.back() + message_.take_ns);
    }
    return last_ns;
}

double MultiplyingRanks::latest_ns() const {
    double latest_ns = 0;
    for (const auto* actors : {&workers_, &members_}) {
        for (const Actor& one : *actors) {
            latest_ns = std::max({latest_ns, one.clock_ns, one.left_ns});
        }
    }
    return latest_ns;
}

double MultiplyingRanks::finish_ns(const MultiplyingSchedule& schedule, Rank rank_count,
                                   double limit_ns) {
    const MultiplyingSeats seats(schedule, rank_count);
    Rank workers = 1;
    bool all_alike = true;
    for (const Phase& phase : schedule.phases) {
        const bool folds = phase.kind == PhaseKind::collapse || phase.kind == PhaseKind::expand;
        workers *= folds ? 1 : phase.base;
        all_alike = all_alike && phase.kind == PhaseKind::factor;
    }
    start(all_alike ? 1 : workers, seats.remainder());
    double last_ns = 0;
    Rank distance = 1;
    for (const Phase& phase : schedule.phases) {
        switch (phase.kind) {
        case PhaseKind::collapse: collapse(seats, phase); break;
        case PhaseKind::expand: last_ns = expand_ns(seats, phase); break;
        case PhaseKind::factor:
        case PhaseKind::merge:
        case PhaseKind::inverse_merge:
            multiply(phase, distance);
            distance *= phase.base;
            break;
        }
        last_ns = std::max(last_ns, latest_ns());
        if (last_ns >= limit_ns) {
            return std::numeric_limits<double>::infinity();
        }
    }
    return last_ns;
}

} // namespace ucg::plan
