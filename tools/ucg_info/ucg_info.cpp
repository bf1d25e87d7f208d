// ucg_info: what this build of UCG is and what it finds on this machine.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "shm/budget.hpp"
#include "shm/shm.hpp"
#include "tools/cli.hpp"
#include "tools/ucg_info/costs_report.hpp"
#include "tools/ucg_info/huge_pages.hpp"
#include "tools/ucg_info/system_report.hpp"
#include "topo/topo.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/machine_setting.hpp"
#include "ucg_coll/capi/topology_file.hpp"
#include "ucg_coll/transport/shm/footprint.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::tools {

namespace {

using Json = nlohmann::ordered_json;

/// How this program was built, and against which UCX.
struct Build {
    std::string compiler = UCG_BUILD_COMPILER;
    std::string options = UCG_BUILD_OPTIONS;
    std::string ucx_compiled = transport::ucx::versions().compiled;
    std::string ucx_running = transport::ucx::versions().running;
};

std::string version_text() {
    return fmt::format("UCG {} (API {}.{})\n", ucg_get_version_string(), UCG_API_MAJOR,
                       UCG_API_MINOR);
}

std::string build_text(const Build& build) {
    return fmt::format("Build\n"
                       "  compiler       {}\n"
                       "  options        {}\n"
                       "  UCX            compiled for {}, running {}\n",
                       build.compiler, build.options, build.ucx_compiled, build.ucx_running);
}

Json build_json(const Build& build) {
    return {{"compiler", build.compiler},
            {"options", build.options},
            {"ucx_compiled", build.ucx_compiled},
            {"ucx_running", build.ucx_running}};
}

/// The machine and what this process may use of it.
class MachineReport {
  public:
    /// `named` is the machine that UCG_MACHINE names; it has no cores if the variable is not set.
    MachineReport(topo::Machine machine, topo::Machine named)
        : machine_(std::move(machine)), named_(std::move(named)) {}

    std::string text(bool tree) const {
        std::string text =
            fmt::format("{}  usable by this process: CPUs {}; {} can run at once\n",
                        outline(machine_, tree), topo::format_ranges(cpus_), cpu_count_);
        if (is_named()) {
            text += fmt::format("Ranks are taken to be elsewhere (UCG_MACHINE), the n-th of a host "
                                "on the n-th core\n{}",
                                outline(named_, tree));
        }
        return text;
    }

    Json json() const {
        Json json = counts(machine_);
        json["usable_cpus"] = cpus_;
        json["usable_cpu_count"] = cpu_count_;
        json["named_instead"] = is_named() ? counts(named_) : Json();
        return json;
    }

  private:
    static std::string outline(const topo::Machine& machine, bool tree) {
        const std::string outline = topo::to_outline(machine);
        return tree ? outline : outline.substr(0, outline.find('\n') + 1);
    }

    static Json counts(const topo::Machine& machine) {
        return {{"packages", machine.package_count()},
                {"numa_domains", machine.numa_count()},
                {"l3_groups", machine.l3_count()},
                {"cores", machine.core_count()},
                {"numa_memory_bytes", machine.memory_bytes()}};
    }

    bool is_named() const { return named_.core_count() > 0; }

    topo::Machine machine_;
    topo::Machine named_;
    std::vector<std::uint32_t> cpus_ = topo::usable_cpus();
    unsigned cpu_count_ = topo::usable_cpu_count();
};

/// What shared memory can do here, found by making a heap of which no page is used.
class ShmReport {
  public:
    explicit ShmReport(const capi::Config& config) : enabled_(config.shm_enabled()) {
        shm::HeapOptions options;
        options.capacity_bytes = config.heap_bytes();
        group_.staging_bytes = config.staging_bytes();
        if (const Result<shm::HostFacts> facts = shm::read_host_facts(); !facts) {
            reason_ = facts.status().message();
        }
        const Result<std::unique_ptr<shm::Heap>> heap = shm::Heap::create(options);
        if (heap) {
            capacity_bytes_ = (*heap)->capacity_bytes();
            serves_malloc_ = (*heap)->serves_malloc();
            lacks_huge_pages_ = serves_malloc_ && shared_memory_lacks_huge_pages();
        } else {
            reason_ = heap.status().message();
        }
    }

