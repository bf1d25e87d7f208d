// The parts of ucg_tune that need no particular machine: statistics, which CPUs are compared, and
// crews whose members share one CPU, whose times mean nothing.
#include <array>
#include <cmath>

#include "test/support/catch.hpp"
#include "tools/ucg_tune/memory_probe.hpp"
#include "tools/ucg_tune/memory_report.hpp"
#include "tools/ucg_tune/rounds.hpp"

using namespace ucg;
using namespace ucg::tools;

TEST_CASE("tune: medians and quartiles", "[tune]") {
    CHECK(summarize({}).count == 0);
    const Summary one = summarize({3});
    CHECK(one.median == 3);
    CHECK(one.low == 3);
    CHECK(one.high == 3);
    const Summary many = summarize({9, 1, 8, 2, 7, 3, 6, 4, 5});
    CHECK(many.median == 5);
    CHECK(many.low == 3);
    CHECK(many.high == 7);
    CHECK(many.count == 9);
}

TEST_CASE("tune: fits find the lines that points were made of", "[tune]") {
    const std::array<FitPoint, 3> points = {{{2, 13}, {4, 19}, {8, 31}}};
    CHECK(fit_slope(points, 7) == Approx(3));
    CHECK(fit_line(points).slope == Approx(3));
    CHECK(fit_line(points).intercept == Approx(7));
    // What would cost less than nothing costs nothing.
    CHECK(fit_slope(points, 1000) == 0);
    const std::array<FitPoint, 2> steep = {{{2, 2}, {4, 8}}};
    CHECK(fit_line(steep).intercept == 0);
    CHECK(fit_line(steep).slope == Approx(36.0 / 20));
    const std::array<FitPoint, 2> falling = {{{2, 8}, {4, 2}}};
    CHECK(fit_line(falling).intercept == Approx(5));
    CHECK(fit_line(falling).slope == 0);
    // Relative errors: the largest size does not outweigh the rest.
    const std::array<FitPoint, 2> bent = {{{1, 1}, {1000, 2000}}};
    CHECK(fit_slope(bent, 0) == Approx(1.2));
}

TEST_CASE("tune: a round counts if lines were about as fast as ever", "[tune]") {
    CHECK(steady_rounds({}) == 0);
    CHECK(steady_rounds({185, 36, 40, 46, 184}) == 3);
    CHECK(steady_rounds({185, 184}) == 2);
}

TEST_CASE("tune: at each distance, the CPU with most others there", "[tune]") {
    const Result<topo::Machine> machine =
        topo::machine_from_synthetic("package:2 numa:1 l3:2 core:3 pu:2");
    REQUIRE(machine.ok());
    std::vector<std::uint32_t> cpus(24);
    for (std::uint32_t i = 0; i < cpus.size(); ++i) {
        cpus[i] = i;
    }
    const std::vector<Neighbours> all = neighbours_of(*machine, cpus);
    REQUIRE(all.size() == 4);
    CHECK(all[0].distance == topo::Distance::core);
    CHECK(all[0].cpus == std::vector<std::uint32_t>{0, 1});
    CHECK(all[1].distance == topo::Distance::cache);
    CHECK(all[1].cpus == std::vector<std::uint32_t>{0, 2, 3, 4, 5});
    CHECK(all[2].distance == topo::Distance::numa);
    CHECK(all[2].cpus.size() == 7);
    CHECK(all[3].distance == topo::Distance::host);
    CHECK(all[3].cpus.size() == 13);
    CHECK(neighbours_of(*machine, {5}).empty());
    const std::vector<Neighbours> lopsided = neighbours_of(*machine, {0, 12, 14});
    REQUIRE(lopsided.size() == 2);
    CHECK(lopsided[0].cpus == std::vector<std::uint32_t>{12, 14});
    CHECK(lopsided[1].cpus == std::vector<std::uint32_t>{0, 12, 14});
}

TEST_CASE("tune: what the kernel's copies cost decides from which length on they are made",
          "[tune]") {
    const cost::Profile base = cost::default_profile();
    const auto bytes_min = [&](double fixed_ns, bool measured) {
        ProbeResult result;
        result.model = base.memory;
        result.model.cma.fixed_ns = fixed_ns;
        result.model.cma.measured = measured;
        return cost::parse_toml(to_profile_toml(result, base, "", "")).value().memory.cma.bytes_min;
    };
    CHECK(bytes_min(base.memory.cma.fixed_ns, true) == base.memory.cma.bytes_min);
    CHECK(bytes_min(20000, true) == 4 << 20);
    CHECK(bytes_min(20000, false) == base.memory.cma.bytes_min);
}

TEST_CASE("tune: a crew of four on one CPU", "[tune]") {
    const std::uint32_t cpu = topo::usable_cpus().front();
    const CrewOptions options = {
        {cpu, cpu, cpu, cpu}, 8192, Clock::now() + std::chrono::seconds(5)};
    const Result<std::vector<Sample>> samples = run_crew(options, [](Driver& driver) {
        driver.peer_writes(4096, 4096, 2);
        const bool there = driver.memory(1)[8191] == std::byte{1};
        driver.record({Series::read, 1, 0, 4096, there ? 1.0 : 0.0});
        driver.peer_reads_mine(4096, 4096, 2);
        driver.record({Series::contended, 3, 1, 8192, driver.contended_read_ns(3, 8192)});
        driver.record({Series::contended, 1, 2, 64, driver.contended_read_ns(1, 64)});
        driver.record({Series::line, 1, 3, 0, driver.line_ns(4)});
        driver.record({Series::futex, 1, 4, 0, driver.futex_ns(2)});
        driver.record({Series::line, 1, 5, 0, driver.line_ns(4)});
        return Status();
    });
    INFO(samples.status().message());
    REQUIRE(samples.ok());
    REQUIRE(samples->size() == 6);
    CHECK(samples->front().ns == 1.0);
    for (const Sample& sample : *samples) {
        CHECK(std::isfinite(sample.ns));
        CHECK(sample.ns > 0);
    }
}

TEST_CASE("tune: a crew fails with the reason of its driver", "[tune]") {
    const std::uint32_t cpu = topo::usable_cpus().front();
    const CrewOptions options = {{cpu, cpu}, 64, Clock::now() + std::chrono::seconds(5)};
    const Result<std::vector<Sample>> samples =
        run_crew(options, [](Driver&) { return failure(Code::unsupported, "the reason"); });
    REQUIRE_FALSE(samples.ok());
    CHECK(samples.status().message() == "the reason");
}

TEST_CASE("tune: a crew on a CPU that is not there", "[tune]") {
    const CrewOptions options = {{1023, 1023}, 64, Clock::now() + std::chrono::seconds(5)};
    const Result<std::vector<Sample>> samples = run_crew(options, [](Driver&) { return Status(); });
    REQUIRE_FALSE(samples.ok());
    CHECK(samples.status().message().starts_with("cannot bind a process to CPU 1023: "));
}
