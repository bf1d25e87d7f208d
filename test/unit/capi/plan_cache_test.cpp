// The plans of a group: a program whose sizes never repeat does not make the cache grow without
// bound, and plans that are in use stay.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/plan_cache.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::capi {
namespace {

/// The same limit as in plan_cache.hpp.
constexpr std::size_t kPlansMax = 512;

/// Makes plans for a group of one rank that need so many bytes of scratch.
PlanCache::Make maker(std::uint64_t scratch_bytes) {
    return [=](const graph::Request& request,
               std::uint64_t /*hash*/) -> Result<std::unique_ptr<CachedPlan>> {
        const topo::Placement placement = topo::Placement::one_host(1);
        const cost::Profile profile = cost::default_profile();
        const auto schedule = plan::plan(plan::Facts{placement, profile}, request, 0);
        if (!schedule.ok()) {
            return schedule.status();
        }
        Result<engine::Program> program = engine::lower(*schedule, {});
        if (!program.ok()) {
            return program.status();
        }
        program->scratch_bytes = scratch_bytes;
        return std::make_unique<CachedPlan>(request, schedule->algorithm, std::move(*program));
    };
}

struct Caller {
    explicit Caller(std::uint64_t scratch_bytes = 0)
        : plans(maker(scratch_bytes), all_bytes), others(maker(scratch_bytes), all_bytes) {}

    std::atomic<std::uint64_t> all_bytes = 0;
    PlanCache plans;
    PlanCache others; ///< Of another group.
    std::byte send[8] = {};
    std::byte receive[8] = {};

    ucg_coll_params_t allgather_of(std::uint64_t bytes) {
        ucg_coll_params_t params = {};
        params.type = UCG_COLL_ALLGATHER;
        params.element_bytes = 1;
        params.count = bytes;
        params.send_buffer = send;
        params.recv_buffer = receive;
        return params;
    }

    CachedPlan* plan_of(std::uint64_t bytes) {
        const auto known = plans.understand(allgather_of(bytes), 0, 1);
        REQUIRE(known.ok());
        return (*known)->plan;
    }
};

} // namespace

TEST_CASE("capi: a group keeps so many plans and no more", "[capi]") {
    Caller caller;
    std::size_t most = 0;
    for (std::uint64_t bytes = 1; bytes <= 4 * kPlansMax; ++bytes) {
        caller.plan_of(bytes);
        most = std::max(most, caller.plans.size());
    }
    CHECK(most == kPlansMax);
    CHECK(caller.plans.planned() == 4 * kPlansMax);
    // Plans are dropped some at a time, so that a loop over a few more sizes than kPlansMax still
    // finds most of its plans.
    CHECK(caller.plans.size() > kPlansMax / 2);
}

TEST_CASE("capi: a plan that a call is running stays, however many others come", "[capi]") {
    Caller caller;
    CachedPlan* const first = caller.plan_of(1);
    PlanRun* const run = first->take();
    CHECK(first->in_use());
    for (std::uint64_t bytes = 2; bytes <= 8 * kPlansMax; ++bytes) {
        caller.plan_of(bytes);
    }
    const std::uint64_t planned = caller.plans.planned();
    CHECK(caller.plan_of(1) == first);
    CHECK(caller.plans.planned() == planned);
    first->give_back(run);
    CHECK_FALSE(first->in_use());
}

TEST_CASE("capi: plans that are all in use are more than a group keeps", "[capi]") {
    Caller caller;
    std::vector<PlanRun*> runs;
    for (std::uint64_t bytes = 1; bytes <= kPlansMax + 8; ++bytes) {
        runs.push_back(caller.plan_of(bytes)->take());
    }
    CHECK(caller.plans.size() == kPlansMax + 8);
    for (PlanRun* run : runs) {
        run->plan.give_back(run);
    }
    caller.plan_of(kPlansMax + 9);
    CHECK(caller.plans.size() <= kPlansMax);
}

TEST_CASE("capi: plans of much memory are dropped before there are many", "[capi]") {
    Caller caller(std::uint64_t{1} << 20);
    std::size_t most = 0;
    for (std::uint64_t bytes = 1; bytes <= kPlansMax; ++bytes) {
        caller.plan_of(bytes);
        most = std::max(most, caller.plans.size());
    }
    CHECK(most >= 250);
    CHECK(most <= 256);
}

TEST_CASE("capi: the plans of all groups of a process have one bound", "[capi]") {
    Caller caller(std::uint64_t{1} << 20);
    for (std::uint64_t bytes = 1; bytes <= kPlansMax; ++bytes) {
        caller.plan_of(bytes);
        REQUIRE(caller.others.understand(caller.allgather_of(bytes), 0, 1).ok());
        REQUIRE(caller.plans.size() + caller.others.size() <= 257);
    }
    CHECK(caller.plans.size() + caller.others.size() > 200);
    CHECK(caller.all_bytes > std::uint64_t{200} << 20);
}

