#include "tools/ucg_tune/import_command.hpp"

#include <cstdio>
#include <iterator>

#include "ucg_coll/cost/profile_origin.hpp"

namespace ucg::tools {

namespace {

constexpr const char* kImportDescription =
    "Describes a machine by what stock ucx_perftest printed there, without UCG: run the batch "
    "file\n"
    "calibrate (share/ucg/calibrate of an installation) between two processes at one distance, as\n"
    "its first lines say, and give the client's output. What it says of that level goes to the\n"
    "profile:\n"
    "  latency           from a line through am_lat (or ucp_am_lat) of several sizes, their "
    "median\n"
    "  gap, overhead     from the shortest messages of am_bw (or ucp_am_bw): the time from one to\n"
    "                    the next; the processor's part is taken to be half of it, at most\n"
    "  gap per byte      from the slope of ucp_put_bw (or ucp_am_bw) of several long sizes\n"
    "Of the network both the postal form and LogGP; its best times from results of -R 0, given as\n"
    "a second file. Errors are the root mean square of how far results lie from the line, "
    "relative\n"
    "to them. The report names all that cannot come from there, and what measures it. If the "
    "profile\n"
    "exists, what it says of other costs stays.\n"
    "\n"
    "Exit status: 0 done, 1 failed (malformed results too), 2 wrong usage.\n"
    "\n"
    "Examples:\n"
    "  ucx_perftest -b calibrate -x tcp -d eth0 -v -f                 # on node0, UCX_TLS=tcp\n"
    "  ucx_perftest node0 -b calibrate -x tcp -d eth0 -v -f > tcp.csv # on node1, UCX_TLS=tcp\n"
    "  ucg_tune import-ucx-perftest tcp.csv -o node.toml\n"
    "  ucg_tune import-ucx-perftest --level cache posix.csv -o node.toml\n"
    "  ucg_tune import-ucx-perftest median.csv best.csv -o - | ucg_plan explain --profile - "
    "--collective allreduce --ranks 2 --bytes 8";

const std::vector<topo::Distance> kLevels = {topo::Distance::network, topo::Distance::core,
                                             topo::Distance::cache,   topo::Distance::numa,
                                             topo::Distance::package, topo::Distance::host};

} // namespace

ImportCommand::ImportCommand(CLI::App& parent)
    : app_(*parent.add_subcommand("import-ucx-perftest",
                                  "Read what stock ucx_perftest measured, and write it to the "
                                  "profile")) {
    app_.add_option(
            "FILE", files_,
            "Outputs of ucx_perftest -v -b; \"-\": standard input. One with the medians, and, if "
            "there is one, one with the best times (-R 0)")
        ->type_name("")
        ->required()
        ->expected(-1);
    add_choice_option(app_, "--level", level_, kLevels, "How far apart its processes were");
    target_.add_options(app_);
    add_format_option(app_, format_, {Format::text, Format::toml});
    app_.parse_complete_callback([this] { check_outputs(app_, target_.output(), format_, ""); });
    app_.footer(kImportDescription);
}

Result<std::vector<PerftestRow>> ImportCommand::read() const {
    std::vector<PerftestRow> all;
    for (const std::string& file : files_) {
        const Result<std::string> text = read_input(file);
        if (!text.ok()) {
            return text.status();
        }
        Result<std::vector<PerftestRow>> rows = parse_perftest(*text);
        if (!rows.ok()) {
            return in_file(file, rows.status());
        }
        all.insert(all.end(), std::make_move_iterator(rows->begin()),
                   std::make_move_iterator(rows->end()));
    }
    return all;
}

Status ImportCommand::run() {
    const Result<std::string> path = target_.path();
    if (!path.ok()) {
        return path.status();
    }
    if (Status status = target_.prepare(*path); !status.ok()) {
        return status;
    }
    const Result<std::vector<PerftestRow>> rows = read();
    if (!rows.ok()) {
        return rows.status();
    }
    const Result<Import> import = import_perftest(*rows, level_);
    if (!import.ok()) {
        return import.status();
    }
    const Result<ExistingProfile> base = existing_profile(*path);
    return base.ok() ? write(*import, *base, *path) : base.status();
}

Status ImportCommand::write(const Import& import, const ExistingProfile& base,
                            const std::string& path) const {
    const cost::Profile profile = imported_profile(import, base.profile);
    const std::vector<FigureReport> figures = report_import(import, profile);
    const std::string toml =
        fmt::format("# Written by: ucg_tune import-ucx-perftest --level {}\n", topo::name(level_)) +
        sources_text(import, "# ") + errors_toml(figures) + cost::to_toml(profile) +
        cost::origin_toml(base.measured_on);
    const std::string report = format_ == Format::toml
                                   ? toml
                                   : sources_text(import, "") + "\n" + known_text(figures) + "\n" +
                                         unknown_text(figures, "");
    Status written = write_results(path, toml, report, false);
    if (written.ok() && path != "-") {
        tell_foreign(base, path);
    }
    return written;
}

} // namespace ucg::tools
