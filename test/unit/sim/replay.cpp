#include "test/unit/sim/replay.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::test {
namespace {

using graph::OpKind;
using sim::Picoseconds;
using transport::Direction;
using transport::Message;
using transport::MessageState;

constexpr Picoseconds kNever = sim::kTimeEnd;

/// An action of a rank that is visible in the simulator and in the engine.
struct Action {
    OpKind kind = OpKind::send;
    Rank peer = kNoRank; ///< The other end of a message or signal.
    Picoseconds time = 0;

    bool operator==(const Action&) const = default;
};

std::string describe(const Action& action) {
    return fmt::format("{} {} at {} ns", graph::name(action.kind),
                       action.peer == kNoRank ? "" : fmt::format("{}", action.peer),
                       sim::to_ns(action.time));
}

bool is_seen(OpKind kind) {
    switch (kind) {
    case OpKind::send:
    case OpKind::recv:
    case OpKind::signal:
    case OpKind::await:
    case OpKind::share:
    case OpKind::reduce: return true;
    case OpKind::copy:
    case OpKind::publish: return false;
    }
    return false;
}

OpKind kind_of(const Message& message) {
    const bool is_signal = message.channel == transport::kSignalChannel;
    return message.direction == Direction::send ? (is_signal ? OpKind::signal : OpKind::send)
                                                : (is_signal ? OpKind::await : OpKind::recv);
}

/// The messages from one rank to another, in order.
struct Lane {
    std::vector<Picoseconds> arrivals; ///< The simulated times.
    std::vector<std::vector<std::byte>> sent;
    std::size_t received = 0;
};

/// What all ranks share: the clock and everything that is in flight.
struct World {
    Picoseconds now = 0;
    bool buffers_mapped = false;
    /// The key is from, to, and send or signal.
    std::map<std::tuple<Rank, Rank, OpKind>, Lane> lanes;
    /// The key is owner and reader, the value the simulated time.
    std::map<std::pair<Rank, Rank>, Picoseconds> flag_slots;
    std::vector<std::vector<Action>> actions; ///< The index is the rank.
    std::string broken; ///< Something impossible, such as a message that arrives before it is sent.
};

class ReplayTransport final : public transport::Transport,
                              public transport::PeerMemory,
                              public transport::FlagSlots {
  public:
    ReplayTransport(World& world, Rank rank,
                    std::span<const std::unique_ptr<ReplayTransport>> ranks)
        : world_(world), rank_(rank), ranks_(ranks) {}

    std::string_view name() const override { return "replay"; }
    Status status() const override { return {}; }
    PeerMemory* peer_memory() override { return this; }
    FlagSlots* flag_slots() override { return this; }

    void post(std::span<Message> messages) override {
        for (Message& message : messages) {
            note(kind_of(message), message.peer);
            if (message.direction == Direction::send) {
                Lane& lane = world_.lanes[{rank_, message.peer, kind_of(message)}];
                lane.sent.emplace_back(message.data, message.data + message.bytes);
                message.state = MessageState::done;
                continue;
            }
            const OpKind sent_as = kind_of(message) == OpKind::recv ? OpKind::send : OpKind::signal;
            Lane& lane = world_.lanes[{message.peer, rank_, sent_as}];
            message.state = MessageState::posted;
            posted_.push_back({&message, &lane, lane.received++});
        }
        deliver();
    }

    unsigned progress() override { return deliver(); }

    std::span<std::byte> staging() override {
        if (staging_.empty()) {
            staging_.resize(kStagingBytes);
        }
        return staging_;
    }
    bool is_mapped_by_peers(const std::byte* /*data*/, std::uint64_t /*bytes*/) const override {
        return world_.buffers_mapped;
    }
    bool expose(std::uint32_t /*sequence*/, const transport::SharedBuffers& buffers,
                std::uint64_t staging_bytes) override {
        exposed_ = buffers;
        return staging_bytes <= kStagingBytes;
    }
    transport::SharedBuffer peer_buffer(Rank owner, graph::BufferKind buffer,
                                        std::uint32_t /*sequence*/) const override {
        return ranks_[static_cast<std::size_t>(owner)]->exposed_[static_cast<std::size_t>(buffer)];
    }

    std::uint64_t bytes_max() const override { return kStagingBytes; }
    bool share(const transport::FlagSlotSequence& /*sequence*/, const std::byte* data,
               std::uint64_t bytes) override {
        note(OpKind::share, kNoRank);
        shared_.assign(data, data + bytes);
        shared_.reserve(1); // With this, data() is never null.
        has_shared_ = true;
        return true;
    }
    std::size_t poll(const transport::FlagSlotSequence& /*sequence*/,
                     std::span<const transport::FlagSlotRead> reads,
                     const std::byte** places) override {
        std::size_t seen = 0;
        for (; seen < reads.size(); ++seen) {
            const auto arrival = world_.flag_slots.find({reads[seen].owner, rank_});
            if (arrival == world_.flag_slots.end() || arrival->second > world_.now) {
                break;
            }
            const ReplayTransport& owner = *ranks_[static_cast<std::size_t>(reads[seen].owner)];
            if (!owner.has_shared_) {
                fail(fmt::format("rank {} sees the flag slot of rank {}, which has not shared",
                                 rank_, reads[seen].owner));
                break;
            }
            places[seen] = owner.shared_.data();
        }
        return seen;
    }
    std::size_t exchange(const transport::FlagSlotExchange& exchange) override {
        return exchange_by_parts(exchange);
    }
    void finish(std::uint64_t /*sequence*/) override {}
    bool broken() const override { return false; }

    void note(OpKind kind, Rank peer) {
        world_.actions[static_cast<std::size_t>(rank_)].push_back({kind, peer, world_.now});
    }

  private:
    static constexpr std::uint64_t kStagingBytes = 64 << 10; ///< At most as much as in the facts.

    struct Posted {
        Message* message = nullptr;
        Lane* lane = nullptr;
        std::size_t index = 0;
    };

    unsigned deliver() {
        const std::size_t before = posted_.size();
        std::erase_if(posted_, [&](const Posted& posted) {
            const Lane& lane = *posted.lane;
            if (posted.index >= lane.arrivals.size() || lane.arrivals[posted.index] > world_.now) {
                return false;
            }
            if (posted.index >= lane.sent.size()) {
                fail(fmt::format("a message from rank {} to rank {} arrives before it is sent",
                                 posted.message->peer, rank_));
                return false;
            }
            const std::vector<std::byte>& bytes = lane.sent[posted.index];
            std::copy(bytes.begin(), bytes.end(), posted.message->data);
            posted.message->state = MessageState::done;
            return true;
        });
        return static_cast<unsigned>(before - posted_.size());
    }

    void fail(std::string what) const {
        if (world_.broken.empty()) {
            world_.broken = std::move(what);
        }
    }

    World& world_;
    Rank rank_;
    std::span<const std::unique_ptr<ReplayTransport>> ranks_;
    std::vector<Posted> posted_;
    std::vector<std::byte> staging_;
    transport::SharedBuffers exposed_;
    std::vector<std::byte> shared_;
    bool has_shared_ = false;
};

/// Adds up bytes. Which operator it is does not matter here.
void combine(void* context, const std::byte* const* operands, std::size_t operand_count,
             std::byte* target, std::size_t bytes) {
    static_cast<ReplayTransport*>(context)->note(OpKind::reduce, kNoRank);
    for (std::size_t at = 0; at < bytes; ++at) {
        unsigned sum = 0;
        for (std::size_t i = 0; i < operand_count; ++i) {
            sum += std::to_integer<unsigned>(operands[i][at]);
        }
        target[at] = static_cast<std::byte>(sum);
    }
}

struct OneRank {
    OneRank(const graph::Schedule& schedule, ReplayTransport& transport)
        : routes(static_cast<std::size_t>(schedule.rank_count), &transport),
          program(lowered(schedule, routes)), input(schedule.input_bytes),
          output(schedule.output_bytes), engine({&transport}),
          execution(program), reduction{combine, &transport} {}

