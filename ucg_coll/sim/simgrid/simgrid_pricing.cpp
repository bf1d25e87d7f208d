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

namespace ucg::sim {

namespace {

namespace s4u = simgrid::s4u;
using graph::OpKind;

Picoseconds now() {
    return std::llround(s4u::Engine::get_clock() * 1e12);
}

void sleep(Picoseconds time) {
    if (time > 0) {
        s4u::this_actor::sleep_for(static_cast<double>(time) * 1e-12);
    }
}

/// What travels: who takes it in pays for that, and writes down when.
struct Parcel {
    Picoseconds take = 0;
    std::size_t transfer = 0; ///< Into Trace::transfers.
};

/// What the actors of all ranks share. They run one at a time.
struct World {
    const topo::Placement& placement;
    const Options& options;
    const std::vector<Program>& programs;
    Outcome outcome;
    Trace* trace;
    std::vector<s4u::ActorPtr> actors;
    std::deque<Parcel> parcels; ///< Keeps them in their places.
    std::map<std::tuple<Rank, Rank, bool>, s4u::Mailbox*> mailboxes;

    /// A mailbox with a receiver lets messages leave before they are asked for.
    s4u::Mailbox* mailbox(Rank from, Rank to, OpKind kind) {
        const bool is_signal = kind == OpKind::signal || kind == OpKind::await;
        s4u::Mailbox*& box = mailboxes[{from, to, is_signal}];
        if (box == nullptr) {
            box = s4u::Mailbox::by_name(fmt::format("{} {} {}", from, to, is_signal));
            box->set_receiver(actors[static_cast<std::size_t>(to)]);
        }
        return box;
    }
};

/// A rank's program as SimGrid's actor; see Run, which does the same by its own prices.
class RankActor {
  public:
    RankActor(World& world, Rank rank)
        : world_(world), program_(world.programs[static_cast<std::size_t>(rank)]), rank_(rank),
          slots_(program_.slot_count) {}

    void operator()() {
        sleep(world_.outcome.entered[static_cast<std::size_t>(rank_)]);
        record(Activity::Kind::late, 0);
        const auto end = static_cast<std::uint32_t>(program_.steps.size() - 1);
        std::vector<std::uint32_t> awaited;
        while (cursor_.step < end) {
            awaited.clear();
            for_each_wait(cursor_, program_, [&](std::uint32_t slot) { awaited.push_back(slot); });
            wait(awaited);
            issue(program_.steps[cursor_.step]);
            next_step(cursor_, program_);
        }
        awaited.resize(slots_.size());
        for (std::uint32_t slot = 0; slot < awaited.size(); ++slot) {
            awaited[slot] = slot;
        }
        wait(awaited);
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
            world_.trace->activities.push_back(
                {kind, rank_, cursor_.step, cursor_.iteration, start, now()});
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

    /// The sender learns of the arrival too, and nothing else is known of when it has left.
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

    void issue(const Step& step) {
        switch (step.kind) {
        case OpKind::send:
        case OpKind::signal: send(step); return;
        case OpKind::recv:
        case OpKind::await: receive(step); return;
        default: compute(step); return;
        }
    }

    void send(const Step& step) {
        const std::uint64_t bytes = bytes_of(cursor_, program_);
        const cost::MessageTerms terms = message_terms(
            world_.options.network, world_.placement.distance(rank_, step.peer), bytes);
        const Picoseconds start = now();
        sleep(to_picoseconds(terms.issue_ns));
        record(Activity::Kind::issue, start);
        world_.parcels.push_back({to_picoseconds(terms.take_ns), 0});
        Parcel& parcel = world_.parcels.back();
        if (world_.trace != nullptr) {
            parcel.transfer = world_.trace->transfers.size();
            world_.trace->transfers.push_back({.from = rank_,
                                               .to = step.peer,
                                               .send_op = cursor_.step,
                                               .bytes = bytes,
                                               .is_signal = step.kind == OpKind::signal,
                                               .begin = now(),
                                               .left = kTimeEnd});
        }
        ++world_.outcome.message_count;
        world_.outcome.message_bytes += bytes;
        slots_[slot_of(cursor_, program_)] = {
            world_.mailbox(rank_, step.peer, step.kind)->put_async(&parcel, bytes), &parcel, false};
    }

    void receive(const Step& step) {
        Slot& slot = slots_[slot_of(cursor_, program_)];
        slot.receives = true;
        slot.comm = world_.mailbox(step.peer, rank_, step.kind)->get_async<Parcel>(&slot.parcel);
    }

    void compute(const Step& step) {
        const std::uint64_t bytes = bytes_of(cursor_, program_);
        const bool copies = step.kind != OpKind::reduce;
        const Picoseconds start = now();
        const Compute& prices = world_.options.compute;
        sleep(to_picoseconds(copies ? copy_ns(prices, bytes)
                                    : reduce_ns(prices, step.operand_count, bytes)));
        record(copies ? Activity::Kind::copy : Activity::Kind::reduce, start);
    }

    World& world_;
    const Program& program_;
    Rank rank_;
    Cursor cursor_;
    std::vector<Slot> slots_;
};

/// Fluid sharing of links at their nominal latency and bandwidth: without the factors that SimGrid
/// fits to TCP, and to a millionth of a microsecond, where it would round to ten microseconds.
/// Between ranks of one host messages cost what Options::network says.
std::vector<std::string> arguments_for(const Options& options) {
    constexpr std::uint64_t kLong = 1 << 20;
    const auto time_ns = [&](std::uint64_t bytes) {
        const auto terms = message_terms(options.network, topo::Distance::host, bytes);
        return terms.inject_ns + terms.flight_ns;
    };
    const double latency_ns = time_ns(0);
    const double per_byte_ns = (time_ns(kLong) - latency_ns) / static_cast<double>(kLong);
    constexpr double kLeastPerByteNs = 1e-6; // As good as nothing, and its inverse is finite.
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

/// Is there a way between all hosts that messages go between? SimGrid would abort for want of it.
Status check_routes(const World& world, const std::vector<s4u::Host*>& hosts) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    for (std::size_t rank = 0; rank < world.programs.size(); ++rank) {
        const std::uint32_t from = world.placement.place(static_cast<Rank>(rank)).host;
        for (const Step& step : world.programs[rank].steps) {
            const bool sends = step.kind == OpKind::send || step.kind == OpKind::signal;
            const std::uint32_t to = sends ? world.placement.place(step.peer).host : from;
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
    engine.seal_platform(); // There are no routes before.
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
                                                  hosts[world.placement.place(rank).host],
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
        if (!std::ifstream(platform_).good()) { // Of which SimGrid would abort.
            return failure(Code::io_error, "{}: cannot be read", platform_);
        }
        // Ranks that wait for one another would make SimGrid abort.
        Result<Outcome> own = own_.run(seed);
        if (!own) {
            return own;
        }
        World world{placement_, options_, own_.programs(), {}, trace, {}, {}, {}};
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
