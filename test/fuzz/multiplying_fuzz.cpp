// Fuzzes the parser of recursive multiplying's schedules: a schedule that parses prints back to an
// equal value, and the question for how many ranks it is gets a number or a reason. Schedules for
// few ranks are built for all of them and proved, in every order of operands and in place.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "ucg_coll/plan/multiplying/schedule.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace {

using ucg::Rank;

constexpr Rank kProvedMax = 40;

void prove(const std::string& algorithm, Rank count) {
    const ucg::topo::Placement placement = ucg::topo::Placement::one_host(count);
    const ucg::plan::Facts facts{placement, ucg::cost::default_profile()};
    ucg::graph::Request request;
    request.collective = ucg::graph::Collective::allreduce;
    request.rank_count = count;
    request.bytes = 8;
    request.commutative = false;
    request.in_place = count % 2 == 0;
    std::vector<ucg::graph::Schedule> schedules;
    for (Rank rank = 0; rank < count; ++rank) {
        auto schedule = ucg::plan::plan(facts, request, rank, algorithm);
        if (!schedule.ok()) {
            std::abort();
        }
        schedules.push_back(std::move(*schedule));
    }
    if (!ucg::graph::verify(schedules, {&request, 1}).ok()) {
        std::abort();
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const auto schedule = ucg::plan::parse_multiplying_schedule(input);
    if (!schedule.ok()) {
        return 0;
    }
    const std::string text = ucg::plan::to_text(*schedule);
    const auto again = ucg::plan::parse_multiplying_schedule(text);
    if (!again.ok() || !(*again == *schedule)) {
        std::abort();
    }
    const auto count = ucg::plan::rank_count_of(*schedule);
    if (count.ok() && *count <= kProvedMax) {
        prove("recursive_multiplying:" + text, *count);
    }
    return 0;
}
