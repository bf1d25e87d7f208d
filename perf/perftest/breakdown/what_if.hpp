// What would be gained if a component took less time: on what injecting costs and on latency by
// the models, on whole collectives by the simulator with the changed price (figure 17 of the paper
// that breakdown_model.hpp names).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "perf/perftest/breakdown/findings.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/collective.hpp"

namespace ucg::perftest::breakdown {

/// By how much components are reduced, as fractions.
inline constexpr std::array<double, 5> kReductions = {0.1, 0.3, 0.5, 0.7, 0.9};

struct Curve {
    std::string subject;   ///< What becomes faster.
    std::string component; ///< What is reduced for that.
    double before_ns = 0;
    std::vector<double> after_ns; ///< By kReductions.

    double improvement_at(std::size_t index) const {
        return improvement(before_ns, after_ns[index]);
    }
};

/// A curve for each component of the model, and for each category that has several.
std::vector<Curve> curves_of(const Model& model);

/// A message's path by what a simulation charges for.
struct MessagePrices {
    double post_ns = 0;     ///< Of the sender's processor.
    double flight_ns = 0;   ///< Neither processor has to do with it.
    double progress_ns = 0; ///< Of the receiver's processor.
    double reduce_ns = 0;   ///< One reduction of 8 bytes.
};
/// Of a latency's terms: those before the path, the path, and those behind it.
MessagePrices prices_of(const LatencyParts& parts);
/// The same of a model, by its terms' order: the LLP's and HLP's before the first of the network
/// are the sender's.
MessagePrices prices_of(const Model& latency);

/// How long a collective of 8 bytes takes where all messages have these prices. `algorithm` is
/// that of a table's row, and passes messages. Fails as the planner does.
ucg::Result<double> simulated_ns(const MessagePrices& prices, graph::Collective collective,
                                 Rank ranks, std::string_view algorithm);

/// The curves of a collective: LLP_post, the path and LLP_prog reduced.
ucg::Result<std::vector<Curve>> collective_curves(const MessagePrices& prices,
                                                  graph::Collective collective, Rank ranks,
                                                  std::string_view algorithm);

/// A table with a row for each curve, in per cent; "# " in front of what is no number, so that
/// gnuplot reads it.
std::string curves_text(const std::vector<Curve>& curves);
/// Charts of the curves, one for each subject.
std::string curves_svg(const std::vector<Curve>& curves, const std::string& subtitle);

} // namespace ucg::perftest::breakdown
