// The sizes of the structures that a short collective reads and writes. A field that is added to
// one of them costs every call, so whoever adds one has to change a number here and say why.
#include "shm/flag_slot.hpp"
#include "test/support/catch.hpp"
#include "ucg_coll/capi/plan_cache.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/graph/lowering.hpp"
#include "ucg_coll/graph/schedule.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg {

TEST_CASE("capi: what the short path touches is as small as it was", "[capi][sizes]") {
    CHECK(sizeof(graph::Op) <= kCacheLine);
    CHECK(sizeof(graph::Address) <= 24);
    CHECK(sizeof(graph::Step) <= 36);
    CHECK(sizeof(graph::MessagePlan) <= 40);
    CHECK(sizeof(graph::Wait) <= 8);
    CHECK(sizeof(engine::Execution) <= 224); // 8 bytes of it say who is told of the end.
    // 32 bytes of it are for parts that are read where they arrive.
    CHECK(sizeof(transport::Message) <= 80);
    CHECK(sizeof(transport::FlagSlotExchange) <= kCacheLine);
    // The size is two lines because processors fetch lines in pairs.
    CHECK(sizeof(shm::FlagSlot) == 2 * kCacheLine);
    CHECK(sizeof(capi::CallShape) <= 40);
    CHECK(sizeof(capi::CallBinding) <= 40);
    CHECK(sizeof(capi::KnownCall) <= 2 * kCacheLine);
    CHECK(sizeof(capi::PlanRun) <= 272); // 8 bytes of it say how the caller's operator ended.
    // 16 bytes of these are layouts, which most calls do not read; neighbours are behind them.
    CHECK(offsetof(ucg_coll_params_t, neighbors) <= 128);
}

} // namespace ucg