    std::string text(bool with_footprints) const {
        std::string text = "  shm            ";
        if (!reason_.empty()) {
            return text + fmt::format("not possible: {}\n", reason_);
        }
        text += enabled_ ? "used between ranks of one host\n" : "possible, not used: UCG_TLS\n";
        return text +
               fmt::format("    heap of a process     {}\n"
                           "    serves malloc         {}\n{}"
                           "    memory that is free   {} of {}\n{}",
                           topo::format_bytes(capacity_bytes_),
                           serves_malloc_
                               ? "yes"
                               : "no: libucg_heap.so is not preloaded, or has said why it does not",
                           lacks_huge_pages_ ? kNoHugePages : "",
                           topo::format_bytes(budget_.available), topo::format_bytes(budget_.total),
                           with_footprints ? footprints() : "");
    }

    Json json() const {
        return {{"name", "shm"},
                {"possible", reason_.empty()},
                {"used", enabled_ && reason_.empty()},
                {"reason", reason_},
                {"heap_bytes", capacity_bytes_},
                {"heap_serves_malloc", serves_malloc_},
                {"heap_lacks_huge_pages", lacks_huge_pages_},
                {"memory_available_bytes", budget_.available},
                {"memory_total_bytes", budget_.total},
                {"footprints", footprints_json()}};
    }

  private:
    static constexpr const char* kNoHugePages =
        "    huge pages            not in blocks from malloc: "
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled forbids them (`advise` allows them)\n";

    static constexpr std::array<std::uint32_t, 6> kRanks = {2, 16, 64, 128, 256, 1024};

    /// Returns what groups of some sizes take.
    std::string footprints() const {
        const auto row = [](const auto&... cells) {
            return fmt::format("    {:<7} {:<11} {:<9} {:<14} {:<12} {:<11} {}\n", cells...);
        };
        std::string text =
            "    memory of a group (more: once each pair of ranks has had messages)\n" +
            row("ranks", "first rank", "at most", "all of a host", "page tables", "more",
                "page tables");
        for (const std::uint32_t ranks : kRanks) {
            const transport::ShmFootprint taken = transport::footprint(ranks, group_);
            text += row(
                ranks, topo::format_bytes(taken.bytes_at_first),
                topo::format_bytes(taken.bytes_at_most), topo::format_bytes(taken.host_bytes),
                topo::format_bytes(taken.host_table_bytes), topo::format_bytes(taken.pairs_bytes),
                topo::format_bytes(taken.pairs_table_bytes));
        }
        return text;
    }

    Json footprints_json() const {
        Json json = Json::array();
        for (const std::uint32_t ranks : kRanks) {
            const transport::ShmFootprint taken = transport::footprint(ranks, group_);
            json.push_back({{"ranks", ranks},
                            {"bytes_at_first", taken.bytes_at_first},
                            {"bytes_at_most", taken.bytes_at_most},
                            {"host_bytes", taken.host_bytes},
                            {"host_table_bytes", taken.host_table_bytes},
                            {"pairs_bytes", taken.pairs_bytes},
                            {"pairs_table_bytes", taken.pairs_table_bytes}});
        }
        return json;
    }

    bool enabled_;
    transport::ShmOptions group_;
    std::string reason_; ///< Why memory cannot be shared; empty if it can.
    std::uint64_t capacity_bytes_ = 0;
    bool serves_malloc_ = false;
    bool lacks_huge_pages_ = false;
    shm::MemoryBudget budget_ = shm::memory_budget();
};

/// What UCX offers here, found by opening it as a program would.
class UcxReport {
  public:
    explicit UcxReport(const capi::Config& config)
        : enabled_(config.ucx_enabled()), shm_enabled_(config.shm_enabled()) {
        transport::ucx::UcxOptions options;
        options.short_lane = config.short_lane();
        Result<std::unique_ptr<transport::ucx::UcxWorker>> worker =
            transport::ucx::UcxWorker::create(options);
        if (worker) {
            description_ = (*worker)->describe();
            interfaces_ = (*worker)->interfaces();
        } else {
            reason_ = worker.status().message();
        }
    }

