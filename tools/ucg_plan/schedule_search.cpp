#include "tools/ucg_plan/schedule_search.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "ucg_coll/plan/multiplying/choice.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::tools {

namespace {

using plan::MultiplyingSchedule;
using plan::Phase;
using plan::PhaseKind;

bool cheaper(const PricedSchedule& a, const PricedSchedule& b) {
    if (a.ns != b.ns) {
        return a.ns < b.ns;
    }
    return a.text.size() != b.text.size() ? a.text.size() < b.text.size() : a.text < b.text;
}

/// Lower bounds of the times of phases, over all links between the ranks.
class PhaseBounds {
  public:
    explicit PhaseBounds(const SearchQuestion& question)
        : compute_(question.options.compute), bytes_(question.request.bytes) {
        for (const topo::Distance distance : distances_of(question)) {
            terms_.push_back(sim::message_terms(question.options.network, distance, bytes_));
        }
    }

    double arrival_ns(Rank messages) const {
        double least_ns = std::numeric_limits<double>::infinity();
        for (const cost::MessageTerms& terms : terms_) {
            least_ns = std::min(least_ns,
                                cost::last_arrival_ns(terms, static_cast<std::uint32_t>(messages)));
        }
        return least_ns;
    }
    double take_ns() const {
        double least_ns = std::numeric_limits<double>::infinity();
        for (const cost::MessageTerms& terms : terms_) {
            least_ns = std::min(least_ns, terms.take_ns);
        }
        return least_ns;
    }
    double reduce_ns(Rank operands) const {
        return sim::reduce_ns(compute_, static_cast<unsigned>(operands), bytes_);
    }

  private:
    /// Returns the distances between any two ranks, or a single one where all links are equal.
    static std::vector<topo::Distance> distances_of(const SearchQuestion& question) {
        std::array<bool, topo::kDistanceCount> found{};
        const Rank count = question.request.rank_count;
        const bool all = std::holds_alternative<sim::PerLevel>(question.options.network);
        for (Rank a = 0; a < (all ? count : 1); ++a) {
            for (Rank b = a + 1; b < (all ? count : 2); ++b) {
                found[static_cast<std::size_t>(question.facts.placement.distance(a, b))] = true;
            }
        }
        std::vector<topo::Distance> distances;
        for (std::size_t level = 0; level < found.size(); ++level) {
            if (found[level]) {
                distances.push_back(static_cast<topo::Distance>(level));
            }
        }
        return distances;
    }

    std::vector<cost::MessageTerms> terms_;
    sim::Compute compute_;
    std::uint64_t bytes_;
};

/// Returns whether the sum that cost::factored_ns() computes equals the simulated time.
bool is_closed(const SearchQuestion& question, const MultiplyingSchedule& schedule) {
    const sim::NetworkModel& network = question.options.network;
    return (std::holds_alternative<cost::Postal>(network) ||
            std::holds_alternative<cost::PipeliningPostal>(network)) &&
           !question.options.host_link && !question.request.in_place &&
           std::all_of(schedule.phases.begin(), schedule.phases.end(),
                       [](const Phase& phase) { return phase.kind == PhaseKind::factor; });
}

/// Returns the sum of phases on a path of messages that leave last and are waited for: in each
/// phase the last message of a rank begins once the rank's reduction in the phase before has ended,
/// and the receiver continues from there. A collapse delays the first rank of the path. The last
/// message of an expand need not be on it: the rank that expands has at least done the phases with
/// nobody late.
double bound_ns(const PhaseBounds& bounds, const MultiplyingSchedule& schedule) {
    double late_ns = 0;
    double on_time_ns = 0;
    double expand_ns = 0;
    for (const Phase& phase : schedule.phases) {
        const double exchange_ns = bounds.arrival_ns(std::max(phase.base - 1, 1));
        const double reduce_ns = bounds.reduce_ns(phase.base);
        switch (phase.kind) {
        case PhaseKind::collapse:
            late_ns += bounds.arrival_ns(1) + (phase.base - 2) * bounds.take_ns() + reduce_ns;
            break;
        case PhaseKind::expand: expand_ns = exchange_ns; break;
        case PhaseKind::factor:
            late_ns += exchange_ns + reduce_ns;
            on_time_ns += exchange_ns + reduce_ns;
            break;
        case PhaseKind::merge: {
            // The first group has most members that join; each has one message for all workers.
            const Rank joining = (phase.count - 1) / phase.groups + 1;
            late_ns += bounds.arrival_ns(phase.base) + bounds.reduce_ns(phase.base + joining);
            on_time_ns += exchange_ns + reduce_ns;
            break;
        }
        case PhaseKind::inverse_merge:
            // For the last rank on the path, only the time to send its own messages is known.
            late_ns += bounds.arrival_ns(phase.base - 1 + phase.count / phase.groups) + reduce_ns;
            on_time_ns += exchange_ns + reduce_ns;
            break;
        }
    }
    return std::max(late_ns, on_time_ns + expand_ns);
}

/// Returns a bound of the simulator's rounding: it rounds each price to a picosecond, and a path
/// has fewer steps than there are ranks times phases.
double rounding_ns(const SearchQuestion& question) {
    return 0.001 * question.request.rank_count;
}

class Search {
  public:
    Search(const SearchQuestion& question, const SearchProgress& progress)
        : question_(question), progress_(progress), bounds_(question) {}

