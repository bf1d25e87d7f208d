// What a report of a collective that does not end says.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/stall.hpp"

namespace {

using ucg::capi::report_of;
using ucg::capi::StalledCall;
using ucg::graph::Collective;

StalledCall eighth_bcast() {
    return {.group = "MPI_COMM_WORLD",
            .rank = 2,
            .collective = Collective::bcast,
            .bytes = 64,
            .algorithm = "knomial",
            .number = 8,
            .patience = std::chrono::seconds(600),
            .awaited = {0},
            .peers = {}};
}

constexpr const char* kStart =
    "MPI_COMM_WORLD: rank 2: bcast of 64 bytes (knomial), collective 8 of "
    "this group, has not gone on for 600 s: it waits for rank 0.";

} // namespace

TEST_CASE("stall: a rank without others on its host names those for which it waits", "[capi]") {
    StalledCall call = eighth_bcast();
    CHECK(report_of(call) == kStart);
    call.awaited = {};
    CHECK(report_of(call) == "MPI_COMM_WORLD: rank 2: bcast of 64 bytes (knomial), collective 8 of "
                             "this group, has not gone on for 600 s.");
    call.awaited = {0, 1, 3};
    CHECK(report_of(call).find("waits for ranks 0, 1 and 3.") != std::string::npos);
    call.awaited = {0, 1, 3, 4, 5, 6, 7, 8, 9, 10};
    CHECK(report_of(call).find("waits for ranks 0, 1, 3, 4, 5, 6, 7, 8 and 2 more.") !=
          std::string::npos);
}

TEST_CASE("stall: the ranks of the host that have not called it are named", "[capi]") {
    StalledCall call = eighth_bcast();
    call.peers = {{0, 100, {8, Collective::bcast}}, {1, 101, {9, Collective::barrier}}};
    CHECK(report_of(call) == std::string(kStart) + " All ranks of this host have called it.");
    call.peers[1].calls = {7, Collective::gather};
    CHECK(report_of(call) == std::string(kStart) + " Of this host, it was not called by rank 1 "
                                                   "(process 101; 7 so far, the last one gather).");
    call.peers[0].calls = {};
    CHECK(report_of(call) ==
          std::string(kStart) + " Of this host, it was not called by ranks 0 (process 100; none so "
                                "far) and 1 (process 101; 7 so far, the last one gather).");
}

TEST_CASE("stall: the ranks that are farthest behind are named first", "[capi]") {
    StalledCall call = eighth_bcast();
    for (ucg::Rank rank = 3; rank < 20; ++rank) {
        const std::uint32_t started = rank < 15 ? 7 : rank == 17 ? 5 : 6;
        call.peers.push_back({rank, 100 + rank, {started, Collective::bcast}});
    }
    const std::string report = report_of(call);
    CHECK(report.find("not called by ranks 17 (process 117; 5 so far, the last one bcast), 15 "
                      "(process 115; 6 so far") != std::string::npos);
    CHECK(report.find(", 5 (process 105; 7 so far, the last one bcast) and 9 more.") !=
          std::string::npos);
}

TEST_CASE("stall: ranks that call another collective are named", "[capi]") {
    StalledCall call = eighth_bcast();
    call.peers = {{0, 100, {8, Collective::bcast}}, {1, 101, {8, Collective::barrier}}};
    CHECK(report_of(call) == std::string(kStart) +
                                 " All ranks of this host have called it. The program's ranks call "
                                 "different collectives: this one was called otherwise by rank 1 "
                                 "(process 101; barrier).");
}

TEST_CASE("stall: numbers of collectives wrap around", "[capi]") {
    StalledCall call = eighth_bcast();
    call.number = 1;
    call.peers = {{0, 100, {0xffffffffU, Collective::bcast}}, {1, 101, {3, Collective::bcast}}};
    CHECK(report_of(call).find("not called by rank 0 (process 100; 4294967295 so far") !=
          std::string::npos);
}

