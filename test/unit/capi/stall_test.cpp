// What a report of a collective that does not end says.
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

constexpr const char* kStart = "MPI_COMM_WORLD: rank 2 has waited for 600 s for rank 0 in bcast of "
                               "64 bytes (knomial), collective 8 of this group.";

} // namespace

TEST_CASE("stall: a rank without others on its host names those for which it waits", "[capi]") {
    StalledCall call = eighth_bcast();
    CHECK(report_of(call) == kStart);
    call.awaited = {};
    CHECK(report_of(call) == "MPI_COMM_WORLD: rank 2 has waited for 600 s in bcast of 64 bytes "
                             "(knomial), collective 8 of this group.");
    call.awaited = {0, 1, 3};
    CHECK(report_of(call).find("for ranks 0, 1 and 3 in bcast") != std::string::npos);
    call.awaited = {0, 1, 3, 4, 5, 6, 7, 8, 9, 10};
    CHECK(report_of(call).find("for ranks 0, 1, 3, 4, 5, 6, 7, 8 and 2 more in") !=
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

TEST_CASE("stall: nothing in progress is never due", "[capi]") {
    using std::chrono::seconds;
    ucg::capi::StallWatch watch{seconds(1)};
    CHECK_FALSE(watch.is_due(nullptr, seconds(1)));
    CHECK_FALSE(watch.is_due(nullptr, seconds(100)));
    CHECK(watch.watches());
    CHECK_FALSE(ucg::capi::StallWatch(std::nullopt).watches());
}
