// What ranks tell one another first, and which ranks cannot be in one group.
#include <string>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/handles.hpp"
#include "ucg_coll/capi/wireup/hello.hpp"

using namespace ucg;
using namespace ucg::capi;

namespace {

/// The verdict of a group of two ranks, the second of which says `other`.
Status verdict(const Hello& other) {
    ucg_context_h context = nullptr;
    REQUIRE(ucg_context_create(nullptr, nullptr, &context) == UCG_OK);
    Status status;
    {
        GroupParams params;
        params.size = 2;
        Exchanges exchanges;
        Peers peers(*context, params, exchanges);
        status = compare({Hello(), other}, NamedMachine(), peers);
    }
    CHECK(ucg_context_destroy(context) == UCG_OK);
    return status;
}

} // namespace

TEST_CASE("capi/hello: equal ranks make a group", "[capi]") {
    CHECK(verdict({}).ok());
}

TEST_CASE("capi/hello: ranks of other versions of the library make none", "[capi]") {
    Hello other;
    other.version += 1;
    const Status version = verdict(other);
    CHECK(version.code() == Code::disagreement);
    CHECK(version.message().find("use one version on all hosts") != std::string::npos);
    Hello changed;
    changed.protocol += 1;
    const Status protocol = verdict(changed);
    CHECK(protocol.code() == Code::disagreement);
    CHECK(protocol.message().find("protocol " + std::to_string(kProtocol + 1)) !=
          std::string::npos);
}

TEST_CASE("capi/hello: ranks with other settings make none", "[capi]") {
    Hello other;
    other.plan_hash = 7;
    CHECK(verdict(other).code() == Code::disagreement);
}
