// Fuzzes the parsers of schedules: whatever is accepted must print and parse back to the same
// value, and verify must return a verdict on it and not crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ucg_coll/graph/graph.hpp"

namespace {

using ucg::Result;
using ucg::graph::Schedule;

/// Is the schedule small? verify writes repeats out, so large ones would take too long.
bool is_small(const Schedule& schedule) {
    std::uint64_t iterations = 0;
    for (const auto& repeat : schedule.repeats) {
        iterations += repeat.iterations > 1000 ? 1000 : repeat.iterations;
    }
    return iterations < 1000;
}

void expect_equal(const Result<Schedule>& parsed, const Schedule& schedule) {
    if (!parsed.ok() || !(*parsed == schedule)) {
        std::abort();
    }
}

void check(const Schedule& schedule) {
    ucg::graph::Request request;
    request.collective = schedule.collective;
    request.rank_count = 1;
    request.bytes = schedule.output_bytes;
    request.element_bytes = schedule.element_bytes;
    request.in_place = schedule.in_place;
    if (is_small(schedule)) {
        static_cast<void>(ucg::graph::verify({&schedule, 1}, {&request, 1}).ok());
    }
    static_cast<void>(ucg::graph::to_dot({&schedule, 1}));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const Result<Schedule> text = ucg::graph::parse_text(input);
    if (text.ok()) {
        expect_equal(ucg::graph::parse_text(ucg::graph::to_text(*text)), *text);
        check(*text);
    }
    const Result<Schedule> json = ucg::graph::parse_json(input);
    if (json.ok()) {
        expect_equal(ucg::graph::parse_json(ucg::graph::to_json(*json)), *json);
        check(*json);
    }
    return 0;
}
