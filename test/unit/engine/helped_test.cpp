// Ranks that help one another: the ranks that call the library do what is due, in any order, and
// ranks that are elsewhere meanwhile find their part done.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <tuple>

#include "test/support/catch.hpp"
#include "test/unit/engine/reference.hpp"
#include "test/unit/plan/proof.hpp"
#include "ucg_coll/engine/helped.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg {
namespace {

using engine::HelpedProgram;
using engine::HelpedRun;
using plan::test::Case;
using transport::Help;
using transport::HelpedCall;
using transport::HelpedPart;
using Random = std::mt19937_64;

/// What all ranks see of one another.
struct World {
    struct Counts {
        std::uint64_t taken = 0;
        std::uint64_t done = 0;
    };
    Random random;
    /// The key is rank and sequence number.
    std::map<std::pair<Rank, std::uint32_t>, HelpedCall> calls;
    /// The key is rank, sequence number and part.
    std::map<std::tuple<Rank, std::uint32_t, std::uint32_t>, Counts> counts;
    /// Copies that the kernel does.
    unsigned copies = 0;
};

/// One rank's view, with all ranks in one thread. Each call is decided at random: a buffer is
/// mapped, it cannot be reached, or a copy succeeds only when it is tried again.
class FakeHelp final : public Help {
  public:
    FakeHelp(World& world, Rank rank) : world_(world), rank_(rank) {}

    bool reached(const std::byte*, std::uint64_t) override { return world_.random() % 4 != 0; }
    void begin(const HelpedCall& call) override { world_.calls[{rank_, call.sequence}] = call; }
    void end(std::uint32_t) override {}
    State look(const HelpedPart& part, std::uint32_t sequence) override {
        const World::Counts& counts = of(part, sequence);
        if (counts.done == part.units) {
            return State::over;
        }
        const bool begun = std::all_of(part.named.begin(), part.named.end(), [&](Rank rank) {
            return world_.calls.contains({rank, sequence});
        });
        return !begun ? State::waits : counts.taken < part.units ? State::ready : State::taken;
    }
    std::optional<std::uint32_t> take(const HelpedPart& part, std::uint32_t sequence) override {
        return static_cast<std::uint32_t>(of(part, sequence).taken++);
    }
    void unit_done(const HelpedPart& part, std::uint32_t sequence) override {
        ++of(part, sequence).done;
    }
    std::byte* mapped(Rank owner, graph::BufferKind buffer, std::uint32_t sequence) override {
        return world_.random() % 2 == 0 ? nullptr : at(owner, buffer, sequence);
    }
    Copied read(Rank owner, graph::BufferKind buffer, std::uint32_t sequence, std::uint64_t offset,
                std::span<std::byte> to) override {
        if (world_.random() % 4 == 0) {
            return Copied::later;
        }
        std::memcpy(to.data(), at(owner, buffer, sequence) + offset, to.size());
        ++world_.copies;
        return Copied::yes;
    }
    Copied write(Rank owner, graph::BufferKind buffer, std::uint32_t sequence, std::uint64_t offset,
                 std::span<const std::byte> from) override {
        if (world_.random() % 4 == 0) {
            return Copied::later;
        }
        std::memcpy(at(owner, buffer, sequence) + offset, from.data(), from.size());
        ++world_.copies;
        return Copied::yes;
    }

  private:
    World::Counts& of(const HelpedPart& part, std::uint32_t sequence) {
        return world_.counts[{part.owner, sequence, part.number}];
    }
    std::byte* at(Rank owner, graph::BufferKind buffer, std::uint32_t sequence) {
        REQUIRE(owner != rank_);
        const HelpedCall& call = world_.calls.at({owner, sequence});
        return buffer == graph::BufferKind::input ? call.input : call.output;
    }

