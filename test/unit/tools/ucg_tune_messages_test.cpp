// How ucg_tune times the library's messages, and what it derives from the times, as far as no
// particular machine is needed. The members of the crew share one CPU, so their times mean nothing.
#include <array>

#include "test/support/catch.hpp"
#include "tools/ucg_tune/copy_choice.hpp"
#include "tools/ucg_tune/crew.hpp"
#include "topo/topo.hpp"

using namespace ucg;
using namespace ucg::tools;

namespace {

constexpr std::array<std::uint64_t, 3> kLengths = {16, 64, 256};

} // namespace

TEST_CASE("tune: several uses count alike, of lengths that all have", "[tune]") {
    const std::array<TimesByLength, 2> uses = {
        {{{16, 100}, {64, 10}, {256, 1}}, {{16, 400}, {64, 10}}}};
    const TimesByLength mean = mean_of(uses);
    REQUIRE(mean.size() == 2);
    CHECK(mean.at(16) == Approx(200));
    CHECK(mean.at(64) == Approx(10));
}

TEST_CASE("tune: a threshold is the shortest length beyond which nothing is lost", "[tune]") {
    const TimesByLength ring = {{16, 100}, {64, 100}, {256, 100}};
    CHECK(turning_point(ring, {{16, 90}, {64, 90}, {256, 90}}, kLengths) == 16);
    CHECK(turning_point(ring, {{16, 110}, {64, 90}, {256, 90}}, kLengths) == 64);
    CHECK(turning_point(ring, {{16, 90}, {64, 110}, {256, 90}}, kLengths) == 256);
    CHECK(turning_point(ring, {{16, 90}, {64, 90}, {256, 110}}, kLengths) == 256);
    CHECK(turning_point(ring, {{16, 110}, {64, 110}, {256, 110}}, kLengths) == 256);
    // A way that is hardly slower is as good.
    CHECK(turning_point(ring, {{16, 104}, {64, 104}, {256, 90}}, kLengths) == 16);
    // Where only one of the two ways was timed, nothing is known.
    CHECK(turning_point({{16, 100}}, {{16, 90}, {64, 900}}, kLengths) == 16);
    CHECK(turning_point({}, {}, kLengths) == 16);
}

TEST_CASE("tune: of ways that hardly differ the first one is taken", "[tune]") {
    const std::array<TimesByLength, 3> ways = {
        {{{16, 103}, {64, 103}}, {{16, 100}, {64, 100}}, {{16, 50}, {64, 300}}}};
    CHECK(good_enough(ways) == 0);
    CHECK(good_enough(std::span(ways).subspan(1)) == 0);
    const std::array<TimesByLength, 2> slow_first = {{{{16, 120}}, {{16, 100}}}};
    CHECK(good_enough(slow_first) == 1);
}

TEST_CASE("tune: two processes time messages of every kind", "[tune]") {
    const std::uint32_t cpu = topo::usable_cpus().front();
    CrewOptions options = {.cpus = {cpu, cpu, cpu},
                           .deadline = Clock::now() + std::chrono::seconds(5)};
    transport::ShmOptions ring;
    ring.own_processors = false;
    ring.single_copy_bytes_min = ring.mapped_copy_bytes_min = ~std::uint64_t{0};
    transport::ShmOptions single = ring;
    single.single_copy_bytes_min = single.mapped_copy_bytes_min = 1;
    options.lanes = {ring, single};
    options.message_bytes = 100000;
    constexpr std::array kSeries = {Series::one_way,  Series::exchange, Series::stream,
                                    Series::combined, Series::shares,   Series::burst};
    constexpr std::array kPatterns = {Pattern::one_way,  Pattern::exchange, Pattern::stream,
                                      Pattern::combined, Pattern::shares,   Pattern::burst};
    const auto samples = run_crew(options, [&](Driver& driver) {
        for (std::uint32_t lane = 0; lane < 2; ++lane) {
            for (std::size_t i = 0; i < kPatterns.size(); ++i) {
                const std::uint64_t longest = kPatterns[i] == Pattern::shares
                                                  ? ring.flag_slot_bytes_max
                                                  : options.message_bytes;
                for (const std::uint64_t bytes : {std::uint64_t{8}, longest}) {
                    for (const bool choice : {false, true}) {
                        const TimedMessages work = {.lane = lane,
                                                    .pattern = kPatterns[i],
                                                    .in_segment = choice,
                                                    .written = choice && i < 2,
                                                    .count = 3,
                                                    .bytes = bytes};
                        driver.record(
                            {kSeries[i], 1, choice, bytes, driver.messages_ns(work), lane});
                    }
                }
            }
        }
        return Status();
    });
    INFO(samples.status().message());
    REQUIRE(samples.ok());
    REQUIRE(samples->size() == 48);
    for (const Sample& sample : *samples) {
        CAPTURE(static_cast<int>(sample.series), sample.lane, sample.bytes);
        CHECK(sample.ns > 0);
    }
}