TEST_CASE("stall: a collective is due once it has stayed as it is for the patience", "[capi]") {
    using std::chrono::seconds;
    using Progress = ucg::engine::Execution::Progress;
    constexpr seconds kPatience(10);
    const Progress start = {{}, 3};
    const Progress further = {{}, 2};
    ucg::capi::StallWatch watch(kPatience);
    seconds now(1000);
    /// Asks every second; returns after how many seconds it is due, 0 if not within 30.
    const auto due_after = [&](std::optional<std::uint32_t> sequence, const Progress& progress) {
        for (int second = 1; second <= 30; ++second) {
            now += seconds(1);
            if (watch.is_due(sequence, progress, now)) {
                return second;
            }
        }
        return 0;
    };
    CHECK(due_after(std::nullopt, {}) == 0);
    CHECK(due_after(7, start) == 11);
    CHECK(due_after(7, start) == 0);   // Only once,
    CHECK(due_after(7, further) == 0); // for each collective.
    CHECK(due_after(8, start) == 11);
    CHECK(due_after(9, start) == 11);

    SECTION("it has gone on") {
        for (int i = 0; i < 40; ++i) {
            now += seconds(1);
            CHECK_FALSE(watch.is_due(10, {{}, static_cast<std::uint64_t>(i / 8)}, now));
        }
    }
    SECTION("nobody asked for a while, as in a program that computes") {
        CHECK_FALSE(watch.is_due(10, start, now += seconds(1)));
        CHECK_FALSE(watch.is_due(10, start, now += seconds(5)));
        CHECK_FALSE(watch.is_due(10, start, now += seconds(1000)));
        CHECK(due_after(10, start) == 10);
    }
    SECTION("how often it looks") {
        CHECK_FALSE(watch.looks(now));
        CHECK(watch.looks(now + seconds(1)));
        CHECK(watch.watches());
        const ucg::capi::StallWatch never(std::nullopt);
        CHECK_FALSE(never.watches());
        CHECK_FALSE(never.looks(now + seconds(1)));
    }
}

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Calls that know no time, each so long after the one before.
struct Calls {
    ucg::capi::ClockStride stride;
    nanoseconds now = std::chrono::hours(1);
    unsigned reads = 0;

    bool reads_clock(nanoseconds pause) {
        now += pause;
        if (!stride.is_due()) {
            return false;
        }
        stride.read(now);
        ++reads;
        return true;
    }
};

constexpr nanoseconds kFast(100);
constexpr unsigned kFastCalls = 1'000'000;

} // namespace

TEST_CASE("stall: fast calls read the clock once in many", "[capi]") {
    Calls calls;
    for (const nanoseconds pause : {nanoseconds(0), nanoseconds(milliseconds(10'000))}) {
        calls.reads_clock(pause);
        calls.reads = 0;
        for (unsigned i = 0; i < kFastCalls; ++i) {
            calls.reads_clock(kFast);
        }
        CHECK(calls.reads <= kFastCalls / ucg::capi::ClockStride::kCallsMax + 16);
    }
}

TEST_CASE("stall: calls that come slowly are not too far apart to be looked at", "[capi]") {
    const milliseconds pause(GENERATE(1, 5, 20, 100, 300, 800, 1500, 4000));
    const unsigned fast = GENERATE(0U, kFastCalls);
    CAPTURE(pause.count(), fast);
    constexpr std::chrono::seconds kPatience(30);
    ucg::capi::StallWatch watch(kPatience);
    Calls calls;
    for (unsigned i = 0; i < fast; ++i) {
        calls.reads_clock(kFast);
    }
    const nanoseconds start = calls.now + ucg::capi::ClockStride::kCallsMax * nanoseconds(pause);
    bool due = false;
    while (!due && calls.now < start + 2 * kPatience) {
        due = calls.reads_clock(pause) && watch.looks(calls.now) &&
              watch.is_due(7, {{}, 3}, calls.now);
    }
    CHECK(due);
}
