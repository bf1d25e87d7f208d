// After its first run a plan runs without allocating memory, whatever it consists of.
#include <memory>
#include <vector>

#include "test/support/allocations.hpp"
#include "test/support/catch.hpp"
#include "test/unit/plan/every_row.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/engine/operators.hpp"
#include "ucg_coll/plan/plan.hpp"
#include "ucg_coll/transport/loopback/loopback.hpp"

namespace {

bool counting = false;
unsigned allocations = 0;

} // namespace

bool ucg::test::may_allocate() {
    allocations += counting ? 1 : 0;
    return true;
}

namespace ucg {
namespace {

/// Allocations are counted while an object of this type lives.
class Count {
  public:
    Count() {
        allocations = 0;
        counting = true;
    }
    ~Count() { counting = false; }
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;
    static unsigned result() { return allocations; }
};

/// Allocations are not counted while an object of this type lives.
class Pause {
  public:
    Pause() : was_counting_(std::exchange(counting, false)) {}
    ~Pause() { counting = was_counting_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

  private:
    bool was_counting_;
};

/// The loopback's flag slots. What they allocate for their copies is not counted.
class UncountedFlagSlot final : public transport::FlagSlots {
  public:
    explicit UncountedFlagSlot(transport::FlagSlots& inner) : inner_(inner) {}

    std::uint64_t bytes_max() const override { return inner_.bytes_max(); }
    bool share(const transport::FlagSlotSequence& sequence, const std::byte* data,
               std::uint64_t bytes) override {
        const Pause pause;
        return inner_.share(sequence, data, bytes);
    }
    std::size_t poll(const transport::FlagSlotSequence& sequence,
                     std::span<const transport::FlagSlotRead> reads,
                     const std::byte** places) override {
        return inner_.poll(sequence, reads, places);
    }
    std::size_t exchange(const transport::FlagSlotExchange& exchange) override {
        return exchange_by_parts(exchange);
    }
    void finish(std::uint64_t sequence) override { inner_.finish(sequence); }
    bool broken() const override { return inner_.broken(); }

  private:
    transport::FlagSlots& inner_;
};

/// The loopback. What it allocates for early messages is not the engine's and is not counted.
class Uncounted final : public transport::Transport {
  public:
    explicit Uncounted(transport::Transport& inner)
        : inner_(inner), flag_slots_(*inner.flag_slots()) {}

    std::string_view name() const override { return inner_.name(); }
    void post(std::span<transport::Message> messages) override {
        const Pause pause;
        inner_.post(messages);
    }
    void take_part(transport::Message& message) override {
        const Pause pause;
        inner_.take_part(message);
    }
    unsigned progress() override {
        const Pause pause;
        return inner_.progress();
    }
    Status status() const override { return inner_.status(); }
    transport::PeerMemory* peer_memory() override { return inner_.peer_memory(); }
    transport::FlagSlots* flag_slots() override { return &flag_slots_; }

  private:
    transport::Transport& inner_;
    UncountedFlagSlot flag_slots_;
};

struct One {
    One(const graph::Schedule& schedule, transport::LoopbackFabric& fabric)
        : transport(fabric.transport(schedule.rank)),
          routes(static_cast<std::size_t>(schedule.rank_count), &transport),
          input(schedule.input_bytes), output(schedule.output_bytes), engine({&transport}) {
        routes[static_cast<std::size_t>(schedule.rank)] = nullptr;
        program = engine::lower(schedule, routes).value();
        execution = std::make_unique<engine::Execution>(program);
    }

