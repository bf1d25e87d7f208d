// Groups that are made without waiting: several at a time, in any order, with one thread for all
// ranks.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/ranks/capi_creation_orders.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace ucg::test;

/// How many exchanges a group over UCX takes: whether its ranks know one another's addresses.
constexpr std::size_t exchanges_over_ucx(bool known) {
    return known ? 3 : 4;
}

/// Makes a group of two ranks if these are to know one another's addresses: they do so while it
/// lives.
std::unique_ptr<Members> introduce(const JobContexts& job, bool known) {
    auto members = std::make_unique<Members>(std::vector<std::size_t>{0, 1});
    if (known) {
        REQUIRE(members->make(job) == Outcomes(2, UCG_OK));
    }
    return members;
}

/// The exchange over UCX that carries texts. If it never ends, the pointers that are left lead to
/// the bytes of the texts only, so a leak checker takes the memory around them for lost.
constexpr std::size_t kOfTexts = 3;
#ifdef __SANITIZE_ADDRESS__
constexpr bool kCountsLeaks = true;
#else
constexpr bool kCountsLeaks = false;
#endif

} // namespace

TEST_CASE("capi: groups that are made at a time, in an order of its own at each rank, work",
          "[capi][creation]") {
    const bool shm = GENERATE(true, false);
    CAPTURE(shm);
    const JobContexts job(4, {{"TLS", shm ? "shm" : "ucx"}});
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
    const JobContexts job(3, {{"TLS", "ucx"}});
    std::mt19937 random(1);
    std::vector<Members> groups;
    groups.emplace_back(std::vector<std::size_t>{0, 1, 2});
    CHECK(groups[0].make(job) == Outcomes(3, UCG_OK));
    CHECK(add_up(job, groups, random) == "");
    groups[0].destroy();
}

TEST_CASE("capi: ranks that know others beside those of the group need not wait",
          "[capi][creation]") {
    const JobContexts job(3, {{"TLS", "shm"}});
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
    const JobContexts job(2, {{"TLS", "ucx"}});
    Members absent({0, 1});
    REQUIRE(absent.creations[0]->start(job.context(0)) == UCG_OK);
    REQUIRE(absent.creations[1]->start(nullptr) == UCG_OK);
    CHECK(absent.test_all() == Outcomes(2, UCG_ERR_UNREACHABLE));

    Members broken({0, 1});
    REQUIRE(broken.creations[0]->start(job.context(0)) == UCG_OK);
    ucg_context_h other = JobContexts::make_context({{"TLS", "ucx"}, {"ALLREDUCE", "ring"}});
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
    const bool known = GENERATE(false, true);
    CAPTURE(known);
    const JobContexts job(2, {{"TLS", "ucx"}});
    const auto others = introduce(job, known);
    for (std::size_t exchanges = 0; exchanges < exchanges_over_ucx(known); ++exchanges) {
        CAPTURE(exchanges);
        Members unlucky({0, 1});
        Members lucky({0, 1});
        for (const auto& creation : unlucky.creations) {
            creation->starts_left = static_cast<int>(exchanges);
        }
        for (std::size_t rank = 0; rank < 2; ++rank) {
            REQUIRE(unlucky.creations[rank]->start(job.context(rank)) == UCG_OK);
            REQUIRE(lucky.creations[rank]->start(job.context(rank)) == UCG_OK);
        }
        CHECK(unlucky.test_all() == Outcomes(2, UCG_ERR_IO_ERROR));
        CHECK(lucky.test_all() == Outcomes(2, UCG_OK));
        lucky.destroy();
    }
    others->destroy();
    Members& failing = never_ended({0, 1});
    failing.creations[0]->ends_in_failure = true;
    CHECK(failing.make(job)[0] == UCG_ERR_IO_ERROR);
    failing.creations[1]->abandon();
}

TEST_CASE("capi: a rank for which the last exchange alone fails keeps no message of the others",
          "[capi][creation][errors]") {
    const bool known = GENERATE(false, true);
    CAPTURE(known);
    const JobContexts job(2, {{"TLS", "ucx"}});
    const auto others = introduce(job, known);
    Members members({0, 1});
    Creation& failing = *members.creations[0];
    failing.meanwhile = [&] {
        failing.ends_in_failure = failing.exchanges() == exchanges_over_ucx(known);
    };
    REQUIRE(members.make(job) == Outcomes{UCG_ERR_IO_ERROR, UCG_OK});
    std::string data(std::size_t{1} << 20, 'x'); // It does not go before it is asked for.
    ucg_coll_params_t bcast = {};
    bcast.type = UCG_COLL_BCAST;
    bcast.root = 1;
    bcast.count = data.size();
    bcast.element_bytes = 1;
    bcast.send_buffer = data.data();
    bcast.recv_buffer = data.data();
    ucg_coll_h coll = nullptr;
    REQUIRE(ucg_coll_init(members.creations[1]->group, &bcast, &coll) == UCG_OK);
    ucg_status_t status = ucg_coll_start(coll);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (status == UCG_INPROGRESS && std::chrono::steady_clock::now() < deadline) {
        ucg_context_progress(job.context(0));
        status = ucg_coll_test(coll);
    }
    CHECK(status == UCG_ERR_IO_ERROR);
    ucg_coll_free(coll);
    members.destroy();
    others->destroy();
}

