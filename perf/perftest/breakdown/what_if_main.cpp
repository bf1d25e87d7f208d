// The command `ucg_perftest what-if`: prints curves from what a breakdown has written.
#include "perf/perftest/breakdown/breakdown.hpp"
#include "perf/perftest/breakdown/report.hpp"
#include "perf/perftest/breakdown/what_if.hpp"
#include "tools/cli.hpp"

namespace ucg::perftest {

namespace {

using namespace breakdown;

struct WhatIfOptions {
    std::string file;
    std::string component;
    std::string collective;
    std::string algorithm;
    Rank ranks = 8;
    std::string svg_file;
};

ucg::Result<graph::Collective> collective_named(const std::string& text) {
    for (const graph::Collective collective :
         {graph::Collective::barrier, graph::Collective::bcast, graph::Collective::reduce,
          graph::Collective::allreduce, graph::Collective::allgather,
          graph::Collective::alltoall}) {
        if (graph::name(collective) == text) {
            return collective;
        }
    }
    return failure(Code::invalid_argument,
                   "--collective: expected one of barrier, bcast, reduce, allreduce, allgather, "
                   "alltoall; found {}",
                   text);
}

/// Returns the model of an active message's latency, by which a collective's messages travel.
const TimeModel* message_latency(const Findings& findings) {
    for (const Section& section : findings.sections) {
        for (const Comparison& comparison : section.comparisons) {
            if (comparison.model.name.find("am_lat") != std::string::npos) {
                return &comparison.model;
            }
        }
    }
    return nullptr;
}

Status add_collective(const WhatIfOptions& options, const Findings& findings,
                      std::vector<Curve>& curves) {
    const ucg::Result<graph::Collective> collective = collective_named(options.collective);
    if (!collective) {
        return collective.status();
    }
    const TimeModel* latency = message_latency(findings);
    if (latency == nullptr) {
        return failure(Code::invalid_argument, "{}: it has no latency of active messages",
                       options.file);
    }
    ucg::Result<std::vector<Curve>> found =
        collective_curves(prices_of(*latency), *collective, options.ranks, options.algorithm);
    if (!found) {
        return found.status();
    }
    curves.insert(curves.end(), found->begin(), found->end());
    return {};
}

Status run_what_if(const WhatIfOptions& options) {
    const ucg::Result<std::string> text = tools::read_input(options.file);
    if (!text) {
        return text.status();
    }
    const ucg::Result<Findings> findings = parse_findings(*text);
    if (!findings) {
        return tools::in_file(options.file, findings.status());
    }
    std::vector<Curve> curves;
    for (const Section& section : findings->sections) {
        for (const Comparison& comparison : section.comparisons) {
            for (Curve& curve : curves_of(comparison.model)) {
                curves.push_back(std::move(curve));
            }
        }
    }
    if (!options.collective.empty()) {
        if (Status status = add_collective(options, *findings, curves); !status.ok()) {
            return status;
        }
    }
    std::erase_if(curves, [&](const Curve& curve) {
        return curve.component.find(options.component) == std::string::npos;
    });
    if (curves.empty()) {
        return failure(Code::invalid_argument, "{}: no component is called '{}'", options.file,
                       options.component);
    }
    if (Status status = tools::write_output("-", curves_text(curves)); !status.ok()) {
        return status;
    }
    return options.svg_file.empty() ? Status()
                                    : tools::write_output(options.svg_file, curves_svg(curves, ""));
}

} // namespace

int what_if_main(int argc, const char* const* argv) {
    CLI::App app("What would be gained if a component took less time: by the models of a "
                 "breakdown, and for a whole collective by the simulator",
                 "ucg_perftest what-if");
    WhatIfOptions options;
    app.add_option("FILE", options.file,
                   "What ucg_perftest breakdown --json has written; -: "
                   "standard input")
        ->required();
    app.add_option("--component", options.component, "Only components with this in their names")
        ->type_name("TEXT");
    app.add_option("--collective", options.collective,
                   "Also a collective of 8 bytes, by messages that cost what am_lat's do")
        ->type_name("NAME");
    app.add_option("--algorithm", options.algorithm,
                   "As ucg_plan list names it (default: the planner's choice)")
        ->type_name("NAME");
    app.add_option("--ranks", options.ranks, "Of the collective, on one host")
        ->transform(tools::whole_number(2, 4096))
        ->type_name("COUNT")
        ->capture_default_str();
    app.add_option("--svg", options.svg_file, "Draws the curves")->type_name("FILE");
    app.footer("Exit status: 0 done, 1 failed, 2 wrong usage.\n"
               "\n"
               "Examples:\n"
               "  ucg_perftest what-if posix.json --component post --svg post.svg\n"
               "  ucg_perftest breakdown --json - | ucg_perftest what-if - --collective allreduce "
               "--ranks 64");
    return tools::run(app, argc, argv, [&] { return run_what_if(options); });
}

} // namespace ucg::perftest
