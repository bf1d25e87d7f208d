// Groups that are made without waiting: several at a time, in any order, one thread for all ranks.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test/ranks/capi_creation.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace ucg::test;

using Outcomes = std::vector<ucg_status_t>;

/// A sum of all ranks of one group, at one of them.
struct Sum {
    std::vector<std::int64_t> in;
    std::vector<std::int64_t> out;
    ucg_coll_h coll = nullptr;
    ucg_status_t status = UCG_ERR_INTERNAL;

    void start(ucg_group_h group, std::size_t rank, std::size_t count) {
        in.assign(count, static_cast<std::int64_t>(rank) + 1);
        out.resize(count);
        const ucg_coll_params_t params = sum_of_ranks(in, out);
        status = ucg_coll_init(group, &params, &coll);
        if (status == UCG_OK) {
            status = ucg_coll_start(coll);
        }
    }
    bool test() {
        if (status == UCG_INPROGRESS) {
            status = ucg_coll_test(coll);
        }
        return status != UCG_INPROGRESS;
    }
    bool right(std::size_t size) const {
        const auto ranks = static_cast<std::int64_t>(size);
        return status == UCG_OK &&
               out == std::vector<std::int64_t>(in.size(), ranks * (ranks + 1) / 2);
    }
};

/// One rank of one group, among those in which ranks take part in an order of their own.
struct Seat {
    std::size_t group;
    std::size_t rank; ///< Of the group.
};

std::vector<std::vector<Seat>> seats_of(const Job& job, const std::vector<Members>& groups,
                                        std::mt19937& random) {
    std::vector<std::vector<Seat>> seats(job.size());
    for (std::size_t group = 0; group < groups.size(); ++group) {
        for (std::size_t rank = 0; rank < groups[group].ranks.size(); ++rank) {
            seats[groups[group].ranks[rank]].push_back({group, rank});
        }
    }
    for (std::vector<Seat>& each : seats) {
        std::shuffle(each.begin(), each.end(), random);
    }
    return seats;
}

/// All ranks make all groups, in orders of their own; returns what went wrong.
std::string make_all(const Job& job, std::vector<Members>& groups, std::mt19937& random) {
    std::vector<std::vector<Seat>> to_start = seats_of(job, groups, random);
    std::vector<std::vector<Seat>> started(job.size());
    constexpr int kTurns = 100000;
    for (int turn = 0; turn < kTurns; ++turn) {
        const std::size_t rank = random() % job.size();
        if (!to_start[rank].empty() && random() % 4 == 0) {
            const Seat seat = to_start[rank].back();
            to_start[rank].pop_back();
            started[rank].push_back(seat);
            if (groups[seat.group].creations[seat.rank]->start(job.context(rank)) != UCG_OK) {
                return "not started";
            }
        } else if (!started[rank].empty()) {
            const std::size_t index = random() % started[rank].size();
            const Seat seat = started[rank][index];
            if (groups[seat.group].creations[seat.rank]->test()) {
                started[rank].erase(started[rank].begin() + static_cast<std::ptrdiff_t>(index));
            }
        }
    }
    for (const Members& members : groups) {
        for (const auto& creation : members.creations) {
            if (creation->group == nullptr) {
                return ucg_status_string(creation->outcome());
            }
        }
    }
    return "";
}

/// Takes part in all sums at once; returns what went wrong.
std::string add_up(const Job& job, const std::vector<Members>& groups, std::mt19937& random) {
    std::vector<std::vector<Sum>> sums;
    for (const Members& members : groups) {
        sums.emplace_back(members.ranks.size());
    }
    for (const std::vector<Seat>& seats : seats_of(job, groups, random)) {
        for (const Seat& seat : seats) {
            const std::size_t count = seat.group % 2 == 0 ? 1 : 20000;
            sums[seat.group][seat.rank].start(groups[seat.group].creations[seat.rank]->group,
                                              seat.rank, count);
        }
    }
    constexpr int kRounds = 1000000;
    bool all = false;
    for (int round = 0; round < kRounds && !all; ++round) {
        all = true;
        for (std::vector<Sum>& of_group : sums) {
            for (Sum& sum : of_group) {
                all = sum.test() && all;
            }
        }
    }
    std::string complaint;
    for (std::vector<Sum>& of_group : sums) {
        for (const Sum& sum : of_group) {
            if (!sum.right(of_group.size())) {
                complaint = std::string("wrong sum: ") + ucg_status_string(sum.status);
            }
            ucg_coll_free(sum.coll);
        }
    }
    return complaint;
}

