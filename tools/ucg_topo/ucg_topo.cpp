// ucg_topo: shows what the planner knows of a machine, of ranks placed on it, and of the network
// between machines.
#include <limits>

#include "tools/cli.hpp"
#include "tools/ucg_topo/cluster_command.hpp"
#include "tools/ucg_topo/json.hpp"
#include "topo/topo.hpp"

namespace ucg::tools {

namespace {

// Where a machine comes from: one of three descriptions, else this machine.
class Source {
  public:
    void add_options(CLI::App& app) {
        CLI::Option_group& group =
            *app.add_option_group("Machine", "This one unless another is given");
        group.add_option("--synthetic", synthetic_,
                         "hwloc's description, for example \"package:2 l3:4 core:8 pu:2\"");
        group
            .add_option("--xml", xml_path_, "File from \"lstopo --of xml\"; \"-\": standard input")
            ->type_name("FILE");
        group
            .add_option("--machine-file", machine_path_,
                        "File from \"ucg_topo convert\"; \"-\": standard input")
            ->type_name("FILE");
        group.require_option(0, 1);
    }

    bool is_given() const {
        return !synthetic_.empty() || !xml_path_.empty() || !machine_path_.empty();
    }

    Result<topo::Machine> load() const {
        if (!synthetic_.empty()) {
            return topo::machine_from_synthetic(synthetic_);
        }
        if (!xml_path_.empty()) {
            return parse_file(xml_path_, topo::machine_from_xml);
        }
        if (!machine_path_.empty()) {
            return parse_file(machine_path_, topo::parse_machine);
        }
        return topo::discover_machine();
    }

  private:
    template <typename Parse>
    static Result<topo::Machine> parse_file(const std::string& path, Parse parse) {
        const Result<std::string> text = read_input(path);
        if (!text) {
            return text.status();
        }
        Result<topo::Machine> machine = parse(*text);
        return machine ? machine : in_file(path, machine.status());
    }

    std::string synthetic_;
    std::string xml_path_;
    std::string machine_path_;
};

std::string dump(const Json& json) {
    return json.dump(2) + "\n";
}

// What this process may use of this machine.
struct Process {
    std::vector<std::uint32_t> cpus = topo::usable_cpus();
    unsigned usable_count = topo::usable_cpu_count();
};

std::string describe(const Process& process, const topo::Machine& machine) {
    const topo::Place place = machine.place_of(process.cpus);
    return fmt::format("This process: CPUs {}; {} can run at once; bound within one {}\n",
                       topo::format_ranges(process.cpus), process.usable_count,
                       topo::name(place.known));
}

Json process_json(const Process& process, const topo::Machine& machine) {
    return {{"cpus", process.cpus},
            {"usable_cpu_count", process.usable_count},
            {"place", to_json(machine.place_of(process.cpus))}};
}

class ShowCommand {
  public:
    explicit ShowCommand(CLI::App& parent)
        : app_(*parent.add_subcommand("show", "Show a machine; this one unless another is given")) {
        source_.add_options(app_);
        add_format_option(app_, format_, {Format::text, Format::json, Format::dot});
        app_.footer("Examples:\n"
                    "  ucg_topo show\n"
                    "  ucg_topo show --synthetic \"package:2 l3:4 core:8 pu:2\"\n"
                    "  ucg_topo show --xml node.xml --format dot | dot -Tsvg > node.svg");
    }

    bool is_chosen() const { return app_.parsed(); }

    Status run() const {
        const Result<topo::Machine> machine = source_.load();
        return machine ? write_output("-", print(*machine)) : machine.status();
    }

  private:
    std::string print(const topo::Machine& machine) const {
        if (format_ == Format::dot) {
            return topo::to_dot(machine);
        }
        if (format_ == Format::json) {
            Json json = {{"machine", to_json(machine)}};
            if (!source_.is_given()) {
                json["process"] = process_json(Process(), machine);
            }
            return dump(json);
        }
        return topo::to_outline(machine) + (source_.is_given() ? "" : describe(Process(), machine));
    }

    CLI::App& app_;
    Source source_;
    Format format_ = Format::text;
};

class ConvertCommand {
  public:
    explicit ConvertCommand(CLI::App& parent)
        : app_(*parent.add_subcommand(
              "convert", "Write a machine (this one unless another is given) as a file that "
                         "--machine-file reads")) {
        source_.add_options(app_);
        add_format_option(app_, format_, {Format::text, Format::json, Format::dot});
        app_.add_option("-o,--output", output_,
                        "File to write; \"-\", the default: standard output")
            ->type_name("FILE");
        app_.footer("Examples:\n"
                    "  ucg_topo convert -o this.machine\n"
                    "  lstopo --of xml | ucg_topo convert --xml - -o node.machine");
    }

    bool is_chosen() const { return app_.parsed(); }

    Status run() const {
        const Result<topo::Machine> machine = source_.load();
        return machine ? write_output(output_, print(*machine)) : machine.status();
    }

  private:
    std::string print(const topo::Machine& machine) const {
        if (format_ == Format::dot) {
            return topo::to_dot(machine);
        }
        return format_ == Format::json ? dump({{"machine", to_json(machine)}})
                                       : topo::to_text(machine);
    }

