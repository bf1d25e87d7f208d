#include "perf/perftest/breakdown/breakdown.hpp"

#include <cstring>
#include <fstream>
#include <optional>
#include <sched.h>

#include "perf/perftest/breakdown/collective.hpp"
#include "perf/perftest/breakdown/delay.hpp"
#include "perf/perftest/breakdown/lines.hpp"
#include "perf/perftest/breakdown/lower.hpp"
#include "perf/perftest/breakdown/mpi.hpp"
#include "perf/perftest/breakdown/options.hpp"
#include "perf/perftest/breakdown/profile.hpp"
#include "perf/perftest/breakdown/report.hpp"
#include "perf/perftest/breakdown/sockets.hpp"
#include "perf/perftest/breakdown/ucp.hpp"
#include "perf/perftest/breakdown/uct.hpp"
#include "perf/perftest/launch/agree.hpp"
#include "perf/perftest/launch/runtime_local.hpp"
#include "tools/cli.hpp"
#include "topo/cpus.hpp"

namespace ucg::perftest {

namespace {

using namespace breakdown;

constexpr const char* kFooter =
    "Exit status: 0 done, 1 failed (a process was lost, a transport cannot be used here, a file\n"
    "cannot be read or written), 2 wrong usage; 128 and the signal's number after Ctrl-C.\n"
    "\n"
    "Examples:\n"
    "  ucg_perftest breakdown -x posix --svg posix.svg\n"
    "  ucg_perftest breakdown -x tcp --ucp --rounds 11\n"
    "  ucg_perftest breakdown --collective allreduce,barrier --check-what-if\n"
    "  ucg_perftest breakdown --json posix.json && ucg_perftest what-if posix.json";

/// Returns the name that Linux gives the processor, or "not known".
std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("model name")) {
            return line.substr(std::min(line.find(':') + 2, line.size()));
        }
    }
    return "not known";
}

Status bind_to(std::uint32_t cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < CPU_SETSIZE) {
        CPU_SET(cpu, &set);
    }
    return ::sched_setaffinity(0, sizeof(set), &set) == 0
               ? Status()
               : failure(Code::invalid_argument, "-c: CPU {} cannot be used: {}", cpu,
                         std::strerror(errno));
}

/// Chooses a CPU for each process, which spins on it; on one CPU they would only alternate.
Status choose_cpus(BreakdownOptions& options) {
    if (options.cpus.empty()) {
        options.cpus = topo::usable_cpus();
    }
    if (options.cpus.size() < 2 || options.cpus[0] == options.cpus[1]) {
        return Status(Code::unsupported, "a breakdown needs two processes on a CPU each, and this "
                                         "one may use a single CPU");
    }
    return {};
}

/// The part of one process in a breakdown.
class Measurement {
  public:
    Measurement(Runtime& runtime, Lines& lines, const BreakdownOptions& options,
                std::optional<MpiFigures> mpi)
        : runtime_(runtime), lines_(lines), options_(options), mpi_(std::move(mpi)),
          stopwatch_(4 * options.samples) {}

    Status run() {
        Status status = open();
        for (std::uint64_t i = 0; i < options_.rounds && status.ok(); ++i) {
            stopwatch_.calibrate();
            status = round();
        }
        kept_rounds_ = rounds_.keep_like(Lines::kRead);
        if (status.ok() && !options_.profile_file.empty()) {
            status = write_profile(runtime_, *low_, options_.profile_file, options_.samples);
        }
        return status;
    }

    Findings findings() const {
        Findings findings{.facts = facts(), .sections = {}};
        findings.sections.push_back(lower_section(kind_, rounds_));
        if (high_ != nullptr) {
            findings.sections.push_back(upper_section(kind_, rounds_));
            if (mpi_.has_value()) {
                findings.sections.push_back(mpi_section(*mpi_, kind_, rounds_));
            }
        }
        for (const auto& [level, rounds] : collectives_) {
            findings.sections.push_back(level->section(rounds));
        }
        return findings;
    }

    /// Returns the report of the what-if check; empty where it was not asked for.
    ucg::Result<std::string> what_if_report() const {
        return delay_check_ != nullptr ? delay_check_->report(delay_rounds_) : std::string();
    }

  private:
    Status open() {
        const auto self = static_cast<std::size_t>(runtime_.rank());
        if (Status status = agree(runtime_, bind_to(options_.cpus[self])); !status.ok()) {
            return status;
        }
        auto low = LowLevel::open(runtime_, lines_, options_.transport, options_.device);
        if (!low) {
            return low.status();
        }
        low_ = std::move(*low);
        kind_ = {low_->name(), low_->puts(), low_->shares_memory(), options_.transport == "tcp"};
        if (kind_.over_sockets) {
            auto sockets = PlainSockets::connect(runtime_, options_.device);
            if (!sockets) {
                return sockets.status();
            }
            sockets_ = std::move(*sockets);
        }
        if (options_.with_ucp) {
            auto high = HighLevel::open(runtime_, lines_, options_.transport, options_.device);
            if (!high) {
                return high.status();
            }
            high_ = std::move(*high);
        }
        for (const std::string& name : options_.collectives) {
            auto level = CollectiveLevel::open(runtime_, lines_, name);
            if (!level) {
                return level.status();
            }
            collectives_.emplace_back(std::move(*level), Rounds());
        }
        if (options_.checks_what_if) {
            auto check = DelayCheck::open(runtime_, lines_, options_.transport);
            if (!check) {
                return check.status();
            }
            delay_check_ = std::move(*check);
        }
        return {};
    }

