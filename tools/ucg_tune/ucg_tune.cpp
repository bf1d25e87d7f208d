// ucg_tune: measures the machine at hand and writes the profile that plans are chosen by.

#include "tools/cli.hpp"
#include "tools/ucg_tune/import_command.hpp"
#include "tools/ucg_tune/memory_figures.hpp"
#include "tools/ucg_tune/memory_probe.hpp"
#include "tools/ucg_tune/memory_report.hpp"
#include "tools/ucg_tune/network_command.hpp"
#include "tools/ucg_tune/output.hpp"
#include "topo/topo.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/cost/profile_origin.hpp"

namespace ucg::tools {

namespace {

class MemoryCommand {
  public:
    explicit MemoryCommand(CLI::App& parent)
        : app_(*parent.add_subcommand(
              "memory", "Measure what the cores of this node take to read one another's memory, to "
                        "copy and to reduce, and write it to the profile")) {
        target_.add_options(app_);
        add_format_option(app_, format_, {Format::text, Format::json, Format::toml});
        app_.add_option("--time", options_.seconds,
                        fmt::format("About how long to measure, 0.1 to 3600 (default: {})",
                                    capi::kTuneSeconds))
            ->type_name("SECONDS")
            ->transform(real_number(0.1, 3600));
        app_.add_flag("--quick", options_.quick,
                      "A second, short vectors only: to see that it works. What needs more keeps "
                      "its default");
        app_.add_option("--plot", plot_, "Draw what was measured and the fitted lines (gnuplot)")
            ->type_name("FILE.svg");
        app_.add_flag("-q,--no-progress", silent_, "Say nothing on standard error meanwhile");
        app_.parse_complete_callback(
            [this] { check_outputs(app_, target_.output(), format_, plot_); });
        app_.footer(kDescription);
    }

    bool is_chosen() const { return app_.parsed(); }

    Status run() {
        const Result<std::string> named = target_.path();
        if (!named.ok()) {
            return named.status();
        }
        const std::string& path = *named;
        // The output is checked before measuring for seconds.
        if (Status status = target_.prepare(path); !status.ok()) {
            return status;
        }
        if (Status status = check_output(plot_); !status.ok()) {
            return status;
        }
        const Result<ExistingProfile> base = existing_profile(path);
        const Result<topo::Machine> machine = topo::discover_machine();
        if (!base.ok() || !machine.ok()) {
            return base.ok() ? machine.status() : base.status();
        }
        if (Status status = refuse_foreign(*base, target_, path); !status.ok()) {
            return status;
        }
        const Result<ProbeResult> result = probe(*machine);
        return result.ok() ? write(*result, profile_here(*base), *machine, path) : result.status();
    }