    Result<SearchResult> run() {
        // The schedules with the least bounds are priced first; a bound above the resulting price
        // rules a schedule out.
        if (Status status = gather_first(); !status.ok()) {
            return status;
        }
        gather();
        std::sort(candidates_.begin(), candidates_.end(),
                  [](const PricedSchedule& a, const PricedSchedule& b) { return cheaper(a, b); });
        if (Status status = price_candidates(); !status.ok()) {
            return status;
        }
        return std::move(result_);
    }

  private:
    /// Enumerates the schedules up to the limit, and calls visit(bound, schedule) for each.
    template <typename Visit>
    void enumerate(std::string_view stage, Visit visit) {
        result_.enumerated = 0;
        result_.all_enumerated = enumerate_multiplying(
            question_.request.rank_count, question_.bounds,
            [&](const MultiplyingSchedule& schedule) {
                if (result_.enumerated == question_.schedules_limit) {
                    return false;
                }
                constexpr std::uint64_t kOften = 1 << 16;
                if (++result_.enumerated % kOften == 0) {
                    progress_(stage, result_.enumerated, most_);
                }
                visit(bound_ns(bounds_, schedule) - rounding_ns(question_), schedule);
                return true;
            });
    }

    Status gather_first() {
        most_ = question_.schedules_limit;
        std::vector<PricedSchedule> heap; // Those of least bounds, the largest in front.
        enumerate("bounded", [&](double ns, const MultiplyingSchedule& schedule) {
            if (heap.size() == question_.top && ns >= heap.front().ns) {
                return;
            }
            if (heap.size() == question_.top) {
                std::pop_heap(heap.begin(), heap.end(), cheaper);
                heap.pop_back();
            }
            heap.push_back({to_text(schedule), ns});
            std::push_heap(heap.begin(), heap.end(), cheaper);
        });
        most_ = heap.size();
        for (const PricedSchedule& one : heap) {
            if (Status status = price(one.text); !status.ok()) {
                return status;
            }
        }
        return {};
    }

    void gather() {
        most_ = result_.enumerated;
        enumerate("compared", [&](double ns, const MultiplyingSchedule& schedule) {
            if (ns <= enough_ns()) {
                candidates_.push_back({to_text(schedule), ns});
            }
        });
    }

    /// Prices candidates in the order of their bounds, up to those that cannot be among the best.
    Status price_candidates() {
        for (auto candidate = candidates_.begin(); candidate != candidates_.end(); ++candidate) {
            const auto beyond =
                std::upper_bound(candidate, candidates_.end(), enough_ns(),
                                 [](double ns, const PricedSchedule& one) { return ns < one.ns; });
            if (candidate == beyond) {
                break;
            }
            if (result_.simulated >= question_.runs_limit) {
                result_.all_priced = false;
                break;
            }
            most_ = std::min(question_.runs_limit,
                             result_.simulated + static_cast<std::uint64_t>(beyond - candidate));
            if (Status status = price(candidate->text); !status.ok()) {
                return status;
            }
        }
        return {};
    }

    /// Returns the price above which a schedule is not among the best.
    double enough_ns() const {
        return result_.best.size() < question_.top ? std::numeric_limits<double>::infinity()
                                                   : result_.best.back().ns;
    }

    Status price(const std::string& text) {
        std::vector<PricedSchedule>& best = result_.best;
        if (std::any_of(best.begin(), best.end(),
                        [&](const PricedSchedule& one) { return one.text == text; })) {
            return {};
        }
        Result<PricedSchedule> priced = price_schedule(question_, text);
        if (!priced) {
            return priced.status();
        }
        if (priced->simulated) {
            ++result_.simulated;
            progress_("simulated", result_.simulated, most_);
        }
        best.insert(std::upper_bound(best.begin(), best.end(), *priced, cheaper), *priced);
        best.resize(std::min(best.size(), question_.top));
        return {};
    }