    Uncounted transport;
    std::vector<transport::Transport*> routes;
    std::vector<std::byte> input;
    std::vector<std::byte> output;
    engine::Program program;
    engine::Engine engine;
    std::unique_ptr<engine::Execution> execution;
};

using Ranks = std::vector<std::unique_ptr<One>>;

Ranks ranks_for(const std::vector<graph::Schedule>& schedules, transport::LoopbackFabric& fabric) {
    Ranks ranks;
    for (const graph::Schedule& schedule : schedules) {
        ranks.push_back(std::make_unique<One>(schedule, fabric));
    }
    return ranks;
}

bool run(Ranks& ranks) {
    const engine::Reduction sum{
        engine::find_operator(engine::OperatorKind::sum, engine::ElementType::int64), nullptr};
    for (const auto& one : ranks) {
        one->engine.start(*one->execution, {one->input.data(), one->output.data(), sum});
    }
    constexpr int kRoundsMax = 1000000;
    for (int round = 0; round < kRoundsMax; ++round) {
        bool done = true;
        for (const auto& one : ranks) {
            one->engine.progress();
            done = done && one->execution->state() == engine::ExecutionState::done;
        }
        if (done) {
            return true;
        }
    }
    return false;
}

graph::Request request_for(graph::Collective collective, Rank ranks, std::uint64_t bytes) {
    graph::Request request;
    request.collective = collective;
    request.rank_count = ranks;
    request.bytes = bytes;
    request.element_bytes = 8;
    return request;
}

std::vector<graph::Schedule> plans(const plan::Facts& facts, const graph::Request& request,
                                   std::string_view algorithm) {
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < request.rank_count; ++rank) {
        schedules.push_back(plan::plan(facts, request, rank, algorithm).value());
    }
    return schedules;
}

TEST_CASE("engine: every row's plans run again without allocating", "[engine][allocation]") {
    plan::test::Trials trials{
        .counts = {4, 5}, .bytes = {8, 88, 16 << 10}, .stagings = {0, 8 << 10}};
    trials.roots = false;
    trials.in_place = false;
    plan::test::for_every_row(trials, [](const plan::test::Trial& trial) {
        INFO(trial.describe());
        transport::LoopbackFabric fabric(trial.sample.rank_count, transport::Delivery::immediate);
        Ranks ranks = ranks_for(trial.schedules(), fabric);
        REQUIRE(run(ranks));
        const Count count;
        const bool completed = run(ranks) && run(ranks);
        const unsigned found = Count::result();
        counting = false;
        REQUIRE(completed);
        CHECK(found == 0);
    });
}

TEST_CASE("engine: a plan with repeats runs again without allocating",
          "[engine][allocation][repeat]") {
    constexpr Rank kRanks = 4;
    const topo::Placement placement = topo::Placement::one_host(kRanks);
    const plan::Facts facts{placement, cost::default_profile()};
    const graph::Request request = request_for(graph::Collective::bcast, kRanks, 4 << 20);
    const std::vector<graph::Schedule> schedules = plans(facts, request, "chain");
    REQUIRE(!schedules[1].repeats.empty());
    const auto delivery =
        GENERATE(transport::Delivery::immediate, transport::Delivery::synchronous);
    transport::LoopbackFabric fabric(kRanks, delivery);
    Ranks ranks = ranks_for(schedules, fabric);
    REQUIRE(run(ranks));
    const Count count;
    const bool completed = run(ranks);
    const unsigned found = Count::result();
    counting = false;
    REQUIRE(completed);
    CHECK(found == 0);
}

TEST_CASE("engine: starts that queue do not allocate either", "[engine][allocation][window]") {
    const topo::Placement placement = topo::Placement::one_host(2);
    const plan::Facts facts{placement, cost::default_profile()};
    const graph::Request request = request_for(graph::Collective::allreduce, 2, 8);
    transport::LoopbackFabric fabric(2, transport::Delivery::synchronous);
    Ranks ranks = ranks_for(plans(facts, request, {}), fabric);
    One& first = *ranks[0];
    std::vector<std::unique_ptr<engine::Execution>> executions;
    for (std::uint32_t i = 0; i < 2 * engine::kOutstandingMax; ++i) {
        executions.push_back(std::make_unique<engine::Execution>(first.program));
    }
    const engine::Reduction sum{
        engine::find_operator(engine::OperatorKind::sum, engine::ElementType::int64), nullptr};
    const Count count;
    for (const auto& execution : executions) {
        first.engine.start(*execution, {first.input.data(), first.output.data(), sum});
    }
    const unsigned found = Count::result();
    counting = false;
    CHECK(executions.back()->state() == engine::ExecutionState::queued);
    CHECK(found == 0);
}

} // namespace
} // namespace ucg