    std::string text() const {
        std::string text = "  ucx            ";
        if (!reason_.empty()) {
            return text + fmt::format("not possible: {}\n", reason_);
        }
        text += !enabled_      ? "possible, not used: UCG_TLS\n"
                : shm_enabled_ ? "used between hosts, and where memory cannot be shared\n"
                               : "used between all ranks: UCG_TLS has no shm\n";
        for (std::size_t begin = 0; begin < description_.size();) {
            const std::size_t end = std::min(description_.find('\n', begin), description_.size());
            text += fmt::format("    {}\n", description_.substr(begin, end - begin));
            begin = end + 1;
        }
        return text;
    }

    Json json() const {
        Json interfaces = Json::array();
        for (const transport::ucx::InterfaceInfo& info : interfaces_) {
            interfaces.push_back({{"transport", info.transport},
                                  {"device", info.device},
                                  {"short_lane", info.usable},
                                  {"reason", info.reason},
                                  {"short_bytes", info.short_bytes},
                                  {"latency_us", info.latency_us}});
        }
        return {{"name", "ucx"},
                {"possible", reason_.empty()},
                {"used", enabled_ && reason_.empty()},
                {"reason", reason_},
                {"interfaces", std::move(interfaces)}};
    }

  private:
    bool enabled_;
    bool shm_enabled_;
    std::string reason_; ///< Why UCX cannot be opened; empty if it can.
    std::string description_;
    std::vector<transport::ucx::InterfaceInfo> interfaces_;
};

/// What is known of the switches between hosts.
class TopologyReport {
  public:
    explicit TopologyReport(const capi::Config& config)
        : found_(capi::load_topology(config.topology())) {}

    std::string text() const {
        std::string text = "  switches       ";
        if (!found_.complaint.empty()) {
            return text + fmt::format("not known: {}\n", found_.complaint);
        }
        if (found_.path.empty()) {
            return text + "not known: no topology file (UCG_TOPOLOGY)\n";
        }
        const std::uint32_t machines = found_.cluster.machine_count();
        return text + fmt::format("{}: {} switch{}{}, {} machine{}; {}\n", found_.path, switches(),
                                  switches() == 1 ? "" : "es", trees(), machines,
                                  machines == 1 ? "" : "s", place());
    }

    Json json() const {
        return {{"file", found_.path},
                {"reason", found_.complaint},
                {"switches", switches()},
                {"machines", found_.cluster.machine_count()},
                {"host", found_.host},
                {"machine",
                 found_.machine ? Json(found_.cluster.machine_name(*found_.machine)) : Json()}};
    }

  private:
    std::string place() const {
        return found_.machine ? "this host is " + found_.cluster.machine_name(*found_.machine)
                              : fmt::format("this host, '{}', is not in it", found_.host);
    }

    std::string trees() const {
        return found_.cluster.is_forest()
                   ? fmt::format(" in {} trees", found_.cluster.children(0).size())
                   : "";
    }

    std::uint32_t switches() const { return found_.cluster.switch_count(); }

    capi::LoadedTopology found_;
};

/// The parts of the report that are wanted. If none is chosen, all but the variables are.
struct Selection {
    bool version = false;
    bool build = false;
    bool tree = false;
    bool transports = false;
    bool costs = false;
    bool config = false;
    bool report = false; ///< All parts, with the system and the environment.

    bool everything() const {
        return report || (!version && !build && !tree && !transports && !costs && !config);
    }
};

class Report {
  public:
    Report(const Selection& selection, capi::Config config, MachineReport machine)
        : selection_(selection), config_(std::move(config)), machine_(std::move(machine)) {}

    std::string text() const {
        const bool all = selection_.everything();
        std::string text;
        if (all || selection_.version) {
            text += version_text();
        }
        if (all || selection_.build) {
            text += build_text(Build());
        }
        if (all || selection_.tree) {
            text += machine_.text(selection_.tree || selection_.report);
        }
        if (all || selection_.transports) {
            const bool with_footprints = selection_.transports || selection_.report;
            text += "Transports\n" + ShmReport(config_).text(with_footprints) +
                    UcxReport(config_).text() + TopologyReport(config_).text();
        }
        if (all || selection_.costs) {
            text += CostsReport(config_).text();
        }
        if (selection_.report) {
            text += SystemReport().text();
        }
        if (selection_.config || selection_.report) {
            text += config_.to_text();
        }
        return text;
    }

