// Heaps that are made together and attached in steps, none of which waits: one thread plays all
// ranks.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "shm/heap.hpp"
#include "test/support/catch.hpp"
#include "test/unit/shm/heap_support.hpp"

namespace {

using namespace ucg;
using namespace std::chrono_literals;
using shm::Heap;
using shm::HeapAddress;
using shm::HeapAttach;
using shm::HeapJoin;
using Clock = HeapJoin::Clock;
using test::require_all_ok;

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;
constexpr auto kNever = Clock::time_point::max();

/// The steps of one rank, and their outcome once there is one.
template <typename Steps, typename Outcome>
struct Progress {
    std::unique_ptr<Steps> steps;
    std::optional<Outcome> outcome;

    void step() {
        if (!outcome) {
            outcome = steps->step(Clock::now());
        }
    }
};

using Join = Progress<HeapJoin, Result<std::unique_ptr<Heap>>>;
using Attach = Progress<HeapAttach, Status>;

/// Makes steps in random order until all have ended or `rounds` are over.
template <typename Progress>
bool step_all(std::vector<Progress>& all, std::mt19937& random, int rounds) {
    const auto ended = [](const Progress& progress) { return progress.outcome.has_value(); };
    for (int round = 0; round < rounds && !std::all_of(all.begin(), all.end(), ended); ++round) {
        all[random() % all.size()].step();
    }
    return std::all_of(all.begin(), all.end(), ended);
}

constexpr int kRounds = 1000000;

/// The same where a clock brings about the end.
template <typename Progress>
void step_to_the_end(std::vector<Progress>& all, std::mt19937& random) {
    const auto begin = std::chrono::steady_clock::now();
    while (!step_all(all, random, kRounds)) {
        REQUIRE(std::chrono::steady_clock::now() - begin < 30s);
    }
}

std::vector<Join> joins(std::size_t count) {
    std::vector<shm::Door> doors;
    std::vector<shm::HeapWish> wishes;
    for (std::size_t i = 0; i < count; ++i) {
        doors.push_back(shm::Door::open().value());
        wishes.push_back({doors[i].token(), doors[i].key(), kMebi, ~std::uint64_t{0}});
    }
    std::vector<Join> all(count);
    for (std::size_t i = 0; i < count; ++i) {
        all[i].steps =
            std::make_unique<HeapJoin>(shm::HeapOptions(), std::move(doors[i]), wishes, i, kNever);
    }
    return all;
}

std::vector<std::unique_ptr<Heap>> heaps(std::size_t count) {
    std::vector<std::unique_ptr<Heap>> all;
    for (std::size_t i = 0; i < count; ++i) {
        all.push_back(Heap::create({kMebi}).value());
    }
    return all;
}

std::vector<HeapAddress> addresses(const std::vector<std::unique_ptr<Heap>>& heaps,
                                   const std::vector<std::size_t>& members) {
    std::vector<HeapAddress> all;
    for (const std::size_t member : members) {
        all.push_back(heaps[member]->address());
    }
    return all;
}

/// Lets each of the members begin to attach to all of them.
void begin(std::vector<Attach>& all, const std::vector<std::unique_ptr<Heap>>& heaps,
           const std::vector<std::size_t>& members) {
    const std::vector<HeapAddress> peers = addresses(heaps, members);
    for (const std::size_t member : members) {
        all.push_back({std::make_unique<HeapAttach>(*heaps[member], peers, kNever), {}});
    }
}

} // namespace

TEST_CASE("shm/steps: ranks that wait for nobody make their heaps together", "[shm]") {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        std::vector<Join> all = joins(5);
        REQUIRE(step_all(all, random, kRounds));
        for (const Join& join : all) {
            REQUIRE(join.outcome->ok());
        }
        const HeapAddress first = (**all[0].outcome)->address();
        for (const Join& join : all) {
            CHECK((**join.outcome)->address().segment == first.segment);
            CHECK((**join.outcome)->base_of(first.token) != nullptr);
        }
    }
}

TEST_CASE("shm/steps: a heap that is given up is missed by nobody for long", "[shm]") {
    const std::size_t gone = GENERATE(0, 2);
    CAPTURE(gone);
    std::mt19937 random(1);
    std::vector<Join> all = joins(3);
    for (Join& join : all) {
        join.step();
    }
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(gone));
    // The giver looks only now and then for callers that are silent, so a clock decides when this
    // ends.
    step_to_the_end(all, random);
    const Code code = all[0].outcome->ok() ? Code::ok : all[0].outcome->status().code();
    CHECK(code == Code::unreachable);
}

