// Calls within calls: the program's progress function waits for a collective of another group while
// a blocking call waits. The peer comes to the inner collective when the outer one has ended there.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/capi/awaited.hpp"
#include "ucg_coll/capi/handles.hpp"

namespace {

using ucg::test::run_thread_ranks;
using ucg::test::ThreadRank;

/// How the inner collective is waited for.
enum class Inner { blocking, tested, polled };

/// Waits for a barrier of the group. Returns its status.
ucg_status_t barrier(ucg_context_h context, ucg_group_h group, Inner how) {
    ucg_coll_params_t params = {};
    params.type = UCG_COLL_BARRIER;
    if (how == Inner::blocking) {
        return ucg_coll_run(group, &params);
    }
    ucg_coll_h coll = nullptr;
    ucg_status_t status = ucg_coll_init(group, &params, &coll);
    if (status != UCG_OK) {
        return status;
    }
    unsigned looks = 0;
    if (how == Inner::tested) {
        for (status = ucg_coll_start(coll); status == UCG_INPROGRESS;) {
            status = ucg_coll_test(coll);
        }
    } else if (status = ucg_coll_post(coll, &looks, nullptr); status == UCG_INPROGRESS) {
        ucg_completion_t end = {};
        while (ucg_context_poll(context, &end, 1) == 0) {
        }
        status = end.status;
    }
    const ucg_status_t freed = ucg_coll_free(coll);
    return freed == UCG_OK ? status : freed;
}

/// One rank's end: its progress function waits for the inner barrier, once each time it is asked
/// to.
struct Rank {
    ThreadRank& me;
    Inner how;
    ucg_context_h context = nullptr;
    ucg_group_h outer = nullptr;
    ucg_group_h inner = nullptr;
    bool asked = false;
    unsigned nested = 0;
    ucg_status_t status = UCG_OK;

    static unsigned progress(void* self, unsigned flags) {
        auto& rank = *static_cast<Rank*>(self);
        if (!rank.asked || (flags & UCG_PROGRESS_FLAG_MESSAGES) != 0) {
            return 0;
        }
        rank.asked = false;
        ++rank.nested;
        rank.status = barrier(rank.context, rank.inner, rank.how);
        return 1;
    }
    bool make(const char* sleep_after) {
        ucg_config_h config = nullptr;
        ucg_config_read(&config);
        ucg_config_modify(config, "TLS", "shm");
        ucg_config_modify(config, "SLEEP_AFTER", sleep_after);
        ucg_context_params_t params = {};
        params.field_mask = UCG_CONTEXT_PARAM_FIELD_PROGRESS;
        params.progress = progress;
        params.progress_arg = this;
        const ucg_status_t made = ucg_context_create(&params, config, &context);
        ucg_config_release(config);
        const ucg_group_params_t group = me.group_params();
        return made == UCG_OK && ucg_group_create(context, &group, &outer) == UCG_OK &&
               ucg_group_create(context, &group, &inner) == UCG_OK;
    }
    void destroy() {
        me.meeting->wait();
        ucg_group_destroy(inner);
        ucg_group_destroy(outer);
        ucg_context_destroy(context);
    }
};

void add(void*, const void* left, const void* right, void* target, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        static_cast<std::int64_t*>(target)[i] =
            static_cast<const std::int64_t*>(left)[i] + static_cast<const std::int64_t*>(right)[i];
    }
}

struct Outer {
    const char* name;
    std::size_t count;
    bool own_operator;
};

/// Sums, with the inner barrier of rank 0 within that call and those of the others after it.
std::string sum_around(Rank& rank, const Outer& outer) {
    std::vector<std::int64_t> in(outer.count);
    std::vector<std::int64_t> out(outer.count);
    const std::int64_t size = rank.me.meeting->size();
    for (std::size_t i = 0; i < in.size(); ++i) {
        in[i] = static_cast<std::int64_t>(i) + rank.me.rank;
    }
    ucg_coll_params_t params = ucg::test::sum_of_ranks(in, out);
    if (outer.own_operator) {
        params.op = UCG_OP_USER;
        params.reduce = add;
    }
    rank.asked = rank.me.rank == 0;
    if (ucg_coll_run(rank.outer, &params) != UCG_OK) {
        return "no sum";
    }
    // A sum that needed no wait has not called the progress function, or has done so at its end.
    if (rank.me.rank != 0 || rank.asked) {
        rank.asked = false;
        rank.status = barrier(rank.context, rank.inner, rank.how);
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (out[i] != static_cast<std::int64_t>(i) * size + size * (size - 1) / 2) {
            return "a wrong sum";
        }
    }
    return rank.status == UCG_OK ? "" : "no barrier";
}

