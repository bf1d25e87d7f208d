#include "ucg_coll/sim/simulator.hpp"

#include <algorithm>
#include <cmath>

#include "ucg_coll/sim/run.hpp"

namespace ucg::sim {

namespace {

Status check_arrivals(const std::vector<double>& arrival_ns, Rank rank_count) {
    if (!arrival_ns.empty() && arrival_ns.size() != static_cast<std::size_t>(rank_count)) {
        return failure(Code::invalid_argument, "{} times of arrival for {} ranks",
                       arrival_ns.size(), rank_count);
    }
    for (const double ns : arrival_ns) {
        if (!std::isfinite(ns) || ns < 0) {
            return failure(Code::invalid_argument,
                           "a time of arrival must be finite and not negative, found {} ns", ns);
        }
    }
    return {};
}

} // namespace

Status check(const Options& options, Rank rank_count) {
    for (const Distribution& distribution :
         {options.message_noise, options.compute_noise, options.skew}) {
        if (Status status = check(distribution); !status.ok()) {
            return status;
        }
    }
    if (Status status = check(options.network); !status.ok()) {
        return status;
    }
    if (Status status = check(options.compute); !status.ok()) {
        return status;
    }
    if (Status status = check(options.memory); !status.ok()) {
        return status;
    }
    if (options.host_link) {
        if (Status status = check(*options.host_link); !status.ok()) {
            return status;
        }
    }
    if (options.links) {
        if (options.host_link) {
            return Status(Code::invalid_argument,
                          "hosts have one link each, or a tree of switches, not both");
        }
        if (Status status = graph::check(*options.links, rank_count); !status.ok()) {
            return status;
        }
    }
    if (options.in_a_row == 0) {
        return {Code::invalid_argument, "in a row: expected at least 1, found 0"};
    }
    return check_arrivals(options.arrival_ns, rank_count);
}

Picoseconds Outcome::completion() const {
    return finish.empty() ? 0 : *std::max_element(finish.begin(), finish.end());
}

Simulator::Simulator(const topo::Placement& placement, const Options& options)
    : placement_(placement), options_(options) {
    UCG_ASSERT(check(options, placement.rank_count()).ok());
    programs_.reserve(static_cast<std::size_t>(placement.rank_count()));
}

void Simulator::add(const graph::Schedule& schedule) {
    UCG_ASSERT(schedule.rank == static_cast<Rank>(programs_.size()));
    UCG_ASSERT(schedule.rank < placement_.rank_count());
    UCG_ASSERT(schedule.rank_count == placement_.rank_count());
    programs_.push_back(graph::lower(schedule).value());
    buffers_.push_back({schedule.input_bytes, schedule.output_bytes, schedule.exposed});
}

Result<Outcome> Simulator::run(std::uint64_t seed, Trace* trace) const {
    UCG_ASSERT(programs_.size() == static_cast<std::size_t>(placement_.rank_count()));
    return Run(placement_, options_, programs_, buffers_, seed, trace).go();
}

} // namespace ucg::sim
