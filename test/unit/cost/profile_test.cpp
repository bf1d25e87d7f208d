#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include "test/support/catch.hpp"
#include "ucg_coll/cost/cost.hpp"

using namespace ucg;
using namespace ucg::cost;
using topo::Distance;

namespace {

std::string replaced(std::string text, std::string_view what, std::string_view by) {
    const std::size_t at = text.find(what);
    REQUIRE(at != std::string::npos);
    return text.replace(at, what.size(), by);
}

// Why the default profile's text is refused after one change, made as somebody who edits a profile
// would make it.
std::string failure_of(std::string_view what, std::string_view by) {
    const Result<Profile> profile = parse_toml(replaced(to_toml(default_profile()), what, by));
    REQUIRE_FALSE(profile.ok());
    CHECK(profile.status().code() == Code::invalid_argument);
    return std::string(profile.status().message());
}

} // namespace

TEST_CASE("cost: a message costs two overheads, the wire, and each byte but one", "[cost]") {
    const LogGp model = {.latency_ns = 100, .overhead_ns = 10, .gap_ns = 7, .gap_per_byte_ns = 0.5};
    CHECK(message_ns(model, 0) == 120);
    CHECK(message_ns(model, 1) == 120);
    CHECK(message_ns(model, 5) == 122);
    CHECK(message_ns(model, 1ULL << 32) == Approx(120 + 2147483647.5));
}

TEST_CASE("cost: by default, farther is dearer at every size", "[cost]") {
    const Profile& profile = default_profile();
    for (std::size_t i = 1; i < topo::kDistanceCount; ++i) {
        const auto nearer = static_cast<Distance>(i - 1);
        const auto farther = static_cast<Distance>(i);
        INFO(topo::name(nearer) << " and " << topo::name(farther));
        for (const std::uint64_t bytes : {0ULL, 8ULL, 4096ULL, 1ULL << 20, 1ULL << 33}) {
            CHECK(message_ns(profile.level(nearer), bytes) <
                  message_ns(profile.level(farther), bytes));
        }
        CHECK(profile.level(nearer).gap_ns < profile.level(farther).gap_ns);
    }
    // A copy within a process costs less than passing a message, which copies in and out.
    CHECK(profile.copy_per_byte_ns < profile.level(Distance::core).gap_per_byte_ns);
    CHECK(profile.reduce_per_byte_ns > 0);
    CHECK(profile.reduce_fixed_ns > 0);
}

TEST_CASE("cost: the default's orders of magnitude", "[cost]") {
    const auto microseconds = [](Distance distance, std::uint64_t bytes) {
        return message_ns(default_profile().level(distance), bytes) / 1000;
    };
    CHECK(microseconds(Distance::cache, 8) == Approx(0.17).margin(0.05));
    CHECK(microseconds(Distance::cache, 64 << 10) == Approx(7.7).margin(1));
    // This is as fast as RDMA.
    CHECK(microseconds(Distance::network, 8) > 2);
    // This is as slow as TCP in the kernel.
    CHECK(microseconds(Distance::network, 8) < 15);
    CHECK(microseconds(Distance::network, 1 << 20) > (1 << 20) / 3125.0); // This is 25 Gbit/s.
    CHECK(microseconds(Distance::network, 1 << 20) < (1 << 20) / 1250.0); // This is 10 Gbit/s.
}

TEST_CASE("cost: a profile as TOML", "[cost][toml]") {
    Profile profile;
    profile.copy_per_byte_ns = 0.027;
    profile.levels[0] = {30, 15.5, 20, 1e-9};
    const std::string text = to_toml(profile);
    CHECK(text.starts_with("# UCG cost profile. Times are in nanoseconds.\n"
                           "\n"
                           "version = 1\n"
                           "\n"
                           "[compute]\n"
                           "copy_per_byte_ns = 0.027\n"
                           "reduce_per_byte_ns = 0.0\n"
                           "reduce_fixed_ns = 0.0\n"
                           "\n"
                           "[levels.core]\n"
                           "latency_ns = 30.0\n"
                           "overhead_ns = 15.5\n"
                           "gap_ns = 20.0\n"
                           "gap_per_byte_ns = 1e-09\n"
                           "measured = false\n"
                           "\n"
                           "[levels.cache]\n"));
    const Result<Profile> parsed = parse_toml(text);
    INFO(parsed.status().message());
    REQUIRE(parsed.ok());
    CHECK(*parsed == profile);
}

