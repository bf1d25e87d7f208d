// How large is what a short collective reads and writes: a field that is added there costs every
// call, so that whoever adds one changes a number here and says why.
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
    CHECK(sizeof(engine::Execution) <= 224); // Of which 8 say who is told of the end.
    CHECK(sizeof(transport::Message) <= 80); // Of which 32 are for parts read where they arrive.
    CHECK(sizeof(transport::FlagSlotExchange) <= kCacheLine);
    CHECK(sizeof(shm::FlagSlot) == 2 * kCacheLine); // Processors fetch lines in pairs.
    CHECK(sizeof(capi::CallShape) <= 40);
    CHECK(sizeof(capi::CallBinding) <= 40);
    CHECK(sizeof(capi::KnownCall) <= 2 * kCacheLine);
    CHECK(sizeof(capi::PlanRun) <= 272);     // Of which 8 say how the caller's operator ended.
    CHECK(sizeof(ucg_coll_params_t) <= 128); // Of which 16 are layouts, most often not read.
}

} // namespace ucg
