// A collective or group that is started, posted, freed or destroyed at the wrong time is refused,
// and goes on as if the call had not been made.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "test/ranks/capi_group.hpp"
#include "test/support/catch.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::run_shm_group;
using ucg::test::ThreadRank;

ucg_status_t copy_in(void* /*arg*/, const void* buffer, std::uint64_t offset, void* piece,
                     std::uint64_t bytes) {
    std::memcpy(piece, static_cast<const char*>(buffer) + offset, bytes);
    return UCG_OK;
}

ucg_status_t copy_out(void* /*arg*/, void* buffer, std::uint64_t offset, const void* piece,
                      std::uint64_t bytes) {
    std::memcpy(static_cast<char*>(buffer) + offset, piece, bytes);
    return UCG_OK;
}

constexpr ucg_layout_t kLayout = {sizeof(std::uint64_t), copy_in, copy_out, nullptr};

/// Whoever is told of the end of a collective.
struct Told {
    ucg_coll_h coll = nullptr;
    int times = 0;
};

void tell(void* told, ucg_coll_h coll, ucg_status_t status) {
    static_cast<Told*>(told)->coll = coll;
    static_cast<Told*>(told)->times += status == UCG_OK ? 1 : 100;
}

/// A sum of two ranks. The second rank comes only after the first has made all its attempts.
struct Sum {
    Sum(ucg_group_h in, bool has_layouts) : group(in), packed(has_layouts) {
        params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
        params.type = UCG_COLL_ALLREDUCE;
        params.count = 1;
        params.element_bytes = sizeof(mine);
        params.datatype = UCG_DT_UINT64;
        params.op = UCG_OP_SUM;
        params.send_buffer = &mine;
        params.recv_buffer = &total;
        if (packed) {
            params.field_mask |= UCG_COLL_PARAM_FIELD_LAYOUTS;
            params.send_layout = &kLayout;
            params.recv_layout = &kLayout;
        }
        ready = ucg_coll_init(group, &params, &coll) == UCG_OK;
    }
    Sum(const Sum&) = delete;
    Sum& operator=(const Sum&) = delete;

    /// Are all calls that start or free it refused, and does nothing come of them?
    bool is_not_started(ucg_coll_h which, ucg_status_t refusal) {
        std::uint64_t other = 0;
        Told nobody;
        unsigned looks = 3;
        const ucg_status_t attempts[] = {ucg_coll_start(which),
                                         ucg_coll_start_cb(which, tell, &nobody),
                                         ucg_coll_post(which, &looks, &nobody),
                                         ucg_coll_repeat(which, &mine, &other),
                                         ucg_coll_restart(which, &mine, &other),
                                         ucg_coll_free(which)};
        return looks == 0 && other == 0 && nobody.times == 0 &&
               std::count(std::begin(attempts), std::end(attempts), refusal) ==
                   std::ssize(attempts);
    }
    /// Are all these calls refused, and is it not posted, either?
    bool refuses_all(ucg_coll_h which, ucg_status_t refusal) {
        std::uint64_t nobody = 0;
        unsigned looks = 3;
        return is_not_started(which, refusal) &&
               ucg_coll_post_started(which, &looks, &nobody) == refusal && looks == 0;
    }

    ucg_group_h group;
    bool packed;
    ucg_coll_params_t params = {};
    ucg_coll_h coll = nullptr;
    std::uint64_t mine = 21;
    std::uint64_t total = 0;
    bool ready = false;
};

ucg_status_t start(Sum& sum) {
    return ucg_coll_start(sum.coll);
}
ucg_status_t restart(Sum& sum) {
    return ucg_coll_restart(sum.coll, &sum.mine, &sum.total);
}

/// The part of the rank that comes late. Returns what is wrong, "" if nothing is.
std::string join(Sum& sum) {
    return start(sum) >= 0 && ucg_coll_wait(sum.coll) == UCG_OK && sum.total == 42 ? "" : "no end";
}

std::string start_too_often(ThreadRank& me, Sum& sum, ucg_status_t (*way)(Sum& sum)) {
    sum.total = 0;
    if (ucg_coll_start_cb(sum.coll, nullptr, nullptr) != UCG_ERR_INVALID_PARAM) {
        return "it starts although nobody is to be called back";
    }
    if (me.rank == 0 &&
        (way(sum) != UCG_INPROGRESS || !sum.is_not_started(sum.coll, UCG_ERR_BUSY) ||
         ucg_group_destroy(sum.group) != UCG_ERR_BUSY)) {
        return "what was in progress was touched";
    }
    me.meeting->wait();
    if (me.rank == 1) {
        return join(sum);
    }
    return ucg_coll_wait(sum.coll) == UCG_OK && sum.total == 42 ? "" : "a wrong sum";
}

/// Posts the sum, which has a handle already or gets `posted`. Returns the status.
using Post = ucg_status_t (*)(Sum& sum, Told& told, ucg_coll_h& posted);

ucg_status_t post(Sum& sum, Told& told, ucg_coll_h& /*posted*/) {
    unsigned looks = 0;
    return ucg_coll_post(sum.coll, &looks, &told);
}
ucg_status_t start_and_post(Sum& sum, Told& told, ucg_coll_h& /*posted*/) {
    unsigned looks = 0;
    return start(sum) == UCG_INPROGRESS ? ucg_coll_post_started(sum.coll, &looks, &told)
                                        : UCG_ERR_INTERNAL;
}
ucg_status_t restart_and_post(Sum& sum, Told& told, ucg_coll_h& /*posted*/) {
    unsigned looks = 0;
    return restart(sum) == UCG_INPROGRESS ? ucg_coll_post_started(sum.coll, &looks, &told)
                                          : UCG_ERR_INTERNAL;
}
ucg_status_t run_or_post(Sum& sum, Told& told, ucg_coll_h& posted) {
    unsigned looks = 0;
    return ucg_coll_run_or_post(sum.group, &sum.params, &looks, &told, &posted);
}
ucg_status_t start_to_be_called(Sum& sum, Told& told, ucg_coll_h& /*posted*/) {
    return ucg_coll_start_cb(sum.coll, tell, &told);
}