TEST_CASE("cost: profiles come back from TOML to the last bit", "[cost][toml]") {
    const auto check = [](const Profile& profile) {
        const Result<Profile> parsed = parse_toml(to_toml(profile));
        INFO(parsed.status().message());
        REQUIRE(parsed.ok());
        CHECK(*parsed == profile);
    };
    SECTION("the default") {
        check(default_profile());
    }
    SECTION("extremes") {
        Profile profile;
        profile.copy_per_byte_ns = kFigureMax;
        profile.reduce_per_byte_ns = std::numeric_limits<double>::min();
        profile.reduce_fixed_ns = 1e13 / 3;
        check(profile);
    }
    SECTION("random") {
        std::mt19937_64 random(20);
        for (int i = 0; i < 50; ++i) {
            const auto number = [&] {
                return std::exp(std::uniform_real_distribution<double>(-40, 30)(random));
            };
            Profile profile;
            profile.copy_per_byte_ns = number();
            profile.reduce_per_byte_ns = number();
            profile.reduce_fixed_ns = number();
            for (LogGp& level : profile.levels) {
                level = {number(), number(), number(), number()};
            }
            for (MemoryLevel& level : profile.memory.levels) {
                level = {number(), number(), number(), random() % 2 == 0, random() % 2 == 0};
            }
            for (CacheRates& rates : profile.memory.caches) {
                rates = {random() >> 1, number(), number(),         number(),
                         number(),      number(), random() % 2 == 0};
            }
            profile.memory.reduce_fixed_ns = number();
            const auto length = [&] { return random() % (1U << 30); };
            profile.memory.cma = {random() % 2 == 0, number(), number(), number(),         number(),
                                  length(),          length(), length(), random() % 2 == 0};
            profile.memory.copies = {length(), length(), number(),          length(),
                                     length(), length(), random() % 2 == 0, random() % 2 == 0};
            profile.memory.wake = {number(), number(), number(), random() % 2 == 0,
                                   random() % 2 == 0};
            profile.network.minimum = {number(), number(), number(), random() % 2 == 0};
            profile.network.median = {number(), number(), number(), random() % 2 == 0};
            profile.links = {1 + number(), random() % 2 == 0};
            check(profile);
        }
    }
}

TEST_CASE("cost: whole numbers are accepted", "[cost][toml]") {
    const Result<Profile> profile = parse_toml(
        replaced(to_toml(default_profile()), "latency_ns = 4000.0", "latency_ns = 4000"));
    REQUIRE(profile.ok());
    CHECK(*profile == default_profile());
}

