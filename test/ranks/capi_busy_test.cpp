// Progress looks only at groups that have something in progress, however many groups there are.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/capi/context.hpp"

namespace {

using ucg::test::run_thread_ranks;
using ucg::test::ThreadRank;

constexpr std::size_t kGroups = 20;

/// Uses the groups; returns what was wrong, or nothing.
std::string use_groups(ThreadRank& me, ucg_context_h context,
                       const std::vector<ucg_group_h>& groups) {
    const auto busy = [&] {
        ucg_context_progress(context);
        return reinterpret_cast<ucg::capi::Context*>(context)->groups().busy_count();
    };
    ucg_coll_params_t params = {};
    params.type = UCG_COLL_BARRIER;
    for (ucg_group_h group : groups) {
        if (ucg_coll_run(group, &params) != UCG_OK) {
            return "a barrier failed";
        }
    }
    if (busy() != 0) {
        return "busy after barriers";
    }
    ucg_coll_h coll = nullptr;
    if (ucg_coll_init(groups[kGroups / 2], &params, &coll) != UCG_OK) {
        return "no barrier";
    }
    if (me.rank == 1) {
        me.meeting->wait();
    }
    ucg_coll_start(coll);
    std::string complaint;
    if (me.rank == 0) { // The other rank has not come yet.
        complaint = busy() == 1 ? "" : "not busy in a barrier";
        me.meeting->wait();
    }
    if (ucg_coll_wait(coll) != UCG_OK || busy() != 0) {
        complaint = "busy after a barrier, or it failed";
    }
    ucg_coll_free(coll);
    return complaint;
}

} // namespace

namespace {

/// Makes so many groups of all ranks, which share memory, with these settings on each rank, and
/// calls `use(me, context, groups)`. Returns what was wrong.
template <typename Use>
std::string run_with_groups(unsigned ranks, std::size_t count,
                            std::initializer_list<std::pair<const char*, const char*>> settings,
                            Use use) {
    return run_thread_ranks(ranks, [&](ThreadRank& me) -> std::string {
        ucg_config_h config = nullptr;
        ucg_config_read(&config);
        ucg_config_modify(config, "TLS", "shm");
        for (const auto& [variable, value] : settings) {
            ucg_config_modify(config, variable, value);
        }
        ucg_context_h context = nullptr;
        ucg_context_create(nullptr, config, &context);
        ucg_config_release(config);
        std::vector<ucg_group_h> groups(count);
        const ucg_group_params_t params = me.group_params();
        std::string complaint;
        for (ucg_group_h& group : groups) {
            if (ucg_group_create(context, &params, &group) != UCG_OK) {
                complaint = "no group";
            }
        }
        if (complaint.empty()) {
            complaint = use(me, context, groups);
        }
        me.meeting->wait();
        for (ucg_group_h group : groups) {
            if (group != nullptr) {
                ucg_group_destroy(group);
            }
        }
        ucg_context_destroy(context);
        return complaint;
    });
}

} // namespace

TEST_CASE("capi: only groups with something in progress are looked at",
          "[capi][nonblocking][shm]") {
    CHECK(run_with_groups(2, kGroups, {}, use_groups) == "");
}

namespace {

constexpr unsigned kRoot = 0;
constexpr unsigned kInner = 1; ///< It passes on what the root sends to rank 2.

ucg_coll_h prepared(ucg_group_h group, ucg_coll_type_t type, std::vector<std::byte>& data) {
    ucg_coll_params_t params = {};
    params.type = type;
    params.root = kRoot;
    params.element_bytes = 1;
    params.count = data.size();
    params.send_buffer = data.data();
    params.recv_buffer = data.data();
    ucg_coll_h coll = nullptr;
    ucg_coll_init(group, &params, &coll);
    return coll;
}

/// The inner rank starts a broadcast and then only asks for the end of a barrier of another group.
/// The other ranks come to the barrier once they have the data.
std::string pass_on_meanwhile(ThreadRank& me, ucg_group_h first, ucg_group_h second) {
    std::vector<std::byte> data(100'000,
                                std::byte{me.rank == kRoot ? std::uint8_t{7} : std::uint8_t{0}});
    std::vector<std::byte> none;
    ucg_coll_h bcast = prepared(first, UCG_COLL_BCAST, data);
    ucg_coll_h barrier = prepared(second, UCG_COLL_BARRIER, none);
    if (bcast == nullptr || barrier == nullptr) {
        return "nothing was prepared";
    }
    if (me.rank == kInner) {
        ucg_coll_start(bcast);
        me.meeting->wait();
        ucg_coll_start(barrier);
        constexpr unsigned kTestsMax = 20'000'000;
        unsigned tests = 0;
        while (ucg_coll_test(barrier) == UCG_INPROGRESS && ++tests < kTestsMax) {
            std::this_thread::yield();
        }
        if (tests == kTestsMax) {
            return "the others never got what the inner rank has to pass on"; // They hang.
        }
    } else {
        me.meeting->wait();
        ucg_coll_start(bcast);
        if (ucg_coll_wait(bcast) != UCG_OK) {
            return "a broadcast failed";
        }
        ucg_coll_start(barrier);
    }
    const bool right = ucg_coll_wait(barrier) == UCG_OK && ucg_coll_wait(bcast) == UCG_OK &&
                       data.back() == std::byte{7};
    ucg_coll_free(bcast);
    ucg_coll_free(barrier);
    return right ? "" : "other data";
}

} // namespace