    std::string json() const {
        const bool all = selection_.everything();
        Json json = {{"version", ucg_get_version_string()}};
        if (all || selection_.build) {
            json["build"] = build_json(Build());
        }
        if (all || selection_.tree) {
            json["machine"] = machine_.json();
        }
        if (all || selection_.transports) {
            json["transports"] = {ShmReport(config_).json(), UcxReport(config_).json()};
            json["topology"] = TopologyReport(config_).json();
        }
        if (all || selection_.costs) {
            json["costs"] = CostsReport(config_).json();
        }
        if (selection_.report) {
            json.update(SystemReport().json());
        }
        if (selection_.config || selection_.report) {
            json["config"] = config_json();
        }
        // Settings and paths can contain any bytes.
        return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    }

    /// Returns a failure if the library cannot use the profile, since jobs then end without UCG.
    Status costs_status() const { return CostsReport(config_).status(); }

  private:
    /// Returns the lines "UCG_NAME=value" of the text as an object.
    Json config_json() const {
        Json json = Json::object();
        const std::string text = config_.to_text();
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            const std::string line = text.substr(begin, end - begin);
            const std::size_t equals = line.find('=');
            if (line.substr(0, 4) == "UCG_" && equals != std::string::npos) {
                json[line.substr(0, equals)] = line.substr(equals + 1);
            }
            begin = end + 1;
        }
        return json;
    }

    Selection selection_;
    capi::Config config_;
    MachineReport machine_;
};

Status print(const Selection& selection, Format format) {
    Result<capi::Config> config = capi::Config::from_environment();
    if (!config) {
        return config.status();
    }
    set_log_level(config->log_level());
    config->warn_of_unused_variables();
    capi::NamedMachine named = capi::load_machine(config->machine(), 0);
    if (!named.complaint.empty()) {
        return {Code::invalid_argument, named.complaint};
    }
    topo::Machine machine;
    if (selection.everything() || selection.tree) {
        Result<topo::Machine> found = topo::discover_machine();
        if (!found) {
            return found.status();
        }
        machine = std::move(*found);
    }
    const Report report(selection, std::move(*config),
                        MachineReport(std::move(machine), std::move(named.machine)));
    const Status written =
        write_output("-", format == Format::json ? report.json() : report.text());
    return written.ok() && (selection.everything() || selection.costs) ? report.costs_status()
                                                                       : written;
}

} // namespace
} // namespace ucg::tools

int main(int argc, char* argv[]) {
    using namespace ucg::tools;
    CLI::App app("Shows the version and build of UCG, this machine, the transports found on it and "
                 "which of them are used.",
                 "ucg_info");
    Selection selection;
    Format format = Format::text;
    app.add_flag("-v", selection.version, "The version");
    app.add_flag("-b,--build", selection.build, "Compiler, options and UCX versions");
    app.add_flag("-t,--topology", selection.tree, "The machine as a tree");
    app.add_flag("-d,--transports", selection.transports,
                 "The transports, what they can do here and why one is not used; the switches "
                 "between hosts");
    app.add_flag("-c,--costs", selection.costs,
                 "What algorithms are chosen by, and where the figures come from");
    app.add_flag("-f,--config", selection.config, "Every variable UCG_* with value and meaning");
    app.add_flag("--report", selection.report,
                 "All of this, with the system, limits and the variables UCG_*, UCX_*, OMPI_MCA_* "
                 "and PMIX_MCA_* that are set: what a report of a fault needs");
    add_format_option(app, format, {Format::text, Format::json});
    app.footer(
        "Without one of the flags -v, -b, -t, -d, -c, -f, --report: all but the variables, and the "
        "machine on one line. -f is what ucx_info prints with -c -f; algorithms and datatypes: "
        "ucg_plan list, ucg_perftest --help.\n"
        "Exit status: 0 done, 1 failed (a variable with a wrong value too), 2 wrong "
        "usage.\n"
        "Examples:\n"
        "  ucg_info\n"
        "  ucg_info -f | grep -B2 UCG_TLS\n"
        "  ucg_info --report > ucg-report.txt\n"
        "  UCG_TLS=shm UCX_TLS=tcp ucg_info -d\n"
        "  ucg_info --format json");
    return run(app, argc, argv, [&] { return print(selection, format); });
}
