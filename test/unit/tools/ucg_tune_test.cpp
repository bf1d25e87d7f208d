// The parts of ucg_tune that need no particular machine: statistics, the choice of CPUs to compare,
// and crews whose members share one CPU, so that their times mean nothing.
#include <array>
#include <cmath>

#include "test/support/catch.hpp"
#include "tools/ucg_tune/memory_figures.hpp"
#include "tools/ucg_tune/memory_probe.hpp"
#include "tools/ucg_tune/memory_report.hpp"
#include "tools/ucg_tune/rounds.hpp"

using namespace ucg;
using namespace ucg::tools;

TEST_CASE("tune: medians and quartiles", "[tune]") {
    CHECK(summarize({}).count == 0);
    const Quartiles one = summarize({3});
    CHECK(one.median == 3);
    CHECK(one.low == 3);
    CHECK(one.high == 3);
    const Quartiles many = summarize({9, 1, 8, 2, 7, 3, 6, 4, 5});
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
    // A slope below zero becomes zero.
    CHECK(fit_slope(points, 1000) == 0);
    const std::array<FitPoint, 2> steep = {{{2, 2}, {4, 8}}};
    CHECK(fit_line(steep).intercept == 0);
    CHECK(fit_line(steep).slope == Approx(36.0 / 20));
    const std::array<FitPoint, 2> falling = {{{2, 8}, {4, 2}}};
    CHECK(fit_line(falling).intercept == Approx(5));
    CHECK(fit_line(falling).slope == 0);
    // The fit minimises relative errors, so the largest size does not outweigh the rest.
    const std::array<FitPoint, 2> bent = {{{1, 1}, {1000, 2000}}};
    CHECK(fit_slope(bent, 0) == Approx(1.2));
}

TEST_CASE("tune: errors of fits are relative", "[tune]") {
    CHECK(spread({.median = 100, .low = 90, .high = 110, .count = 5}) == Approx(0.1));
    CHECK(spread({}) == 0);
    const std::array<FitPoint, 2> points = {{{10, 100}, {1000, 5000}}};
    CHECK(fit_error(points, {50, 5}) == Approx(0.01 / std::sqrt(2.0)));
    CHECK(fit_error(points, {0, 10}) == Approx(std::sqrt(0.5)));
    CHECK(fit_error({}, {1, 1}) == 0);
    const std::array<FitPoint, 1> free = {{{2, 0}}};
    CHECK(fit_error(free, {0, 0}) == 0);
    CHECK(fit_error(free, {0, 1}) == 1);
}

TEST_CASE("tune: what nobody measured is named, each key of a profile", "[tune]") {
    const cost::Profile base = cost::default_profile();
    ProbeResult nothing;
    nothing.model = base.memory;
    const std::vector<FigureReport> reports = report_figures(nothing, tuned_profile(nothing, base));
    const std::string text = unknown_text(reports, "");
    const std::vector<cost::NamedFigure> all = cost::figures_of(base);
    REQUIRE(reports.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        CAPTURE(all[i].path());
        CHECK(reports[i].figure.path() == all[i].path());
        CHECK_FALSE(reports[i].known);
        CHECK_FALSE(reports[i].reason.empty());
        CHECK(reports[i].is_threshold() == (all[i].unit == cost::Unit::bytes));
        CHECK(text.find(reports[i].is_threshold() ? all[i].path() : all[i].table) !=
              std::string::npos);
    }
    CHECK(text.find("iB  nothing measures it") == std::string::npos);
    CHECK(text.find("memory.cooperative_copies.bytes_min      64 KiB  needs longer messages") !=
          std::string::npos);
    CHECK(text.find("levels.package, levels.host: latency_ns, overhead_ns, gap_ns, "
                    "gap_per_byte_ns (needs two CPUs that stay at this distance)\n") !=
          std::string::npos);
    CHECK(errors_toml(reports).empty());
}

TEST_CASE("tune: what was measured, follows from that or was known has its error", "[tune]") {
    cost::Profile base = cost::default_profile();
    base.network.median.measured = true;
    base.levels_measured[static_cast<std::size_t>(topo::Distance::network)] = true;
    ProbeResult result;
    result.model = base.memory;
    result.model.caches[static_cast<std::size_t>(cost::Cache::l2)].measured = true;
    result.figures["memory.caches.l2.copy_per_byte_ns"] = {Origin::fitted, 0.0312};
    const std::vector<FigureReport> reports = report_figures(result, tuned_profile(result, base));
    std::string known;
    for (const FigureReport& report : reports) {
        if (report.known) {
            known += fmt::format("{} {} {}\n", report.figure.path(), name(report.known->origin),
                                 per_cent(*report.known));
        }
    }
    CHECK(known == "compute.copy_per_byte_ns derived 3.1\n"
                   "compute.reduce_per_byte_ns derived 0\n"
                   "compute.reduce_fixed_ns derived 0\n"
                   "levels.network.latency_ns kept 0\n"
                   "levels.network.overhead_ns kept 0\n"
                   "levels.network.gap_ns kept 0\n"
                   "levels.network.gap_per_byte_ns kept 0\n"
                   "memory.caches.l2.copy_per_byte_ns fitted 3.1\n"
                   "network.median.alpha_p_ns kept 0\n"
                   "network.median.alpha_r_ns kept 0\n"
                   "network.median.beta_ns_per_byte kept 0\n");
    CHECK(errors_toml(reports) == "# Error of memory.caches.l2: copy_per_byte_ns 3.1 %\n");
    CHECK(unknown_text(reports, "").find("l2: copy_per_byte_ns") == std::string::npos);
    CHECK(unknown_text(reports, "").find("network.median") == std::string::npos);
}