TEST_CASE("capi: of the runs that a burst of calls took a plan keeps some", "[capi]") {
    const std::uint64_t scratch_bytes = std::uint64_t{2} << 20;
    Caller caller(scratch_bytes);
    CachedPlan* const plan = caller.plan_of(1);
    std::vector<PlanRun*> runs(1000);
    for (PlanRun*& run : runs) {
        run = plan->take();
    }
    CHECK(plan->bytes() > runs.size() * scratch_bytes);
    for (PlanRun* run : runs) {
        CHECK(plan->in_use());
        plan->give_back(run);
    }
    CHECK_FALSE(plan->in_use());
    CHECK(plan->bytes() < std::uint64_t{18} << 20);
    // Those that were kept serve again, each for one call.
    std::vector<PlanRun*> again(8);
    for (PlanRun*& run : again) {
        run = plan->take();
    }
    std::sort(again.begin(), again.end());
    CHECK(std::adjacent_find(again.begin(), again.end()) == again.end());
    for (PlanRun* run : again) {
        plan->give_back(run);
    }
    CHECK_FALSE(plan->in_use());
}

TEST_CASE("capi: runs that take little are all kept, two that take much as well", "[capi]") {
    const auto idle_bytes = [](std::uint64_t scratch_bytes, std::size_t count) {
        Caller caller(scratch_bytes);
        CachedPlan* const plan = caller.plan_of(1);
        std::vector<PlanRun*> runs(count);
        for (PlanRun*& run : runs) {
            run = plan->take();
        }
        const std::uint64_t held = plan->bytes();
        for (PlanRun* run : runs) {
            plan->give_back(run);
        }
        return std::pair(held, plan->bytes());
    };
    const auto [held, kept] = idle_bytes(std::uint64_t{128} << 10, 88);
    CHECK(kept == held);
    const auto [held_long, kept_long] = idle_bytes(std::uint64_t{64} << 20, 3);
    CHECK(held_long - kept_long > std::uint64_t{64} << 20);
    CHECK(kept_long > std::uint64_t{128} << 20);
}

namespace {

/// Calls whose blocks have lengths of their own, all of one shape.
struct VectorCaller : Caller {
    using Caller::Caller;

    std::array<std::byte, 4096> from = {};
    std::array<std::byte, 4096> to = {};

    CachedPlan* plan_of_block(std::uint64_t bytes) {
        const std::int64_t place = 0;
        ucg_coll_params_t params = {};
        params.type = UCG_COLL_ALLTOALLV;
        params.field_mask = UCG_COLL_PARAM_FIELD_VECTORS;
        params.element_bytes = 1;
        params.send_buffer = from.data();
        params.recv_buffer = to.data();
        params.send_counts = &bytes;
        params.recv_counts = &bytes;
        params.send_displs = &place;
        params.recv_displs = &place;
        if (const KnownCall* const known = plans.recall(params)) {
            return known->plan;
        }
        const auto known = plans.understand(params, 0, 1);
        REQUIRE(known.ok());
        return (*known)->plan;
    }
};

} // namespace

TEST_CASE("capi: of large plans with vectors that do not come again few are kept", "[capi]") {
    VectorCaller caller(std::uint64_t{1} << 20);
    CachedPlan* const other = caller.plan_of(1); // Without vectors.
    for (std::uint64_t bytes = 1; bytes <= 1000; ++bytes) {
        caller.plan_of_block(bytes);
        REQUIRE(caller.plans.size() <= 1 + 8);
    }
    const std::uint64_t planned = caller.plans.planned();
    CHECK(caller.plan_of(1) == other);
    for (std::uint64_t bytes = 1000; bytes > 1000 - 7; --bytes) {
        caller.plan_of_block(bytes);
    }
    CHECK(caller.plans.planned() == planned);
}

TEST_CASE("capi: vectors that come again find their plans among others that do not", "[capi]") {
    VectorCaller caller(std::uint64_t{1} << 20);
    constexpr std::uint64_t kFixed = 4;
    for (std::uint64_t round = 0; round < 100; ++round) {
        for (std::uint64_t bytes = 1; bytes <= kFixed; ++bytes) {
            caller.plan_of_block(bytes);
        }
        caller.plan_of_block(100 + round);
    }
    CHECK(caller.plans.planned() == kFixed + 100);
}

TEST_CASE("capi: a call that repeats one of few keeps its plan, however often others come",
          "[capi]") {
    VectorCaller caller(std::uint64_t{1} << 20);
    for (int i = 0; i < 100; ++i) {
        caller.plan_of_block(1);
        CHECK(caller.plans.planned() == 1);
    }
    for (std::uint64_t bytes = 2; bytes <= 8; ++bytes) { // The first stays among the latest.
        caller.plan_of_block(bytes);
    }
    caller.plan_of_block(1);
    CHECK(caller.plans.planned() == 8);
}

TEST_CASE("capi: of small plans with vectors many are kept", "[capi]") {
    VectorCaller caller;
    constexpr std::uint64_t kFixed = 200;
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t bytes = 1; bytes <= kFixed; ++bytes) {
            caller.plan_of_block(bytes);
        }
    }
    CHECK(caller.plans.planned() == kFixed);
    CHECK(caller.all_bytes < std::uint64_t{4} << 20);
}