TEST_CASE("cost: what a profile does not say is as built in", "[cost][toml]") {
    const Result<Profile> none = parse_toml("version = 1");
    REQUIRE(none.ok());
    CHECK(*none == default_profile());

    const Result<Profile> some = parse_toml("version = 1\n"
                                            "[memory.cma]\n"
                                            "permitted = false\n"
                                            "fixed_ns = 1\n"
                                            "per_byte_ns = 2.5\n"
                                            "written_per_byte_ns = 3\n"
                                            "bytes_min = 4096\n"
                                            "measured = true\n");
    INFO(some.status().message());
    REQUIRE(some.ok());
    Profile expected = default_profile();
    expected.memory.cma = {.permitted = false,
                           .fixed_ns = 1,
                           .per_byte_ns = 2.5,
                           .written_per_byte_ns = 3,
                           .bytes_min = 4096,
                           .measured = true};
    CHECK(*some == expected);

    const Result<Profile> network = parse_toml("version = 1\n"
                                               "[network.median]\n"
                                               "alpha_p_ns = 1000\n"
                                               "alpha_r_ns = 250.5\n"
                                               "beta_ns_per_byte = 0.5\n"
                                               "measured = true\n");
    INFO(network.status().message());
    REQUIRE(network.ok());
    expected = default_profile();
    expected.network.median = {1000, 250.5, 0.5, true};
    CHECK(*network == expected);
    CHECK(hash_of(*network) != hash_of(default_profile()));

    const Result<Profile> links =
        parse_toml("version = 1\n[network.links]\ncontention = 2\nmeasured = true\n");
    INFO(links.status().message());
    REQUIRE(links.ok());
    expected = default_profile();
    expected.links = {2, true};
    CHECK(*links == expected);
    CHECK(parse_toml("version = 1\n[network.links]\ncontention = 0.9\nmeasured = true\n")
              .status()
              .message() ==
          "line 3: network.links.contention: expected a number that is at least 1, found 0.9");
}

TEST_CASE("cost: profiles that differ have different hashes", "[cost]") {
    Profile profile = default_profile();
    CHECK(hash_of(profile) == hash_of(default_profile()));
    profile.memory.caches[3].streaming_per_byte_ns += 1e-9;
    CHECK(hash_of(profile) != hash_of(default_profile()));
    profile = default_profile();
    profile.memory.cma.permitted = false;
    CHECK(hash_of(profile) != hash_of(default_profile()));
    profile = default_profile();
    profile.levels[0].gap_ns += 1;
    CHECK(hash_of(profile) != hash_of(default_profile()));
}

TEST_CASE("cost: what a file does not say to have been measured was not", "[cost][toml]") {
    Profile measured = default_profile();
    measured.levels_measured.front() = measured.memory.copies.measured = true;
    std::string text = to_toml(measured);
    CHECK(parse_toml(text).value() == measured);
    for (std::size_t at = 0; (at = text.find("measured = true\n")) != std::string::npos;) {
        text.erase(at, std::string_view("measured = true\n").size());
    }
    CHECK(parse_toml(text, measured).value() == default_profile());
    // The file has none of the tables, so they stay as they are.
    CHECK(parse_toml("version = 1", measured).value() == measured);
}

