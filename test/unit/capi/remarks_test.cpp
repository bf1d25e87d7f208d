// What a process says once.
#include "test/support/catch.hpp"
#include "ucg_coll/capi/remarks.hpp"

namespace ucg::capi {
namespace {

TEST_CASE("capi: each message is said once", "[capi]") {
    Remarks remarks("name", true);
    CHECK(remarks.name() == "name");
    CHECK(remarks.first(Once::step_down));
    CHECK_FALSE(remarks.first(Once::step_down));
    CHECK(remarks.first(Once::no_tune));
}

TEST_CASE("capi: a remark on a collective and a value is made once", "[capi]") {
    Remarks remarks("name", true);
    CHECK(remarks.first(graph::Collective::bcast, "ring"));
    CHECK_FALSE(remarks.first(graph::Collective::bcast, "ring"));
    CHECK(remarks.first(graph::Collective::bcast, "chain"));
    CHECK(remarks.first(graph::Collective::reduce, "ring"));
}

} // namespace
} // namespace ucg::capi