/// Exchanges that nobody ends have their memory for ever.
Members& never_ended(const std::vector<std::size_t>& ranks) {
    static auto& outstanding = *new std::vector<std::unique_ptr<Members>>;
    outstanding.push_back(std::make_unique<Members>(ranks));
    return *outstanding.back();
}

/// Over UCX. Nothing points to where the library keeps texts, but to their bytes.
constexpr std::size_t kOfTexts = 3;
#ifdef __SANITIZE_ADDRESS__
constexpr bool kCountsLeaks = true;
#else
constexpr bool kCountsLeaks = false;
#endif

std::vector<Members> overlapping_groups() {
    std::vector<Members> groups;
    for (const std::vector<std::size_t>& ranks : std::vector<std::vector<std::size_t>>{
             {0, 1, 2, 3}, {1, 0}, {3, 1, 2}, {0, 1, 2, 3}, {3, 0}, {2, 3}, {0, 1}, {2}}) {
        groups.emplace_back(ranks);
    }
    return groups;
}

} // namespace

TEST_CASE("capi: groups that are made at a time, in an order of its own at each rank, work",
          "[capi][creation]") {
    const bool shm = GENERATE(true, false);
    CAPTURE(shm);
    const Job job(4, {{"TLS", shm ? "shm" : "ucx"}});
    if (shm) {
        REQUIRE(job.share_memory() == "");
    }
    const unsigned seeds = shm ? 60 : 12;
    for (unsigned seed = 1; seed <= seeds; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        std::vector<Members> groups = overlapping_groups();
        REQUIRE(make_all(job, groups, random) == "");
        REQUIRE(add_up(job, groups, random) == "");
        for (Members& members : groups) {
            members.destroy();
        }
    }
}

TEST_CASE("capi: hosts that are not shared need no memory to be", "[capi][creation]") {
    const Job job(3, {{"TLS", "ucx"}});
    std::mt19937 random(1);
    std::vector<Members> groups;
    groups.emplace_back(std::vector<std::size_t>{0, 1, 2});
    CHECK(groups[0].make(job) == Outcomes(3, UCG_OK));
    CHECK(add_up(job, groups, random) == "");
    groups[0].destroy();
}

TEST_CASE("capi: a group whose ranks would have to wait for one another's memory is not made now",
          "[capi][creation]") {
    const Job job(4, {{"TLS", "shm"}});
    std::mt19937 random(1);
    const std::vector<std::size_t> all = {0, 1, 2, 3};
    for (int i = 0; i < 2; ++i) { // Nothing has changed by the first.
        CHECK(Members(all).make(job) == Outcomes(4, UCG_ERR_BUSY));
    }
    REQUIRE(job.share_memory({0, 1}) == "");
    CHECK(Members(all).make(job) == Outcomes(4, UCG_ERR_BUSY));
    std::vector<Members> low;
    low.emplace_back(std::vector<std::size_t>{0, 1});
    CHECK(low[0].make(job) == Outcomes(2, UCG_OK));
    CHECK(low[0].creations[0]->exchanges() == 1); // Like the one before.
    CHECK(add_up(job, low, random) == "");
    low[0].destroy();
    REQUIRE(job.share_memory({2, 3}) == "");
    Members strangers(all);
    CHECK(strangers.make(job) == Outcomes(4, UCG_ERR_BUSY)); // All have memory by now.
    CHECK(strangers.creations[0]->exchanges() == 2);
    REQUIRE(job.share_memory() == "");
    std::vector<Members> acquainted;
    acquainted.emplace_back(all);
    CHECK(acquainted[0].make(job) == Outcomes(4, UCG_OK));
    CHECK(add_up(job, acquainted, random) == "");
    acquainted[0].destroy();
}

