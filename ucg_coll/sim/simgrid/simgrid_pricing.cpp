#include "ucg_coll/sim/simgrid/simgrid_pricing.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <fstream>
#include <map>
#include <set>
#include <simgrid/s4u.hpp>
#include <tuple>
#include <utility>

#include "ucg_coll/sim/steps.hpp"

namespace ucg::sim {

namespace {

namespace s4u = simgrid::s4u;
using graph::LoweredSchedule;
using graph::MessagePlan;
using graph::Step;
using graph::StepKind;

Picoseconds now() {
    return std::llround(s4u::Engine::get_clock() * 1e12);
}

void sleep(Picoseconds time) {
    if (time > 0) {
        s4u::this_actor::sleep_for(static_cast<double>(time) * 1e-12);
    }
}

/// What a message carries in SimGrid. The receiver pays for taking it in, and records when it did.
struct Parcel {
    Picoseconds take = 0;
    std::size_t transfer = 0; ///< Index into Trace::transfers.
};

/// The flag slot of a rank, and the actors that wait for its share.
struct FlagSlot {
    static constexpr Picoseconds kUnknown = -1;
    Picoseconds begin = 0;
    Picoseconds shared = kUnknown;
    std::uint32_t op = 0;
    std::uint32_t readers = 0;
    std::vector<s4u::ActorPtr> waiters;
};

/// What the actors of all ranks share. They run one at a time.
struct World {
    const topo::Placement& placement;
    const Options& options;
    const std::vector<LoweredSchedule>& programs;
    Outcome outcome;
    Trace* trace;
    std::vector<s4u::ActorPtr> actors;
    std::deque<Parcel> parcels; ///< A deque, so that they stay where they are.
    std::map<std::tuple<Rank, Rank, bool>, s4u::Mailbox*> mailboxes;
    std::vector<FlagSlot> flag_slots;    ///< By rank.
    std::vector<std::uint64_t> readings; ///< By rank: how many read its memory now.

    /// Returns the mailbox for messages or signals from one rank to another. It has a receiver, so
    /// that messages leave before they are received.
    s4u::Mailbox* mailbox(Rank from, Rank to, bool is_signal) {
        s4u::Mailbox*& box = mailboxes[{from, to, is_signal}];
        if (box == nullptr) {
            box = s4u::Mailbox::by_name(fmt::format("{} {} {}", from, to, is_signal));
            box->set_receiver(actors[static_cast<std::size_t>(to)]);
        }
        return box;
    }
};

/// A rank's program as an actor of SimGrid; see Run, which does the same by its own prices.
class RankActor {
  public:
    RankActor(World& world, Rank rank)
        : world_(world), program_(world.programs[static_cast<std::size_t>(rank)]), rank_(rank),
          slots_(program_.slot_count) {}

    void operator()() {
        sleep(world_.outcome.entered[static_cast<std::size_t>(rank_)]);
        record(Activity::Kind::late, 0);
        std::vector<std::uint32_t> awaited;
        do {
            const Step& step = program_.steps[at_.step];
            op_ = step.op;
            awaited.clear();
            for (const graph::Wait& one : program_.waits_of(step)) {
                graph::for_each_slot(one, at_.iteration,
                                     [&](std::uint32_t slot) { awaited.push_back(slot); });
            }
            wait(awaited);
            look(step);
            for (std::uint32_t i = 0; i < op_count(step); ++i) {
                note_issue(step.op + i);
            }
            op_ = step.op;
            issue(step);
        } while (!has_finished_);
        world_.outcome.finish[static_cast<std::size_t>(rank_)] = now();
    }

  private:
    struct Slot {
        s4u::CommPtr comm;        ///< Null: nothing is under way.
        Parcel* parcel = nullptr; ///< What was received, or is being sent.
        bool receives = false;
    };

    void record(Activity::Kind kind, Picoseconds start) {
        if (world_.trace != nullptr && now() > start) {
            world_.trace->activities.push_back({kind, rank_, op_, at_.iteration, start, now()});
        }
    }

    void note_issue(std::uint32_t op) {
        if (world_.trace != nullptr) {
            world_.trace->issues.push_back({rank_, op, at_.iteration, now()});
        }
    }

    void wait(const std::vector<std::uint32_t>& awaited) {
        for (const std::uint32_t index : awaited) {
            Slot& slot = slots_[index];
            if (slot.comm == nullptr) {
                continue;
            }
            Picoseconds start = now();
            slot.comm->wait();
            record(Activity::Kind::wait, start);
            slot.comm = nullptr;
            if (slot.receives) {
                start = now();
                sleep(slot.parcel->take);
                record(Activity::Kind::take, start);
            }
            note(slot);
        }
    }

