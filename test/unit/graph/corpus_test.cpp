// What the fuzzer of schedules starts from.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "test/support/catch.hpp"
#include "ucg_coll/graph/graph.hpp"

namespace ucg::graph {
namespace {

/// Returns those files that are schedules in text, or in JSON.
std::vector<Schedule> schedules_of_corpus(Result<Schedule> (*parse)(std::string_view)) {
    std::vector<Schedule> schedules;
    for (const auto& entry :
         std::filesystem::directory_iterator(UCG_SOURCE_ROOT "/test/fuzz/corpus/graph_text")) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        if (const Result<Schedule> schedule = parse(text); schedule.ok()) {
            schedules.push_back(*schedule);
        }
    }
    return schedules;
}

} // namespace

TEST_CASE("graph: the fuzzer's corpus has schedules of every kind", "[graph]") {
    const auto format = GENERATE(&parse_text, &parse_json);
    const std::vector<Schedule> schedules = schedules_of_corpus(format);
    const auto some = [&](bool (*has)(const Schedule&)) {
        return std::any_of(schedules.begin(), schedules.end(), has);
    };
    CHECK(some([](const Schedule& s) { return s.flag_slots && s.flag_slot_bytes > 0; }));
    CHECK(some([](const Schedule& s) { return s.staging_buffer_bytes > 0; }));
    CHECK(some([](const Schedule& s) { return s.own_scratch_bytes > 0; }));
    CHECK(some([](const Schedule& s) { return s.helped; }));
    CHECK(some([](const Schedule& s) { return !s.repeats.empty(); }));
    for (const OpKind kind : {OpKind::send, OpKind::recv, OpKind::copy, OpKind::reduce,
                              OpKind::signal, OpKind::await, OpKind::publish, OpKind::share}) {
        INFO(name(kind));
        CHECK(std::any_of(schedules.begin(), schedules.end(), [&](const Schedule& s) {
            return std::any_of(s.ops.begin(), s.ops.end(),
                               [&](const Op& op) { return op.kind == kind; });
        }));
    }
}

TEST_CASE("graph: verify refuses more scratch than can exist", "[graph][verify]") {
    const Result<Schedule> schedule =
        parse_text("schedule allreduce x rank 0 of 1 input 8 output 8 "
                   "scratch 18446744073709551615 element 8 flag_slot 8\n"
                   "0: share input[0:8]\n"
                   "1: copy input[0:8] -> output[0:8]\n");
    REQUIRE(schedule.ok());
    Request request;
    request.collective = Collective::allreduce;
    request.rank_count = 1;
    request.bytes = 8;
    request.element_bytes = 8;
    const Status status = verify({&*schedule, 1}, {&request, 1});
    CHECK(status.code() == Code::invalid_argument);
    CHECK(std::string(status.message()).find("scratch") != std::string::npos);
}

TEST_CASE("graph: JSON has a length of flag slots only with flag slots", "[graph][json]") {
    Schedule schedule;
    schedule.collective = Collective::barrier;
    schedule.algorithm = "x";
    schedule.flag_slots = true;
    schedule.flag_slot_bytes = 8;
    std::string text = to_json(schedule, -1);
    CHECK(*parse_json(text) == schedule);
    constexpr std::string_view kIs = "\"flag_slots\":true";
    const std::size_t at = text.find(kIs);
    REQUIRE(at != std::string::npos);
    text.replace(at, kIs.size(), "\"flag_slots\":false");
    CHECK(parse_json(text).status().message() ==
          "flag_slot_bytes: expected no such member without flag_slots");
}

} // namespace ucg::graph