TEST_CASE("capi: ranks that know others beside those of the group need not wait",
          "[capi][creation]") {
    const Job job(3, {{"TLS", "shm"}});
    REQUIRE(job.share_memory({0, 1}) == "");
    REQUIRE(job.share_memory({1, 2}) == "");
    std::vector<Members> groups;
    groups.emplace_back(std::vector<std::size_t>{0, 1});
    groups.emplace_back(std::vector<std::size_t>{1, 2});
    std::mt19937 random(1);
    REQUIRE(make_all(job, groups, random) == "");
    CHECK(groups[0].creations[0]->exchanges() == 2);
    CHECK(add_up(job, groups, random) == "");
    for (Members& members : groups) {
        members.destroy();
    }
}

TEST_CASE("capi: a group that one process cannot be in, or that disagrees, ends alike at all",
          "[capi][creation][errors]") {
    const Job job(2, {{"TLS", "ucx"}});
    Members absent({0, 1});
    REQUIRE(absent.creations[0]->start(job.context(0)) == UCG_OK);
    REQUIRE(absent.creations[1]->start(nullptr) == UCG_OK);
    CHECK(absent.test_all() == Outcomes(2, UCG_ERR_UNREACHABLE));

    Members broken({0, 1});
    REQUIRE(broken.creations[0]->start(job.context(0)) == UCG_OK);
    ucg_context_h other = Job::make_context({{"TLS", "ucx"}, {"ALLREDUCE", "ring"}});
    REQUIRE(broken.creations[1]->start(other) == UCG_OK);
    CHECK(broken.test_all() == Outcomes(2, UCG_ERR_DISAGREEMENT));
    CHECK(ucg_context_destroy(other) == UCG_OK);

    for (Members& members :
         std::array{Members({0, 1}), Members({0, 1}), Members({0, 1})}) { // The next one works.
        CHECK(members.make(job) == Outcomes(2, UCG_OK));
        members.destroy();
    }
}

TEST_CASE("capi: an exchange that cannot be started, or fails, is the end of its creation alone",
          "[capi][creation][errors]") {
    const Job job(2, {{"TLS", "ucx"}});
    for (int exchanges = 0; exchanges < 4; ++exchanges) {
        CAPTURE(exchanges);
        Members unlucky({0, 1});
        Members lucky({0, 1});
        for (const auto& creation : unlucky.creations) {
            creation->starts_left = exchanges;
        }
        for (std::size_t rank = 0; rank < 2; ++rank) {
            REQUIRE(unlucky.creations[rank]->start(job.context(rank)) == UCG_OK);
            REQUIRE(lucky.creations[rank]->start(job.context(rank)) == UCG_OK);
        }
        CHECK(unlucky.test_all() == Outcomes(2, UCG_ERR_IO_ERROR));
        CHECK(lucky.test_all() == Outcomes(2, UCG_OK));
        lucky.destroy();
    }
    Members& failing = never_ended({0, 1});
    failing.creations[0]->ends_in_failure = true;
    CHECK(failing.make(job)[0] == UCG_ERR_IO_ERROR);
    failing.creations[1]->abandon();
}

TEST_CASE("capi: what is wrong with a nonblocking creation is found before it starts",
          "[capi][creation][errors]") {
    const Job job(1, {{"TLS", "shm"}});
    Members alone({0});
    const auto start = [&](const ucg_group_params_t* params) {
        ucg_group_creation_h creation = nullptr;
        return ucg_group_create_start(job.context(0), params, &creation);
    };
    ucg_group_params_t params = alone.creations[0]->params();
    params.field_mask = 0;
    CHECK(start(&params) == UCG_ERR_INVALID_PARAM);
    params = alone.creations[0]->params();
    params.oob_allgather_test = nullptr;
    CHECK(start(&params) == UCG_ERR_INVALID_PARAM);
    params = alone.creations[0]->params();
    params.rank = 1;
    CHECK(start(&params) == UCG_ERR_INVALID_PARAM);
    CHECK(start(nullptr) == UCG_ERR_INVALID_PARAM);
    CHECK(alone.make(job) == Outcomes(1, UCG_OK));
    CHECK(alone.creations[0]->exchanges() == 2);
    alone.destroy();
}

