// The models of Zambre, Grodowitz, Chandramowlishwaran and Shamis, "Breaking Band: A Breakdown of
// High-performance Communication" (ICPP 2019): what injecting a message costs, and how long it
// takes, put together from components that were measured one at a time. Pure values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ucg::perftest::breakdown {

/// Where a component's time passes: the paper's figure 15, software by its two levels.
enum class Category : std::uint8_t {
    llp,     ///< The low-level protocol: UCT, or what a collective's transport does.
    hlp,     ///< The high-level protocols above: UCP, MPI, a collective's lookup and engine.
    misc,    ///< What a benchmark does between two messages.
    io,      ///< Between processor, adapter and memory.
    network, ///< Between the two ends: a wire, a switch, a cache line's transfer, a kernel.
};
std::string_view name(Category category);

/// A component as it was measured. All times are without what measuring costs.
struct Component {
    std::string name;
    Category category = Category::llp;
    double ns = 0;           ///< The median of the rounds' means.
    double deviation_ns = 0; ///< The standard deviation of the rounds' means.
    std::uint64_t samples = 0;
    std::string note = {}; ///< How it was measured, in words.
};

/// A component that happens `times` times for each message, or less than once.
struct Term {
    Component component;
    double times = 1;

    double ns() const { return component.ns * times; }
};

/// A time that is the sum of its terms, none of which overlaps another.
struct Model {
    std::string name;
    std::vector<Term> terms;

    double total_ns() const;
    double total_ns(Category category) const;
};

/// The same model with a component, or all of a category, reduced by a fraction of itself; a
/// negative one prolongs it. Components that are not named stay as they are.
Model with_reduction(const Model& model, std::string_view component, double fraction);
Model with_reduction(const Model& model, Category category, double fraction);

/// How much earlier, as a fraction of `before`.
inline double improvement(double before_ns, double after_ns) {
    return (before_ns - after_ns) / before_ns;
}

/// How far a model is from what was observed, as a fraction of the latter.
inline double error_of(double modelled_ns, double observed_ns) {
    return (modelled_ns - observed_ns) / observed_ns;
}

/// What sending one message after another costs its sender, without (equation 1) or with
/// (equation 2) the levels above UCT.
struct InjectionParts {
    std::vector<Component> post;     ///< LLP_post, and HLP_post.
    std::vector<Component> progress; ///< LLP_prog and HLP_tx_prog, per completion.
    /// c: so many messages are completed by one completion; 0: they complete as they are posted.
    double messages_per_completion = 1;
    std::vector<Term> misc; ///< Busy posts, the benchmark's own updates.
};
Model injection_model(std::string name, const InjectionParts& parts);

/// Equation 1's assumption: so many posts between two polls at least, lest the sender wait for the
/// completion of one. 0 where messages complete as they are posted.
double posts_per_poll_min(double gen_completion_ns, double post_ns);

/// What a message takes from the call that sends it until its receiver may use it.
struct LatencyParts {
    std::vector<Component> post;     ///< HLP_post and LLP_post.
    std::vector<Term> path;          ///< I/O and network: in the paper 2 PCIe, network, RC-to-MEM.
    std::vector<Component> progress; ///< LLP_prog and HLP_rx_prog.
};
Model latency_model(std::string name, const LatencyParts& parts);

/// What was observed, against a model of it.
struct Comparison {
    Model model;
    Component observed;
    /// What the model lacks, named and measured, where its error asks for one.
    std::vector<Term> missing = {};

    double error() const { return error_of(model.total_ns(), observed.ns); }
    double error_with_missing() const;
};

} // namespace ucg::perftest::breakdown
