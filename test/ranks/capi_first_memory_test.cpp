// Groups whose ranks share no memory yet, made without waiting, with one thread for all ranks.
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "test/ranks/capi_creation_orders.hpp"
#include "test/support/catch.hpp"
#include "test/support/forked_group.hpp"

using namespace ucg::test;

namespace {

/// Leaves this process no descriptor to open.
bool take_descriptors_away() {
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    const rlimit limit = {static_cast<rlim_t>(next), static_cast<rlim_t>(next)};
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

} // namespace

TEST_CASE("capi: ranks that share memory for the first time make their group without waiting",
          "[capi][creation]") {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        const JobContexts job(4, {{"TLS", "shm"}});
        std::mt19937 random(seed);
        std::vector<Members> groups;
        groups.emplace_back(std::vector<std::size_t>{0, 1, 2, 3});
        REQUIRE(make_all(job, groups, random) == "");
        REQUIRE(add_up(job, groups, random) == "");
        groups[0].destroy();
    }
}

TEST_CASE("capi: ranks that share memory with others than one another map it without waiting",
          "[capi][creation]") {
    const JobContexts job(4, {{"TLS", "shm"}});
    std::mt19937 random(1);
    const std::vector<std::size_t> all = {0, 1, 2, 3};
    REQUIRE(job.share_memory({0, 1}) == "");
    std::vector<Members> groups;
    groups.emplace_back(std::vector<std::size_t>{0, 1});
    CHECK(groups[0].make(job) == Outcomes(2, UCG_OK));
    CHECK(groups[0].creations[0]->exchanges() == 1); // It is like the one before.
    REQUIRE(job.share_memory({2, 3}) == "");
    groups.emplace_back(all);
    CHECK(groups[1].make(job) == Outcomes(4, UCG_OK)); // All ranks have memory by now.
    CHECK(groups[1].creations[0]->exchanges() == 3);
    groups.emplace_back(all);
    CHECK(groups[2].make(job) == Outcomes(4, UCG_OK));
    CHECK(groups[2].creations[0]->exchanges() == 1);
    CHECK(add_up(job, groups, random) == "");
    for (Members& members : groups) {
        members.destroy();
    }
}

TEST_CASE("capi: a group whose ranks have not all come keeps no other from making their memory",
          "[capi][creation]") {
    const JobContexts job(3, {{"TLS", "shm"}});
    const bool waits = GENERATE(false, true);
    CAPTURE(waits);
    Members late({0, 1});
    REQUIRE(late.creations[0]->start(job.context(0)) == UCG_OK);
    if (waits) {
        REQUIRE(job.share_memory() == "");
    } else {
        Members members({0, 1, 2});
        CHECK(members.make(job) == Outcomes(3, UCG_OK));
        members.destroy();
    }
    REQUIRE(late.creations[1]->start(job.context(1)) == UCG_OK);
    CHECK(late.test_all() == Outcomes(2, UCG_ERR_BUSY));
    Members again({0, 1});
    CHECK(again.make(job) == Outcomes(2, UCG_OK));
    again.destroy();
}

TEST_CASE("capi: a group is not made while one of its ranks makes its memory for another",
          "[capi][creation]") {
    const JobContexts job(3, {{"TLS", "shm"}});
    std::mt19937 random(1);
    std::vector<Members> groups;
    groups.emplace_back(std::vector<std::size_t>{0, 1});
    for (std::size_t rank = 0; rank < 2; ++rank) {
        REQUIRE(groups[0].creations[rank]->start(job.context(rank)) == UCG_OK);
    }
    groups[0].creations[0]->test(); // After this it knows that all ranks have come.
    for (int i = 0; i < 2; ++i) {   // The first attempt has changed nothing.
        CHECK(Members({0, 1, 2}).make(job) == Outcomes(3, UCG_ERR_BUSY));
    }
    CHECK_THAT(job.share_memory(), ContainsSubstring(ucg_status_string(UCG_ERR_BUSY)));
    void* memory = nullptr;
    CHECK(ucg_mem_alloc(job.context(0), 1, &memory) == UCG_ERR_BUSY);
    CHECK(groups[0].test_all() == Outcomes(2, UCG_OK));
    groups.emplace_back(std::vector<std::size_t>{0, 1, 2});
    CHECK(groups[1].make(job) == Outcomes(3, UCG_OK));
    CHECK(add_up(job, groups, random) == "");
    for (Members& members : groups) {
        members.destroy();
    }
}

