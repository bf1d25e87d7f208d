// Simulated times against closed forms, and properties that hold for every model.
#include <algorithm>
#include <array>
#include <cmath>

#include "test/support/catch.hpp"
#include "test/unit/sim/support.hpp"
#include "ucg_coll/plan/plan.hpp"

using namespace ucg;
using namespace ucg::test;
using sim::Distribution;
using sim::Picoseconds;
using sim::to_picoseconds;

namespace {

using Factors = std::vector<std::uint32_t>;

bool all_equal(const std::vector<Picoseconds>& times, Picoseconds expected) {
    return std::all_of(times.begin(), times.end(),
                       [&](Picoseconds time) { return time == expected; });
}

sim::Options network_only(const sim::NetworkModel& network) {
    sim::Options options;
    options.network = network;
    return options;
}

/// When each rank of a broadcast tree has the vector, according to what equation 3 says of its
/// parent's sends.
void follow_tree(const std::vector<graph::Schedule>& schedules, const cost::PipeliningPostal& model,
                 Rank rank, double has_it_ns, std::vector<double>& times_ns) {
    times_ns[static_cast<std::size_t>(rank)] = has_it_ns;
    double left_ns = has_it_ns;
    for (const graph::Op& op : schedules[static_cast<std::size_t>(rank)].ops) {
        if (op.kind == graph::OpKind::send) {
            const auto bytes = static_cast<double>(op.source.length);
            left_ns += model.alpha_r_ns + bytes * model.beta_ns_per_byte;
            follow_tree(schedules, model, op.peer, left_ns + model.alpha_p_ns, times_ns);
            times_ns[static_cast<std::size_t>(rank)] = left_ns;
        }
    }
}

} // namespace

TEST_CASE("sim: recursive doubling takes what equation 4 says, on every rank", "[sim]") {
    for (const Rank ranks : {2, 4, 8, 16, 64}) {
        for (const std::uint64_t bytes : {8, 1024}) {
            const auto placement = topo::Placement::one_host(ranks);
            const auto schedules =
                planned(placement, allreduce_of(bytes, ranks), "recursive_doubling");
            const Factors twos(ceil_log2(static_cast<std::uint64_t>(ranks)), 2);
            const sim::Outcome outcome = simulated(schedules, options_of(kPaper));
            INFO(ranks << " ranks, " << bytes << " bytes");
            CHECK(
                all_equal(outcome.finish, to_picoseconds(cost::factored_ns(kPaper, twos, bytes))));
            CHECK(outcome.message_count == static_cast<std::uint64_t>(ranks) * twos.size());
        }
    }
}

TEST_CASE("sim: the paper's example: eight ranks, 8 bytes", "[sim]") {
    const Factors one_phase = {8};
    const Factors doubling = {2, 2, 2};
    CHECK(simulated(multi_way_exchange(doubling, 8), options_of(kPaper)).completion() == 1'539'600);
    CHECK(simulated(multi_way_exchange(one_phase, 8), options_of(kPaper)).completion() ==
          1'192'400);
}

TEST_CASE("sim: factored schedules take the sum of their phases", "[sim]") {
    const std::vector<Factors> all = {{2}, {3, 2}, {2, 3}, {8}, {4, 4}, {5, 3, 2}, {3, 3, 3, 3}};
    for (const Factors& factors : all) {
        for (const std::uint64_t bytes : {8, 1000}) {
            INFO("first factor " << factors[0] << " of " << factors.size());
            const auto schedules = multi_way_exchange(factors, bytes);
            const cost::PipeliningPostal priced = {.alpha_p_ns = 400,
                                                   .alpha_r_ns = 100,
                                                   .beta_ns_per_byte = 0.4,
                                                   .gamma_ns_per_byte = 0.25,
                                                   .reduce_fixed_ns = 10};
            CHECK(all_equal(simulated(schedules, options_of(priced)).finish,
                            to_picoseconds(cost::factored_ns(priced, factors, bytes))));
            const cost::Postal postal = {.alpha_ns = 500, .beta_ns_per_byte = 0.4};
            CHECK(all_equal(simulated(schedules, network_only(postal)).finish,
                            to_picoseconds(cost::factored_ns(postal, factors, bytes))));
        }
    }
}

