// The library's callbacks: ends of collectives, and operators that can fail.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "test/ranks/capi_group.hpp"
#include "test/support/catch.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::run_shm_group;
using ucg::test::ThreadRank;

struct Job {
    ThreadRank& me;
    ucg_context_h context;
    ucg_group_h group;

    unsigned size() const { return me.meeting->size(); }
};

using Body = std::function<std::string(Job&)>;

std::string run_ranks(unsigned ranks, const Body& body) {
    return run_shm_group(ranks, [&](ThreadRank& me, ucg_context_h context, ucg_group_h group) {
        Job job{me, context, group};
        return body(job);
    });
}

// ---- ends

/// A sum that starts itself again from the callback of its end, until it has run often enough.
struct Loop {
    ucg_coll_h coll = nullptr;
    std::uint64_t mine = 0;
    std::uint64_t total = 0;
    std::uint64_t expected = 0;
    unsigned runs = 0;
    bool inside = false; ///< A start is in progress: no callback may come now.
    std::string complaint;

    static constexpr unsigned kRuns = 5;

    bool ended() const { return runs == kRuns || !complaint.empty(); }
    void count_end(ucg_status_t status) {
        if (status != UCG_OK || total != expected) {
            complaint = "an end without its result";
        }
        total = 0;
        ++runs;
    }
    void start() {
        while (!ended()) {
            inside = true;
            const ucg_status_t status = ucg_coll_start_cb(coll, told, this);
            inside = false;
            if (status == UCG_INPROGRESS) {
                return;
            }
            count_end(status);
        }
    }
    static void told(void* argument, ucg_coll_h coll, ucg_status_t status) {
        auto& loop = *static_cast<Loop*>(argument);
        if (loop.inside || coll != loop.coll) {
            loop.complaint = "told within a start, or of another collective";
        }
        loop.count_end(status);
        loop.start();
    }
};

bool prepare(Job& job, Loop& loop, std::uint64_t salt) {
    const std::uint64_t size = job.size();
    loop.mine = salt + job.me.rank;
    loop.expected = size * salt + size * (size - 1) / 2;
    ucg_coll_params_t params = {};
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.type = UCG_COLL_ALLREDUCE;
    params.count = 1;
    params.element_bytes = sizeof(loop.mine);
    params.datatype = UCG_DT_UINT64;
    params.op = UCG_OP_SUM;
    params.send_buffer = &loop.mine;
    params.recv_buffer = &loop.total;
    return ucg_coll_init(job.group, &params, &loop.coll) == UCG_OK;
}

std::string barrier(ucg_group_h group) {
    ucg_coll_params_t params = {};
    params.type = UCG_COLL_BARRIER;
    return ucg_coll_run(group, &params) == UCG_OK ? "" : "no barrier";
}

/// Runs a single loop, so that all ranks start its collectives in the same order. `drive` makes the
/// progress.
std::string run_loop(Job& job, const std::function<void()>& drive) {
    Loop loop;
    if (!prepare(job, loop, 7)) {
        return "no collective";
    }
    loop.start();
    while (!loop.ended()) {
        drive();
    }
    ucg_completion_t end = {};
    if (loop.complaint.empty() && ucg_context_poll(job.context, &end, 1) != 0) {
        loop.complaint = "an end told twice";
    }
    if (ucg_coll_free(loop.coll) != UCG_OK && loop.complaint.empty()) {
        loop.complaint = "it cannot be freed";
    }
    return loop.complaint;
}

// ---- operators

/// A sum with an operator that fails at some of its calls.
struct Fallible {
    explicit Fallible(std::size_t count) : send(count), receive(count) {}

    ucg_coll_params_t params(ucg_coll_type_t type, unsigned rank) {
        send.assign(send.size(), rank + 1);
        receive.assign(receive.size(), 0);
        ucg_coll_params_t params = {};
        params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
        params.type = type;
        params.flags = UCG_COLL_FLAG_FALLIBLE;
        params.count = send.size();
        params.element_bytes = sizeof(std::uint64_t);
        params.op = UCG_OP_USER;
        params.fallible_reduce = add;
        params.reduce_arg = this;
        params.send_buffer = send.data();
        params.recv_buffer = receive.data();
        return params;
    }
    static ucg_status_t add(void* self, const void* left, const void* right, void* target,
                            std::size_t count) {
        auto& op = *static_cast<Fallible*>(self);
        op.called_after_failure = op.called_after_failure || op.failed;
        if (op.fails != UCG_OK) {
            op.failed = true;
            return op.fails;
        }
        for (std::size_t i = 0; i < count; ++i) {
            static_cast<std::uint64_t*>(target)[i] = static_cast<const std::uint64_t*>(left)[i] +
                                                     static_cast<const std::uint64_t*>(right)[i];
        }
        return UCG_OK;
    }
    bool right(unsigned size) const {
        const std::uint64_t expected = std::uint64_t{size} * (size + 1) / 2;
        return receive.front() == expected && receive.back() == expected;
    }