TEST_CASE("capi: memory of the program's own is there before that of a group that is being made",
          "[capi][creation]") {
    const JobContexts job(2, {{"TLS", "shm"}});
    Members members({0, 1});
    REQUIRE(members.creations[0]->start(job.context(0)) == UCG_OK);
    void* memory = nullptr;
    REQUIRE(ucg_mem_alloc(job.context(0), 1, &memory) == UCG_OK);
    REQUIRE(members.creations[1]->start(job.context(1)) == UCG_OK);
    CHECK(members.test_all() == Outcomes(2, UCG_ERR_BUSY));
    Members again({0, 1});
    CHECK(again.make(job) == Outcomes(2, UCG_OK));
    again.destroy();
    ucg_mem_free(job.context(0), memory);
}

TEST_CASE("capi: groups are made at a time by ranks that share no memory yet, if they try again",
          "[capi][creation]") {
    for (unsigned seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        const JobContexts job(4, {{"TLS", "shm"}});
        std::mt19937 random(seed);
        constexpr int kTries = 50;
        std::string made = ucg_status_string(UCG_ERR_BUSY);
        for (int i = 0; i < kTries && made == ucg_status_string(UCG_ERR_BUSY); ++i) {
            std::vector<Members> groups = overlapping_groups();
            made = make_all(job, groups, random);
            if (made.empty()) {
                CHECK(add_up(job, groups, random) == "");
            }
            for (Members& members : groups) {
                members.destroy();
            }
        }
        CHECK(made == "");
    }
}

TEST_CASE("capi: memory that is being made is given back when its group is abandoned",
          "[capi][creation]") {
    // The steps lead into the making of the memory, and of the group.
    for (int steps = 0; steps < 8; ++steps) {
        CAPTURE(steps);
        const JobContexts job(3, {{"TLS", "shm"}});
        auto& creations = never_ended({0, 1, 2}).creations;
        for (std::size_t rank = 0; rank < 3; ++rank) {
            REQUIRE(creations[rank]->start(job.context(rank)) == UCG_OK);
        }
        for (int step = 0; step < steps; ++step) {
            for (const auto& creation : creations) {
                creation->test();
            }
        }
        for (const auto& creation : creations) {
            if (creation->outcome() == UCG_INPROGRESS) {
                creation->abandon();
            } else {
                ucg_group_destroy(creation->group);
            }
        }
        Members after({0, 1, 2});
        CHECK(after.make(job) == Outcomes(3, UCG_OK));
        after.destroy();
    }
}

TEST_CASE("capi: a rank that leaves while memory is being made costs the others that group alone",
          "[capi][creation]") {
    const std::size_t leaver = GENERATE(as<std::size_t>(), 0, 2); // The first makes the memory.
    // The steps lead into the making of the memory, and of the group.
    for (int steps = 0; steps < 8; ++steps) {
        CAPTURE(leaver, steps);
        const JobContexts job(3, {{"TLS", "shm"}}); // Without shared memory there is no group.
        auto& creations = never_ended({0, 1, 2}).creations;
        for (std::size_t rank = 0; rank < 3; ++rank) {
            REQUIRE(creations[rank]->start(job.context(rank)) == UCG_OK);
        }
        for (int step = 0; step < steps; ++step) {
            for (const auto& creation : creations) {
                creation->test();
            }
        }
        const auto leave = [](Creation& creation) {
            if (creation.outcome() == UCG_INPROGRESS) {
                creation.abandon();
            } else if (creation.group != nullptr) {
                ucg_group_destroy(creation.group);
            }
        };
        leave(*creations[leaver]);
        const std::vector<std::size_t> others = {2 - leaver, 1};
        for (int round = 0; round < 100; ++round) { // They may see it, or wait for it.
            for (const std::size_t rank : others) {
                creations[rank]->test();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(2)); // Calls have pauses.
        }
        for (const std::size_t rank : others) {
            leave(*creations[rank]);
        }
        Members after(others);
        CHECK(after.make(job) == Outcomes(2, UCG_OK));
        after.destroy();
    }
}

TEST_CASE("capi: a rank that cannot map the others' memory costs them its groups alone",
          "[capi][creation][errors]") {
    const auto results = fork_ranks(3, std::chrono::seconds(60), [](const ForkedRank& rank) {
        ucg_context_h context = JobContexts::make_context({{"TLS", "shm"}, {"LOG_LEVEL", "error"}});
        void* memory = nullptr;
        if (ucg_mem_alloc(context, 1, &memory) != UCG_OK) { // So each has a segment of its own.
            return std::string("no memory");
        }
        if (rank.rank() == 2 && !take_descriptors_away()) {
            return std::string("cannot be limited");
        }
        const PartGroup all(rank, context, 0, 3);
        const PartGroup some(rank, context, rank.rank() / 2 * 2, rank.rank() < 2 ? 2 : 1);
        return std::string(all.group != nullptr    ? "a group of all"
                           : some.group == nullptr ? "no group of the others"
                                                   : "");
    });
    for (const RankResult& result : results) {
        INFO(result.output);
        CHECK(result.ok());
    }
}