TEST_CASE("shm/steps: groups that cross attach at a time, in any order", "[shm]") {
    for (unsigned seed = 1; seed <= 30; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        const auto ranks = heaps(4);
        std::vector<Attach> all;
        for (const std::vector<std::size_t>& members : std::vector<std::vector<std::size_t>>{
                 {0, 1}, {1, 2, 3}, {0, 1, 2, 3}, {3, 0}, {2, 0}, {1, 2, 3}}) {
            begin(all, ranks, members);
        }
        REQUIRE(step_all(all, random, kRounds));
        for (const Attach& attach : all) {
            CHECK(attach.outcome->message() == "");
        }
        for (const auto& heap : ranks) {
            for (const HeapAddress& peer : addresses(ranks, {0, 1, 2, 3})) {
                CHECK(heap->base_of(peer.token) != nullptr);
            }
        }
    }
}

TEST_CASE("shm/steps: an attachment that is given up keeps no other from its peers", "[shm]") {
    std::mt19937 random(1);
    const auto ranks = heaps(3);
    std::vector<Attach> given_up;
    begin(given_up, ranks, {0, 1, 2});
    for (int i = 0; i < 3; ++i) {
        static_cast<void>(step_all(given_up, random, i));
    }
    std::vector<Attach> all;
    begin(all, ranks, {0, 1, 2});
    given_up.clear();
    REQUIRE(step_all(all, random, kRounds));
    for (const Attach& attach : all) {
        CHECK(attach.outcome->message() == "");
    }
}

TEST_CASE("shm/steps: a peer that is gone fails those alone who want it", "[shm]") {
    std::mt19937 random(1);
    auto ranks = heaps(3);
    const std::vector<HeapAddress> all_three = addresses(ranks, {0, 1, 2});
    ranks[2].reset();
    std::vector<Attach> hopeless;
    for (const std::size_t rank : {0, 1}) {
        hopeless.push_back({std::make_unique<HeapAttach>(*ranks[rank], all_three, kNever), {}});
    }
    std::vector<Attach> all;
    begin(all, ranks, {0, 1});
    step_to_the_end(hopeless, random); // The second caller waits for a while.
    CHECK(hopeless[0].outcome->code() == Code::unreachable);
    CHECK(hopeless[1].outcome->code() == Code::unreachable);
    REQUIRE(step_all(all, random, kRounds));
    CHECK(all[0].outcome->ok());
    CHECK(all[1].outcome->ok());
}

TEST_CASE("shm/steps: who misses a peer that is gone still serves the others", "[shm]") {
    std::mt19937 random(1);
    auto ranks = heaps(3);
    const std::vector<HeapAddress> all_three = addresses(ranks, {0, 1, 2});
    ranks[2]->withdraw();
    std::vector<Attach> all;
    for (const std::size_t rank : {0, 1}) {
        constexpr int kAlone = 100; // The other has not come yet.
        all.push_back({std::make_unique<HeapAttach>(*ranks[rank], all_three, kNever), {}});
        CHECK(step_all(all, random, rank == 0 ? kAlone : 0) == false);
    }
    step_to_the_end(all, random);
    for (const Attach& attach : all) {
        CHECK(attach.outcome->code() == Code::unreachable);
    }
    CHECK(ranks[0]->base_of(all_three[1].token) != nullptr);
    CHECK(ranks[1]->base_of(all_three[0].token) != nullptr);
}

TEST_CASE("shm/steps: who was mapped and is gone does not come to be missed again", "[shm]") {
    std::mt19937 random(1);
    auto ranks = heaps(3);
    Attach all = {std::make_unique<HeapAttach>(*ranks[0], addresses(ranks, {0, 1, 2}), kNever), {}};
    std::vector<Attach> pair;
    begin(pair, ranks, {0, 1});
    REQUIRE(step_all(pair, random, kRounds));
    pair.clear();
    const std::vector<HeapAddress> gone = addresses(ranks, {1});
    ranks[1].reset();
    std::vector<Attach> others;
    // This drops heaps of ranks that have gone, where no member counts on them.
    begin(others, ranks, {0, 2});
    REQUIRE(step_all(others, random, kRounds));
    all.step();
    CHECK(all.outcome.has_value());
    CHECK(ranks[0]->base_of(gone[0].token) != nullptr);
}

TEST_CASE("shm/steps: who waits is not kept by what the same process has begun and left", "[shm]") {
    require_all_ok(test::fork_ranks(3, 30s, [](const test::ForkedRank& rank) -> std::string {
        auto heap = Heap::create({kMebi});
        const auto all = test::exchange(rank, (*heap)->address());
        const std::size_t self = static_cast<std::size_t>(rank.rank());
        const std::vector<HeapAddress> pair = {all[self], all[(self + 1) % 3]};
        HeapAttach begun(**heap, pair, kNever);
        // This one makes as many steps as its rank number, as far as they get.
        for (int i = 0; i < rank.rank(); ++i) {
            static_cast<void>(begun.step(Clock::now()));
        }
        rank.barrier();
        const Status status = (*heap)->attach(all, 20s);
        const bool both = status.ok() && begun.step(Clock::now()).has_value();
        rank.barrier();
        return both ? "" : "not attached: " + std::string(status.message());
    }));
}
