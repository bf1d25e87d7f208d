// What ranks tell one another first, and which ranks cannot be in one group.
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/remarks.hpp"
#include "ucg_coll/capi/wireup/hello.hpp"

using namespace ucg;
using namespace ucg::capi;

namespace {

/// The verdict at `rank` of a group whose ranks are said to say `all`.
Status verdict_of(const std::vector<Hello>& all, std::uint32_t rank = 0,
                  const Config& config = {}) {
    GroupParams params;
    params.rank = rank;
    params.size = static_cast<std::uint32_t>(all.size());
    Remarks remarks("ucg", false);
    WireupExchanges exchanges;
    Peers peers(remarks, params, exchanges);
    return compare(all, config, NamedMachine(), peers);
}

/// The verdict at `rank` of a group of two ranks, the second of which says `other`. `config`: what
/// that rank has set.
Status verdict(Hello other, std::uint32_t rank = 0, const Config& config = {}) {
    Hello first;
    first.settings = config.common_digests();
    first.rank_count = other.rank_count = 2;
    other.rank = 1;
    return verdict_of({first, other}, rank, config);
}

/// What a rank with these settings says.
Hello says(const std::map<std::string, std::string>& settings) {
    Config config;
    for (const auto& [name, value] : settings) {
        REQUIRE(config.set(name, value).ok());
    }
    Hello hello;
    hello.settings = config.common_digests();
    return hello;
}

} // namespace

TEST_CASE("capi/hello: equal ranks make a group", "[capi]") {
    CHECK(verdict(says({})).ok());
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

TEST_CASE("capi/hello: another version's word that it declines is not believed", "[capi]") {
    Hello other;
    other.version += 1;
    other.declines = 1; // It has something else there.
    CHECK(verdict(other).code() == Code::disagreement);
    other.version -= 1;
    CHECK(verdict(other).code() == Code::unreachable);
}

TEST_CASE("capi/hello: an allgather that is not in rank order is noticed", "[capi]") {
    std::vector<Hello> all(3);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        all[rank].rank = rank;
        all[rank].rank_count = 3;
        all[rank].settings = Config().common_digests();
    }
    REQUIRE(verdict_of(all).ok());
    const std::vector<Hello> right = all;
    std::swap(all[0], all[2]);
    const Status swapped = verdict_of(all);
    CHECK(swapped.code() == Code::invalid_argument);
    CHECK(swapped.message().find("rank 2 of 3 in place of that of rank 0 of 3") !=
          std::string::npos);
    all = right;
    all[1].rank_count = 2; // A rank that makes another group.
    CHECK(verdict_of(all).message().find("rank 1 of 2 in place of that of rank 1 of 3") !=
          std::string::npos);
}

TEST_CASE("capi/hello: an allgather that leaves parts out is noticed", "[capi]") {
    std::vector<Hello> all(2);
    all[0].rank_count = 2;
    const bool zeroed = GENERATE(true, false); // Or as it was before the call.
    if (zeroed) {
        std::memset(static_cast<void*>(&all[1]), 0, sizeof(Hello));
    }
    const Status status = verdict_of(all);
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.message() == "the caller's allgather has brought nothing of rank 1");
}

TEST_CASE("capi/hello: ranks with other settings make none", "[capi]") {
    const Status one = verdict(says({{"HELP_PEERS", "never"}}));
    CHECK(one.code() == Code::disagreement);
    CHECK(one.message() == "rank 0 and rank 1 have different settings of UCG_HELP_PEERS ('auto' at "
                           "rank 0): export one to "
                           "all ranks");
    Config config;
    REQUIRE(config.set("ALLREDUCE", "0-4k:ring").ok());
    const Hello other = says({{"ALLREDUCE", "ring"}, {"REPRODUCIBLE", "placement"}});
    CHECK(verdict(other, 0, config).message() ==
          "rank 0 and rank 1 have different settings of UCG_ALLREDUCE ('0-4k:ring' at rank 0), "
          "UCG_REPRODUCIBLE ('n' at rank 0): export one to all ranks");
    // Another rank does not know what rank 0 has set.
    CHECK(verdict(other, 1, config).message() ==
          "rank 0 and rank 1 have different settings of UCG_ALLREDUCE, UCG_REPRODUCIBLE: export "
          "one to all ranks");
}

TEST_CASE("capi/hello: ranks whose settings mean the same make a group", "[capi]") {
    Config config;
    REQUIRE(config.set("ALLREDUCE", "0-4k:ring").ok());
    REQUIRE(config.set("BCAST", "").ok());
    CHECK(verdict(says({{"ALLREDUCE", "0-4096:ring"}, {"HELP_PEERS", "auto"}}), 0, config).ok());
}

TEST_CASE("capi/hello: ranks may differ in what plans do not depend on", "[capi]") {
    CHECK(verdict(says({{"STAGING", "0"}, {"CMA", "n"}, {"TLS", "shm"}, {"TIMEOUT", "1"}})).ok());
}
