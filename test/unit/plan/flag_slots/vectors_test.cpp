#include <algorithm>

#include "test/support/catch.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;
using graph::OpKind;
using graph::Request;

constexpr std::uint64_t kFlagSlotBytes = 8192;
using Lengths = std::vector<std::uint64_t>;

/// Requests of a rooted collective whose blocks lie at the root with a byte between any two.
std::vector<Request> requests_of(Collective collective, Rank root, const Lengths& lengths,
                                 bool in_place) {
    graph::Blocks blocks{lengths, {}};
    std::uint64_t offset = 0;
    for (const std::uint64_t length : lengths) {
        blocks.offsets.push_back(offset);
        offset += length + 1;
    }
    std::vector<Request> requests(lengths.size());
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        requests[i].collective = collective;
        requests[i].rank_count = static_cast<Rank>(lengths.size());
        requests[i].root = root;
        requests[i].bytes = lengths[i];
        if (static_cast<Rank>(i) == root) {
            requests[i].in_place = in_place;
            (collective == Collective::gatherv ? requests[i].receive : requests[i].send) = blocks;
        }
    }
    return requests;
}

/// The schedules by flag slots, proved. If `algorithm` is empty the planner chooses.
std::vector<graph::Schedule> proved(const std::vector<Request>& requests,
                                    std::string_view algorithm = "flag_slots") {
    const auto count = static_cast<Rank>(requests.size());
    const topo::Placement placement = topo::Placement::one_host(count);
    const cost::Profile& profile = cost::default_profile();
    const Facts facts = {placement, profile,
                         shared_memory(placement, profile, 64 << 10, false, kFlagSlotBytes)};
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < count; ++rank) {
        Result<graph::Schedule> schedule =
            plan(facts, requests[static_cast<std::size_t>(rank)], rank, algorithm);
        INFO(schedule.status().message());
        REQUIRE(schedule.ok());
        schedules.push_back(std::move(*schedule));
    }
    const Status status =
        graph::verify(schedules, requests, [](Rank, Rank, const void*) { return true; });
    INFO(status.message());
    REQUIRE(status.ok());
    return schedules;
}

std::size_t count_of(const graph::Schedule& schedule, OpKind kind) {
    return static_cast<std::size_t>(
        std::count_if(schedule.ops.begin(), schedule.ops.end(),
                      [&](const graph::Op& op) { return op.kind == kind; }));
}

} // namespace

TEST_CASE("plan: gatherv and scatterv by flag slots serve any lengths in one call",
          "[plan][proof]") {
    for (const Collective collective : {Collective::gatherv, Collective::scatterv}) {
        for (const bool in_place : {false, true}) {
            for (const Lengths& lengths :
                 {Lengths{8, 8}, Lengths{0, 0, 0}, Lengths{8, 8, 8, 8},
                  Lengths{1, 0, 9, 100000, 16, 3}, Lengths{7, 8, 9, 15, 16, 17, 8192, 8193}}) {
                for (std::size_t root = 0; root < lengths.size(); ++root) {
                    proved(requests_of(collective, static_cast<Rank>(root), lengths, in_place));
                }
            }
        }
    }
}

TEST_CASE("plan: short blocks of a vector go by flag slots and long ones by messages", "[plan]") {
    const Lengths lengths = {8, 8, 0, 1 << 20};
    const auto gather = proved(requests_of(Collective::gatherv, 0, lengths, false));
    CHECK(count_of(gather[1], OpKind::share) == 1);
    CHECK(gather[2].ops.empty());
    CHECK(count_of(gather[3], OpKind::send) == 1);
    CHECK(count_of(gather[0], OpKind::recv) == 1);
    const auto scatter = proved(requests_of(Collective::scatterv, 0, lengths, false));
    CHECK(scatter[0].flag_slot_bytes == 8);
    CHECK(count_of(scatter[0], OpKind::send) == 1);
    CHECK(count_of(scatter[1], OpKind::copy) == 1);
    CHECK(scatter[2].ops.empty());
    CHECK(count_of(scatter[3], OpKind::recv) == 1);
}

TEST_CASE("plan: who has no blocks chooses as the root does", "[plan]") {
    for (const Collective collective : {Collective::gatherv, Collective::scatterv}) {
        const auto schedules = proved(requests_of(collective, 1, {8, 1 << 20, 0, 24}, false), "");
        for (const graph::Schedule& schedule : schedules) {
            CHECK(schedule.algorithm == "flag_slots");
        }
    }
}

} // namespace ucg::plan::test
