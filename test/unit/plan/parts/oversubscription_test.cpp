#include "test/support/catch.hpp"
#include "test/unit/plan/every_row.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::plan {
namespace {

constexpr Rank kRanks = 8;

/// Eight ranks that share a cache and reach one another's memory, on `8 / ranks_per_cpu`
/// processors.
class Host {
  public:
    explicit Host(double ranks_per_cpu) : ranks_per_cpu_(ranks_per_cpu) {}

    Facts facts() const {
        return {placement_, profile_, shared_memory(placement_, profile_, 1 << 20, false),
                ranks_per_cpu_};
    }
    double cost_ns(graph::Collective collective, std::string_view name, std::uint64_t bytes) const {
        const Algorithm* row = find_algorithm(collective, name);
        REQUIRE(row != nullptr);
        return row->cost_ns(facts(), request(collective, bytes));
    }

  private:
    static graph::Request request(graph::Collective collective, std::uint64_t bytes) {
        graph::Request request;
        request.collective = collective;
        request.rank_count = kRanks;
        request.bytes = bytes;
        request.element_bytes = 8;
        return request;
    }

    topo::Placement placement_ = topo::Placement::regular(1, kRanks);
    const cost::Profile& profile_ = cost::default_profile();
    double ranks_per_cpu_;
};

} // namespace

TEST_CASE("plan: a rank of its own processor has no work of others to wait for",
          "[plan][oversubscription]") {
    const Host host(1);
    const Facts facts = host.facts();
    const auto never = [](const Work&) -> double {
        FAIL("asked");
        return 0;
    };
    CHECK(oversubscribed_ns(facts, host_link(facts), 1, 7.0, never) == 7.0);
}

TEST_CASE("plan: work of all ranks takes its time, and so does the longest path",
          "[plan][oversubscription]") {
    const Host host(4);
    const Facts facts = host.facts();
    const Link link = host_link(facts);
    const double turn = turn_ns(facts.profile, 4);
    CHECK(turn > 0);
    CHECK(oversubscribed_ns(facts, link, 1, 1e6, [](const Work&) { return 10.0; }) == 1e6);
    CHECK(oversubscribed_ns(facts, link, 1, 10, [](const Work&) { return 1e6; }) == turn + 4e6);
}

TEST_CASE("plan: in processor time nobody waits, and caches serve all ranks of a processor",
          "[plan][oversubscription]") {
    const Host host(4);
    const Facts facts = host.facts();
    const Link link = host_link(facts);
    const Link small = link.at_work(facts, 4096);
    CHECK(small.message_ns(8) < link.message_ns(8));
    CHECK(small.relay_gap_ns(8) == small.message_ns(8));
    // Two MiB of cache hold the buffer of one rank, and not those of four.
    const Link large = link.at_work(facts, 1 << 20);
    CHECK(large.copy_ns(1 << 20) > 2 * small.copy_ns(1 << 20));
    CHECK(large.message_ns(1 << 20) > small.message_ns(1 << 20));
    CHECK(large.reduce_ns(2, 1 << 10) > small.reduce_ns(2, 1 << 10));
    CHECK(Work(facts, link, 1 << 20).read_ns(1 << 10) >=
          Work(facts, link, 1 << 10).read_ns(1 << 10));
}

TEST_CASE("plan: where ranks share processors, less work in all beats shorter paths",
          "[plan][oversubscription]") {
    using graph::Collective;
    constexpr std::uint64_t kBytes = 256 << 10;
    const Host alone(1);
    const Host oversubscribed(4);
    // By the one algorithm each rank copies and combines the vector three times, by the other once.
    const auto ratio = [&](const Host& host) {
        return host.cost_ns(Collective::allreduce, "recursive_doubling", kBytes) /
               host.cost_ns(Collective::allreduce, "tiled_naive", kBytes);
    };
    CHECK(ratio(oversubscribed) > 1.5 * ratio(alone));
    for (const Algorithm& row : algorithms()) {
        if (row.collective == Collective::allreduce && row.name != "two_level" &&
            row.name != "tiled_hierarchical") {
            INFO(row.name);
            CHECK(oversubscribed.cost_ns(Collective::allreduce, row.name, kBytes) >
                  alone.cost_ns(Collective::allreduce, row.name, kBytes));
        }
    }
    const auto tiles_win = [&](const Host& host) {
        return host.cost_ns(Collective::allreduce, "tiled_naive", 4 * kBytes) <
               host.cost_ns(Collective::allreduce, "rabenseifner", 4 * kBytes);
    };
    CHECK(tiles_win(oversubscribed));
    CHECK_FALSE(tiles_win(alone));
}

TEST_CASE("plan: schedules of ranks that share processors are right", "[plan][oversubscription]") {
    const test::Trials trials{
        .counts = {2, 5, 8, 13}, .bytes = {0, 8, 120, 4096}, .ranks_per_cpu = 8};
    test::for_every_row(trials, [](const test::Trial& trial) {
        INFO(trial.describe());
        CHECK(test::prove(trial.facts, trial.row.name, trial.sample).message() == "");
    });
}

TEST_CASE("plan: a few more ranks than processors scatter no faster than as many",
          "[plan][oversubscription]") {
    constexpr std::uint64_t kCopiedOnce = 16 << 10;
    const auto linear_ns = [](double ranks_per_cpu) {
        return Host(ranks_per_cpu).cost_ns(graph::Collective::scatter, "linear", kCopiedOnce);
    };
    CHECK(linear_ns(8.0 / 7) > 0.8 * linear_ns(1));
    CHECK(linear_ns(2) > 0.4 * linear_ns(1));
}

} // namespace ucg::plan