TEST_CASE("tune: a round counts if lines were about as fast as ever", "[tune]") {
    CHECK(steady_rounds({}) == 0);
    CHECK(steady_rounds({185, 36, 40, 46, 184}) == 3);
    CHECK(steady_rounds({185, 184}) == 2);
    // Lines were faster before, so the CPUs have moved apart.
    CHECK(steady_rounds({185, 184, 45}, 36) == 1);
    CHECK(steady_rounds({185, 184}, 36) == 0);
    CHECK(steady_limit({185, 184}, 40) == Approx(80));
    CHECK(steady_limit({185, 30}, 40) == Approx(39));
}

TEST_CASE("tune: at each distance, the CPU with most others there", "[tune]") {
    const Result<topo::Machine> machine =
        topo::machine_from_synthetic("package:2 numa:1 l3:2 core:3 pu:2");
    REQUIRE(machine.ok());
    std::vector<std::uint32_t> cpus(24);
    for (std::uint32_t i = 0; i < cpus.size(); ++i) {
        cpus[i] = i;
    }
    const std::vector<CpusAtDistance> all = neighbours_of(*machine, cpus);
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
    const std::vector<CpusAtDistance> lopsided = neighbours_of(*machine, {0, 12, 14});
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
        return cost::parse_toml(to_profile_toml(result, tuned_profile(result, base), "", ""))
            .value()
            .memory.cma.bytes_min;
    };
    CHECK(bytes_min(base.memory.cma.fixed_ns, true) == base.memory.cma.bytes_min);
    CHECK(bytes_min(20000, true) == 4 << 20);
    CHECK(bytes_min(20000, false) == base.memory.cma.bytes_min);
}

TEST_CASE("tune: the part of the last cache that a core finds for itself", "[tune]") {
    constexpr double kMiB = 1 << 20;
    const auto part = [](const std::vector<double>& per_byte) {
        std::vector<FitPoint> copies;
        double set = kMiB;
        for (const double ns : per_byte) {
            copies.push_back({set, ns * set});
            set *= 2;
        }
        return static_cast<double>(usable_part(copies)) / kMiB;
    };
    CHECK(part({0.030}) == 1);
    CHECK(part({0.030, 0.031, 0.035, 0.055, 0.105}) == 8);
    CHECK(part({0.030, 0.031, 0.030, 0.030, 0.035}) == 16);
    // After a slow size, a later faster one is not taken for the cache again.
    CHECK(part({0.030, 0.105, 0.055}) == 1);
}

TEST_CASE("tune: messages that were not timed cost no less than nearer ones", "[tune]") {
    const cost::Profile base = cost::default_profile();
    ProbeResult result;
    result.model = base.memory;
    const cost::LogGp slow = {
        .latency_ns = 1000, .overhead_ns = 10, .gap_ns = 20, .gap_per_byte_ns = 0.2};
    result.levels[static_cast<std::size_t>(topo::Distance::cache)] = slow;
    const cost::Profile tuned = tuned_profile(result, base);
    CHECK(tuned.level(topo::Distance::cache) == slow);
    CHECK(tuned.level(topo::Distance::core) == base.level(topo::Distance::core));
    CHECK(tuned.level(topo::Distance::package).latency_ns == 1000);
    CHECK(tuned.level(topo::Distance::package).gap_per_byte_ns == 0.2);
    CHECK(tuned.level(topo::Distance::package).gap_ns ==
          base.level(topo::Distance::package).gap_ns);
    CHECK(tuned.level(topo::Distance::network) == base.level(topo::Distance::network));
    CHECK(tuned.levels_measured == std::array<bool, topo::kDistanceCount>{false, true});
}

TEST_CASE("tune: messages that were not timed keep what is built in", "[tune]") {
    // In these costs, CPUs that share a cache have less per byte than those of one core.
    cost::Profile base = cost::default_profile();
    base.levels[static_cast<std::size_t>(topo::Distance::cache)] = {
        .latency_ns = 53, .overhead_ns = 9.5, .gap_ns = 28, .gap_per_byte_ns = 0.018};
    ProbeResult nothing;
    nothing.model = base.memory;
    CHECK(tuned_profile(nothing, base) == base);
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
