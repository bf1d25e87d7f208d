#include "tools/ucg_plan/guideline_checks.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "tools/ucg_plan/question.hpp"

namespace ucg::tools {
namespace {

using graph::Collective;

constexpr std::uint64_t kElementBytes = 8;

/// What ranks do in addition to the collectives on the right.
enum class Beside : std::uint8_t {
    nothing,
    message,   ///< Each rank sends its vector to the next one.
    reduction, ///< Each rank combines two vectors.
};

/// A guideline: the collectives on the right do the work of the collective on the left, so that
/// they should take no less time.
struct Guideline {
    Collective left;
    std::array<Collective, 2> right;
    std::size_t right_count = 1;
    Beside beside = Beside::nothing;
};

constexpr Guideline kGuidelines[] = {
    {Collective::allreduce, {Collective::reduce, Collective::bcast}, 2},
    {Collective::allreduce, {Collective::reduce_scatter_block, Collective::allgather}, 2},
    {Collective::bcast, {Collective::scatter, Collective::allgather}, 2},
    {Collective::bcast, {Collective::allreduce}},
    {Collective::reduce, {Collective::allreduce}},
    {Collective::reduce, {Collective::reduce_scatter_block, Collective::gather}, 2},
    {Collective::reduce_scatter_block, {Collective::allreduce}},
    {Collective::reduce_scatter_block, {Collective::reduce, Collective::scatter}, 2},
    {Collective::allgather, {Collective::gather, Collective::bcast}, 2},
    {Collective::allgather, {Collective::allreduce}},
    {Collective::gather, {Collective::allgather}},
    {Collective::gather, {Collective::reduce}},
    {Collective::scatter, {Collective::bcast}},
    {Collective::exscan, {Collective::scan}, 1, Beside::message},
    {Collective::scan, {Collective::exscan}, 1, Beside::reduction},
};

constexpr Collective kMonotone[] = {
    Collective::bcast,   Collective::reduce,  Collective::allreduce,
    Collective::gather,  Collective::scatter, Collective::allgather,
    Collective::scan,    Collective::exscan,  Collective::reduce_scatter_block,
    Collective::alltoall};

/// Whether the operator of reductions commutes.
enum class Order : std::uint8_t { any, of_ranks };

/// Returns what the planner predicts for one collective.
plan::Candidate predicted(const plan::Facts& facts, Collective collective, std::uint64_t total,
                          Order order = Order::any) {
    const auto ranks = static_cast<std::uint64_t>(facts.placement.rank_count());
    Question question;
    question.collective = collective;
    question.rank_count = facts.placement.rank_count();
    question.element_bytes = kElementBytes;
    question.commutative = order == Order::any;
    question.bytes = graph::has_blocks(collective) ? total / ranks : total;
    return plan::candidates(facts, request_of(question, 0)).front();
}

double beside_ns(const plan::Facts& facts, Beside beside, std::uint64_t bytes) {
    const topo::Placement& placement = facts.placement;
    switch (beside) {
    case Beside::nothing: return 0;
    case Beside::message:
        return cost::message_ns(facts.profile.level(placement.host_count() > 1
                                                        ? topo::Distance::network
                                                        : placement.widest_on_host()),
                                bytes);
    case Beside::reduction: return cost::reduce_ns(facts.profile.memory, 2, bytes);
    }
    return 0;
}

std::string_view text_of(Beside beside) {
    switch (beside) {
    case Beside::nothing: return "";
    case Beside::message: return " + a message";
    case Beside::reduction: return " + a reduction";
    }
    return "";
}

std::string_view text_of(Order order) {
    return order == Order::any ? "" : " in the order of ranks";
}

bool reduces(const Guideline& guideline) {
    const std::span right = std::span(guideline.right).first(guideline.right_count);
    return graph::reduces(guideline.left) ||
           std::any_of(right.begin(), right.end(), graph::reduces);
}

GuidelineCheck check(const plan::Facts& facts, const Guideline& guideline, std::uint64_t total,
                     Order order) {
    const plan::Candidate left = predicted(facts, guideline.left, total, order);
    GuidelineCheck check{
        fmt::format("{} of {} bytes{} <=", graph::name(guideline.left), total, text_of(order)),
        left.cost_ns, 0, fmt::format("{} <=", left.algorithm->name)};
    for (const Collective collective : std::span(guideline.right).first(guideline.right_count)) {
        const plan::Candidate right = predicted(facts, collective, total, order);
        const std::string_view plus = check.right_ns > 0 ? " + " : " ";
        check.right_ns += right.cost_ns;
        check.what += fmt::format("{}{}", plus, graph::name(collective));
        check.rows += fmt::format("{}{}", plus, right.algorithm->name);
    }
    check.what += text_of(guideline.beside);
    check.right_ns += beside_ns(facts, guideline.beside, total);
    return check;
}

} // namespace

std::vector<GuidelineCheck> check_guidelines(const plan::Facts& facts,
                                             const std::vector<std::uint64_t>& bytes) {
    // Totals are rounded up to whole elements for each rank.
    const std::uint64_t unit =
        kElementBytes * static_cast<std::uint64_t>(facts.placement.rank_count());
    std::vector<std::uint64_t> totals;
    totals.reserve(bytes.size());
    for (const std::uint64_t wanted : bytes) {
        totals.push_back(round_up(std::max(wanted, unit), unit));
    }
    totals.erase(std::unique(totals.begin(), totals.end()), totals.end());
    std::vector<GuidelineCheck> checks;
    for (const std::uint64_t total : totals) {
        for (const Guideline& guideline : kGuidelines) {
            checks.push_back(check(facts, guideline, total, Order::any));
            if (reduces(guideline)) {
                checks.push_back(check(facts, guideline, total, Order::of_ranks));
            }
        }
    }
    for (const Collective collective : kMonotone) {
        for (std::size_t i = 0; i + 1 < totals.size(); ++i) {
            const plan::Candidate less = predicted(facts, collective, totals[i]);
            const plan::Candidate more = predicted(facts, collective, totals[i + 1]);
            checks.push_back({fmt::format("{} of {} bytes <= of {} bytes", graph::name(collective),
                                          totals[i], totals[i + 1]),
                              less.cost_ns, more.cost_ns,
                              fmt::format("{} <= {}", less.algorithm->name, more.algorithm->name)});
        }
    }
    return checks;
}

} // namespace ucg::tools