TEST_CASE("capi: who tests one collective passes on what others owe to peers",
          "[capi][nonblocking][shm]") {
    const auto use = [](ThreadRank& me, ucg_context_h, const std::vector<ucg_group_h>& groups) {
        return pass_on_meanwhile(me, groups[0], groups[1]);
    };
    CHECK(run_with_groups(3, 2, {{"BCAST", "chain"}, {"HELP_PEERS", "never"}}, use) == "");
}

namespace {

constexpr std::size_t kReductions = 8; ///< Of each group.

void add_numbers(void* /*argument*/, const void* left, const void* right, void* target,
                 std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        static_cast<std::int64_t*>(target)[i] =
            static_cast<const std::int64_t*>(left)[i] + static_cast<const std::int64_t*>(right)[i];
    }
}

/// Reductions to the root, by an operator of the program, in two groups at once. All of the other
/// rank's numbers are there before the root looks at any, so that as many operators as there are
/// reductions are due.
std::string reduce_in_turn(ThreadRank& me, ucg_context_h context, ucg_group_h first,
                           ucg_group_h second) {
    const std::array<ucg_group_h, 2> groups = {first, second};
    std::vector<std::int64_t> in(100, me.rank);
    std::vector<std::int64_t> out(in.size());
    ucg_coll_params_t params = ucg::test::sum_of_ranks(in, out);
    params.type = UCG_COLL_REDUCE;
    params.root = kRoot;
    params.op = UCG_OP_USER;
    params.reduce = add_numbers;
    std::vector<ucg_coll_h> posted;
    std::array<std::size_t, 2> ended = {};
    if (me.rank != kRoot) {
        me.meeting->wait();
    }
    for (std::size_t i = 0; i < groups.size() * kReductions; ++i) {
        unsigned looks = 0;
        ucg_coll_h coll = nullptr;
        std::size_t& its_ends = ended[i / kReductions];
        const ucg_status_t status =
            ucg_coll_run_or_post(groups[i / kReductions], &params, &looks, &its_ends, &coll);
        if (status == UCG_INPROGRESS) {
            posted.push_back(coll);
        } else {
            ++its_ends;
        }
    }
    if (me.rank == kRoot) {
        me.meeting->wait();
    }
    me.meeting->wait(); // Both have started everything.
    std::string complaint;
    while (ended[0] + ended[1] < groups.size() * kReductions) {
        ucg_completion_t end = {};
        if (ucg_context_poll(context, &end, 1) == 1) {
            ++*static_cast<std::size_t*>(end.user_data);
        }
        if (me.rank == kRoot && std::max(ended[0], ended[1]) == kReductions / 2 &&
            std::min(ended[0], ended[1]) < kReductions / 4) {
            complaint = "the operators of one group wait for those of the other";
        }
    }
    for (ucg_coll_h coll : posted) {
        ucg_coll_free(coll);
    }
    return complaint;
}

} // namespace

TEST_CASE("capi: operators of several groups are called in turn", "[capi][nonblocking][shm]") {
    const auto use = [](ThreadRank& me, ucg_context_h context,
                        const std::vector<ucg_group_h>& groups) {
        return reduce_in_turn(me, context, groups[0], groups[1]);
    };
    CHECK(run_with_groups(2, 2, {{"HELP_PEERS", "never"}}, use) == "");
}
