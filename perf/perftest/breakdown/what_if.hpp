// What would be gained if a component took less time: for the cost of injection and for latency by
// the models, for whole collectives by a simulation with the changed price (figure 17 of the paper
// that model.hpp names).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "perf/perftest/breakdown/findings.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/collective.hpp"

namespace ucg::perftest::breakdown {

/// The fractions by which components are reduced.
inline constexpr std::array<double, 5> kReductions = {0.1, 0.3, 0.5, 0.7, 0.9};

struct Curve {
    std::string subject;   ///< What becomes faster.
    std::string component; ///< The component that is reduced.
    double before_ns = 0;
    std::vector<double> after_ns; ///< By index in kReductions.

    double improvement_at(std::size_t index) const {
        return improvement(before_ns, after_ns[index]);
    }
};

/// Returns a curve for each component of the model, and for each category that has several
/// components.
std::vector<Curve> curves_of(const TimeModel& model);

/// The parts of a message's time as a simulation prices them, in nanoseconds.
struct MessagePrices {
    double post_ns = 0;     ///< Time of the sender's processor.
    double flight_ns = 0;   ///< Time that occupies neither processor.
    double progress_ns = 0; ///< Time of the receiver's processor.
    double reduce_ns = 0;   ///< Time of one reduction of 8 bytes.
};
/// Returns the prices for the parts of a latency: those before the path, the path, and those behind
/// it.
MessagePrices prices_of(const LatencyParts& parts);
/// Returns the prices for the terms of a model, by their order: terms of LLP and HLP that precede
/// the first one of the network belong to the sender.
MessagePrices prices_of(const TimeModel& latency);

/// Returns the simulated time in nanoseconds of a collective of 8 bytes in which all messages have
/// these prices. `algorithm` is the name of a row of the planner's table that uses messages. Fails
/// as the planner does.
ucg::Result<double> simulated_ns(const MessagePrices& prices, graph::Collective collective,
                                 Rank ranks, std::string_view algorithm);

/// Returns the curves of a collective, with LLP_post, the path and LLP_prog reduced.
ucg::Result<std::vector<Curve>> collective_curves(const MessagePrices& prices,
                                                  graph::Collective collective, Rank ranks,
                                                  std::string_view algorithm);

/// Returns a table with a row for each curve, in per cent. Lines without numbers begin with "# ",
/// so that gnuplot can read it.
std::string curves_text(const std::vector<Curve>& curves);
/// Returns charts of the curves in SVG, one for each subject.
std::string curves_svg(const std::vector<Curve>& curves, const std::string& subtitle);

} // namespace ucg::perftest::breakdown
