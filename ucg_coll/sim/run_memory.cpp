// A run's shared memory: flag slots, and what ranks read of one another's memory.
#include <algorithm>
#include <utility>

#include "ucg_coll/sim/run.hpp"
#include "ucg_coll/sim/steps.hpp"

namespace ucg::sim {

/// Checks that ranks read memory and flag slots only of ranks on their own host.
Status Run::check_memory() const {
    const Rank count = placement_.rank_count();
    Status status;
    for (Rank rank = 0; rank < count; ++rank) {
        const auto check = [&](Rank owner, std::uint32_t /*op*/) {
            if (owner < 0 || owner >= count || !placement_.same_host(rank, owner)) {
                status = failure(Code::invalid_argument,
                                 "rank {} reads memory of rank {}, which is not on its host", rank,
                                 owner);
            }
            return status.ok();
        };
        for (const graph::Step& step : program(rank).steps) {
            for_each_peer_read(step, program(rank), [&](Rank owner) { check(owner, step.op); });
            for_each_flag_slot(step, program(rank), check);
            if (!status.ok()) {
                return status;
            }
        }
    }
    return {};
}

Picoseconds Run::flag_slot_arrival(Rank owner, Rank reader, std::uint32_t round) const {
    const FlagSlotTerms terms =
        flag_slot_terms(options_.network, placement_.distance(owner, reader));
    return flag_slots_[flag_slot_index(owner, round)].shared + to_picoseconds(terms.flight_ns) +
           draw(options_.message_noise, seed_, Stream::flag_slot, owner,
                static_cast<std::uint64_t>(reader));
}

bool Run::look(Rank rank, RankState& state) {
    if (state.has_looked) {
        return true;
    }
    looks_.clear();
    const auto is_shared = [&](Rank owner, std::uint32_t op) {
        FlagSlot& flag_slot = flag_slots_[flag_slot_index(owner, state.round)];
        if (flag_slot.shared == FlagSlot::kUnknown) {
            flag_slot.waiters.push_back(rank);
            state.op = op;
            return false;
        }
        looks_.push_back({owner, op, flag_slot_arrival(owner, rank, state.round)});
        return true;
    };
    if (!for_each_flag_slot(program(rank).steps[state.step], program(rank), is_shared)) {
        return false;
    }
    std::stable_sort(looks_.begin(), looks_.end(),
                     [](const Look& a, const Look& b) { return a.arrival < b.arrival; });
    for (const Look& look : looks_) {
        take_flag_slot_in(rank, state, look);
    }
    state.has_looked = true;
    return true;
}

void Run::take_flag_slot_in(Rank rank, RankState& state, const Look& look) {
    state.op = look.op;
    Picoseconds start = state.clock;
    state.clock = std::max(state.clock, look.arrival);
    record(Activity::Kind::wait, rank, start);
    start = state.clock;
    const FlagSlot& flag_slot = flag_slots_[flag_slot_index(look.owner, state.round)];
    const topo::Distance distance = placement_.distance(rank, look.owner);
    const std::uint64_t bytes = bytes_of(state, program(rank));
    state.clock = later(state.clock, to_picoseconds(flag_slot_lines_ns(options_.memory, distance,
                                                                       flag_slot.readers, bytes)));
    record(Activity::Kind::poll, rank, start);
    ++outcome_.poll_count;
    if (trace_ != nullptr) {
        trace_->transfers.push_back({.from = look.owner,
                                     .to = rank,
                                     .send_op = flag_slot.op,
                                     .bytes = bytes,
                                     .kind = Transfer::Kind::flag_slot,
                                     .begin = flag_slot.begin,
                                     .left = flag_slot.shared,
                                     .arrived = look.arrival,
                                     .taken = state.clock});
    }
}

void Run::share(Rank rank, RankState& state) {
    FlagSlot& flag_slot = flag_slots_[flag_slot_index(rank, state.round)];
    flag_slot.begin = state.clock;
    flag_slot.op = state.op;
    const FlagSlotTerms terms = flag_slot_terms(options_.network, placement_.widest_on_host());
    compute(rank, state, Activity::Kind::share,
            terms.issue_ns + flag_slot_copy_ns(options_.memory, bytes_of(state, program(rank))));
    flag_slot.shared = state.clock;
    ++outcome_.share_count;
    for (const Rank waiter : flag_slot.waiters) {
        push(EventKind::resume, flag_slot_arrival(rank, waiter, state.round),
             static_cast<std::uint32_t>(waiter));
    }
    flag_slot.waiters.clear();
}

bool Run::in_turn(Rank rank, RankState& state) {
    bool reads_memory = false;
    for_each_peer_read(program(rank).steps[state.step], program(rank),
                       [&](Rank) { reads_memory = true; });
    if (!reads_memory || (std::exchange(state.is_in_turn, true) && now_ >= state.clock)) {
        return true;
    }
    push(EventKind::resume, state.clock, static_cast<std::uint32_t>(rank));
    return false;
}

std::vector<std::uint32_t> sockets_of(const topo::Placement& placement) {
    std::vector<std::uint32_t> sockets(static_cast<std::size_t>(placement.rank_count()), 0);
    std::uint32_t count = 0;
    for (std::uint32_t host = 0; host < placement.host_count(); ++host) {
        const Ranks ranks = placement.ranks_on(host);
        const auto groups = topo::groups_closer_than(placement, ranks, placement.widest_on_host());
        const bool flat = groups.size() == ranks.size();
        for (const std::vector<Rank>& group : groups) {
            for (const Rank rank : group) {
                sockets[static_cast<std::size_t>(rank)] = count;
            }
            count += flat ? 0 : 1;
        }
        count += flat ? 1 : 0;
    }
    return sockets;
}

/// Returns a number for the way by which `reader` reads the memory of `owner`: within a socket that
/// is the way to the owner's cache, between two sockets the link that joins them.
std::uint64_t Run::way(Rank reader, Rank owner) const {
    const std::uint64_t from = sockets_[static_cast<std::size_t>(owner)];
    const std::uint64_t to = sockets_[static_cast<std::size_t>(reader)];
    constexpr std::uint64_t kBetween = std::uint64_t{1} << 63;
    return from == to ? static_cast<std::uint64_t>(owner) : kBetween | from << 31 | to;
}

double Run::load_ns(std::uint64_t way, Picoseconds now) {
    std::vector<Reading>& readings = ways_[way];
    std::erase_if(readings, [&](const Reading& reading) { return reading.end <= now; });
    double ns = 0;
    for (const Reading& reading : readings) {
        ns += reading.ns;
    }
    return ns;
}

/// Returns how long the step's reads of peers' memory take: as long as bringing all bytes to the
/// reader or, if that is longer, as long as all who use one of the ways occupy it. A rank that
/// comes later waits longer itself, and does not delay those that read already.
double Run::reading_ns(Rank rank, const RankState& state) {
    const graph::Step& step = program(rank).steps[state.step];
    const std::uint64_t bytes = bytes_of(state, program(rank));
    loads_.clear();
    double latencies_ns = 0;
    double alone_ns = 0;
    for_each_peer_read(step, program(rank), [&](Rank owner) {
        outcome_.peer_bytes += bytes;
        if (program(rank).helped) {
            alone_ns += kernel_copy_ns(options_.compute, bytes);
            return;
        }
        const Reads reads = reads_of(options_.memory, placement_.distance(rank, owner), bytes);
        latencies_ns += reads.latency_ns;
        alone_ns += reads.alone_ns;
        const std::uint64_t key = way(rank, owner);
        const auto known = std::find_if(loads_.rbegin(), loads_.rend(),
                                        [&](const WayLoad& load) { return load.way == key; });
        if (known == loads_.rend()) {
            loads_.push_back({key, reads.way_ns});
        } else {
            known->ns += reads.way_ns;
        }
    });
    double taken_ns = 0;
    for (const WayLoad& load : loads_) {
        taken_ns = std::max(taken_ns, load.ns + load_ns(load.way, state.clock));
    }
    return latencies_ns + std::max(alone_ns, taken_ns);
}

} // namespace ucg::sim