    World& world_;
    Rank rank_;
};

/// What all ranks need to run one collective.
struct Executions {
    std::vector<std::unique_ptr<FakeHelp>> helps;
    std::vector<HelpedProgram> programs;
    std::vector<std::unique_ptr<HelpedRun>> runs;
};

Executions ranks_of(World& world, const plan::Facts& facts, const Case& sample) {
    Executions ranks;
    for (Rank rank = 0; rank < sample.rank_count; ++rank) {
        // These are the schedules as each rank knows them: where there is a root, a rank knows only
        // of itself whether it is called in place.
        std::vector<graph::Schedule> schedules;
        for (Rank other = 0; other < sample.rank_count; ++other) {
            graph::Request request = plan::test::request_of(sample, other);
            request.in_place =
                request.in_place && (other == rank || !graph::rooted(sample.collective));
            schedules.push_back(plan::plan(facts, request, other, "helped").value());
        }
        ranks.helps.push_back(std::make_unique<FakeHelp>(world, rank));
        ranks.programs.push_back(engine::helped_program(schedules, rank, *ranks.helps.back()));
    }
    for (const HelpedProgram& program : ranks.programs) {
        ranks.runs.push_back(std::make_unique<HelpedRun>(program));
    }
    return ranks;
}

/// Runs the collective once. Some ranks only begin it, and do nothing more until the others are
/// done, if the others can finish without them.
void run_once(Executions& ranks, World& world, const Case& sample, std::uint32_t sequence) {
    const auto count = static_cast<std::size_t>(sample.rank_count);
    std::vector<graph::Request> requests;
    for (Rank rank = 0; rank < sample.rank_count; ++rank) {
        requests.push_back(plan::test::request_of(sample, rank));
    }
    test::Reference data = test::make_reference(requests, world.random);
    const auto untouched = data.outputs;
    const std::size_t absent = world.random() % count;
    std::vector<bool> over(count, false);
    for (std::size_t i = 0; i < count; ++i) {
        ranks.runs[i]->begin(
            {sequence,
             0,
             data.inputs[i].data(),
             data.inputs[i].size(),
             data.outputs[i].data(),
             data.outputs[i].size(),
             {graph::reduces(sample.collective) ? test::compose : nullptr, nullptr}});
    }
    CHECK(data.outputs == untouched); // No other rank could do what a rank does as it begins.
    for (std::size_t left = count - 1, turns = 0; left > 0; ++turns) {
        REQUIRE(turns < 100000);
        const std::size_t i = world.random() % count;
        if (i != absent && !over[i] && ranks.runs[i]->advance() == HelpedRun::Outcome::over) {
            over[i] = true;
            --left;
        }
    }
    // The ranks that share a part with the absent one were all there, so its part is done.
    CHECK(ranks.runs[absent]->advance() == HelpedRun::Outcome::over);
    CHECK(data.outputs == data.results);
}

} // namespace

TEST_CASE("engine: ranks do what one that computes owes", "[engine][helped]") {
    unsigned tried = 0;
    World world;
    for (const graph::Collective collective :
         {graph::Collective::bcast, graph::Collective::reduce, graph::Collective::allreduce,
          graph::Collective::allgather, graph::Collective::alltoall}) {
        for (const Rank count : {2, 3, 4, 7}) {
            const topo::Placement placement = topo::Placement::one_host(count);
            const plan::Facts facts{
                placement, cost::default_profile(),
                plan::shared_memory(placement, cost::default_profile(), 0, false, 0, true)};
            for (const std::uint64_t bytes : {4096, 100008, 300008}) {
                for (const bool in_place : {false, true}) {
                    const Case sample{collective, count, count - 1, bytes, 8, in_place, false};
                    const graph::Request request = plan::test::request_of(sample, count - 1);
                    if (!graph::validate(request, count - 1).ok() ||
                        !plan::find_algorithm(collective, "helped")->eligible(facts, request)) {
                        continue;
                    }
                    INFO(plan::test::describe(sample));
                    Executions ranks = ranks_of(world, facts, sample);
                    for (std::uint32_t sequence = 0; sequence < 3; ++sequence) {
                        run_once(ranks, world, sample, 3 * tried + sequence);
                    }
                    ++tried;
                }
            }
        }
    }
    CHECK(tried == 96);
    CHECK(world.copies > 0);
}

} // namespace ucg