    /// Records when the message of a slot was taken in, and when it arrived. When it has left is
    /// not known but from its arrival, of which the sender learns, too.
    void note(const Slot& slot) {
        if (world_.trace == nullptr) {
            return;
        }
        Transfer& transfer = world_.trace->transfers[slot.parcel->transfer];
        if (slot.receives) {
            transfer.taken = now();
            transfer.arrived = transfer.taken - slot.parcel->take;
            transfer.left = std::min(transfer.left, transfer.arrived);
        }
    }

    /// Waits for the flag slots of the step, and takes them in.
    void look(const Step& step) {
        struct Look {
            Rank owner;
            std::uint32_t op;
            Picoseconds arrival;
        };
        std::vector<Look> looks;
        for_each_flag_slot(step, program_, [&](Rank owner, std::uint32_t op) {
            op_ = op;
            await_share(owner);
            const Picoseconds flight = to_picoseconds(flag_slot_terms_with(owner).flight_ns);
            looks.push_back({owner, op, flag_slot_of(owner).shared + flight});
            return true;
        });
        std::stable_sort(looks.begin(), looks.end(),
                         [](const Look& a, const Look& b) { return a.arrival < b.arrival; });
        for (const Look& look : looks) {
            op_ = look.op;
            take_flag_slot_in(look.owner, look.arrival);
        }
    }

    FlagSlot& flag_slot_of(Rank owner) const {
        return world_.flag_slots[static_cast<std::size_t>(owner)];
    }
    FlagSlotTerms flag_slot_terms_with(Rank owner) const {
        return flag_slot_terms(world_.options.network, world_.placement.distance(rank_, owner));
    }

    void await_share(Rank owner) {
        FlagSlot& flag_slot = flag_slot_of(owner);
        if (flag_slot.shared == FlagSlot::kUnknown) {
            const Picoseconds start = now();
            flag_slot.waiters.push_back(world_.actors[static_cast<std::size_t>(rank_)]);
            s4u::this_actor::suspend();
            record(Activity::Kind::wait, start);
        }
    }

    void take_flag_slot_in(Rank owner, Picoseconds arrival) {
        const FlagSlot& flag_slot = flag_slot_of(owner);
        Picoseconds start = now();
        sleep(arrival - start);
        record(Activity::Kind::wait, start);
        start = now();
        const std::uint64_t bytes = bytes_of(at_, program_);
        const topo::Distance distance = world_.placement.distance(rank_, owner);
        const Picoseconds taking = to_picoseconds(
            flag_slot_lines_ns(world_.options.memory, distance, flag_slot.readers, bytes));
        sleep(taking);
        record(Activity::Kind::poll, start);
        ++world_.outcome.poll_count;
        if (world_.trace != nullptr) {
            world_.trace->transfers.push_back({.from = owner,
                                               .to = rank_,
                                               .send_op = flag_slot.op,
                                               .bytes = bytes,
                                               .kind = Transfer::Kind::flag_slot,
                                               .begin = flag_slot.begin,
                                               .left = flag_slot.shared,
                                               .arrived = arrival,
                                               .taken = now()});
        }
    }

    void share(std::uint64_t bytes) {
        FlagSlot& flag_slot = flag_slot_of(rank_);
        flag_slot.begin = now();
        flag_slot.op = op_;
        const FlagSlotTerms terms =
            flag_slot_terms(world_.options.network, world_.placement.widest_on_host());
        compute(Activity::Kind::share,
                terms.issue_ns + flag_slot_copy_ns(world_.options.memory, bytes));
        flag_slot.shared = now();
        ++world_.outcome.share_count;
        for (const s4u::ActorPtr& waiter : flag_slot.waiters) {
            waiter->resume();
        }
        flag_slot.waiters.clear();
    }

    /// Does what the step does, and goes on to the next step.
    void issue(const Step& step) {
        const std::uint64_t bytes = bytes_of(at_, program_);
        const Compute& prices = world_.options.compute;
        switch (step.kind) {
        case StepKind::post: post(step); break;
        case StepKind::copy: compute(Activity::Kind::copy, copy_ns(prices, bytes)); break;
        case StepKind::reduce:
        case StepKind::reduce_parts:
            compute(Activity::Kind::reduce,
                    has_flag_slots(step, program_)
                        ? combine_flag_slots_ns(prices, world_.options.memory,
                                                world_.placement.widest_on_host(), step.count,
                                                bytes)
                        : reduce_ns(prices, step.count, bytes));
            break;
        case StepKind::publish:
            compute(Activity::Kind::publish, publish_ns(world_.options.memory, bytes));
            break;
        case StepKind::share: share(bytes); break;
        case StepKind::wait: break;
        case StepKind::end_iteration: at_.end_iteration(program_); return;
        case StepKind::finish: has_finished_ = true; return;
        }
        ++at_.step;
    }

