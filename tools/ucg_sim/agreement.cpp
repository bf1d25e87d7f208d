#include "tools/ucg_sim/agreement.hpp"

#include <algorithm>
#include <cmath>

#include "tools/ucg_plan/question.hpp"
#include "ucg_coll/sim/sim.hpp"

namespace ucg::tools {
namespace {

using graph::Collective;

constexpr std::uint64_t kElementBytes = 8;

/// Returns whether all ranks know the lengths. Where they do not, prices are those of the shortest
/// length.
bool has_lengths(Collective collective) {
    return collective != Collective::barrier && collective != Collective::gatherv &&
           collective != Collective::scatterv && collective != Collective::neighbor_alltoallv;
}

Question question_of(const plan::Facts& facts, Collective collective, std::uint64_t total) {
    const Rank ranks = facts.placement.rank_count();
    Question question;
    question.collective = collective;
    question.rank_count = ranks;
    question.element_bytes = kElementBytes;
    question.bytes = has_lengths(collective) && graph::has_blocks(collective)
                         ? total / static_cast<std::uint64_t>(ranks)
                         : total;
    question.mean_block_known = true;
    return question;
}

sim::Options options_of(const plan::Facts& facts, Collective collective) {
    sim::Options options;
    options.network = sim::PerLevel(facts.profile, plan::surroundings(facts));
    options.compute = sim::compute_of(facts.profile);
    options.memory = sim::memory_of(facts.profile, plan::surroundings(facts));
    if (facts.placement.host_count() > 1) {
        const cost::LogGp& network = facts.profile.level(topo::Distance::network);
        options.host_link = sim::HostLink{network.gap_ns, network.gap_per_byte_ns};
    }
    options.in_a_row = plan::calls_in_a_row(facts, collective);
    return options;
}

Result<double> simulated_ns(const plan::Facts& facts, const plan::Algorithm& row,
                            const Question& question) {
    const sim::Options options = options_of(facts, row.collective);
    sim::Simulator simulator(facts.placement, options);
    for (Rank rank = 0; rank < facts.placement.rank_count(); ++rank) {
        simulator.add(row.build(facts, request_of(question, rank), rank));
    }
    const Result<sim::Outcome> outcome = simulator.run(1);
    if (!outcome) {
        return outcome.status();
    }
    return sim::to_ns(outcome->completion());
}

/// Says which of the cells for one collective and length are rivals.
void find_rivals(std::vector<AgreementCell>& cells) {
    const auto chosen =
        std::find_if(cells.begin(), cells.end(), [](const auto& cell) { return cell.chosen; });
    for (AgreementCell& cell : cells) {
        cell.rival = chosen != cells.end() && (cell.simulated_ns <= kRival * chosen->simulated_ns ||
                                               cell.planned_ns <= kRival * chosen->planned_ns);
    }
}

/// Returns the cells of the rows for one collective and length.
Result<std::vector<AgreementCell>> cells_of(const plan::Facts& real, Collective collective,
                                            std::uint64_t total) {
    const plan::Facts facts = plan::facts_for(real, collective);
    Question question = question_of(facts, collective, total);
    const graph::Request blocking = request_of(question, 0);
    const plan::Algorithm* const chosen = &plan::choose(facts, blocking);
    std::vector<AgreementCell> cells;
    for (const plan::Algorithm& row : plan::algorithms()) {
        if (row.collective != collective) {
            continue;
        }
        question.nonblocking = row.helped;
        const graph::Request request = request_of(question, 0);
        if (!row.eligible(facts, request)) {
            continue;
        }
        const Result<double> simulated = simulated_ns(facts, row, question);
        if (!simulated) {
            return failure(simulated.status().code(), "{} {} of {} bytes: {}",
                           graph::name(collective), row.name, total, simulated.status().message());
        }
        cells.push_back({&row, total, row.cost_ns(facts, request), *simulated, &row == chosen});
    }
    const auto least = std::min_element(
        cells.begin(), cells.end(), [](const AgreementCell& a, const AgreementCell& b) {
            return a.row->helped != b.row->helped ? b.row->helped : a.simulated_ns < b.simulated_ns;
        });
    for (AgreementCell& cell : cells) {
        if (cell.chosen && least->simulated_ns > 0) {
            cell.regret = cell.simulated_ns / least->simulated_ns - 1;
            cell.best = least->row->name;
        }
    }
    find_rivals(cells);
    return cells;
}

} // namespace

double AgreementCell::deviation() const {
    return std::max(ratio(), 1 / ratio()) - 1;
}

Result<std::vector<AgreementCell>> agreement(const plan::Facts& real,
                                             const std::vector<std::uint64_t>& bytes) {
    // In a simulation messages that meet on a link pass one after the other, at its full rate.
    cost::Profile profile = real.profile;
    profile.links.contention = 1;
    const plan::Facts facts{real.placement,    profile,      real.shared, real.ranks_per_cpu,
                            real.reproducible, real.network, real.loaded, real.message_use};
    // Totals are rounded up to whole elements for each rank.
    const std::uint64_t unit =
        kElementBytes * static_cast<std::uint64_t>(facts.placement.rank_count());
    std::vector<AgreementCell> cells;
    for (const Collective collective : graph::kCollectives) {
        std::uint64_t before = 0;
        for (const std::uint64_t wanted : bytes) {
            const std::uint64_t total = !has_lengths(collective) ? kElementBytes
                                        : graph::has_blocks(collective)
                                            ? round_up(std::max(wanted, unit), unit)
                                            : wanted;
            if (total == before) {
                continue;
            }
            before = total;
            Result<std::vector<AgreementCell>> more = cells_of(facts, collective, total);
            if (!more) {
                return more.status();
            }
            cells.insert(cells.end(), more->begin(), more->end());
        }
    }
    return cells;
}

double AgreementSummary::mean_regret() const {
    return choices > 0 ? std::expm1(log_regrets / static_cast<double>(choices)) : 0;
}

void AgreementSummary::add(const std::vector<AgreementCell>& more) {
    for (const AgreementCell& cell : more) {
        ++cells;
        within_10 += cell.deviation() <= kClose ? 1 : 0;
        within_25 += cell.deviation() <= kNear ? 1 : 0;
        choices += cell.chosen ? 1 : 0;
        good_choices += cell.chosen && cell.regret <= kRegret ? 1 : 0;
        worst_regret = std::max(worst_regret, cell.regret);
        log_regrets += std::log1p(cell.regret);
        worst_rival = cell.rival ? std::max(worst_rival, cell.deviation()) : worst_rival;
    }
}

} // namespace ucg::tools