TEST_CASE("capi: what a creation has is given back when it is abandoned, whenever that is",
          "[capi][creation]") {
    const bool shm = GENERATE(true, false);
    CAPTURE(shm);
    const Job job(2, {{"TLS", shm ? "shm" : "ucx"}});
    if (shm) {
        REQUIRE(job.share_memory() == "");
    }
    for (std::size_t exchanges = 1; exchanges <= (shm ? 1U : 4U); ++exchanges) {
        CAPTURE(exchanges);
        if (exchanges == kOfTexts && kCountsLeaks) {
            continue;
        }
        auto& creations = never_ended({0, 1}).creations;
        REQUIRE(creations[0]->start(job.context(0)) == UCG_OK);
        creations[1]->starts_left = static_cast<int>(exchanges) - 1;
        REQUIRE(creations[1]->start(job.context(1)) == UCG_OK);
        while (!creations[1]->test()) {
            creations[0]->test();
        }
        creations[0]->test();
        REQUIRE(creations[0]->under_way());
        CHECK(ucg_context_destroy(job.context(0)) == UCG_ERR_BUSY);
        creations[0]->abandon();
        CHECK(creations[1]->outcome() == UCG_ERR_IO_ERROR);
    }
    Members after({0, 1});
    CHECK(after.make(job) == Outcomes(2, UCG_OK));
    after.destroy();
}

TEST_CASE("capi: a creation that is tested from within its own test is in progress",
          "[capi][creation]") {
    const Job job(2, {{"TLS", "ucx"}});
    Members members({0, 1});
    for (const auto& creation : members.creations) {
        creation->meanwhile = [&creation] {
            ucg_group_h group = nullptr;
            CHECK(ucg_group_create_test(creation->handle(), &group) == UCG_INPROGRESS);
        };
    }
    CHECK(members.make(job) == Outcomes(2, UCG_OK));
    members.destroy();
}

TEST_CASE("capi: a group is made by waiting, within the exchange of one that is not",
          "[capi][creation]") {
    const bool threads = GENERATE(false, true);
    CAPTURE(threads);
    const auto bootstrap = std::make_shared<Bootstrap>(3);
    std::mutex mutex; // Of the bootstrap, which is made for one thread.
    CHECK(run_thread_ranks(3, [&](ThreadRank& me) -> std::string {
              ucg_context_h context = Job::make_context({}, threads);
              me.meeting->wait();
              std::unique_lock lock(mutex);
              Creation creation(bootstrap, me.rank);
              ucg_group_h inner = nullptr;
              creation.meanwhile = [&] {
                  if (inner == nullptr) {
                      lock.unlock();
                      const ucg_group_params_t params = me.group_params();
                      static_cast<void>(ucg_group_create(context, &params, &inner));
                      lock.lock();
                  }
              };
              static_cast<void>(creation.start(context));
              while (!creation.test()) {
                  lock.unlock();
                  std::this_thread::yield();
                  lock.lock();
              }
              lock.unlock();
              // When the outer one said hello nobody had memory to share.
              const bool right = creation.outcome() == UCG_ERR_BUSY && inner != nullptr;
              me.meeting->wait();
              if (inner != nullptr) {
                  ucg_group_destroy(inner);
              }
              ucg_context_destroy(context);
              return right ? "" : "wrong outcomes";
          }) == "");
}