TEST_CASE("sim: phases under the LogP family take their closed forms", "[sim]") {
    for (const std::uint32_t factor : {2U, 3U, 5U, 9U}) {
        const Factors factors = {factor};
        const auto schedules = multi_way_exchange(factors, 40);
        const auto check = [&](const auto& model) {
            CHECK(all_equal(simulated(schedules, network_only(model)).finish,
                            to_picoseconds(cost::factored_ns(model, factors, 40))));
        };
        INFO("factor " << factor);
        check(cost::LogP{.latency_ns = 100, .overhead_ns = 20, .gap_ns = 30});
        check(cost::LogP{.latency_ns = 10, .overhead_ns = 20, .gap_ns = 5});
        check(cost::LogfP{.latency_ns = 100, .overhead_ns = 20, .gap_ns = 30, .free_messages = 3});
        check(cost::LogGp{
            .latency_ns = 100, .overhead_ns = 20, .gap_ns = 30, .gap_per_byte_ns = 0.5});
    }
}

TEST_CASE("sim: k-nomial broadcasts take what follows from equation 3 along the tree", "[sim]") {
    for (const Rank ranks : {2, 5, 8, 27, 100}) {
        graph::Request request = request_of(graph::Collective::bcast, ranks, 64);
        request.root = 1;
        const auto schedules = planned(topo::Placement::one_host(ranks), request, "knomial");
        std::vector<double> expected_ns(static_cast<std::size_t>(ranks));
        follow_tree(schedules, kPaper, 1, 0, expected_ns);
        const sim::Outcome outcome = simulated(schedules, options_of(kPaper));
        INFO(ranks << " ranks");
        for (std::size_t rank = 0; rank < expected_ns.size(); ++rank) {
            CHECK(outcome.finish[rank] == to_picoseconds(expected_ns[rank]));
        }
    }
}

TEST_CASE("sim: each level of a profile has its price", "[sim]") {
    const cost::Profile& profile = cost::default_profile();
    const graph::Request request = request_of(graph::Collective::bcast, 2, 1000);
    const auto check_distance = [&](const topo::Placement& placement, topo::Distance distance) {
        const sim::Outcome outcome = simulated(planned(placement, request, "knomial"), placement,
                                               network_only(sim::PerLevel(profile)));
        CHECK(outcome.completion() ==
              to_picoseconds(price::DistancePrices(profile, distance).message_ns(1000)));
    };
    check_distance(topo::Placement::one_host(2), topo::Distance::host);
    check_distance(topo::Placement::regular(2, 1), topo::Distance::network);
}

TEST_CASE("sim: what is copied once takes an RTS, the copy and a FIN", "[sim]") {
    const cost::Profile& profile = cost::default_profile();
    const auto placement = topo::Placement::one_host(2);
    const auto messages = price::DistancePrices(profile, topo::Distance::host);
    const double there_and_back_ns = 2 * cost::message_ns(profile.level(topo::Distance::host), 0);
    const sim::Options options = network_only(sim::PerLevel(profile));
    for (const std::uint64_t bytes : {16 << 10, 256 << 10}) {
        const price::MessagePrice price = messages.price(bytes, price::Source::settled);
        REQUIRE(price.copy_ns > 0);
        INFO(bytes << " bytes");
        // The sender waits for the FIN of a long message and copies a half of it.
        const auto request = request_of(graph::Collective::bcast, 2, bytes);
        const auto one_way = simulated(planned(placement, request, "knomial"), placement, options);
        const double copy_ns = price.by_both ? price.half_ns : price.copy_ns;
        CHECK(one_way.finish[0] == to_picoseconds(there_and_back_ns + copy_ns));
        // If two ranks send to each other, each copies one vector, its own or the other's.
        const auto both = simulated(
            planned(placement, allreduce_of(bytes, 2), "recursive_doubling"), placement, options);
        CHECK(all_equal(both.finish, to_picoseconds(there_and_back_ns + price.copy_ns)));
    }
}