TEST_CASE("capi: what is wrong with a nonblocking creation is found before it starts",
          "[capi][creation][errors]") {
    const JobContexts job(1, {{"TLS", "shm"}});
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
    const auto [shm, known] =
        GENERATE(std::pair{true, true}, std::pair{false, false}, std::pair{false, true});
    CAPTURE(shm, known);
    const JobContexts job(2, {{"TLS", shm ? "shm" : "ucx"}});
    if (shm) {
        REQUIRE(job.share_memory() == "");
    }
    const auto others = introduce(job, known);
    const std::size_t last = shm ? 1 : exchanges_over_ucx(known);
    for (std::size_t exchanges = 1; exchanges <= last; ++exchanges) {
        CAPTURE(exchanges);
        if (exchanges == kOfTexts && !known && kCountsLeaks) {
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
    others->destroy();
}

TEST_CASE("capi: a process that a rank has said to know stays known until the group is made",
          "[capi][creation]") {
    constexpr std::size_t kSaysSo = 2; // The exchange in which it does.
    const JobContexts job(2, {{"TLS", "ucx"}});
    const auto others = introduce(job, true);
    std::vector<Members> groups;
    groups.emplace_back(std::vector<std::size_t>{0, 1});
    for (std::size_t rank = 0; rank < 2; ++rank) {
        Creation& creation = *groups[0].creations[rank];
        creation.meanwhile = [&creation, &other = others->creations[rank]->group] {
            if (creation.exchanges() == kSaysSo && other != nullptr) {
                CHECK(ucg_group_destroy(std::exchange(other, nullptr)) == UCG_OK);
            }
        };
    }
    CHECK(groups[0].make(job) == Outcomes(2, UCG_OK));
    CHECK(groups[0].creations[0]->exchanges() == exchanges_over_ucx(true));
    CHECK(others->creations[1]->group == nullptr);
    std::mt19937 random(1);
    CHECK(add_up(job, groups, random) == "");
    groups[0].destroy();
}

TEST_CASE("capi: a creation that is tested from within its own test is in progress",
          "[capi][creation]") {
    const JobContexts job(2, {{"TLS", "ucx"}});
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
    const auto bootstrap = std::make_shared<RankExchanges>(3);
    std::mutex mutex; // The bootstrap is made for one thread.
    CHECK(run_thread_ranks(3, [&](ThreadRank& me) -> std::string {
              ucg_context_h context = JobContexts::make_context({}, threads);
              me.meeting->wait();
              std::unique_lock lock(mutex);
              Creation creation(bootstrap, me.rank);
              ucg_group_h inner = nullptr;
              ucg_status_t within = UCG_OK;
              const ucg_group_params_t params = me.group_params();
              creation.meanwhile = [&] {
                  creation.meanwhile = nullptr;
                  lock.unlock();
                  within = ucg_group_create(context, &params, &inner);
                  lock.lock();
              };
              static_cast<void>(creation.start(context));
              while (!creation.test()) {
                  lock.unlock();
                  std::this_thread::yield();
                  lock.lock();
              }
              lock.unlock();
              // The inner creation makes the memory that the outer one has asked for.
              const bool right = creation.outcome() == UCG_ERR_BUSY && within == UCG_OK;
              me.meeting->wait();
              if (inner != nullptr) {
                  ucg_group_destroy(inner);
              }
              ucg_context_destroy(context);
              return right ? "" : "wrong outcomes";
          }) == "");
}

namespace {

/// Says that the last exchange has ended: its start took until then.
ucg_status_t has_ended(void* /*rank*/) {
    return UCG_OK;
}

/// Makes a group, runs a barrier in it, and destroys it.
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

/// A rank that makes groups within the first exchange of another group.
struct Nest {
    ThreadRank* rank;
    ucg_context_h context;
    ucg_status_t expected; ///< The outcome of the inner groups.
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
              ucg_context_h context = JobContexts::make_context({}, threads);
              std::string complaint;
              // The first time its ranks are about to make their memory together.
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
    CHECK(
        run_thread_ranks(3, [&](ThreadRank& me) -> std::string {
            ucg_context_h context = JobContexts::make_context({{"TLS", shm ? "shm" : "ucx"}}, true);
            const auto make = [&](ThreadRank rank, bool waits) {
                std::string complaint;
                for (int i = 0; i < kGroups; ++i) {
                    const ucg_status_t status = make_group(context, rank, waits);
                    if (status != UCG_OK && status != UCG_ERR_BUSY) {
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
