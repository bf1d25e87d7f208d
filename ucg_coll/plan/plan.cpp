#include "ucg_coll/plan/plan.hpp"

#include <algorithm>
#include <vector>

#include "ucg_coll/plan/rows.hpp"

namespace ucg::plan {
namespace {

/// "dissemination, kary_tree": the algorithms that `collective` has.
std::string names_of(graph::Collective collective) {
    std::string names;
    for (const Algorithm& row : algorithms()) {
        if (row.collective == collective) {
            names += names.empty() ? "" : ", ";
            names += row.name;
        }
    }
    return names;
}

/// May the planner choose rows whose ranks help one another? Where buffers are not mapped the
/// kernel copies, which takes longer than two ranks that copy from cache to cache.
bool may_help(const Facts& facts, const graph::Request& request) {
    return request.nonblocking && facts.shared.buffers_mapped;
}

/// May the planner choose this row for the request?
bool is_candidate(const Algorithm& row, const Facts& facts, const graph::Request& request) {
    return row.collective == request.collective && (!row.helped || may_help(facts, request)) &&
           row.eligible(facts, request);
}

/// Returns the price by which candidates are compared: a collective that goes on while a rank
/// computes may cost a little more than one that does not.
double bid_ns(const Candidate& candidate) {
    constexpr double kWorthOfHelp = 1.15;
    return candidate.algorithm->helped ? candidate.cost_ns / kWorthOfHelp : candidate.cost_ns;
}

/// Returns the row with the price of one call, the mean of several in a row, so that prices of
/// collectives can be compared.
Candidate priced(const Algorithm& row, const Facts& facts, const graph::Request& request) {
    return {&row, row.cost_ns(facts, request) / calls_in_a_row(facts, request.collective)};
}

/// Returns the cheapest of the rows that the planner may choose.
Candidate cheapest(const Facts& facts, const graph::Request& request) {
    Candidate best;
    for (const Algorithm& row : algorithms()) {
        if (!is_candidate(row, facts, request)) {
            continue;
        }
        const Candidate candidate = priced(row, facts, request);
        if (best.algorithm == nullptr || bid_ns(candidate) < bid_ns(best)) {
            best = candidate;
        }
    }
    UCG_ASSERT(best.algorithm != nullptr);
    return best;
}

Result<const Algorithm*> named(const Facts& facts, const graph::Request& request,
                               std::string_view name) {
    const Algorithm* algorithm = find_algorithm(request.collective, name);
    if (algorithm == nullptr) {
        return failure(Code::invalid_argument, "{} has no algorithm '{}'; it has: {}",
                       graph::name(request.collective), name, names_of(request.collective));
    }
    if (!algorithm->eligible(facts, request)) {
        return failure(Code::unsupported,
                       "{} algorithm '{}' cannot serve this request ({} bytes, {} ranks on {} "
                       "hosts, {}commutative{}): it needs {}",
                       graph::name(request.collective), name, uniform_bytes(request),
                       request.rank_count, facts.placement.host_count(),
                       request.commutative ? "" : "not ",
                       facts.reproducible != nullptr ? ", reproducible on any hosts" : "",
                       algorithm->unmet_text(facts, request));
    }
    return algorithm;
}

Result<graph::Schedule> build_wanted(const Facts& facts, const graph::Request& request, Rank rank,
                                     const AlgorithmText& wanted) {
    const Result<const Algorithm*> row = named(facts, request, wanted.name);
    if (!row.ok()) {
        return row.status();
    }
    if (!wanted.has_argument) {
        return (*row)->build(facts, request, rank);
    }
    if ((*row)->build_with == nullptr) {
        return failure(Code::invalid_argument, "{} algorithm '{}' takes no argument, but got '{}'",
                       graph::name(request.collective), wanted.name, wanted.argument);
    }
    Result<graph::Schedule> schedule = (*row)->build_with(facts, request, rank, wanted.argument);
    if (!schedule.ok()) {
        const Status status = schedule.status();
        return failure(status.code(), "{} algorithm '{}', argument '{}' ({}): {}",
                       graph::name(request.collective), wanted.name, wanted.argument,
                       (*row)->argument, status.message());
    }
    return schedule;
}

/// Returns the table: by collective, then in the order of mechanisms and of their lists. Of two
/// rows at one price the planner takes the first.
std::vector<Algorithm> all_rows() {
    std::vector<Algorithm> rows;
    for (const Rows mechanism :
         std::initializer_list<Rows>{kMessageRows, kMultiplyingRows, kLevelRows, kPeerMemoryRows,
                                     kFlagSlotRows, kNetworkRows}) {
        for (const Algorithm* row : mechanism) {
            rows.push_back(*row);
        }
    }
    std::stable_sort(rows.begin(), rows.end(), [](const Algorithm& a, const Algorithm& b) {
        return a.collective < b.collective;
    });
    return rows;
}

} // namespace

std::span<const Algorithm> algorithms() {
    static const std::vector<Algorithm> table = all_rows();
    return table;
}

const Algorithm* find_algorithm(graph::Collective collective, std::string_view name) {
    for (const Algorithm& row : algorithms()) {
        if (row.collective == collective && row.name == name) {
            return &row;
        }
    }
    return nullptr;
}

std::vector<Candidate> candidates(const Facts& real, const graph::Request& request) {
    const Facts facts = facts_for(real, request);
    std::vector<Candidate> list;
    for (const Algorithm& row : algorithms()) {
        if (is_candidate(row, facts, request)) {
            list.push_back(priced(row, facts, request));
        }
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const Candidate& a, const Candidate& b) { return bid_ns(a) < bid_ns(b); });
    return list;
}

const Algorithm& choose(const Facts& facts, const graph::Request& request) {
    return *cheapest(facts_for(facts, request), request).algorithm;
}

Result<graph::Schedule> plan(const Facts& facts, const graph::Request& request, Rank rank,
                             std::string_view algorithm) {
    if (Status status = graph::validate(request, rank); !status.ok()) {
        return status;
    }
    if (facts.placement.rank_count() != request.rank_count) {
        return failure(Code::invalid_argument, "the request is for {} ranks, the placement has {}",
                       request.rank_count, facts.placement.rank_count());
    }
    const Facts known = facts_for(facts, request);
    if (algorithm.empty()) {
        return cheapest(known, request).algorithm->build(known, request, rank);
    }
    return build_wanted(known, request, rank, split_algorithm(algorithm));
}

} // namespace ucg::plan