TEST_CASE("sim: who sends through a ring and receives copies both, one after the other", "[sim]") {
    const cost::Profile& profile = cost::default_profile();
    const price::DistancePrices messages(profile, topo::Distance::host);
    constexpr std::uint64_t kBytes = 8192;
    const price::MessagePrice price = messages.price(kBytes, price::Source::settled);
    REQUIRE(price.through_ring);
    const sim::Options options = network_only(sim::PerLevel(profile));
    // A root that only receives takes one message in after the other.
    const auto request = request_of(graph::Collective::gather, 5, kBytes);
    const auto placement = topo::Placement::one_host(5);
    const auto gathered = simulated(planned(placement, request, "linear"), placement, options);
    const cost::MessageTerms& terms = price.terms;
    CHECK(gathered.completion() ==
          to_picoseconds(terms.issue_ns) + to_picoseconds(terms.flight_ns) +
              4 * to_picoseconds(terms.inject_ns) + 3 * to_picoseconds(terms.gap_ns) +
              to_picoseconds(terms.take_ns));
}

TEST_CASE("sim: a repeat takes as long as the same ops written out", "[sim]") {
    for (const std::uint64_t bytes : {std::uint64_t{1} << 16, std::uint64_t{100'000}}) {
        const graph::Request request = request_of(graph::Collective::bcast, 5, bytes);
        const auto schedules = planned(topo::Placement::one_host(5), request, "chain");
        REQUIRE(!schedules[1].repeats.empty());
        std::vector<graph::Schedule> unrolled;
        unrolled.reserve(schedules.size());
        for (const graph::Schedule& schedule : schedules) {
            unrolled.push_back(graph::unroll(schedule));
        }
        // Each message arrives before the next one may leave, so slots never limit them.
        const sim::Options options =
            network_only(cost::Postal{.alpha_ns = 500, .beta_ns_per_byte = 0.25});
        const sim::Outcome repeated = simulated(schedules, options);
        const sim::Outcome written_out = simulated(unrolled, options);
        CHECK(repeated.finish == written_out.finish);
        CHECK(repeated.message_count == written_out.message_count);
        CHECK(repeated.message_bytes == 4 * bytes);
    }
}

TEST_CASE("sim: a rank that comes late holds up those that depend on it", "[sim]") {
    const auto placement = topo::Placement::one_host(8);
    const auto schedules = planned(placement, allreduce_of(8, 8), "recursive_doubling");
    sim::Options options = options_of(kPaper);
    options.arrival_ns.assign(8, 0);
    options.arrival_ns[3] = 5000;
    const sim::Outcome outcome = simulated(schedules, options);
    // The partner has what it needs 500 ns later or more; all other ranks are behind these two.
    const double on_time_ns = cost::factored_ns(kPaper, Factors{2, 2, 2}, 8);
    CHECK(outcome.entered[3] == 5'000'000);
    CHECK(outcome.completion() == to_picoseconds(5000 + on_time_ns));
    // The late rank finds that its partner's vector is already there.
    CHECK(outcome.finish[3] < outcome.completion());
}

TEST_CASE("sim: the ranks of a host share its link", "[sim]") {
    constexpr Rank kPerHost = 4;
    const auto placement = topo::Placement::regular(2, kPerHost);
    // Each rank of host 0 exchanges with the rank of host 1 that has the same index.
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < 2 * kPerHost; ++rank) {
        graph::Builder builder(allreduce_of(1000, 2 * kPerHost), rank, "pairs");
        const Rank peer = rank < kPerHost ? rank + kPerHost : rank - kPerHost;
        builder.recv(peer, builder.output(0, 1000));
        builder.send(peer, builder.input(0, 1000));
        schedules.push_back(builder.finish());
    }
    sim::Options options = options_of(kPaper);
    const Picoseconds alone = to_picoseconds(400 + 100 + 400);
    CHECK(simulated(schedules, placement, options).completion() == alone);

    // The link is as fast as one rank, so each of the others waits until those before it are
    // served.
    options.host_link = sim::HostLink{.per_message_ns = 0, .per_byte_ns = 0.4};
    CHECK(simulated(schedules, placement, options).completion() ==
          alone + (kPerHost - 1) * to_picoseconds(400));
    // On one host the link is not used.
    CHECK(simulated(schedules, topo::Placement::one_host(2 * kPerHost), options).completion() ==
          alone);
    // A link that could serve all ranks at once delays messages that leave together only by serving
    // them one by one.
    options.host_link = sim::HostLink{.per_message_ns = 0, .per_byte_ns = 0.1};
    CHECK(simulated(schedules, placement, options).completion() ==
          alone + (kPerHost - 1) * to_picoseconds(100));
}

TEST_CASE("sim: a link that is slower than the sender delays a message that is alone", "[sim]") {
    // Rank 0 sends to each of the others, which are on hosts of their own.
    const auto time = [](Rank ranks, const sim::NetworkModel& network, const sim::HostLink& link) {
        sim::Options options;
        options.network = network;
        options.host_link = link;
        const auto placement = topo::Placement::regular(static_cast<std::uint32_t>(ranks), 1);
        const auto request = request_of(graph::Collective::scatter, ranks, 1000);
        return simulated(planned(placement, request, "linear"), placement, options).completion();
    };
    const Picoseconds alone = time(2, kPaper, {});
    REQUIRE(alone == to_picoseconds(400 + 100 + 400));
    // The sender takes 500 ns, the link 0.8 ns for each byte after the first.
    CHECK(time(2, kPaper, {0, 0.8}) == alone + to_picoseconds(999 * 0.8 - 500));
    CHECK(time(3, kPaper, {0, 0.8}) == alone + to_picoseconds(999 * 0.8 - 500 + 1000 * 0.8));
    // A gap delays only the next message. A link with the sender's gaps adds nothing.
    CHECK(time(2, kPaper, {300, 0.4}) == alone);
    CHECK(time(3, kPaper, {300, 0.4}) == alone + to_picoseconds(300 + 1000 * 0.4));
    const cost::LogGp model = cost::default_profile().level(topo::Distance::network);
    CHECK(time(2, model, {model.gap_ns, model.gap_per_byte_ns}) == time(2, model, {}));
}

TEST_CASE("sim: of several in a row each rank begins one as it is done with the one before",
          "[sim]") {
    const auto placement = topo::Placement::one_host(4);
    constexpr std::uint64_t kBytes = 1000;
    sim::Options options = options_of(kPaper);
    options.in_a_row = 3;
    // A root that sends to all is busy three times for each message, and never waits.
    const auto request = request_of(graph::Collective::scatter, 4, kBytes);
    const auto scattered = simulated(planned(placement, request, "linear"), options);
    const double left_ns = kPaper.alpha_r_ns + kBytes * kPaper.beta_ns_per_byte;
    CHECK(scattered.completion() == to_picoseconds(3 * 3 * left_ns + kPaper.alpha_p_ns));
    CHECK(scattered.message_count == 9);
    // Where all ranks enter and leave at the same time, each repetition takes as long as the first.
    const cost::Profile& profile = cost::default_profile();
    const plan::Facts facts{placement, profile,
                            plan::shared_memory(placement, profile, 1 << 20, false, 8 << 10)};
    options.compute = sim::compute_of(profile);
    for (const std::string_view row : {"recursive_doubling", "flag_slots"}) {
        const auto schedules = planned(facts, allreduce_of(8, 4), row);
        options.in_a_row = 3;
        const sim::Outcome three = simulated(schedules, placement, options);
        options.in_a_row = 1;
        const sim::Outcome one = simulated(schedules, placement, options);
        INFO(row);
        CHECK(all_equal(three.finish, 3 * one.completion()));
    }
}

TEST_CASE("sim: noise is drawn by the seed alone", "[sim][noise]") {
    const auto placement = topo::Placement::one_host(16);
    const auto schedules = planned(placement, allreduce_of(8, 16), "recursive_doubling");
    const sim::Outcome quiet = simulated(schedules, options_of(kPaper));
    for (const Distribution& distribution : {Distribution{Distribution::Kind::uniform, 0, 100},
                                             Distribution{Distribution::Kind::exponential, 50, 0},
                                             Distribution{Distribution::Kind::normal, 50, 20},
                                             Distribution{Distribution::Kind::pareto, 10, 2}}) {
        sim::Options options = options_of(kPaper);
        options.message_noise = distribution;
        options.compute_noise = distribution;
        options.skew = distribution;
        const sim::Outcome first = simulated(schedules, options, 1);
        CHECK(simulated(schedules, options, 1).finish == first.finish);
        CHECK(simulated(schedules, options, 2).finish != first.finish);
        CHECK(first.completion() > quiet.completion());
        // Links that are never full change the order of events, but not the outcome.
        options.host_link = sim::HostLink{};
        const auto apart = topo::Placement::regular(16, 1);
        CHECK(simulated(schedules, apart, options, 1).finish == first.finish);
    }
}

TEST_CASE("sim: rows by flag slots take what the planner says", "[sim][flag_slots]") {
    using graph::Collective;
    const cost::Profile& profile = cost::default_profile();
    sim::Options options = network_only(sim::PerLevel(profile));
    options.compute = sim::compute_of(profile);
    options.memory.model = profile.memory;
    for (const Rank ranks : {2, 3, 8, 20}) {
        const auto placement = topo::Placement::one_host(ranks);
        const plan::Facts facts{placement, profile,
                                plan::shared_memory(placement, profile, 1 << 20, false, 8 << 10)};
        for (const Collective collective :
             {Collective::barrier, Collective::bcast, Collective::reduce, Collective::allreduce}) {
            graph::Request request =
                request_of(collective, ranks, collective == Collective::barrier ? 0 : 96);
            request.element_bytes = collective == Collective::barrier ? 1 : 8;
            const plan::Algorithm* row = plan::find_algorithm(collective, "flag_slots");
            REQUIRE(row != nullptr);
            const sim::Outcome outcome =
                simulated(planned(facts, request, "flag_slots"), placement, options);
            INFO(graph::name(collective) << " of " << ranks << " ranks");
            const double rounding_ns = 0.001 * ranks; // Each price is rounded once.
            CHECK(std::abs(sim::to_ns(outcome.completion()) - row->cost_ns(facts, request)) <=
                  rounding_ns);
        }
    }
}

TEST_CASE("sim: who reads a peer's memory while others do takes longer", "[sim][memory]") {
    constexpr Rank kRanks = 4;
    constexpr std::uint64_t kBytes = 1000;
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < kRanks; ++rank) {
        graph::Builder builder(request_of(graph::Collective::allreduce, kRanks, kBytes), rank, "x");
        if (rank > 0) {
            graph::Slice source = builder.input(0, kBytes);
            source.owner = 0;
            builder.copy(source, builder.output(0, kBytes));
        }
        schedules.push_back(builder.finish());
    }
    sim::Options options = network_only(cost::LogGp{});
    options.memory.model = {};
    options.memory.model.levels[static_cast<std::size_t>(topo::Distance::host)] = {
        .latency_ns = 50, .per_byte_ns = 0.1, .contended_per_byte_ns = 0.05};
    // The link serves two at full speed; three begin together, and the last of them gets a third of
    // it.
    const std::vector<Picoseconds> together = {0, 150'000, 150'000, 200'000};
    sim::Outcome outcome = simulated(schedules, options);
    CHECK(outcome.finish == together);
    CHECK(outcome.peer_bytes == 3 * kBytes);
    // A rank's own work hides the read where the work takes longer.
    options.compute.copy_ns_per_byte = 1;
    CHECK(simulated(schedules, options).completion() == 1'000'000);
    // A rank that comes when the others are done reads alone.
    options.compute.copy_ns_per_byte = 0;
    options.arrival_ns = {0, 0, 0, 500};
    CHECK(simulated(schedules, options).finish[3] == 650'000);
    // Publishing is a copy to a staging buffer, or it is nothing.
    schedules.clear();
    for (Rank rank = 0; rank < 2; ++rank) {
        graph::Builder builder(request_of(graph::Collective::allreduce, 2, kBytes), rank, "x");
        builder.staging_buffer(kBytes);
        builder.publish(builder.input(0, kBytes));
        schedules.push_back(builder.finish());
    }
    options.arrival_ns.clear();
    options.memory.model.caches.back().overwrite_per_byte_ns = 0.2;
    CHECK(simulated(schedules, options).completion() == 200'000);
    options.memory.buffers_mapped = true;
    CHECK(simulated(schedules, options).completion() == 0);
}

TEST_CASE("sim: programs that do not fit together are refused by name", "[sim]") {
    const auto placement = topo::Placement::one_host(2);
    const sim::Options options = options_of(kPaper);
    const auto run = [&](const char* first, const char* second) {
        sim::Simulator simulator(placement, options);
        for (const char* text : {first, second}) {
            const Result<graph::Schedule> schedule = graph::parse_text(text);
            INFO(schedule.status().message());
            REQUIRE(schedule.ok());
            simulator.add(*schedule);
        }
        const Result<sim::Outcome> outcome = simulator.run(1);
        REQUIRE(!outcome.ok());
        CHECK(outcome.status().code() == Code::invalid_argument);
        return std::string(outcome.status().message());
    };
    const char* const idle =
        "schedule allreduce x rank 1 of 2 input 8 output 8 scratch 0 element 8\n";
    CHECK(run("schedule allreduce x rank 0 of 2 input 8 output 8 scratch 0 element 8\n"
              "0: send to 1 input[0:8]\n",
              idle) == "rank 1 never receives a message from rank 0");
    CHECK(run("schedule allreduce x rank 0 of 2 input 8 output 8 scratch 0 element 8\n"
              "0: await 1\n",
              idle)
              .find("rank 0 waits for ever") == 0);
    CHECK(
        run("schedule barrier x rank 0 of 2 input 0 output 0 scratch 0 element 1 flag_slot 0\n"
            "0: copy flag_slot@1[0:0] -> output[0:0]\n",
            "schedule barrier x rank 1 of 2 input 0 output 0 scratch 0 element 1 flag_slot 0\n") ==
        "rank 0 waits for ever before op 0 for what rank 1 does not share");
    CHECK(run("schedule allreduce x rank 0 of 2 input 8 output 8 scratch 0 element 8\n"
              "0: send to 1 input[0:8]\n",
              "schedule allreduce x rank 1 of 2 input 8 output 8 scratch 0 element 8\n"
              "0: recv from 0 output[0:4]\n") ==
          "rank 0 sends 8 bytes to rank 1, which expects 4 bytes");
}

TEST_CASE("sim: a run that comes to the longest price has no end", "[sim]") {
    constexpr Rank kRanks = 80;
    constexpr double kDays = 1e15; // Longer than a run may take.
    const auto hosts = topo::Placement::regular(2, kRanks / 2);
    const graph::Request request = request_of(graph::Collective::gather, kRanks, 8);
    const auto refused = [&](const sim::Options& options) {
        sim::Simulator simulator(hosts, options);
        for (const graph::Schedule& schedule : planned(hosts, request, "linear")) {
            simulator.add(schedule);
        }
        const Result<sim::Outcome> outcome = simulator.run(1);
        REQUIRE(!outcome.ok());
        return std::string(outcome.status().message()).find("as long as a run may take") !=
               std::string::npos;
    };
    CHECK(refused(network_only(cost::Postal{.alpha_ns = kDays})));
    CHECK(refused(network_only(cost::Postal{.beta_ns_per_byte = kDays})));
    CHECK(refused(network_only(cost::LogP{.overhead_ns = kDays})));
    sim::Options late = options_of(kPaper);
    late.arrival_ns.assign(kRanks, kDays);
    CHECK(refused(late));
    sim::Options linked = options_of(kPaper);
    linked.host_link = {kDays, 0};
    CHECK(refused(linked));
}

TEST_CASE("sim: options out of range are refused", "[sim]") {
    sim::Options options = options_of(kPaper);
    CHECK(sim::check(options, 4).ok());
    options.arrival_ns = {1, 2};
    CHECK(!sim::check(options, 4).ok());
    options.arrival_ns = {1, 2, -3, 4};
    CHECK(!sim::check(options, 4).ok());
    options.arrival_ns.clear();
    options.skew = {Distribution::Kind::uniform, 5, 1};
    CHECK(!sim::check(options, 4).ok());
    options.skew = {Distribution::Kind::pareto, 5, 0};
    CHECK(!sim::check(options, 4).ok());
    options.skew = {};
    options.network = cost::LogfP{.free_messages = 0};
    CHECK(!sim::check(options, 4).ok());
    options.network = cost::Postal{.alpha_ns = -1};
    CHECK(!sim::check(options, 4).ok());
    options.network = {};
    CHECK(sim::check(options, 4).ok());
    options.memory.model.levels[0].per_byte_ns = -1;
    CHECK(!sim::check(options, 4).ok());
}
