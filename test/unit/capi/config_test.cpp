#include <map>
#include <string>
#include <vector>

#include "shm/wait.hpp"
#include "test/support/catch.hpp"
#include "ucg_coll/base/ascii.hpp"
#include "ucg_coll/capi/config.hpp"

namespace ucg::capi {
namespace {

TEST_CASE("config: sizes are written as UCX writes them", "[config]") {
    CHECK(parse_size("65536").value() == 65536);
    CHECK(parse_size("64k").value() == 65536);
    CHECK(parse_size("64K").value() == 65536);
    CHECK(parse_size("16M").value() == 16U << 20);
    CHECK(parse_size("2G").value() == 2ULL << 30);
    for (const char* wrong :
         {"", "k", "1.5M", "-1", "12q", "12kk", "99999999999999999999", "99999999999G"}) {
        CAPTURE(wrong);
        CHECK(parse_size(wrong).status().code() == Code::invalid_argument);
    }
}

TEST_CASE("config: wrong values are refused with the variable's name", "[config]") {
    Config config;
    const auto message = [&](const char* name, const char* value) {
        const Status status = config.set(name, value);
        CHECK(status.code() == Code::invalid_argument);
        return std::string(status.message());
    };
    CHECK(message("NO_SUCH", "1") == "there is no variable UCG_NO_SUCH");
    CHECK(message("TLS", "shm,rocket") ==
          "UCG_TLS: expected a list of shm and ucx, found 'shm,rocket'");
    CHECK(message("TLS", "") == "UCG_TLS: expected a list of shm and ucx, found ''");
    CHECK(message("VERIFY", "maybe") == "UCG_VERIFY: expected y or n, found 'maybe'");
    CHECK(message("REPRODUCIBLE", "y") == "UCG_REPRODUCIBLE: expected n or placement, found 'y'");
    CHECK(message("HEAP_SIZE", "lots") ==
          "UCG_HEAP_SIZE: expected a size such as 65536, 64k, 16M or 1G, found 'lots'");
    CHECK(message("TIMEOUT", "0") ==
          "UCG_TIMEOUT: expected a number of seconds above 0, found '0'");
    CHECK(message("STALL_AFTER", "0") ==
          "UCG_STALL_AFTER: expected a number of seconds above 0, or never, found '0'");
    CHECK(message("SLEEP_AFTER", "-1") ==
          "UCG_SLEEP_AFTER: expected a number of microseconds, auto or never, found '-1'");
    CHECK(message("ALLREDUCE", "0-4k") ==
          "UCG_ALLREDUCE: '0-4k', position 4: expected ':' and an algorithm, found the end");
    CHECK(config.shm_enabled());
    CHECK(config.ucx_enabled());
}

TEST_CASE("config: an algorithm for each range of sizes", "[config]") {
    Config config;
    REQUIRE(config.set("ALLREDUCE", "0-4k:recursive_multiplying:a8,a4;1M-inf:ring").ok());
    const auto algorithm = [&](std::uint64_t bytes) {
        return config.algorithm(graph::Collective::allreduce, bytes);
    };
    CHECK(algorithm(8) == "recursive_multiplying:a8,a4");
    CHECK(algorithm(4096).empty());
    CHECK(algorithm(1 << 20) == "ring");
    CHECK(config.algorithm(graph::Collective::allgather, 8).empty());
    CHECK(config.to_text().find("UCG_ALLREDUCE=0-4k:recursive_multiplying:a8,a4;1M-inf:ring\n") !=
          std::string::npos);
    REQUIRE(config.set("ALLREDUCE", "").ok());
    CHECK(algorithm(8).empty());
}

TEST_CASE("config: when to sleep", "[config]") {
    Config config;
    CHECK(!config.sleep_after().has_value());
    CHECK(config.stall_after() == std::chrono::seconds(600));
    REQUIRE(config.set("STALL_AFTER", "30").ok());
    CHECK(config.stall_after() == std::chrono::seconds(30));
    REQUIRE(config.set("STALL_AFTER", "never").ok());
    CHECK(!config.stall_after().has_value());
    REQUIRE(config.set("SLEEP_AFTER", "0").ok());
    CHECK(config.sleep_after() == std::chrono::nanoseconds(0));
    REQUIRE(config.set("SLEEP_AFTER", "never").ok());
    CHECK(config.sleep_after() == shm::Waiter::kNever);
}

TEST_CASE("config: variables that nobody reads are told, with those that were meant", "[config]") {
    Config config;
    const auto unused = [&](std::vector<const char*> environment) {
        environment.push_back(nullptr);
        return config.unused_variables(environment.data());
    };
    CHECK(unused({}).empty());
    CHECK(unused({"PATH=/bin", "UCX_TLS=tcp", "XUCG_TLS=x", "UCG=1", "ucg_tls=shm"}).empty());
    CHECK(unused({"UCG_TLS=shm", "UCG_REDUCE_SCATTER_BLOCK=ring", "UCG_HEAP_SIZE=1G"}).empty());
    CHECK(unused({"UCG_NO_PACKAGES=1", "UCG_TEST_ACCEPT=1"}).empty()); // Other programs read these.
    CHECK(unused({"A=B", "UCG_ALREDUCE=ring", "UCG_TLS=shm"}) ==
          "UCG_ALREDUCE (maybe UCG_ALLREDUCE?)");
    CHECK(unused({"UCG_SLEEPAFTER=1", "UCG_STAGGING=0"}) ==
          "UCG_SLEEPAFTER (maybe UCG_SLEEP_AFTER?), UCG_STAGGING (maybe UCG_STAGING?)");
    CHECK(unused({"UCG_tls=shm", "UCG_PLANC_FOO=1"}) == "UCG_tls, UCG_PLANC_FOO");
    CHECK(unused({"UCG_=1", "UCG_X"}) == "UCG_, UCG_X");
    const std::string endless = "UCG_" + std::string(100'000, 'A') + "=1";
    CHECK(unused({endless.c_str()}).size() == 100'004);
    REQUIRE(config.set("WARN_UNUSED_ENV_VARS", "n").ok());
    CHECK(unused({"UCG_ALREDUCE=ring"}).empty());
}

/// The variables whose digests differ from the defaults' where these are set.
std::vector<std::string> differing(const std::map<std::string, std::string>& settings) {
    Config config;
    for (const auto& [name, value] : settings) {
        REQUIRE(config.set(name, value).ok());
    }
    std::vector<std::string> names;
    for (std::size_t i = 0; i < Config::kCommonCount; ++i) {
        if (config.common_digests()[i] != Config().common_digests()[i]) {
            names.push_back(Config::common_name(i));
            CHECK(config.common_value(i) == settings.at(names.back().substr(4)));
        }
    }
    return names;
}

TEST_CASE("config: what the planner depends on has digests", "[config]") {
    using Names = std::vector<std::string>;
    CHECK(differing({{"ALLREDUCE", "ring"}}) == Names{"UCG_ALLREDUCE"});
    CHECK(differing({{"REPRODUCIBLE", "placement"}, {"HELP_PEERS", "never"}}) ==
          Names{"UCG_REPRODUCIBLE", "UCG_HELP_PEERS"});
    for (const graph::Collective collective : graph::kCollectives) {
        const std::string name = ascii_upper(graph::name(collective));
        CHECK(differing({{name, "ring"}}) == Names{"UCG_" + name});
    }
    CHECK(differing({{"REPRODUCIBLE", "n"}, {"HELP_PEERS", "auto"}, {"BCAST", ""}}).empty());
    CHECK(differing({{"LOG_LEVEL", "info"},
                     {"TLS", "shm"},
                     {"CMA", "n"},
                     {"STAGING", "0"},
                     {"HEAP_SIZE", "1M"},
                     {"VERIFY", "y"},
                     {"TIMEOUT", "1"}})
              .empty());
}

TEST_CASE("config: digests are of what a value means", "[config]") {
    const auto digests = [](const char* algorithms) {
        Config config;
        REQUIRE(config.set("ALLREDUCE", algorithms).ok());
        return config.common_digests();
    };
    CHECK(digests("0-4k:ring") == digests("0-4096:ring"));
    CHECK(digests("4k-inf:linear;0-4k:ring") == digests("0-1k:ring;1k-4K:ring;linear"));
    CHECK(digests("0-inf:ring") == digests("ring"));
    CHECK(digests("0-4k:ring") != digests("0-4k:ring;linear"));
    CHECK(digests("0-4k:ring") != digests("0-8k:ring"));
    CHECK(digests("4k-inf:ring") != digests("0-4k:ring"));
}

TEST_CASE("config: every variable is printed with its meaning", "[config]") {
    const std::string text = Config().to_text();
    CHECK(text.find("UCG_TLS=shm,ucx\n") != std::string::npos);
    CHECK(text.find("# Algorithm of allreduce; empty: the planner chooses. One of:") !=
          std::string::npos);
}

} // namespace
} // namespace ucg::capi