    void post(const Step& step) {
        for (std::uint32_t i = 0; i < step.count; ++i) {
            const MessagePlan& plan = program_.messages[step.first + i];
            Slot& slot = slots_[plan.slot_at(at_.iteration)];
            op_ = step.op + i;
            note_issue(op_);
            if (plan.outgoing) {
                send(plan, slot);
            } else {
                slot.receives = true;
                slot.comm =
                    world_.mailbox(plan.peer, rank_, plan.signals)->get_async<Parcel>(&slot.parcel);
            }
        }
    }

    void send(const MessagePlan& plan, Slot& slot) {
        const std::uint64_t bytes = graph::length_at(plan.address, at_, program_);
        const cost::MessageTerms terms = message_terms(
            world_.options.network, world_.placement.distance(rank_, plan.peer), bytes);
        const Picoseconds start = now();
        sleep(to_picoseconds(terms.issue_ns));
        record(Activity::Kind::issue, start);
        world_.parcels.push_back({to_picoseconds(terms.take_ns), 0});
        Parcel& parcel = world_.parcels.back();
        if (world_.trace != nullptr) {
            parcel.transfer = world_.trace->transfers.size();
            world_.trace->transfers.push_back(
                {.from = rank_,
                 .to = plan.peer,
                 .send_op = op_,
                 .bytes = bytes,
                 .kind = plan.signals ? Transfer::Kind::signal : Transfer::Kind::message,
                 .begin = now(),
                 .left = kTimeEnd});
        }
        ++world_.outcome.message_count;
        world_.outcome.message_bytes += bytes;
        slot = {world_.mailbox(rank_, plan.peer, plan.signals)->put_async(&parcel, bytes), &parcel,
                false};
    }

    /// Computes for `own_ns`, or for as long as reading peers' memory takes, if that is longer.
    void compute(Activity::Kind kind, double own_ns) {
        const Picoseconds start = now();
        const Step& step = program_.steps[at_.step];
        const std::uint64_t bytes = bytes_of(at_, program_);
        double reading_ns = 0;
        for_each_peer_read(step, program_, [&](Rank owner) {
            const topo::Distance distance = world_.placement.distance(rank_, owner);
            const std::uint64_t readers = ++readings_of(owner);
            reading_ns += program_.helped
                              ? kernel_copy_ns(world_.options.compute, bytes)
                              : read_ns(world_.options.memory, distance, readers, bytes);
            world_.outcome.peer_bytes += bytes;
        });
        sleep(to_picoseconds(std::max(own_ns, reading_ns)));
        record(kind, start);
        for_each_peer_read(step, program_, [&](Rank owner) { --readings_of(owner); });
    }

    std::uint64_t& readings_of(Rank owner) const {
        return world_.readings[static_cast<std::size_t>(owner)];
    }