TEST_CASE("cost: malformed profiles are refused with line and key", "[cost][toml][malformed]") {
    SECTION("not TOML") {
        const std::string message = failure_of("[compute]", "[compute");
        CHECK(message.starts_with("line 5, column "));
    }
    SECTION("names that begin with no letter") {
        for (const char* text : {"[,", "[.a]", "[[.a]]", "[a.]", ".a = 1", "[", "="}) {
            CAPTURE(text);
            CHECK(parse_toml(text).status().message().substr(0, 7) == "line 1,");
        }
    }
    SECTION("nothing") {
        CHECK(parse_toml("").status().message() == "line 1: version: expected 1, found nothing");
    }
    SECTION("another version") {
        CHECK(failure_of("version = 1", "version = 2") == "line 3: version: expected 1, found 2");
    }
    SECTION("an integer that no double holds") {
        CHECK(failure_of("version = 1", "version = 99999999999999999") ==
              "line 3: version: expected 1, found 99999999999999999");
    }
    SECTION("a value for a table") {
        CHECK(parse_toml("version = 1\ncompute = 3").status().message() ==
              "line 2: compute: expected a table, found 3");
        CHECK(parse_toml("version = 1\nmemory.levels = 3").status().message() ==
              "line 2: memory.levels: expected a table, found 3");
    }
    SECTION("a misspelt level") {
        CHECK(failure_of("[levels.numa]", "[levels.number]") ==
              "line 24: levels.number: expected only keys of a profile, found this one");
    }
    SECTION("a number for a truth value") {
        CHECK(failure_of("permitted = true", "permitted = 1") ==
              "line 136: memory.cma.permitted: expected true or false, found 1");
    }
    SECTION("a fraction of bytes") {
        CHECK(parse_toml("version = 1\n[memory.caches.l1]\ncapacity_bytes = 1.5")
                  .status()
                  .message() ==
              "line 3: memory.caches.l1.capacity_bytes: expected a whole number of bytes, not "
              "negative, found 1.5");
    }
    SECTION("a key missing") {
        CHECK(
            failure_of("overhead_ns = 500.0\n", "") ==
            "line 45: levels.network.overhead_ns: expected a number of nanoseconds, not negative, "
            "found nothing");
    }
    SECTION("a negative number") {
        CHECK(
            failure_of("overhead_ns = 500.0", "overhead_ns = -500.0") ==
            "line 47: levels.network.overhead_ns: expected a number of nanoseconds, not negative, "
            "found -500");
    }
    SECTION("not a number") {
        CHECK(
            failure_of("overhead_ns = 500.0", "overhead_ns = nan") ==
            "line 47: levels.network.overhead_ns: expected a number of nanoseconds, not negative, "
            "found nan");
    }
    SECTION("longer than a day") {
        CHECK(failure_of("overhead_ns = 500.0", "overhead_ns = 1e16") ==
              "line 47: levels.network.overhead_ns: expected a number up to 1e+14, found 1e+16");
        CHECK(parse_toml("version = 1\n[network.links]\ncontention = 1e16\nmeasured = true\n")
                  .status()
                  .message() ==
              "line 3: network.links.contention: expected a number up to 1e+14, found 1e+16");
    }
    SECTION("a word") {
        CHECK(
            failure_of("overhead_ns = 500.0", "overhead_ns = \"much\"") ==
            "line 47: levels.network.overhead_ns: expected a number of nanoseconds, not negative, "
            "found \"much\"");
    }
    SECTION("a list") {
        CHECK(
            failure_of("overhead_ns = 500.0", "overhead_ns = [500.0]") ==
            "line 47: levels.network.overhead_ns: expected a number of nanoseconds, not negative, "
            "found an array");
    }
    SECTION("a truth value") {
        CHECK(
            failure_of("overhead_ns = 500.0", "overhead_ns = true") ==
            "line 47: levels.network.overhead_ns: expected a number of nanoseconds, not negative, "
            "found a truth value");
    }
    SECTION("a key more") {
        CHECK(
            failure_of("overhead_ns = 500.0", "overhead_ns = 500.0\noverhead_us = 0.5") ==
            "line 48: levels.network.overhead_us: expected only keys of a profile, found this one");
    }
    SECTION("a level more") {
        CHECK(failure_of("[levels.core]", "[levels.rack]\n[levels.core]") ==
              "line 10: levels.rack: expected only keys of a profile, found this one");
    }
    SECTION("a table more") {
        CHECK(failure_of("[compute]", "[machine]\n[compute]") ==
              "line 5: machine: expected only keys of a profile, found this one");
    }
}

TEST_CASE("profile: a network that nobody has measured costs what its kind does", "[cost]") {
    constexpr auto kLevel = static_cast<std::size_t>(topo::Distance::network);
    const Profile& builtin = default_profile();
    CHECK(with_network(builtin, NetworkKind::unknown) == builtin);
    for (const NetworkKind network : {NetworkKind::tcp, NetworkKind::one_kernel}) {
        INFO(name(network));
        const Profile found = with_network(builtin, network);
        CHECK(found.level(topo::Distance::network).overhead_ns >
              builtin.level(topo::Distance::network).overhead_ns);
        CHECK(found.level(topo::Distance::host) == builtin.level(topo::Distance::host));
        // Both forms of the model give the same times.
        const LogGp again = loggp_of(found.network.median, found.levels[kLevel].overhead_ns);
        CHECK(message_ns(again, 1) == Approx(message_ns(found.levels[kLevel], 1)));
        CHECK(again.gap_ns == Approx(found.levels[kLevel].gap_ns));
        Profile measured = builtin;
        measured.network.median.measured = true;
        CHECK(with_network(measured, network) == measured);
        Profile chosen = builtin;
        chosen.levels[kLevel].latency_ns += 1;
        CHECK(with_network(chosen, network) == chosen);
    }
}

