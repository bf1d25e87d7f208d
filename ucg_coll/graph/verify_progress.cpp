// The steps of verify that prove matching and progress: messages and signals pair up, and no order
// of arrival can deadlock.
#include <algorithm>
#include <tuple>

#include "ucg_coll/graph/print.hpp"
#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph::proof {
namespace {

/// One end of a message or signal. Ends with the same lane() are matched in program order. Messages
/// that stand for a share have lanes of their own, so that no other message is matched with them.
struct End {
    bool signals = false;
    bool shares = false;
    Rank from = kNoRank;
    Rank to = kNoRank;
    OpRef op = kNone;

    auto lane() const { return std::tuple(signals, shares, from, to); }
};

/// Returns whether a message or signal stands for the use of a flag slot: whether the op that it
/// was made of is of another kind.
bool is_of_flag_slot(const World& world, OpRef ref) {
    const Schedule& schedule = world.subject[static_cast<std::size_t>(world.rank_of[ref])];
    return !world.origins.empty() && schedule.ops[world.origin(ref).op].kind != world.op(ref).kind;
}

void sort_by_lane(std::vector<End>& ends) {
    std::stable_sort(ends.begin(), ends.end(),
                     [](const End& a, const End& b) { return a.lane() < b.lane(); });
}

Status leftover(const World& world, const End& end) {
    const bool incoming = receives(world.op(end.op).kind);
    const std::string_view verb =
        end.signals ? (incoming ? "signals" : "awaits") : (incoming ? "sends" : "receives");
    const std::string_view what = end.signals ? "it" : "this message";
    return reject(world, end.op,
                  fmt::format("rank {} never {} {}", incoming ? end.from : end.to, verb, what));
}

Status pair_up(World& world, const End& out, const End& in) {
    const std::uint64_t sent = world.op(out.op).source.length;
    const std::uint64_t received = world.op(in.op).target.length;
    if (!out.signals && sent != received) {
        return reject(world, in.op,
                      fmt::format("rank {} sends {} bytes here (its {}), {} are received", out.from,
                                  sent, world.describe_op(out.op), received));
    }
    world.match[out.op] = in.op;
    world.match[in.op] = out.op;
    return Status();
}

/// Sorts all events topologically by what must happen before what. Event 2 * op is the start of an
/// op, and event 2 * op + 1 its completion.
class Progress {
  public:
    explicit Progress(World& world) : world_(world) {}

    Status run();

  private:
    static std::uint32_t start(OpRef op) { return 2 * op; }
    static std::uint32_t complete(OpRef op) { return 2 * op + 1; }

    void count();
    void happen(std::uint32_t event);
    void release(std::uint32_t event);
    struct Block {
        OpRef op = kNone;        ///< The op that waits: the event's, or one issued before it.
        std::uint32_t event = 0; ///< The event that it waits for.
    };
    Block blocker(std::uint32_t event) const;
    bool happened(std::uint32_t event) const { return waits_[event] == 0; }
    Status report_cycle() const;
    std::string explain(std::uint32_t event, Block block) const;