std::string nest(ThreadRank& me, Inner how, const Outer& outer, const char* sleep_after) {
    constexpr unsigned kRounds = 10;
    Rank rank{me, how};
    std::string complaint = rank.make(sleep_after) ? "" : "no groups";
    for (unsigned round = 0; round < kRounds && complaint.empty(); ++round) {
        if (me.rank != 0) { // Rank 0 is in the inner barrier when the others come.
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        complaint = sum_around(rank, outer);
    }
    if (complaint.empty() && me.rank == 0 && rank.nested == 0) {
        complaint = "nothing was nested";
    }
    rank.destroy();
    return complaint;
}

/// Rank 0 waits for a sum whose operator is due. Returns what is wrong with the progress that it
/// makes meanwhile.
std::string progress_in_wait(Rank& rank, ucg_coll_h coll) {
    constexpr int kTimes = 4; // The first time may only see that the operator is due.
    ucg::capi::Group& group = *rank.outer->group;
    ucg::engine::Execution& execution = coll->collective.run->execution;
    const ucg::capi::Awaited awaited(group, execution);
    const auto calls_operator = [&](const ucg::capi::Awaited* looked_at) {
        bool called = false;
        for (int time = 0; time < kTimes; ++time) {
            called =
                called || rank.context->progress(ucg::capi::Busy::skip, looked_at).called_operator;
        }
        return called;
    };
    if (calls_operator(&awaited)) {
        return "a wait looks twice at what it waits for";
    }
    return calls_operator(nullptr) ? "" : "nobody looks at what an interrupted wait waits for";
}

std::string look_once(ThreadRank& me) {
    Rank rank{me, Inner::blocking};
    if (!rank.make("auto")) {
        return "no groups";
    }
    std::vector<std::int64_t> in(1, me.rank);
    std::vector<std::int64_t> out(1);
    ucg_coll_params_t params = ucg::test::sum_of_ranks(in, out);
    params.op = UCG_OP_USER;
    params.reduce = add;
    ucg_coll_h coll = nullptr;
    ucg_status_t status = ucg_coll_init(rank.outer, &params, &coll);
    std::string complaint;
    if (status == UCG_OK && me.rank == 0) {
        {
            ucg::capi::Group& group = *rank.outer->group;
            const ucg::capi::Group::Lock lock = group.lock();
            group.start(coll->collective);
            coll->collective.run->execution.keep_operator(true);
        }
        me.meeting->wait(); // The other rank has started and ended.
        complaint = progress_in_wait(rank, coll);
        status = ucg_coll_wait(coll);
    } else if (status == UCG_OK) {
        status = ucg_coll_start(coll) == UCG_INPROGRESS ? ucg_coll_wait(coll) : UCG_OK;
        me.meeting->wait();
    }
    ucg_coll_free(coll);
    rank.destroy();
    return status == UCG_OK && out[0] == 1 ? complaint : "a wrong sum";
}

} // namespace

TEST_CASE("capi: a wait that makes progress elsewhere leaves out what it has just looked at",
          "[capi][shm]") {
    CHECK(run_thread_ranks(2, look_once) == "");
}

TEST_CASE("capi: a call that another one interrupts goes on meanwhile", "[capi][shm]") {
    const unsigned ranks = GENERATE(2U, 3U);
    const Inner how = GENERATE(Inner::blocking, Inner::tested, Inner::polled);
    const Outer outer =
        GENERATE(Outer{"few", 1, false}, Outer{"many", 20000, false},
                 Outer{"very many", 300000, false}, Outer{"few, own", 1, true},
                 Outer{"many, own", 20000, true}, Outer{"very many, own", 300000, true});
    const char* const sleep_after = GENERATE("auto", "0");
    CAPTURE(ranks, static_cast<int>(how), outer.name, sleep_after);
    CHECK(run_thread_ranks(
              ranks, [&](ThreadRank& me) { return nest(me, how, outer, sleep_after); }) == "");
}