TEST_CASE("capi: what is trimmed drops the plans that nobody uses", "[capi]") {
    Caller caller(std::uint64_t{1} << 10);
    CachedPlan* const used = caller.plan_of(1);
    PlanRun* const run = used->take();
    caller.plan_of(2);
    caller.plans.trim(std::uint64_t{1} << 20);
    CHECK(caller.plans.size() == 2);
    caller.plans.trim(std::uint64_t{1} << 10);
    CHECK(caller.plans.size() == 1);
    CHECK(caller.plan_of(1) == used);
    CHECK(caller.plans.recall(caller.allgather_of(2)) == nullptr);
    used->give_back(run);
    caller.plans.trim(0);
    CHECK(caller.plans.size() == 0);
}

TEST_CASE("capi: each run of a plan counts as the memory that it holds", "[capi]") {
    Caller caller(std::uint64_t{1} << 20);
    CachedPlan* const plan = caller.plan_of(1);
    std::array<PlanRun*, 3> runs = {};
    for (PlanRun*& run : runs) {
        run = plan->take();
    }
    for (PlanRun* run : runs) {
        plan->give_back(run);
    }
    caller.plans.trim(std::uint64_t{4} << 20);
    CHECK(caller.plans.size() == 1);
    caller.plans.trim(std::uint64_t{2} << 20);
    CHECK(caller.plans.size() == 0);
}

TEST_CASE("capi: a call is recalled until another takes its place", "[capi]") {
    Caller caller;
    const ucg_coll_params_t call = caller.allgather_of(8);
    CHECK(caller.plans.recall(call) == nullptr);
    CachedPlan* const plan = caller.plan_of(8);
    REQUIRE(caller.plans.recall(call) != nullptr);
    CHECK(caller.plans.recall(call)->plan == plan);
    CHECK(caller.plans.recall(caller.allgather_of(9)) == nullptr);
    // Plans that are dropped must not be recalled.
    for (std::uint64_t bytes = 16; bytes <= 16 + 4 * kPlansMax; ++bytes) {
        caller.plan_of(bytes);
    }
    const KnownCall* again = caller.plans.recall(call);
    CHECK((again == nullptr || again->plan == caller.plan_of(8)));
}

TEST_CASE("capi: calls of several shapes are all recalled, in any order", "[capi]") {
    constexpr std::uint64_t kShapes = 8;
    Caller caller;
    // In the first round the cache finds out how many places the calls need.
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t bytes = 1; bytes <= kShapes; ++bytes) {
            const KnownCall* known = caller.plans.recall(caller.allgather_of(bytes));
            CHECK((known == nullptr || known->plan == caller.plan_of(bytes)));
            if (known == nullptr) {
                CHECK(round == 0);
                CHECK(caller.plan_of(bytes) != nullptr);
            }
        }
    }
    CHECK(caller.plans.planned() == kShapes);
}

TEST_CASE("capi: a call that is known does not stand for others of the same place", "[capi]") {
    Caller caller;
    CHECK(caller.plans.recall({}) == nullptr);
    CachedPlan* const plan = caller.plan_of(8);
    ucg_coll_params_t barrier = {};
    barrier.type = UCG_COLL_BARRIER;
    CHECK(caller.plans.recall(barrier) == nullptr);
    for (std::uint64_t bytes = 9; bytes < 200; ++bytes) { // The number of places grows.
        CHECK(caller.plan_of(bytes) != plan);
        CHECK(caller.plans.recall(barrier) == nullptr);
        const KnownCall* const known = caller.plans.recall(caller.allgather_of(8));
        CHECK((known == nullptr || known->plan == plan));
    }
}

TEST_CASE("capi: a call with another operator is not taken for a repetition", "[capi]") {
    Caller caller;
    ucg_coll_params_t call = caller.allgather_of(2);
    call.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    call.type = UCG_COLL_ALLREDUCE;
    call.element_bytes = 4;
    call.datatype = UCG_DT_INT32;
    call.op = UCG_OP_SUM;
    const auto sum = caller.plans.understand(call, 0, 1);
    REQUIRE(sum.ok());
    const engine::CombineFn add = (*sum)->binding.combine;
    ucg_coll_params_t other = call;
    other.op = UCG_OP_MAX;
    const auto max = caller.plans.understand(other, 0, 1);
    REQUIRE(max.ok());
    CHECK((*max)->binding.combine != add);
    CHECK((*max)->plan == (*caller.plans.understand(call, 0, 1))->plan); // One plan serves both.
    for (int turn = 0; turn < 3; ++turn) {
        if (const KnownCall* known = caller.plans.recall(call)) {
            CHECK(known->binding.combine == add);
        }
        if (const KnownCall* known = caller.plans.recall(other)) {
            CHECK(known->binding.combine != add);
        }
    }
}

} // namespace ucg::capi
