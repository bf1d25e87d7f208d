// At one rank memory runs out while a group is made, after the last exchange: the others must not
// wait for that rank for ever.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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
    int poor_after = -1;            ///< The number of an exchange, counted from 1.
    std::uint64_t succeed = kNever; ///< How many allocations succeed after that exchange.
    bool waits = true;              ///< Whether it makes the group by a call that waits.

    static int allgather(void* self, const void* send, void* receive, std::size_t bytes) {
        auto* me = static_cast<PoorRank*>(self);
        allocations_left = kNever;
        const int result = ThreadRank::allgather(me->rank, send, receive, bytes);
        allocations_left = ++me->exchanges == me->poor_after ? me->succeed : kNever;
        return result;
    }

    /// Says that the last exchange has ended: its start took until then.
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

/// Runs a broadcast of more than a ring holds, whose root waits for readers, and a barrier. Each
/// must end at all ranks, with or without success.
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
            // With this, ranks that have ended are noticed sooner.
            ucg_config_modify(config, "SLEEP_AFTER", "never") == UCG_OK) {
            static_cast<void>(ucg_context_create(nullptr, config, &context));
        }
        ucg_config_release(config);
    }
    return context;
}

/// How the creation ended at rank 1.
enum class End { made, failed_alone, failed_everywhere };

/// Three ranks make groups one after another; at the last one rank 1's memory runs out.
struct Scene {
    const char* transports;
    /// How many groups are made before, with enough memory and by waiting.
    int before;
    bool waits = true; ///< Whether the last one is made by waiting, too.
    /// The number of the last group's exchange; -1: memory suffices.
    int poor_after = -1;
    std::uint64_t succeed = kNever; ///< How many allocations of rank 1 succeed after it.
    End end = End::made;
    int exchanges = 0; ///< How many the last group took.

    std::string play(ThreadRank& me) {
        ucg_context_h context = make_context(transports);
        std::string complaint;
        std::vector<ucg_group_h> groups;
        for (int i = 0; i < before; ++i) {
            PoorRank rank = {&me};
            if (rank.create(context, &groups.emplace_back()) != UCG_OK ||
                use(groups.back()) != UCG_OK) {
                return "a group that cannot be made or used";
            }
        }
        complaint += play_last(me, context);
        me.meeting->wait();
        for (ucg_group_h group : groups) {
            ucg_group_destroy(group);
        }
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
        me.meeting->wait(); // From here on all ranks know the outcome.
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

/// Lets each allocation after that exchange and before the next one fail in turn, and checks that
/// each time the creation has the `expected` end. Returns how many there were.
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
    // The group is made by several exchanges, or by a guess that is right.
    const auto [before, waits] =
        GENERATE(std::pair{0, true}, std::pair{1, true}, std::pair{1, false});
    const int last = exchanges("shm", before, waits);
    CHECK(last == (before == 0 ? 2 : 1));
    CHECK(failures("shm", before, waits, last, End::failed_alone) > 0);
}

TEST_CASE("capi: over UCX nothing fails after the last exchange, and before it all ranks at once",
          "[capi][ucx][errors]") {
    // In a second group the ranks know one another's addresses.
    const auto [before, waits] =
        GENERATE(std::pair{0, true}, std::pair{0, false}, std::pair{1, true}, std::pair{1, false});
    const int last = exchanges("ucx", before, waits);
    CHECK(last == (before == 0 ? 4 : 3));
    CHECK(failures("ucx", before, waits, last - 1, End::failed_everywhere) > 0);
    CHECK(failures("ucx", before, waits, last, End::failed_everywhere) == 0);
}