    const SearchQuestion& question_;
    const SearchProgress& progress_;
    PhaseBounds bounds_;
    std::uint64_t most_ = 0;                 ///< The most schedules that this stage looks at.
    std::vector<PricedSchedule> candidates_; ///< Their prices are bounds.
    SearchResult result_;
};

double closed_ns(const SearchQuestion& question, const MultiplyingSchedule& schedule) {
    return bound_ns(PhaseBounds(question), schedule);
}

/// Returns a profile with the same prices for messages of the request's length. The planner counts
/// operands where models count combinations, so that the fixed part may be negative.
Result<cost::Profile> equivalent_profile(const SearchQuestion& question) {
    cost::Profile profile = question.facts.profile;
    profile.memory.cma.permitted = false;
    const auto bytes = static_cast<double>(question.request.bytes);
    const sim::Compute& compute = question.options.compute;
    const double operand_ns = compute.operand_ns_per_byte * bytes + compute.combine_ns +
                              compute.combine_ns_per_byte * bytes;
    profile.reduce_per_byte_ns = bytes > 0 ? operand_ns / bytes : 0;
    profile.reduce_fixed_ns =
        compute.reduction_ns - compute.combine_ns - compute.combine_ns_per_byte * bytes;
    const auto equal = [&](const cost::LogGp& model) {
        profile.levels.fill(model);
        return profile;
    };
    const sim::NetworkModel& network = question.options.network;
    if (const auto* model = std::get_if<cost::PipeliningPostal>(&network)) {
        return equal({model->alpha_p_ns + model->alpha_r_ns + model->beta_ns_per_byte, 0,
                      model->alpha_r_ns, model->beta_ns_per_byte});
    }
    if (const auto* model = std::get_if<cost::Postal>(&network)) {
        return equal({model->alpha_ns + model->beta_ns_per_byte, 0, model->alpha_ns,
                      model->beta_ns_per_byte});
    }
    if (const auto* model = std::get_if<cost::LogP>(&network)) {
        return equal({model->latency_ns, model->overhead_ns, model->gap_ns, 0});
    }
    if (const auto* model = std::get_if<cost::LogGp>(&network)) {
        return equal(*model);
    }
    if (std::holds_alternative<sim::PerLevel>(network)) {
        return question.facts.profile;
    }
    return failure(Code::unsupported, "the planner has no equivalent of the model LogfP");
}

} // namespace

double schedule_bound_ns(const SearchQuestion& question, const MultiplyingSchedule& schedule) {
    return bound_ns(PhaseBounds(question), schedule) - rounding_ns(question);
}

Result<PricedSchedule> price_schedule(const SearchQuestion& question, const std::string& text) {
    const Result<MultiplyingSchedule> schedule = plan::parse_multiplying_schedule(text);
    if (!schedule) {
        return schedule.status();
    }
    sim::Simulator simulator(question.facts.placement, question.options);
    if (Status status = fits(*schedule, question.request.rank_count); !status.ok()) {
        return status;
    }
    if (is_closed(question, *schedule)) {
        return PricedSchedule{text, closed_ns(question, *schedule), false};
    }
    for (Rank rank = 0; rank < question.request.rank_count; ++rank) {
        const Result<graph::Schedule> one =
            plan::plan(question.facts, question.request, rank, "recursive_multiplying:" + text);
        if (!one) {
            return one.status();
        }
        simulator.add(*one);
    }
    const Result<sim::Outcome> outcome = simulator.run(1);
    if (!outcome) {
        return outcome.status();
    }
    return PricedSchedule{text, sim::to_ns(outcome->completion()), true};
}

Result<MultiplyingSchedule> planner_choice(const SearchQuestion& question) {
    const Result<cost::Profile> profile = equivalent_profile(question);
    if (!profile) {
        return profile.status();
    }
    // Where all links are equal, they are neither shared nor slower on a shared processor.
    const bool levels = std::holds_alternative<sim::PerLevel>(question.options.network);
    const plan::Facts& asked = question.facts;
    const plan::Facts facts =
        levels ? plan::Facts{asked.placement, *profile, asked.shared, asked.ranks_per_cpu}
               : plan::Facts{asked.placement, *profile};
    const plan::Link link = levels ? flat_link(facts, plan::Traffic::dense)
                                   : plan::Link(facts, topo::Distance::network);
    return plan::allreduce_recursive_multiplying_schedule(link, question.request.rank_count,
                                                          question.request.bytes);
}

Result<SearchResult> search_schedules(const SearchQuestion& question,
                                      const SearchProgress& progress) {
    return Search(question, progress).run();
}

} // namespace ucg::tools
