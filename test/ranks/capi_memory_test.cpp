// Memory runs out at one rank while a group is made, after its last exchange: the others must not
// wait for it for ever.
#include <cstdint>
#include <string>
#include <utility>

#include "test/support/catch.hpp"
#include "test/support/scarce_memory.hpp"
#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::allocations_left;
using ucg::test::kNever;
using ucg::test::run_thread_ranks;
using ucg::test::ThreadRank;

/// A rank that counts its exchanges, and whose memory may run out after one of them.
struct PoorRank {
    ThreadRank* rank;
    int exchanges = 0;
    int poor_after = -1;            ///< Counted from 1.
    std::uint64_t succeed = kNever; ///< Allocations between that one and the next.
    bool waits = true;              ///< For the group.

    static int allgather(void* self, const void* send, void* receive, std::size_t bytes) {
        auto* me = static_cast<PoorRank*>(self);
        allocations_left = kNever;
        const int result = ThreadRank::allgather(me->rank, send, receive, bytes);
        allocations_left = ++me->exchanges == me->poor_after ? me->succeed : kNever;
        return result;
    }

    /// The exchange that was started last: starting it took until its end.
    static ucg_status_t has_ended(void* /*self*/) { return UCG_OK; }

    ucg_status_t create(ucg_context_h context, ucg_group_h* group_p) {
        ucg_group_params_t params = rank->group_params();
        params.field_mask = UCG_GROUP_PARAM_FIELD_OOB_START;
        params.oob_allgather = allgather;
        params.oob_allgather_start = allgather;
        params.oob_allgather_test = has_ended;
        params.oob_arg = this;
        const ucg_status_t status = waits ? ucg_group_create(context, &params, group_p)
                                          : create_by_tests(context, params, group_p);
        allocations_left = kNever;
        return status;
    }
    static ucg_status_t create_by_tests(ucg_context_h context, const ucg_group_params_t& params,
                                        ucg_group_h* group_p) {
        ucg_group_creation_h creation = nullptr;
        ucg_status_t status = ucg_group_create_start(context, &params, &creation);
        if (status == UCG_OK) {
            do {
                status = ucg_group_create_test(creation, group_p);
            } while (status == UCG_INPROGRESS);
        }
        return status;
    }
};

/// A broadcast of more than a ring holds, whose root waits for readers, and a barrier: each ends at
/// all ranks, with or without success.
ucg_status_t use(ucg_group_h group) {
    std::string data(std::size_t{4} << 20, 'x');
    ucg_coll_params_t bcast = {};
    bcast.type = UCG_COLL_BCAST;
    bcast.count = data.size();
    bcast.element_bytes = 1;
    bcast.send_buffer = data.data();
    bcast.recv_buffer = data.data();
    static_cast<void>(ucg_coll_run(group, &bcast));
    ucg_coll_params_t barrier = {};
    barrier.type = UCG_COLL_BARRIER;
    return ucg_coll_run(group, &barrier);
}

ucg_context_h make_context(const char* transports) {
    ucg_config_h config = nullptr;
    ucg_context_h context = nullptr;
    if (ucg_config_read(&config) == UCG_OK) {
        if (ucg_config_modify(config, "TLS", transports) == UCG_OK &&
            ucg_config_modify(config, "SLEEP_AFTER", "never") == UCG_OK) { // Ends are found sooner.
            static_cast<void>(ucg_context_create(nullptr, config, &context));
        }
        ucg_config_release(config);
    }
    return context;
}

/// What came of a group at rank 1.
enum class End { made, failed_alone, failed_everywhere };

/// Three ranks make groups one after the other; at the last one rank 1's memory runs out.
struct Scene {
    const char* transports;
    int before;                     ///< Groups that are made in peace, by waiting.
    bool waits = true;              ///< The last one is made so, too.
    int poor_after = -1;            ///< Of the last group's exchanges; -1: memory suffices.
    std::uint64_t succeed = kNever; ///< Allocations of rank 1 after it.
    End end = End::made;
    int exchanges = 0; ///< That the last group took.

    std::string play(ThreadRank& me) {
        ucg_context_h context = make_context(transports);
        std::string complaint;
        for (int i = 0; i < before; ++i) {
            ucg_group_h group = nullptr;
            PoorRank rank = {&me};
            if (rank.create(context, &group) != UCG_OK || use(group) != UCG_OK) {
                return "a group that cannot be made or used";
            }
            ucg_group_destroy(group);
        }
        complaint += play_last(me, context);
        me.meeting->wait();
        ucg_context_destroy(context);
        return complaint;
    }

  private:
    std::string play_last(ThreadRank& me, ucg_context_h context) {
        PoorRank rank = {&me};
        rank.waits = waits;
        if (me.rank == 1) {
            rank.poor_after = poor_after;
            rank.succeed = succeed;
        }
        ucg_group_h group = nullptr;
        const ucg_status_t created = rank.create(context, &group);
        if (me.rank == 1) {
            end = created == UCG_OK              ? End::made
                  : created == UCG_ERR_NO_MEMORY ? End::failed_alone
                                                 : End::failed_everywhere;
            exchanges = rank.exchanges;
        }
        me.meeting->wait(); // All know what came of it.
        if ((created == UCG_OK) !=
            (end == End::made || (end == End::failed_alone && me.rank != 1))) {
            return std::string("made: ") + ucg_status_string(created);
        }
        if (group == nullptr) {
            return "";
        }
        const ucg_status_t used = use(group);
        ucg_group_destroy(group);
        return (used == UCG_OK) == (end == End::made)
                   ? ""
                   : std::string("used: ") + ucg_status_string(used);
    }
};

std::string play(Scene& scene) {
    return run_thread_ranks(3, [&](ThreadRank& me) { return scene.play(me); });
}

/// How many exchanges the last group takes.
int exchanges(const char* transports, int before, bool waits) {
    Scene scene = {transports, before, waits};
    REQUIRE(play(scene) == "");
    REQUIRE(scene.end == End::made);
    return scene.exchanges;
}

/// Lets each allocation after that exchange, and before the next one, fail in turn: how many did?
/// All of them come to the `expected` end.
std::uint64_t failures(const char* transports, int before, bool waits, int poor_after,
                       End expected) {
    std::uint64_t succeed = 0;
    for (bool failed = true; failed; ++succeed) {
        Scene scene = {transports, before, waits, poor_after, succeed};
        INFO("after " << succeed << " allocations");
        REQUIRE(play(scene) == "");
        failed = scene.end != End::made;
        CHECK((!failed || scene.end == expected));
    }
    return succeed - 1;
}

} // namespace

TEST_CASE("capi: a rank without memory after the last exchange leaves nobody waiting",
          "[capi][shm][errors]") {
    // By several exchanges, and by a guess that is right.
    const auto [before, waits] =
        GENERATE(std::pair{0, true}, std::pair{1, true}, std::pair{1, false});
    const int last = exchanges("shm", before, waits);
    CHECK(last == (before == 0 ? 2 : 1));
    CHECK(failures("shm", before, waits, last, End::failed_alone) > 0);
}

TEST_CASE("capi: over UCX nothing fails after the last exchange, and before it all ranks at once",
          "[capi][ucx][errors]") {
    const bool waits = GENERATE(true, false);
    const int last = exchanges("ucx", 0, waits);
    CHECK(failures("ucx", 0, waits, last - 1, End::failed_everywhere) > 0);
    CHECK(failures("ucx", 0, waits, last, End::failed_everywhere) == 0);
}