namespace {

/// The exchange that was started last: starting it took until its end.
ucg_status_t has_ended(void* /*rank*/) {
    return UCG_OK;
}

/// Makes a group, meets in it, and destroys it.
ucg_status_t make_group(ucg_context_h context, ThreadRank& rank, bool waits) {
    ucg_group_params_t params = rank.group_params();
    params.field_mask = UCG_GROUP_PARAM_FIELD_OOB_START;
    params.oob_allgather_start = ThreadRank::allgather;
    params.oob_allgather_test = has_ended;
    ucg_group_h group = nullptr;
    ucg_group_creation_h creation = nullptr;
    ucg_status_t status = waits ? ucg_group_create(context, &params, &group)
                                : ucg_group_create_start(context, &params, &creation);
    while (creation != nullptr &&
           (status = ucg_group_create_test(creation, &group)) == UCG_INPROGRESS) {
        std::this_thread::yield();
    }
    if (group != nullptr) {
        ucg_coll_params_t barrier = {};
        barrier.type = UCG_COLL_BARRIER;
        status = ucg_coll_run(group, &barrier);
    }
    rank.meeting->wait();
    if (group != nullptr) {
        ucg_group_destroy(group);
    }
    return status;
}

/// A rank whose groups are made within the first exchange of another one.
struct Nest {
    ThreadRank* rank;
    ucg_context_h context;
    ucg_status_t expected; ///< Of those within.
    bool first = true;
    std::string complaint = {};

    void make(bool waits) {
        const ucg_status_t status = make_group(context, *rank, waits);
        if (status != expected) {
            complaint += std::string("within: ") + ucg_status_string(status);
        }
    }
    void allocate() {
        void* memory = nullptr;
        if (ucg_mem_alloc(context, 1, &memory) != expected) {
            complaint += "memory";
        }
        ucg_mem_free(context, memory);
    }
    static int allgather(void* self, const void* send, void* receive, std::size_t bytes) {
        auto& me = *static_cast<Nest*>(self);
        if (std::exchange(me.first, false)) {
            me.allocate();
            me.make(false);
            me.make(true);
        }
        return ThreadRank::allgather(me.rank, send, receive, bytes);
    }
    void play() {
        ucg_group_params_t params = rank->group_params();
        params.oob_allgather = allgather;
        params.oob_arg = this;
        ucg_group_h group = nullptr;
        if (ucg_group_create(context, &params, &group) != UCG_OK) {
            complaint += "no group";
            return;
        }
        rank->meeting->wait();
        ucg_group_destroy(group);
    }
};

} // namespace

TEST_CASE(
    "capi: groups that are made within the exchange of one that waits do not take what it has "
    "promised",
    "[capi][creation]") {
    const bool threads = GENERATE(false, true);
    CAPTURE(threads);
    CHECK(run_thread_ranks(3, [&](ThreadRank& me) -> std::string {
              ucg_context_h context = Job::make_context({}, threads);
              std::string complaint;
              // The first time its ranks are going to make their memory together.
              for (const ucg_status_t expected : {UCG_ERR_BUSY, UCG_OK}) {
                  Nest nest = {&me, context, expected};
                  nest.play();
                  complaint += nest.complaint;
              }
              ucg_context_destroy(context);
              return complaint;
          }) == "");
}

TEST_CASE("capi: threads of a rank make groups at the same time, one by waiting",
          "[capi][creation]") {
    constexpr int kGroups = 50;
    const bool shm = GENERATE(true, false);
    CAPTURE(shm);
    Meeting others(3);
    CHECK(run_thread_ranks(3, [&](ThreadRank& me) -> std::string {
              ucg_context_h context = Job::make_context({{"TLS", shm ? "shm" : "ucx"}}, true);
              const auto make = [&](ThreadRank rank, bool waits) {
                  std::string complaint;
                  for (int i = 0; i < kGroups; ++i) {
                      const ucg_status_t status = make_group(context, rank, waits);
                      if (status != UCG_OK && (waits || status != UCG_ERR_BUSY)) {
                          complaint = ucg_status_string(status);
                      }
                  }
                  return complaint;
              };
              std::string complaint;
              std::thread other([&] { complaint = make({&others, me.rank}, false); });
              const std::string mine = make(me, true);
              other.join();
              me.meeting->wait();
              ucg_context_destroy(context);
              return mine + complaint;
          }) == "");
}