TEST_CASE("cost: what was seen of a network counts in powers of ten, and only if it is far slower",
          "[cost]") {
    CHECK(listed_message_ns(NetworkKind::tcp, 0) == 0);
    CHECK(listed_message_ns(NetworkKind::tcp, 79e3) == 0); // 20 us are built in.
    CHECK(listed_message_ns(NetworkKind::tcp, 81e3) == 1e5);
    CHECK(listed_message_ns(NetworkKind::one_kernel, 51e3) == 0); // 13 us are built in.
    CHECK(listed_message_ns(NetworkKind::one_kernel, 53e3) == 1e5);
    CHECK(listed_message_ns(NetworkKind::one_kernel, 415e3, 8) == 0);
    CHECK(listed_message_ns(NetworkKind::one_kernel, 417e3, 8) == 1e6);
    CHECK(listed_message_ns(NetworkKind::unknown, 19e3) == 0); // 5 us are built in.
    CHECK(listed_message_ns(NetworkKind::unknown, 21e3) == 1e4);
    CHECK(listed_message_ns(NetworkKind::tcp, 316e3) == 1e5);
    CHECK(listed_message_ns(NetworkKind::tcp, 317e3) == 1e6);
    CHECK(listed_message_ns(NetworkKind::tcp, 2.2e6) == 1e6);
    CHECK(listed_message_ns(NetworkKind::tcp, 1e12) == 1e9);
}

TEST_CASE("cost: a network that was seen to be slow has messages that take as long", "[cost]") {
    const Profile& builtin = default_profile();
    for (const NetworkKind network : kNetworks) {
        INFO(name(network));
        const Profile usual = with_network(builtin, network);
        const Profile slow = with_network(builtin, network, 1e6);
        CHECK(message_ns(slow.level(topo::Distance::network), 1) == Approx(1e6));
        CHECK(slow.level(topo::Distance::network).overhead_ns ==
              usual.level(topo::Distance::network).overhead_ns);
        CHECK(slow.network.median.alpha_p_ns + slow.network.median.alpha_r_ns +
                  slow.network.median.beta_ns_per_byte ==
              Approx(1e6));
        CHECK(has_builtin_network(builtin));
        CHECK_FALSE(has_builtin_network(slow));
        // The profile has network costs of its own by now.
        CHECK(with_network(slow, network, 1e8) == slow);
    }
}

TEST_CASE("cost: the figures of a profile are its keys, but for the marks", "[cost]") {
    const Profile& profile = default_profile();
    std::string listed;
    std::string table;
    for (const NamedFigure& figure : figures_of(profile)) {
        if (figure.table != table) {
            table = figure.table;
            listed += '[' + table + "]\n";
        }
        listed += figure.key + '\n';
    }
    std::istringstream toml(to_toml(profile));
    std::string expected;
    for (std::string line; std::getline(toml, line);) {
        const std::string key = line.substr(0, line.find(" = "));
        if (line.empty() || line[0] == '#' || key == "version" || key.ends_with("measured")) {
            continue;
        }
        expected += key + '\n';
    }
    CHECK(listed == expected);
    const auto figures = figures_of(profile);
    const auto found = std::find_if(figures.begin(), figures.end(), [](const NamedFigure& figure) {
        return figure.path() == "memory.copies.mapped_bytes_min";
    });
    REQUIRE(found != figures.end());
    CHECK(found->unit == Unit::bytes);
    CHECK(found->value == static_cast<double>(profile.memory.copies.mapped_bytes_min));
}
