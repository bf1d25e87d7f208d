#include "perf/perftest/breakdown/what_if.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ucg_coll/plan/plan.hpp"
#include "ucg_coll/sim/sim.hpp"

namespace ucg::perftest::breakdown {

namespace {

constexpr std::uint64_t kBytes = 8;

template <typename Key>
Curve curve_of(const TimeModel& model, const Key& key, std::string component) {
    Curve curve = {model.name, std::move(component), model.total_ns(), {}};
    for (const double fraction : kReductions) {
        curve.after_ns.push_back(with_reduction(model, key, fraction).total_ns());
    }
    return curve;
}

sim::Options options_of(const MessagePrices& prices) {
    // The simulator has one overhead for both ends; a path has it twice, which is the right sum.
    const cost::LogGp model = {.latency_ns = prices.flight_ns,
                               .overhead_ns = (prices.post_ns + prices.progress_ns) / 2};
    sim::Options options;
    options.network = model;
    options.compute.reduction_ns = prices.reduce_ns;
    return options;
}

} // namespace

std::vector<Curve> curves_of(const TimeModel& model) {
    std::vector<Curve> curves;
    for (const Term& term : model.terms) {
        curves.push_back(
            curve_of(model, std::string_view(term.component.name), term.component.name));
    }
    for (const Category category :
         {Category::llp, Category::hlp, Category::misc, Category::io, Category::network}) {
        const auto members =
            std::count_if(model.terms.begin(), model.terms.end(),
                          [&](const Term& term) { return term.component.category == category; });
        if (members > 1) {
            curves.push_back(curve_of(model, category, fmt::format("all of {}", name(category))));
        }
    }
    return curves;
}

MessagePrices prices_of(const LatencyParts& parts) {
    return prices_of(latency_model({}, parts));
}

MessagePrices prices_of(const TimeModel& latency) {
    MessagePrices prices;
    bool flown = false;
    for (const Term& term : latency.terms) {
        const Category category = term.component.category;
        if (category == Category::network || category == Category::io) {
            prices.flight_ns += term.ns();
            flown = true;
        } else {
            (flown ? prices.progress_ns : prices.post_ns) += term.ns();
        }
    }
    return prices;
}

ucg::Result<double> simulated_ns(const MessagePrices& prices, graph::Collective collective,
                                 Rank ranks, std::string_view algorithm) {
    const topo::Placement placement = topo::Placement::one_host(ranks);
    const plan::Facts facts = {.placement = placement, .profile = cost::default_profile()};
    const graph::Request request = {.collective = collective,
                                    .rank_count = ranks,
                                    .bytes = collective == graph::Collective::barrier ? 0 : kBytes,
                                    .element_bytes =
                                        collective == graph::Collective::barrier ? 1 : kBytes,
                                    .send = {},
                                    .receive = {}};
    const sim::Options options = options_of(prices);
    sim::Simulator simulator(placement, options);
    for (Rank rank = 0; rank < ranks; ++rank) {
        const ucg::Result<graph::Schedule> schedule = plan::plan(facts, request, rank, algorithm);
        if (!schedule) {
            return schedule.status();
        }
        simulator.add(*schedule);
    }
    const ucg::Result<sim::Outcome> outcome = simulator.run(1);
    if (!outcome) {
        return outcome.status();
    }
    return sim::to_ns(outcome->completion());
}

ucg::Result<std::vector<Curve>> collective_curves(const MessagePrices& prices,
                                                  graph::Collective collective, Rank ranks,
                                                  std::string_view algorithm) {
    struct Part {
        const char* name;
        double MessagePrices::*price;
    };
    constexpr Part kParts[] = {{"post", &MessagePrices::post_ns},
                               {"path", &MessagePrices::flight_ns},
                               {"progress", &MessagePrices::progress_ns}};
    const ucg::Result<double> before = simulated_ns(prices, collective, ranks, algorithm);
    if (!before) {
        return before.status();
    }
    std::vector<Curve> curves;
    for (const Part& part : kParts) {
        Curve curve = {fmt::format("{} of 8 bytes, {} ranks", graph::name(collective), ranks),
                       part.name,
                       *before,
                       {}};
        for (const double fraction : kReductions) {
            MessagePrices changed = prices;
            changed.*part.price *= 1 - fraction;
            const ucg::Result<double> after = simulated_ns(changed, collective, ranks, algorithm);
            if (!after) {
                return after.status();
            }
            curve.after_ns.push_back(*after);
        }
        curves.push_back(std::move(curve));
    }
    return curves;
}

std::string curves_text(const std::vector<Curve>& curves) {
    std::string text = "# per cent less time where a component is reduced by as many per cent\n";
    std::string subject;
    for (const Curve& curve : curves) {
        if (curve.subject != subject) {
            subject = curve.subject;
            text += fmt::format("\n# {}: {:.1f} ns\n# {:>5}", subject, curve.before_ns, "");
            for (const double fraction : kReductions) {
                text += fmt::format(" {:>7.0f}", 100 * fraction);
            }
            text += '\n';
        }
        text += "       ";
        for (std::size_t i = 0; i < curve.after_ns.size(); ++i) {
            text += fmt::format(" {:>7.2f}", 100 * curve.improvement_at(i));
        }
        text += fmt::format("  # {}\n", curve.component);
    }
    return text;
}

} // namespace ucg::perftest::breakdown
