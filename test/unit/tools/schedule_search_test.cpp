// The search for a schedule against the simulation of every schedule.
#include <algorithm>

#include "test/support/catch.hpp"
#include "tools/ucg_plan/schedule_search.hpp"
#include "ucg_coll/plan/multiplying/choice.hpp"
#include "ucg_coll/plan/plan.hpp"

using namespace ucg;
using namespace ucg::tools;

namespace {

constexpr cost::PipeliningPostal kPipelining = {.alpha_p_ns = 400,
                                                .alpha_r_ns = 100,
                                                .beta_ns_per_byte = 0.4,
                                                .gamma_ns_per_byte = 0.1,
                                                .reduce_fixed_ns = 10};

sim::Options options_of(const sim::NetworkModel& network) {
    sim::Options options;
    options.network = network;
    options.compute = sim::compute_of(kPipelining);
    return options;
}

SearchQuestion question_of(const plan::Facts& facts, const sim::Options& options) {
    graph::Request request;
    request.rank_count = facts.placement.rank_count();
    request.collective = graph::Collective::allreduce;
    request.bytes = 40;
    return {.facts = facts,
            .options = options,
            .request = request,
            .bounds = {Orders::every},
            .top = 5,
            .schedules_limit = 1'000'000,
            .runs_limit = 1'000'000};
}

void ignore(std::string_view, std::uint64_t, std::uint64_t) {}

/// Checks that no bound is above the price of its schedule, and that the search finds the cheapest
/// schedules.
void check(const plan::Facts& facts, const sim::Options& options) {
    const SearchQuestion question = question_of(facts, options);
    std::vector<double> prices;
    enumerate_multiplying(question.request.rank_count, question.bounds,
                          [&](const plan::MultiplyingSchedule& schedule) {
                              const Result<PricedSchedule> priced =
                                  price_schedule(question, to_text(schedule));
                              REQUIRE(priced.ok());
                              INFO(priced->text);
                              CHECK(schedule_bound_ns(question, schedule) <= priced->ns);
                              prices.push_back(priced->ns);
                              return true;
                          });
    std::sort(prices.begin(), prices.end());
    const Result<SearchResult> found = search_schedules(question, ignore);
    REQUIRE(found.ok());
    CHECK(found->enumerated == prices.size());
    REQUIRE(found->best.size() == std::min<std::size_t>(question.top, prices.size()));
    CHECK(found->all_enumerated);
    CHECK(found->all_priced);
    for (std::size_t i = 0; i < found->best.size(); ++i) {
        CHECK(found->best[i].ns == Approx(prices[i]));
    }
}

} // namespace

TEST_CASE("search: finds what simulating everything finds", "[search]") {
    const cost::LogGp loggp = {
        .latency_ns = 300, .overhead_ns = 80, .gap_ns = 120, .gap_per_byte_ns = 0.5};
    const std::vector<sim::NetworkModel> networks = {
        kPipelining,
        cost::Postal{.alpha_ns = 500, .beta_ns_per_byte = 0.4},
        cost::LogP{.latency_ns = 200, .overhead_ns = 90, .gap_ns = 30},
        cost::LogfP{.latency_ns = 200, .overhead_ns = 20, .gap_ns = 90, .free_messages = 3},
        loggp,
        sim::PerLevel(cost::default_profile()),
    };
    for (std::size_t i = 0; i < networks.size(); ++i) {
        for (Rank count = 2; count <= 16; ++count) {
            INFO("network " << i << ", " << count << " ranks");
            const topo::Placement placement = topo::Placement::one_host(count);
            check({placement, cost::default_profile()}, options_of(networks[i]));
        }
        INFO("network " << i << ", hosts of 4");
        sim::Options shared = options_of(networks[i]);
        shared.host_link = sim::HostLink{20, 0.5};
        const topo::Placement placement = topo::Placement::regular(3, 4);
        check({placement, cost::default_profile()}, shared);
    }
}

TEST_CASE("search: finds it where ranks take turns on processors, too", "[search]") {
    const topo::Placement placement = topo::Placement::one_host(12);
    plan::Facts facts{placement, cost::default_profile()};
    const auto cheapest_ns = [&] {
        const sim::Options options =
            options_of(sim::PerLevel(facts.profile, plan::surroundings(facts)));
        check(facts, options);
        return search_schedules(question_of(facts, options), ignore)->best.front().ns;
    };
    const double alone_ns = cheapest_ns();
    facts.ranks_per_cpu = 4;
    CHECK(cheapest_ns() > alone_ns);
}