    Status round() {
        lines_.measure(runtime_.rank(), options_.samples, stopwatch_, rounds_, [this] {
            if (kind_.shares_memory) {
                static_cast<void>(low_->idle());
            }
        });
        Status status = low_->round(options_.samples, stopwatch_, rounds_);
        if (status.ok() && sockets_) {
            status = sockets_->measure(options_.samples, stopwatch_, rounds_);
        }
        if (status.ok() && high_ != nullptr) {
            status = high_->round(options_.samples, stopwatch_, rounds_);
        }
        for (auto& [level, rounds] : collectives_) {
            if (status.ok()) {
                status = level->round(options_.samples, stopwatch_, rounds);
            }
        }
        if (status.ok() && delay_check_ != nullptr) {
            status = delay_check_->round(options_.samples, stopwatch_, delay_rounds_);
        }
        return status;
    }

    std::vector<std::pair<std::string, std::string>> facts() const {
        const TimerOverhead timer = timer_overhead();
        return {
            {"processor", processor_name()},
            {"cpus", fmt::format("{} and {}", options_.cpus[0], options_.cpus[1])},
            {"transport", kind_.transport},
            {"rounds", fmt::format("{} of {} samples; {} in which lines travelled alike",
                                   options_.rounds, options_.samples, kept_rounds_)},
            {"two clock readings",
             fmt::format("median {:.2f} ns, mean {:.2f} ns, deviation "
                         "{:.2f} ns of {} samples",
                         timer.median_ns, timer.mean_ns, timer.deviation_ns, timer.samples)},
        };
    }

    Runtime& runtime_;
    Lines& lines_;
    const BreakdownOptions& options_;
    const std::optional<MpiFigures> mpi_;
    Stopwatch stopwatch_;
    Rounds rounds_;
    std::size_t kept_rounds_ = 0;
    LowerKind kind_;
    std::unique_ptr<LowLevel> low_;
    std::unique_ptr<PlainSockets> sockets_;
    std::unique_ptr<HighLevel> high_;
    std::vector<std::pair<std::unique_ptr<CollectiveLevel>, Rounds>> collectives_;
    std::unique_ptr<DelayCheck> delay_check_;
    Rounds delay_rounds_;
};

Status write_results(const BreakdownOptions& options, const Measurement& measurement) {
    const Findings findings = measurement.findings();
    const ucg::Result<std::string> what_if = measurement.what_if_report();
    Status status = what_if.status();
    if (status.ok() && options.json_file != "-" && options.svg_file != "-") {
        status = tools::write_output("-", text_report(findings) + *what_if);
    }
    if (status.ok() && !options.json_file.empty()) {
        status = tools::write_output(options.json_file, json_report(findings));
    }
    if (status.ok() && !options.svg_file.empty()) {
        status = tools::write_output(options.svg_file, svg_report(findings));
    }
    return status;
}

ucg::Result<int> measure(BreakdownOptions& options) {
    if (Status status = choose_cpus(options); !status.ok()) {
        return status;
    }
    auto lines = Lines::create();
    if (!lines) {
        return lines.status();
    }
    std::optional<MpiFigures> mpi;
    if (!options.mpi_file.empty()) {
        const ucg::Result<std::string> text = tools::read_input(options.mpi_file);
        if (!text) {
            return text.status();
        }
        const ucg::Result<MpiFigures> figures = parse_mpi_figures(*text);
        if (!figures) {
            return tools::in_file(options.mpi_file, figures.status());
        }
        mpi = *figures;
    }
    ticks_per_second(); // Measured once for both processes.
    return run_local(2, [&](Runtime& runtime) -> Status {
        Measurement measurement(runtime, **lines, options, mpi);
        Status status = measurement.run();
        if (status.ok() && runtime.rank() == 0) {
            status = write_results(options, measurement);
        }
        return agree(runtime, status);
    });
}

} // namespace

int breakdown_main(int argc, const char* const* argv) {
    CLI::App app("Where the time of short messages goes: components measured one at a time, put "
                 "together to what injecting a message and its latency cost, and compared with "
                 "what is observed (Zambre et al., Breaking Band, ICPP 2019)",
                 "ucg_perftest breakdown");
    BreakdownOptions options;
    options.add_to(app);
    app.parse_complete_callback([&] { options.complete(); });
    app.footer(kFooter);
    int exit_status = tools::kExitOk;
    const int status = tools::run(app, argc, argv, [&]() -> Status {
        const ucg::Result<int> ended = measure(options);
        exit_status = ended ? *ended : exit_status;
        return ended.status();
    });
    return status != tools::kExitOk ? status : exit_status;
}

} // namespace ucg::perftest
