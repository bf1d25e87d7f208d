#include "perf/perftest/breakdown/mpi.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "perf/perftest/breakdown/ucp.hpp"

namespace ucg::perftest::breakdown {

namespace {

Component component(const MpiFigures& figures, std::string name, double ns, std::string note) {
    return {.name = std::move(name),
            .category = Category::hlp,
            .ns = std::max(0.0, ns),
            .samples = figures.samples,
            .note = std::move(note)};
}

/// Returns equation 2: the posts of all levels, then what completes them.
Comparison injection(const MpiFigures& figures, const Rounds& rounds) {
    const double ucp_post = rounds.component(part::kUcpPostStream, Category::hlp).ns;
    InjectionParts parts;
    for (const Term& term : upper_injection(rounds).model.terms) {
        if (term.component.name != part::kUcpCompletion) {
            parts.post.push_back(term.component);
        }
    }
    parts.post.push_back(component(figures, "HLP_post, MPI, in a window",
                                   figures.window_isend_ns - ucp_post,
                                   "MPI_Isend less ucp_tag_send_nbx"));
    parts.progress = {component(figures, "Post_prog, MPI", figures.window_waitall_ns,
                                "MPI_Waitall, for each message")};
    return {injection_model("Injection, MPI", parts),
            component(figures, "MPI_Isend and MPI_Waitall", figures.window_ns, "64 of them")};
}

} // namespace

ucg::Result<MpiFigures> parse_mpi_figures(std::string_view json) {
    try {
        const nlohmann::json all = nlohmann::json::parse(json);
        return MpiFigures{.library = all.at("library").get<std::string>(),
                          .samples = all.at("samples").get<std::uint64_t>(),
                          .isend_ns = all.at("isend_ns").get<double>(),
                          .wait_ns = all.at("wait_ns").get<double>(),
                          .window_isend_ns = all.at("window_isend_ns").get<double>(),
                          .window_waitall_ns = all.at("window_waitall_ns").get<double>(),
                          .window_ns = all.at("window_ns").get<double>(),
                          .latency_ns = all.at("latency_ns").get<double>()};
    } catch (const std::exception& error) {
        return failure(Code::invalid_argument, "not what mpi_breakdown prints: {}", error.what());
    }
}

Section mpi_section(const MpiFigures& figures, const LowerKind& kind, const Rounds& rounds) {
    const Section below = upper_section(kind, rounds);
    const double ucp_post = rounds.component(part::kUcpPost, Category::hlp).ns;
    const double ucp_progress = rounds.component(part::kUcpProgress, Category::hlp).ns;
    const Component post = component(figures, "HLP_post, MPI", figures.isend_ns - ucp_post,
                                     "MPI_Isend less ucp_tag_send_nbx");
    const Component progress =
        component(figures, "HLP_rx_prog, MPI", figures.wait_ns - ucp_progress,
                  "MPI_Wait less ucp_worker_progress; with what precedes that");
    Section section{.title = figures.library + " over UCP and " + kind.transport, .components = {}};
    section.components = {
        component(figures, "MPI_Isend", figures.isend_ns, "in a ping-pong"),
        component(figures, "MPI_Wait, successful", figures.wait_ns, "of an MPI_Irecv"),
        component(figures, "MPI_Isend in a window", figures.window_isend_ns, "64 of them"),
        component(figures, "MPI_Waitall, per message", figures.window_waitall_ns, "64 of them"),
        post,
        progress};
    TimeModel model = below.comparisons.front().model;
    model.name = "Latency, MPI";
    model.terms.insert(model.terms.begin(), {post});
    model.terms.push_back({progress});
    section.comparisons = {
        {std::move(model), component(figures, "MPI latency", figures.latency_ns, {})},
        injection(figures, rounds)};
    return section;
}

} // namespace ucg::perftest::breakdown
