#include "test/unit/sim/support.hpp"

#include "test/support/catch.hpp"

namespace ucg::test {

namespace {

void add_phase(graph::Builder& builder, Rank stride, Rank factor, graph::Slice& partial,
               graph::Slice target) {
    const Rank rank = builder.rank();
    const Rank place = rank / stride % factor;
    const auto member = [&](Rank index) { return rank + (index - place) * stride; };
    std::vector<graph::Slice> operands(static_cast<std::size_t>(factor));
    for (Rank i = 0; i < factor; ++i) {
        graph::Slice& operand = operands[static_cast<std::size_t>(i)];
        operand = partial;
        if (i != place) {
            operand = builder.scratch(partial.length);
            builder.recv(member(i), operand);
        }
    }
    for (Rank distance = 1; distance < factor; ++distance) {
        builder.send(member((place + distance) % factor), partial);
    }
    builder.reduce(operands, target);
    partial = target;
}

} // namespace

graph::Request request_of(graph::Collective collective, Rank rank_count, std::uint64_t bytes) {
    graph::Request request;
    request.collective = collective;
    request.rank_count = rank_count;
    request.bytes = bytes;
    return request;
}

graph::Request allreduce_of(std::uint64_t bytes, Rank rank_count) {
    return request_of(graph::Collective::allreduce, rank_count, bytes);
}

std::vector<graph::Schedule> planned(const topo::Placement& placement,
                                     const graph::Request& request, std::string_view algorithm) {
    return planned(plan::Facts{placement, cost::default_profile()}, request, algorithm);
}

std::vector<graph::Schedule> planned(const plan::Facts& facts, const graph::Request& request,
                                     std::string_view algorithm) {
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < facts.placement.rank_count(); ++rank) {
        Result<graph::Schedule> schedule = plan::plan(facts, request, rank, algorithm);
        INFO(schedule.status().message());
        REQUIRE(schedule.ok());
        schedules.push_back(std::move(*schedule));
    }
    return schedules;
}

std::vector<graph::Schedule> multi_way_exchange(std::span<const std::uint32_t> factors,
                                                std::uint64_t bytes) {
    Rank rank_count = 1;
    for (const std::uint32_t factor : factors) {
        rank_count *= static_cast<Rank>(factor);
    }
    const graph::Request request = allreduce_of(bytes, rank_count);
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < rank_count; ++rank) {
        graph::Builder builder(request, rank, "multi_way_exchange");
        graph::Slice partial = builder.input(0, bytes);
        Rank stride = 1;
        for (std::size_t i = 0; i < factors.size(); ++i) {
            const auto factor = static_cast<Rank>(factors[i]);
            const graph::Slice target =
                i + 1 == factors.size() ? builder.output(0, bytes) : builder.scratch(bytes);
            add_phase(builder, stride, factor, partial, target);
            stride *= factor;
        }
        schedules.push_back(builder.finish());
    }
    return schedules;
}

sim::Outcome simulated(std::span<const graph::Schedule> schedules, const topo::Placement& placement,
                       const sim::Options& options, std::uint64_t seed, sim::Trace* trace) {
    sim::Simulator simulator(placement, options);
    for (const graph::Schedule& schedule : schedules) {
        simulator.add(schedule);
    }
    Result<sim::Outcome> outcome = simulator.run(seed, trace);
    INFO(outcome.status().message());
    REQUIRE(outcome.ok());
    return std::move(*outcome);
}

sim::Outcome simulated(std::span<const graph::Schedule> schedules, const sim::Options& options,
                       std::uint64_t seed, sim::Trace* trace) {
    const auto placement = topo::Placement::one_host(static_cast<Rank>(schedules.size()));
    return simulated(schedules, placement, options, seed, trace);
}

sim::Options options_of(const cost::PipeliningPostal& model) {
    sim::Options options;
    options.network = model;
    options.compute = sim::compute_of(model);
    return options;
}

} // namespace ucg::test