    World& world_;
    std::vector<std::uint32_t> waits_;           // By event: how many events must still come first.
    std::vector<std::uint32_t> first_dependent_; // By op: index into dependents_.
    std::vector<OpRef> dependents_;              // The ops that depend on an op, for all ops.
    std::vector<std::uint32_t> ready_;           // The events that can happen next.
};

void Progress::count() {
    const std::uint32_t ops = world_.op_count();
    waits_.assign(std::size_t{ops} * 2, 1);
    first_dependent_.assign(std::size_t{ops} + 1, 0);
    for (OpRef op = 0; op < ops; ++op) {
        const auto dependencies = world_.dependencies(op);
        waits_[start(op)] =
            static_cast<std::uint32_t>(dependencies.size()) + (world_.index(op) > 0 ? 1 : 0);
        waits_[complete(op)] = world_.match[op] == kNone ? 1 : 2;
        for (const Dependency dependency : dependencies) {
            ++first_dependent_[world_.depended(op, dependency) + 1];
        }
    }
    for (OpRef op = 0; op < ops; ++op) {
        first_dependent_[op + 1] += first_dependent_[op];
    }
    dependents_.resize(first_dependent_.back());
    std::vector<std::uint32_t> next(first_dependent_.begin(), first_dependent_.end() - 1);
    for (OpRef op = 0; op < ops; ++op) {
        for (const Dependency dependency : world_.dependencies(op)) {
            dependents_[next[world_.depended(op, dependency)]++] = op;
        }
    }
}

void Progress::release(std::uint32_t event) {
    if (--waits_[event] == 0) {
        ready_.push_back(event);
    }
}

void Progress::happen(std::uint32_t event) {
    const OpRef op = event / 2;
    const bool completes = event % 2 == 1;
    world_.events.push_back({op, completes});
    if (completes) {
        world_.completed[op] = static_cast<std::uint32_t>(world_.events.size() - 1);
        for (std::uint32_t i = first_dependent_[op]; i < first_dependent_[op + 1]; ++i) {
            release(start(dependents_[i]));
        }
        return;
    }
    release(complete(op));
    if (world_.match[op] != kNone) {
        release(complete(world_.match[op]));
    }
    const OpRef next = op + 1;
    if (next < world_.op_count() && world_.rank_of[next] == world_.rank_of[op]) {
        release(start(next));
    }
}

/// Returns an event that must come before `event` and has not happened. A rank that cannot go on
/// waits for a dependency of one op, and the ops behind it in issue order wait for that op.
Progress::Block Progress::blocker(std::uint32_t event) const {
    OpRef op = event / 2;
    if (event % 2 == 1) {
        return {op, happened(start(op)) ? start(world_.match[op]) : start(op)};
    }
    for (;; --op) {
        for (const Dependency dependency : world_.dependencies(op)) {
            const OpRef on = world_.depended(op, dependency);
            if (!happened(complete(on))) {
                return {op, complete(on)};
            }
        }
        UCG_ASSERT(world_.index(op) > 0);
    }
}

std::string Progress::explain(std::uint32_t event, Block block) const {
    const std::string who = world_.describe(block.op);
    const std::string other = block.event / 2 == block.op ? "" : world_.describe(block.event / 2);
    if (event % 2 == 1) {
        return other.empty() ? "" : fmt::format("{} cannot complete before {} starts", who, other);
    }
    return fmt::format("{} cannot start before {} completes", who, other);
}

Status Progress::report_cycle() const {
    std::uint32_t event = 0;
    while (happened(event)) {
        ++event;
    }
    // A walk back from any event that has not happened ends in a cycle.
    std::vector<bool> seen(waits_.size(), false);
    while (!seen[event]) {
        seen[event] = true;
        event = blocker(event).event;
    }
    constexpr int kLinesMax = 16;
    std::string chain;
    const std::uint32_t begin = event;
    int lines = 0;
    do {
        const Block block = blocker(event);
        const std::string line = explain(event, block);
        if (!line.empty() && ++lines <= kLinesMax) {
            chain += (lines > 1 ? "; " : "") + line;
        }
        event = block.event;
    } while (event != begin);
    return failure(Code::invalid_argument, "deadlock: {}{}", chain,
                   lines > kLinesMax ? fmt::format("; and {} more", lines - kLinesMax) : "");
}

Status Progress::run() {
    count();
    world_.completed.assign(world_.op_count(), 0);
    world_.events.reserve(waits_.size());
    for (OpRef op = 0; op < world_.op_count(); ++op) {
        if (waits_[start(op)] == 0) {
            ready_.push_back(start(op));
        }
    }
    while (!ready_.empty()) {
        const std::uint32_t event = ready_.back();
        ready_.pop_back();
        happen(event);
    }
    return world_.events.size() == waits_.size() ? Status() : report_cycle();
}

} // namespace

Status match_messages(World& world) {
    std::vector<End> outgoing;
    std::vector<End> incoming;
    for (OpRef ref = 0; ref < world.op_count(); ++ref) {
        const Op& op = world.op(ref);
        if (!is_message(op.kind) && !is_event(op.kind)) {
            continue;
        }
        const Rank self = world.rank_of[ref];
        const bool shares = is_of_flag_slot(world, ref);
        if (receives(op.kind)) {
            incoming.push_back({is_event(op.kind), shares, op.peer, self, ref});
        } else {
            outgoing.push_back({is_event(op.kind), shares, self, op.peer, ref});
        }
    }
    sort_by_lane(outgoing);
    sort_by_lane(incoming);
    world.match.assign(world.op_count(), kNone);
    std::size_t i = 0;
    for (; i < outgoing.size() && i < incoming.size(); ++i) {
        const End& out = outgoing[i];
        const End& in = incoming[i];
        if (out.lane() != in.lane()) {
            return leftover(world, out.lane() < in.lane() ? out : in);
        }
        Status status = pair_up(world, out, in);
        if (!status.ok()) {
            return status;
        }
    }
    if (i < outgoing.size()) {
        return leftover(world, outgoing[i]);
    }
    return i < incoming.size() ? leftover(world, incoming[i]) : Status();
}

Status order_events(World& world) {
    return Progress(world).run();
}

} // namespace ucg::graph::proof
