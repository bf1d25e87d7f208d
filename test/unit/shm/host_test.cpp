#include "shm/host.hpp"
#include "test/support/catch.hpp"

using ucg::shm::HostFacts;
using ucg::shm::identity;

TEST_CASE("shm/host: this process has a host, always the same", "[shm]") {
    const auto first = ucg::shm::read_host_facts();
    const auto again = ucg::shm::read_host_facts();
    REQUIRE(first.ok());
    REQUIRE(again.ok());
    CHECK(*first == *again);
    CHECK(identity(*first) == identity(*again));
    CHECK(identity(*first) != 0);
}

TEST_CASE("shm/host: each fact alone makes another host", "[shm]") {
    const HostFacts facts = {"boot", 1, 2, 3};
    for (const HostFacts& other : {HostFacts{"other", 1, 2, 3}, HostFacts{"boot", 9, 2, 3},
                                   HostFacts{"boot", 1, 9, 3}, HostFacts{"boot", 1, 2, 9}}) {
        CHECK(identity(other) != identity(facts));
    }
}