  private:
    static constexpr const char* kDescription =
        "For each distance between two CPUs that this process may use (core, cache, numa, "
        "package,\n"
        "host), processes bound to them measure over real shared memory:\n"
        "  a         ns for a cache line, a flag, from one core to another\n"
        "  b         ns per byte for one core to read what another wrote\n"
        "  B         ns per byte and reader for several at once, where there are three CPUs\n"
        "Then how much of the last-level cache (l3) a core has for itself, by copies within ever\n"
        "longer sets; l3_part is half of that, but at most sixteen times the L2. Then for each\n"
        "cache and memory: copying, reducing 2, 4 and 8 vectors, copying to lines that another\n"
        "core holds by ordinary stores and past the caches; the kernel's copy between processes\n"
        "(CMA); giving the CPU to another process, and waking one that sleeps.\n"
        "\n"
        "Then two processes send each other messages by the library's own transport: LogGP\n"
        "(latency, overhead, gap, gap per byte) for each distance; and, with a CPU each and both\n"
        "on one, messages through rings of several sizes, from where they lie in a shared\n"
        "segment, by one end or both, and by the kernel: one way and exchanged, just written and\n"
        "not. A length from which on another way is taken is the first of a short list from which\n"
        "on that way hardly loses at any (5 %), so that a machine comes to the same ones again.\n"
        "Where ranks share processors, both the times on one CPU and those of exchanges between\n"
        "two CPUs, which keep both busy, decide.\n"
        "\n"
        "Each round lies between two measurements of a cache line. Rounds in which that took more\n"
        "than 1.3 times its best, or twice what it took before the first, are repeated and left\n"
        "out: a virtual machine's CPUs may move apart. What messages cost and how they are copied\n"
        "is not measured where there are no others, nor where a line takes three times what the\n"
        "built-in costs say of CPUs that share a cache, as the system says they do. Let the\n"
        "machine be idle: the report shows quartiles. A profile holds for machines of one kind; "
        "all\n"
        "ranks of a job must read the same. What is not measured is marked \"default\" in the\n"
        "report, \"measured = false\" in the profile. If FILE exists, what it says of other costs\n"
        "stays; of the network alone, if it was measured on another kind of processor. Without\n"
        "--output a profile of another kind of processor is not replaced, for hosts of that kind\n"
        "may share the folder: name another file, and set UCG_PROFILE on the hosts of this kind.\n"
        "\n"
        "Report and profile state the error of each figure. Of one that a line was fitted for it "
        "is\n"
        "the root mean square of how far medians lie from the line, relative to them; of one that "
        "is\n"
        "a median itself, half the distance between quartiles. At the end they name all "
        "thresholds\n"
        "and rates that decide and were not measured, with the reason.\n"
        "\n"
        "UCG reads the file that UCG_PROFILE names, else ucg/profile.toml in $XDG_CONFIG_HOME or\n"
        "$HOME/.config, else, in each folder of $XDG_CONFIG_DIRS (default: /etc/xdg),\n"
        "ucg/profiles/PROCESSOR.toml, which --system writes, or ucg/profile.toml. \"ucg_info -c\"\n"
        "prints the whole paths.\n"
        "\n"
        "Exit status: 0 done, 1 failed (a malformed FILE too), 2 wrong usage.\n"
        "\n"
        "Examples:\n"
        "  ucg_tune memory\n"
        "  sudo ucg_tune memory --system\n"
        "  ucg_tune memory --time 60 --plot memory.svg -o node.toml\n"
        "  mpirun -x UCG_PROFILE=$PWD/node.toml ./app\n"
        "  ucg_tune memory --quick -o - | ucg_plan explain --profile - "
        "--collective allreduce --ranks 2 --bytes 8";

    Result<ProbeResult> probe(const topo::Machine& machine) {
        if (options_.quick && app_.count("--time") == 0) {
            options_.seconds = 1;
        }
        if (!silent_) {
            options_.progress = [](const std::string& what) {
                std::fprintf(stderr, "ucg_tune: measuring %s\n", what.c_str());
            };
        }
        // An earlier profile may be of another machine, and is no better a default than what is
        // built in.
        return probe_memory(machine, topo::usable_cpus(),
                            cost::builtin_costs(topo::this_processor()).profile.memory, options_);
    }

    Status write(const ProbeResult& result, const cost::Profile& base, const topo::Machine& machine,
                 const std::string& path) {
        const cost::Profile tuned = tuned_profile(result, base);
        const std::string outline = topo::to_outline(machine);
        const std::string toml =
            to_profile_toml(result, tuned,
                            fmt::format("ucg_tune memory --time {}{}", options_.seconds,
                                        options_.quick ? " --quick" : ""),
                            outline.substr(0, outline.find('\n'))) +
            cost::origin_toml(cost::processor_text(topo::this_processor()));
        const std::string report = format_ == Format::json   ? to_json(result, tuned)
                                   : format_ == Format::toml ? toml
                                                             : to_text(result, tuned);
        const Status written = write_results(path, toml, report, silent_);
        return plot_.empty() || !written.ok() ? written : draw(to_gnuplot(result, plot_));
    }

    CLI::App& app_;
    Target target_;
    std::string plot_;
    Format format_ = Format::text;
    bool silent_ = false;
    ProbeOptions options_;
};

} // namespace
} // namespace ucg::tools

int main(int argc, char* argv[]) {
    using namespace ucg::tools;
    CLI::App app("Measures this machine and writes the cost profile by which UCG chooses "
                 "algorithms.",
                 "ucg_tune");
    app.require_subcommand(1);
    app.footer("Exit status: 0 done, 1 failed, 2 wrong usage. \"ucg_tune COMMAND --help\" says "
               "what is measured and has examples.");
    MemoryCommand memory(app);
    NetworkCommand network(app);
    ImportCommand import(app);
    return run(app, argc, argv, [&] {
        return memory.is_chosen()    ? memory.run()
               : network.is_chosen() ? network.run()
                                     : import.run();
    });
}