    std::vector<std::uint64_t> send;
    std::vector<std::uint64_t> receive;
    ucg_status_t fails = UCG_OK;
    bool failed = false;
    bool called_after_failure = false;
};

enum class Form { blocking, waited_for, polled };

ucg_status_t run(Job& job, const ucg_coll_params_t& params, Form form) {
    ucg_coll_h coll = nullptr;
    if (form == Form::blocking) {
        return ucg_coll_run(job.group, &params);
    }
    ucg_status_t status = ucg_coll_init(job.group, &params, &coll);
    if (status != UCG_OK) {
        return status;
    }
    unsigned looks = 0;
    if (form == Form::waited_for) {
        status = ucg_coll_start(coll);
        status = status == UCG_INPROGRESS ? ucg_coll_wait(coll) : status;
    } else if (status = ucg_coll_post(coll, &looks, nullptr); status == UCG_INPROGRESS) {
        ucg_completion_t end = {};
        while (ucg_context_poll(job.context, &end, 1) == 0) {
        }
        status = end.status;
    }
    const ucg_status_t freed = ucg_coll_free(coll);
    return freed == UCG_OK ? status : freed;
}

/// Rank 0's operator fails, in an allreduce in which rank 0 certainly has to combine something. The
/// next allreduce succeeds.
std::string fail_then_succeed(Job& job, std::size_t count, Form form) {
    Fallible op(count);
    // Where not all ranks combine, rank 0 does: it is the root that the result is combined for.
    const bool mine = job.me.rank == 0;
    op.fails = mine ? UCG_ERR_TIMED_OUT : UCG_OK;
    std::string complaint;
    const ucg_status_t status = run(job, op.params(UCG_COLL_ALLREDUCE, job.me.rank), form);
    // On a rank that combined nothing, nothing failed.
    if (status != (op.failed ? UCG_ERR_TIMED_OUT : UCG_OK) || op.called_after_failure) {
        complaint = "a failure of the operator is not what the collective ends with";
    } else if (mine && !op.failed) {
        complaint = "the operator was not called";
    }
    op.fails = UCG_OK;
    op.failed = false;
    if ((run(job, op.params(UCG_COLL_ALLREDUCE, job.me.rank), form) != UCG_OK ||
         !op.right(job.size())) &&
        complaint.empty()) {
        complaint = "what follows a failure is wrong";
    }
    return complaint;
}

/// A rank that complains still joins the barrier, since the others would wait for it.
std::string fail_once(Job& job, std::size_t count, Form form) {
    const std::string complaint = fail_then_succeed(job, count, form);
    const std::string last = barrier(job.group);
    return complaint.empty() ? last : complaint;
}

} // namespace

TEST_CASE("capi: a callback is told of an end once, and may start again",
          "[capi][nonblocking][shm]") {
    const unsigned ranks = GENERATE(2U, 3U);
    CHECK(run_ranks(ranks, [](Job& job) {
              return run_loop(job, [&] { ucg_context_progress(job.context); });
          }) == "");
    CHECK(run_ranks(ranks, [](Job& job) {
              return run_loop(job, [&] {
                  ucg_completion_t end = {};
                  ucg_context_poll(job.context, &end, 1);
              });
          }) == "");
}

TEST_CASE("capi: who waits for a collective tells of the ends of others",
          "[capi][nonblocking][shm]") {
    // Rank 0 never drives its context itself: it waits in a second group, which rank 1 joins once
    // all runs of the first one have ended.
    CHECK(run_ranks(2, [](Job& job) -> std::string {
              const ucg_group_params_t params = job.me.group_params();
              ucg_group_h second = nullptr;
              if (ucg_group_create(job.context, &params, &second) != UCG_OK) {
                  return "no second group";
              }
              bool waited = false;
              std::string complaint = run_loop(job, [&] {
                  if (job.me.rank == 0 && !waited) {
                      barrier(second);
                      waited = true;
                  } else {
                      ucg_context_progress(job.context);
                  }
              });
              if (job.me.rank != 0 || !waited) {
                  barrier(second);
              }
              job.me.meeting->wait();
              ucg_group_destroy(second);
              return complaint;
          }) == "");
}

TEST_CASE("capi: an operator that fails ends its rank's collective with its error", "[capi][shm]") {
    const unsigned ranks = GENERATE(2U, 3U, 4U);
    const std::size_t count = GENERATE(1U, 100U, 20000U);
    for (const Form form : {Form::blocking, Form::waited_for, Form::polled}) {
        CAPTURE(ranks, count, static_cast<int>(form));
        CHECK(run_ranks(ranks, [&](Job& job) { return fail_once(job, count, form); }) == "");
    }
}
