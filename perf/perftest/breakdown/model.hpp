// The models of Zambre, Grodowitz, Chandramowlishwaran and Shamis, "Breaking Band: A Breakdown of
// High-performance Communication" (ICPP 2019): the cost of injecting a message, and its latency, as
// sums of components that were measured one at a time. Pure values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ucg::perftest::breakdown {

/// Where a component's time is spent: the categories of the paper's figure 15, with software split
/// into its two levels.
enum class Category : std::uint8_t {
    llp,     ///< The low-level protocol: UCT, or a collective's transport.
    hlp,     ///< The high-level protocols above: UCP, MPI, a collective's lookup and engine.
    misc,    ///< The work of a benchmark between two messages.
    io,      ///< Between processor, adapter and memory.
    network, ///< Between the two ends: a wire, a switch, a cache line's transfer, a kernel.
};
std::string_view name(Category category);

/// A component as it was measured. No time includes the cost of measuring.
struct Component {
    std::string name;
    Category category = Category::llp;
    double ns = 0;           ///< The median of the rounds' means.
    double deviation_ns = 0; ///< The standard deviation of the rounds' means.
    std::uint64_t samples = 0;
    std::string note = {}; ///< How it was measured, in words.
};

/// A component that happens `times` times for each message; that may be a fraction.
struct Term {
    Component component;
    double times = 1;

    double ns() const { return component.ns * times; }
};

/// A time that is the sum of its terms, none of which overlaps another.
struct TimeModel {
    std::string name;
    std::vector<Term> terms;

    double total_ns() const;
    double total_ns(Category category) const;
};

/// Return the model with a component, or with all components of a category, reduced by a fraction
/// of itself; a negative fraction prolongs it. Other components stay as they are.
TimeModel with_reduction(const TimeModel& model, std::string_view component, double fraction);
TimeModel with_reduction(const TimeModel& model, Category category, double fraction);

/// Returns how much earlier `after_ns` is, as a fraction of `before_ns`.
inline double improvement(double before_ns, double after_ns) {
    return (before_ns - after_ns) / before_ns;
}

/// Returns how far a model is from what was observed, as a fraction of the latter.
inline double error_of(double modelled_ns, double observed_ns) {
    return (modelled_ns - observed_ns) / observed_ns;
}

/// The costs of sending one message after another for the sender, without (equation 1) or with
/// (equation 2) the levels above UCT.
struct InjectionParts {
    std::vector<Component> post;     ///< LLP_post, and HLP_post.
    std::vector<Component> progress; ///< LLP_prog and HLP_tx_prog, per completion.
    /// c: the number of messages that one completion completes; 0: messages complete as they are
    /// posted.
    double messages_per_completion = 1;
    std::vector<Term> misc; ///< Busy posts, the benchmark's own updates.
};
TimeModel injection_model(std::string name, const InjectionParts& parts);

/// Returns equation 1's assumption: the least number of posts between two polls such that the
/// sender does not wait for the completion of one. 0 where messages complete as they are posted.
double posts_per_poll_min(double gen_completion_ns, double post_ns);

/// The parts of a message's time from the call that sends it until its receiver may use it.
struct LatencyParts {
    std::vector<Component> post;     ///< HLP_post and LLP_post.
    std::vector<Term> path;          ///< I/O and network: in the paper 2 PCIe, network, RC-to-MEM.
    std::vector<Component> progress; ///< LLP_prog and HLP_rx_prog.
};
TimeModel latency_model(std::string name, const LatencyParts& parts);

/// An observed time compared with a model of it.
struct Comparison {
    TimeModel model;
    Component observed;
    /// Measured terms that the model does not have, listed where its error calls for them.
    std::vector<Term> missing = {};

    double error() const { return error_of(model.total_ns(), observed.ns); }
    double error_with_missing() const;
};

} // namespace ucg::perftest::breakdown