TEST_CASE("search: limits are kept and told", "[search]") {
    const topo::Placement placement = topo::Placement::one_host(24);
    const plan::Facts facts{placement, cost::default_profile()};
    const sim::Options options = options_of(kPipelining);
    SearchQuestion question = question_of(facts, options);
    question.schedules_limit = 100;
    const Result<SearchResult> few = search_schedules(question, ignore);
    REQUIRE(few.ok());
    CHECK(few->enumerated == 100);
    CHECK(!few->all_enumerated);
    question.schedules_limit = 1'000'000;
    question.runs_limit = 6;
    std::uint64_t simulated = 0, compared = 0;
    const SearchProgress progress = [&](std::string_view stage, std::uint64_t done,
                                        std::uint64_t most) {
        CHECK(done <= most);
        simulated += stage == "simulated" ? 1 : 0;
        compared = stage == "compared" ? most : compared;
    };
    const Result<SearchResult> hasty = search_schedules(question, progress);
    REQUIRE(hasty.ok());
    CHECK(hasty->simulated <= 6 + question.top); // The first schedules are always priced.
    CHECK(!hasty->all_priced);
    CHECK(simulated == hasty->simulated);
    // The callback comes only after each 65,536.
    CHECK((compared == 0 || compared == hasty->enumerated));
}

/// Networks whose links are unlike any real ones; one of them is what a profile says of its
/// network.
std::vector<sim::NetworkModel> many_networks() {
    return {
        kPipelining,
        cost::PipeliningPostal{.alpha_p_ns = 500, .alpha_r_ns = 500},
        cost::PipeliningPostal{.alpha_p_ns = 2000, .alpha_r_ns = 50, .beta_ns_per_byte = 0.1},
        cost::PipeliningPostal{.alpha_p_ns = 10'000, .alpha_r_ns = 100},
        cost::Postal{.alpha_ns = 500, .beta_ns_per_byte = 0.4},
        cost::LogP{.latency_ns = 200, .overhead_ns = 90, .gap_ns = 30},
        cost::LogP{.latency_ns = 400, .overhead_ns = 50, .gap_ns = 200},
        cost::LogGp{.latency_ns = 300, .overhead_ns = 80, .gap_ns = 120, .gap_per_byte_ns = 0.5},
        sim::PerLevel(cost::default_profile()),
    };
}

/// Compares the choice with the cheapest of all schedules, both simulated.
void compare_choice(const sim::NetworkModel& network, Rank count) {
    const topo::Placement placement = topo::Placement::regular(count, 1);
    const plan::Facts facts{placement, cost::default_profile()};
    sim::Options options;
    options.network = network;
    options.compute = std::holds_alternative<sim::PerLevel>(network)
                          ? sim::compute_of(cost::default_profile())
                          : sim::Compute{.combine_ns = 5};
    SearchQuestion question = question_of(facts, options);
    question.bounds.orders = Orders::falling;
    question.top = 1;
    const Result<SearchResult> found = search_schedules(question, ignore);
    const Result<plan::MultiplyingSchedule> choice = planner_choice(question);
    REQUIRE((found.ok() && choice.ok()));
    const Result<PricedSchedule> priced = price_schedule(question, to_text(*choice));
    REQUIRE(priced.ok());
    INFO(count << " ranks: " << priced->text << ", but " << found->best[0].text);
    CHECK(priced->ns <= 1.02 * found->best[0].ns);
}

TEST_CASE("search: the planner's choice costs little more than the cheapest, simulated",
          "[search]") {
    for (const sim::NetworkModel& network : many_networks()) {
        for (const Rank count : {2, 3, 5, 7, 11, 13, 16, 23, 24, 31, 37}) {
            compare_choice(network, count);
        }
    }
}

TEST_CASE("search: the same for all groups that are priced rank by rank", "[.exhaustive][search]") {
    for (const sim::NetworkModel& network : many_networks()) {
        for (Rank count = 2; count <= plan::kPricedByRank; ++count) {
            compare_choice(network, count);
        }
    }
}