    static engine::Program lowered(const graph::Schedule& schedule,
                                   std::vector<transport::Transport*>& routes) {
        routes[static_cast<std::size_t>(schedule.rank)] = nullptr;
        return engine::lower(schedule, routes).value();
    }

    std::vector<transport::Transport*> routes;
    engine::Program program;
    std::vector<std::byte> input;
    std::vector<std::byte> output;
    engine::Engine engine;
    engine::Execution execution;
    engine::Reduction reduction;
    Picoseconds done = kNever;
};

class Replay {
  public:
    Replay(std::span<const graph::Schedule> schedules, const sim::Outcome& outcome,
           const sim::Trace& trace, bool buffers_mapped)
        : schedules_(schedules), outcome_(outcome), trace_(trace) {
        world_.buffers_mapped = buffers_mapped;
        world_.actions.resize(schedules.size());
        for (const sim::Transfer& transfer : trace.transfers) {
            times_.insert(transfer.arrived);
            switch (transfer.kind) {
            case sim::Transfer::Kind::message:
            case sim::Transfer::Kind::signal:
                world_
                    .lanes[{transfer.from, transfer.to,
                            transfer.kind == sim::Transfer::Kind::signal ? OpKind::signal
                                                                         : OpKind::send}]
                    .arrivals.push_back(transfer.arrived);
                break;
            case sim::Transfer::Kind::flag_slot:
                world_.flag_slots[{transfer.from, transfer.to}] = transfer.arrived;
                break;
            }
        }
        times_.insert(outcome.entered.begin(), outcome.entered.end());
        for (std::size_t i = 0; i < schedules.size(); ++i) {
            transports_.push_back(nullptr);
        }
        for (std::size_t i = 0; i < schedules.size(); ++i) {
            transports_[i] =
                std::make_unique<ReplayTransport>(world_, static_cast<Rank>(i), transports_);
            ranks_.push_back(std::make_unique<OneRank>(schedules[i], *transports_[i]));
        }
    }