constexpr Post kPosts[] = {post, start_and_post, restart_and_post, run_or_post, start_to_be_called};

/// Takes the end of a posted collective, which is told once. Returns what is wrong.
std::string take_end(ucg_context_h context, Told& told, bool called) {
    std::vector<ucg_completion_t> ends(2);
    unsigned count = 0;
    for (unsigned round = 0; round < 1000000 && count == 0 && told.times == 0; ++round) {
        count = ucg_context_poll(context, ends.data(), 2);
    }
    const bool right = called ? count == 0 && told.times == 1
                              : count == 1 && ends[0].user_data == &told && told.times == 0 &&
                                    ends[0].status == UCG_OK;
    return right ? "" : "the wrong end was told";
}

std::string post_too_often(ThreadRank& me, ucg_context_h context, Sum& sum, Post way) {
    Told told;
    ucg_coll_h posted = sum.coll;
    sum.total = 0;
    if (me.rank == 0 &&
        (way(sum, told, posted) != UCG_INPROGRESS || !sum.refuses_all(posted, UCG_ERR_BUSY))) {
        return "what was posted was touched";
    }
    me.meeting->wait();
    if (me.rank == 1) {
        return join(sum);
    }
    const bool called = way == start_to_be_called;
    // Packed elements are unpacked, and callbacks are called, only when the end is told.
    for (unsigned round = 0; round < 1000000 && !sum.packed && !called && sum.total == 0; ++round) {
        ucg_context_progress(context);
    }
    if (!called && !sum.refuses_all(posted, UCG_ERR_BUSY)) {
        return "an end that nobody knew of was not kept";
    }
    const std::string complaint = take_end(context, told, called);
    const bool own = posted != sum.coll;
    return complaint.empty() && (sum.total != 42 || (own && ucg_coll_free(posted) != UCG_OK))
               ? "a wrong sum"
               : complaint;
}

std::string use(ThreadRank& me, ucg_context_h context, Sum& sum) {
    std::string complaint = sum.ready ? "" : "no collective";
    for (const auto way : {start, restart}) {
        complaint = complaint.empty() ? start_too_often(me, sum, way) : complaint;
        me.meeting->wait();
    }
    for (const Post way : kPosts) {
        complaint = complaint.empty() ? post_too_often(me, context, sum, way) : complaint;
        me.meeting->wait();
    }
    if (complaint.empty() && ucg_coll_free(sum.coll) != UCG_OK) {
        return "it cannot be freed";
    }
    return complaint;
}

} // namespace

TEST_CASE("capi: what is in use is neither started, posted nor ended", "[capi][nonblocking][shm]") {
    for (const bool packed : {false, true}) {
        CAPTURE(packed);
        CHECK(run_shm_group(2, [packed](ThreadRank& me, ucg_context_h context, ucg_group_h group) {
                  Sum sum(group, packed);
                  return use(me, context, sum);
              }) == "");
    }
}

TEST_CASE("capi: what was freed is neither started nor posted until it is handed out again",
          "[capi][nonblocking][shm]") {
    for (const bool packed : {false, true}) {
        CAPTURE(packed);
        CHECK(run_shm_group(2,
                            [packed](ThreadRank& me, ucg_context_h /*context*/,
                                     ucg_group_h group) -> std::string {
                                Sum sum(group, packed);
                                if (!sum.ready || ucg_coll_free(sum.coll) != UCG_OK ||
                                    !sum.refuses_all(sum.coll, UCG_ERR_INVALID_PARAM)) {
                                    return "what was freed was started";
                                }
                                Sum next(group, packed);
                                const bool reused = next.coll == sum.coll;
                                std::string complaint =
                                    reused ? start_too_often(me, next, start) : "another";
                                return ucg_coll_free(next.coll) == UCG_OK ? complaint
                                                                          : "it cannot be freed";
                            }) == "");
    }
}

namespace {

/// An allgather that tries to destroy the context for which a group is being made.
struct Destroying {
    ThreadRank* rank;
    ucg_context_h context = nullptr;
    int refusals = 0;
    int exchanges = 0;

    static int allgather(void* self, const void* send, void* receive, std::size_t bytes) {
        auto* const me = static_cast<Destroying*>(self);
        ++me->exchanges;
        if (me->rank->rank == 0) {
            me->refusals += ucg_context_destroy(me->context) == UCG_ERR_BUSY ? 1 : 0;
        }
        return ThreadRank::allgather(me->rank, send, receive, bytes);
    }
};

} // namespace

TEST_CASE("capi: a context in which a group is made by waiting is not destroyed",
          "[capi][errors]") {
    CHECK(ucg::test::run_thread_ranks(2, [](ThreadRank& me) -> std::string {
              Destroying caller = {&me};
              if (ucg_context_create(nullptr, nullptr, &caller.context) != UCG_OK) {
                  return "no context";
              }
              ucg_group_params_t params = me.group_params();
              params.oob_allgather = Destroying::allgather;
              params.oob_arg = &caller;
              ucg_group_h group = nullptr;
              if (ucg_group_create(caller.context, &params, &group) != UCG_OK) {
                  return "no group";
              }
              me.meeting->wait();
              ucg_group_destroy(group);
              if (me.rank == 0 && caller.refusals != caller.exchanges) {
                  return "not refused";
              }
              return ucg_context_destroy(caller.context) == UCG_OK ? "" : "in use for ever";
          }) == "");
}