    World& world_;
    const LoweredSchedule& program_;
    Rank rank_;
    graph::Position at_;
    std::uint32_t op_ = 0; ///< The schedule's op that the rank has come to.
    bool has_finished_ = false;
    std::vector<Slot> slots_;
};

/// Returns the arguments by which SimGrid lets messages share links like fluids, at the links'
/// nominal latency and bandwidth: without the factors that it fits to TCP, and rounding to a
/// millionth of a microsecond instead of ten microseconds. Messages between ranks of one host cost
/// what Options::network says.
std::vector<std::string> arguments_for(const Options& options) {
    constexpr std::uint64_t kLong = 1 << 20;
    const auto time_ns = [&](std::uint64_t bytes) {
        const auto terms = message_terms(options.network, topo::Distance::host, bytes);
        return terms.inject_ns + terms.flight_ns;
    };
    const double latency_ns = time_ns(0);
    const double per_byte_ns = (time_ns(kLong) - latency_ns) / static_cast<double>(kLong);
    constexpr double kLeastPerByteNs = 1e-6; // Nearly nothing, with an inverse that is finite.
    return {
        "ucg_sim",
        "--log=root.thresh:error",
        "--cfg=network/model:CM02",
        "--cfg=network/TCP-gamma:0",
        "--cfg=network/crosstraffic:0",
        "--cfg=surf/precision:1e-12",
        "--cfg=contexts/stack-size:256",
        fmt::format("--cfg=network/loopback-lat:{}", latency_ns * 1e-9),
        fmt::format("--cfg=network/loopback-bw:{}", 1e9 / std::max(per_byte_ns, kLeastPerByteNs))};
}

std::vector<s4u::Host*> hosts_in_order(const s4u::Engine& engine) {
    std::vector<s4u::Host*> hosts = engine.get_all_hosts();
    std::sort(hosts.begin(), hosts.end(), [](const s4u::Host* a, const s4u::Host* b) {
        return ::strverscmp(a->get_cname(), b->get_cname()) < 0;
    });
    return hosts;
}

/// Checks that there is a route between all hosts between which messages go. SimGrid would abort
/// without one.
Status check_routes(const World& world, const std::vector<s4u::Host*>& hosts) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    for (std::size_t rank = 0; rank < world.programs.size(); ++rank) {
        const std::uint32_t from = world.placement.host(static_cast<Rank>(rank));
        for (const MessagePlan& message : world.programs[rank].messages) {
            const std::uint32_t to = message.outgoing ? world.placement.host(message.peer) : from;
            if (from == to || !seen.emplace(from, to).second) {
                continue;
            }
            std::vector<s4u::Link*> links;
            double latency_s = 0;
            hosts[from]->route_to(hosts[to], links, &latency_s);
            if (links.empty() && latency_s == 0) {
                return failure(Code::invalid_argument, "no route from host {} to {}",
                               hosts[from]->get_name(), hosts[to]->get_name());
            }
        }
    }
    return {};
}

Status simulate(World& world, const std::string& platform) {
    std::vector<std::string> arguments = arguments_for(world.options);
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) {
        argv.push_back(argument.data());
    }
    auto argc = static_cast<int>(argv.size());
    argv.push_back(nullptr);
    s4u::Engine engine(&argc, argv.data());
    engine.load_platform(platform);
    engine.seal_platform(); // There are no routes before this.
    const std::vector<s4u::Host*> hosts = hosts_in_order(engine);
    if (hosts.size() < world.placement.host_count()) {
        return failure(Code::invalid_argument, "{}: {} hosts, but the ranks are on {}", platform,
                       hosts.size(), world.placement.host_count());
    }
    if (Status status = check_routes(world, hosts); !status.ok()) {
        return failure(status.code(), "{}: {}", platform, status.message());
    }
    const Rank count = world.placement.rank_count();
    for (Rank rank = 0; rank < count; ++rank) {
        world.actors.push_back(s4u::Actor::create(fmt::format("rank {}", rank),
                                                  hosts[world.placement.host(rank)],
                                                  RankActor(world, rank)));
    }
    engine.run();
    return {};
}

Status check_supported(const Options& options) {
    const auto none = [](const Distribution& distribution) {
        return distribution.kind == Distribution::Kind::none;
    };
    if (!none(options.message_noise) || !none(options.compute_noise)) {
        return Status(Code::unsupported, "SimGrid's prices have no noise");
    }
    if (options.in_a_row > 1) {
        return Status(Code::unsupported,
                      "SimGrid's prices are of one call, not of several in a row");
    }
    return options.host_link
               ? Status(Code::unsupported,
                        "SimGrid's prices have no host links: the platform says what is shared")
               : Status();
}

class SimGridPricing final : public Pricing {
  public:
    SimGridPricing(const topo::Placement& placement, const Options& options, std::string platform)
        : placement_(placement), options_(options), platform_(std::move(platform)),
          own_(placement, options) {}

    void add(const graph::Schedule& schedule) override { own_.add(schedule); }

    Result<Outcome> run(std::uint64_t seed, Trace* trace) const override {
        static bool has_run = false;
        if (std::exchange(has_run, true)) {
            return Status(Code::unsupported, "SimGrid simulates once in a process");
        }
        if (!std::ifstream(platform_).good()) { // SimGrid would abort.
            return failure(Code::io_error, "{}: cannot be read", platform_);
        }
        // Ranks that wait for one another would make SimGrid abort.
        Result<Outcome> own = own_.run(seed);
        if (!own) {
            return own;
        }
        World world{placement_, options_, own_.programs(), {}, trace, {}, {}, {}, {}, {}};
        for (const std::uint32_t readers : flag_slot_readers(own_.programs())) {
            world.flag_slots.emplace_back().readers = readers;
        }
        world.readings.resize(world.flag_slots.size());
        world.outcome.entered = std::move(own->entered);
        world.outcome.finish.resize(world.outcome.entered.size());
        if (trace != nullptr) {
            *trace = {};
        }
        try {
            if (Status status = simulate(world, platform_); !status.ok()) {
                return status;
            }
        } catch (const std::exception& error) {
            return failure(Code::invalid_argument, "{}: {}", platform_, error.what());
        }
        return std::move(world.outcome);
    }

  private:
    const topo::Placement& placement_;
    const Options& options_;
    std::string platform_;
    Simulator own_; ///< Keeps the programs and proves that they fit together.
};

} // namespace

Result<std::unique_ptr<Pricing>> simgrid_pricing(const topo::Placement& placement,
                                                 const Options& options, std::string platform) {
    if (Status status = check_supported(options); !status.ok()) {
        return status;
    }
    return std::unique_ptr<Pricing>(
        std::make_unique<SimGridPricing>(placement, options, std::move(platform)));
}

} // namespace ucg::sim