    CLI::App& app_;
    Source source_;
    Format format_ = Format::text;
    std::string output_ = "-";
};

class PlacementCommand {
  public:
    explicit PlacementCommand(CLI::App& parent)
        : app_(*parent.add_subcommand(
              "placement", "Place ranks on hosts that are all alike, or check and show a "
                           "placement file; without a machine, hosts alone are known")) {
        CLI::Option* file = app_.add_option("--file", path_,
                                            "Placement to read, one line per rank as --format text "
                                            "prints; \"-\": standard input");
        file->type_name("FILE");
        const CLI::Validator count = whole_number(1, kRanksMax);
        CLI::Option* hosts = app_.add_option("--hosts", hosts_, "Hosts");
        hosts->transform(count)->type_name("N")->excludes(file);
        CLI::Option* ranks = app_.add_option("--ranks-per-host", ranks_per_host_, "Ranks on each");
        ranks->transform(count)->type_name("N")->excludes(file);
        app_.parse_complete_callback([this, ranks] { check_counts(*ranks); });
        using topo::MapBy;
        add_choice_option(app_, "--map", map_by_,
                          {MapBy::core, MapBy::cache, MapBy::numa, MapBy::package, MapBy::host},
                          "What consecutive ranks go round over");
        app_.add_flag("--this-machine", this_machine_, "The hosts are like this machine");
        app_.add_flag("--unbound", unbound_,
                      "Ranks are bound to no core: each may run wherever this process may, as the "
                      "library finds them under \"mpirun --bind-to none\"; implies --this-machine")
            ->excludes(file);
        source_.add_options(app_);
        add_format_option(app_, format_,
                          {Format::text, Format::outline, Format::json, Format::dot});
        app_.footer(
            "Examples:\n"
            "  ucg_topo placement --hosts 2 --ranks-per-host 24 \\\n"
            "    --synthetic \"package:2 l3:2 core:6 pu:1\" --map package --format outline\n"
            "  ucg_topo placement --hosts 1000 --ranks-per-host 128 > ranks.txt\n"
            "  ucg_topo placement --file ranks.txt --format json");
    }

    bool is_chosen() const { return app_.parsed(); }

    Status run() const {
        const Result<topo::Placement> placement = path_.empty() ? make() : read();
        return placement ? write_output("-", print(*placement)) : placement.status();
    }

  private:
    // Checks what CLI11's own checks cannot see. A part of parsing, so that it counts as wrong
    // usage.
    void check_counts(const CLI::Option& ranks) const {
        if (path_.empty() && ranks.count() == 0) {
            throw CLI::RequiredError("--ranks-per-host or --file");
        }
        if (std::int64_t{hosts_} * ranks_per_host_ > std::int64_t{kRanksMax}) {
            throw CLI::ValidationError("--hosts", fmt::format("expected at most {} ranks in all, "
                                                              "found {} times {}",
                                                              kRanksMax, hosts_, ranks_per_host_));
        }
        if (unbound_ && source_.is_given()) {
            throw CLI::ValidationError("--unbound",
                                       "tells of this machine, not of a described one");
        }
    }

    Result<topo::Placement> read() const {
        const Result<std::string> text = read_input(path_);
        if (!text) {
            return text.status();
        }
        Result<topo::Placement> placement = topo::parse_placement(*text);
        return placement ? placement : in_file(path_, placement.status());
    }

    Result<topo::Placement> make() const {
        const bool has_machine = source_.is_given() || this_machine_ || unbound_;
        const Result<topo::Machine> machine = has_machine ? source_.load() : topo::Machine();
        if (!machine) {
            return machine.status();
        }
        return unbound_ ? unbound(machine->place_of(topo::usable_cpus()))
                        : topo::map_ranks(*machine, hosts_, ranks_per_host_, map_by_);
    }

    // Returns a placement of every rank at `place` on its host.
    topo::Placement unbound(topo::Place place) const {
        std::vector<topo::Place> places;
        places.reserve(static_cast<std::size_t>(hosts_) *
                       static_cast<std::size_t>(ranks_per_host_));
        for (Rank host = 0; host < hosts_; ++host) {
            place.host = static_cast<std::uint32_t>(host);
            places.insert(places.end(), static_cast<std::size_t>(ranks_per_host_), place);
        }
        return topo::Placement(places);
    }

    std::string print(const topo::Placement& placement) const {
        switch (format_) {
        case Format::outline: return topo::to_outline(placement);
        case Format::json: return dump({{"placement", to_json(placement)}});
        case Format::dot: return topo::to_dot(placement);
        case Format::text:
        case Format::toml: break; // These are not offered.
        }
        return topo::to_text(placement);
    }

    CLI::App& app_;
    Source source_;
    std::string path_;
    Rank hosts_ = 1;
    Rank ranks_per_host_ = 1;
    topo::MapBy map_by_ = topo::MapBy::core;
    bool this_machine_ = false;
    bool unbound_ = false;
    Format format_ = Format::text;
};

} // namespace
} // namespace ucg::tools

int main(int argc, char* argv[]) {
    using namespace ucg::tools;
    CLI::App app(
        "Shows what UCG's planner sees of a machine, of the ranks placed on it, and of the "
        "switches between machines.",
        "ucg_topo");
    app.require_subcommand(1);
    app.footer("Exit status: 0 done, 1 failed, 2 wrong usage. \"ucg_topo COMMAND --help\" has "
               "examples.");
    ShowCommand show(app);
    ConvertCommand convert(app);
    PlacementCommand placement(app);
    ClusterCommand cluster(app);
    return run(app, argc, argv, [&] {
        if (show.is_chosen()) {
            return show.run();
        }
        if (convert.is_chosen()) {
            return convert.run();
        }
        return cluster.is_chosen() ? cluster.run() : placement.run();
    });
}