    std::string run() {
        for (const Picoseconds time : times_) {
            world_.now = time;
            for (std::size_t i = 0; i < ranks_.size(); ++i) {
                step(*ranks_[i], outcome_.entered[i]);
            }
        }
        if (!world_.broken.empty()) {
            return world_.broken;
        }
        for (Rank rank = 0; rank < static_cast<Rank>(ranks_.size()); ++rank) {
            if (std::string difference = compare(rank); !difference.empty()) {
                return fmt::format("rank {}: {}", rank, difference);
            }
        }
        return {};
    }

  private:
    void step(OneRank& rank, Picoseconds entered) const {
        if (world_.now == entered) {
            rank.engine.start(rank.execution,
                              {rank.input.data(), rank.output.data(), rank.reduction});
        }
        if (world_.now >= entered && rank.execution.in_progress()) {
            rank.engine.progress();
        }
        while (rank.engine.take_operator(rank.execution)) {
            rank.execution.call_operator();
            rank.engine.operator_called(rank.execution);
            rank.engine.progress();
        }
        if (rank.execution.state() == engine::ExecutionState::done && rank.done == kNever) {
            rank.done = world_.now;
        }
    }

    std::vector<Action> simulated(Rank rank) const {
        std::vector<Action> actions;
        const graph::Schedule& schedule = schedules_[static_cast<std::size_t>(rank)];
        for (const sim::Issue& issue : trace_.issues) {
            if (issue.rank != rank) {
                continue; // The schedule of another rank may have fewer ops.
            }
            if (const graph::Op& op = schedule.ops[issue.op]; is_seen(op.kind)) {
                actions.push_back({op.kind, op.peer, issue.time});
            }
        }
        return actions;
    }

    std::string compare(Rank rank) const {
        const auto index = static_cast<std::size_t>(rank);
        const std::vector<Action> expected = simulated(rank);
        const std::vector<Action>& found = world_.actions[index];
        for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
            const std::string simulates =
                i < expected.size() ? describe(expected[i]) : "nothing more";
            const std::string runs = i < found.size() ? describe(found[i]) : "nothing more";
            if (simulates != runs) {
                return fmt::format("action {}: simulated {}, run {}", i, simulates, runs);
            }
        }
        const Picoseconds done = ranks_[index]->done;
        return done == outcome_.finish[index]
                   ? std::string()
                   : fmt::format("simulated as done at {} ns, run {}",
                                 sim::to_ns(outcome_.finish[index]),
                                 done == kNever ? "for ever"
                                                : fmt::format("until {} ns", sim::to_ns(done)));
    }

    std::span<const graph::Schedule> schedules_;
    const sim::Outcome& outcome_;
    const sim::Trace& trace_;
    World world_;
    std::set<Picoseconds> times_;
    std::vector<std::unique_ptr<ReplayTransport>> transports_;
    std::vector<std::unique_ptr<OneRank>> ranks_;
};

} // namespace

sim::Options only_flights() {
    sim::Options options;
    options.network = cost::LogGp{.latency_ns = 1000};
    options.memory.model = {};
    options.message_noise = {sim::Distribution::Kind::uniform, 0, 900};
    options.skew = {sim::Distribution::Kind::uniform, 0, 3000};
    return options;
}

std::string first_difference(const topo::Placement& placement,
                             std::span<const graph::Schedule> schedules, std::uint64_t seed,
                             bool buffers_mapped) {
    sim::Options options = only_flights();
    options.memory.buffers_mapped = buffers_mapped;
    sim::Simulator simulator(placement, options);
    for (const graph::Schedule& schedule : schedules) {
        simulator.add(schedule);
    }
    sim::Trace trace;
    const Result<sim::Outcome> outcome = simulator.run(seed, &trace);
    return outcome ? Replay(schedules, *outcome, trace, buffers_mapped).run()
                   : std::string(outcome.status().message());
}

} // namespace ucg::test
