// Posted collectives: the context reports each end once, however many are outstanding.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "test/ranks/capi_group.hpp"
#include "test/support/catch.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::run_shm_group;
using ucg::test::ThreadRank;

/// This is more than may be in progress at once.
constexpr std::size_t kPosted = 150;

struct Sum {
    ucg_coll_h coll = nullptr;
    std::uint64_t mine = 0;
    std::uint64_t total = 0;
    bool ended = false;
};

ucg_coll_params_t params_of(Sum& sum) {
    ucg_coll_params_t params = {};
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.type = UCG_COLL_ALLREDUCE;
    params.count = 1;
    params.element_bytes = sizeof(sum.mine);
    params.datatype = UCG_DT_UINT64;
    params.op = UCG_OP_SUM;
    params.send_buffer = &sum.mine;
    params.recv_buffer = &sum.total;
    return params;
}

/// Posts all; the ends of those that are complete at once are not reported.
std::string post(std::vector<Sum>& sums, unsigned& outstanding) {
    for (Sum& sum : sums) {
        sum.ended = false;
        unsigned looks = 0;
        switch (ucg_coll_post(sum.coll, &looks, &sum)) {
        case UCG_OK: sum.ended = true; break;
        case UCG_INPROGRESS: ++outstanding; break;
        default: return "a post failed";
        }
    }
    return "";
}

/// The same with calls that were not prepared: a call that is not complete at once returns a
/// handle.
std::string run_or_post(ucg_group_h group, std::vector<Sum>& sums, unsigned& outstanding) {
    unsigned most = 0;
    for (Sum& sum : sums) {
        const ucg_coll_params_t params = params_of(sum);
        sum.coll = nullptr;
        sum.total = 0;
        sum.ended = false;
        unsigned looks = most;
        const ucg_status_t status = ucg_coll_run_or_post(group, &params, &looks, &sum, &sum.coll);
        outstanding += status == UCG_INPROGRESS ? 1 : 0;
        sum.ended = status == UCG_OK;
        if (status < 0 || looks > most || (status == UCG_OK) != (sum.coll == nullptr)) {
            return "a call failed, looked too often, or has a handle that it should not have";
        }
        most = most == 0 ? 4 : 0;
    }
    return "";
}

std::string take_ends(ucg_context_h context, unsigned& outstanding) {
    std::array<ucg_completion_t, 7> ends = {};
    while (outstanding > 0) {
        const unsigned count = ucg_context_poll(context, ends.data(), ends.size());
        for (unsigned i = 0; i < count; ++i) {
            auto& sum = *static_cast<Sum*>(ends[i].user_data);
            if (sum.ended || ends[i].status != UCG_OK) {
                return "an end was told twice, or is an error";
            }
            sum.ended = true;
        }
        outstanding -= count;
    }
    return ucg_context_poll(context, ends.data(), ends.size()) == 0 ? "" : "one end too many";
}

std::string check(std::vector<Sum>& sums, std::uint64_t size) {
    std::string complaint;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const bool right = sums[i].total == size * (size - 1) / 2 + size * i && sums[i].ended;
        complaint = complaint.empty() && !right ? "a wrong sum" : complaint;
        if (sums[i].coll != nullptr) {
            ucg_coll_free(sums[i].coll);
        }
    }
    return complaint;
}

/// Posts all twice, since a collective that has ended may be posted again. A blocking call in
/// between ends some of them.
std::string use_group(ThreadRank& me, ucg_context_h context, ucg_group_h group) {
    std::vector<Sum> sums(kPosted);
    for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i].mine = me.rank + i;
        const ucg_coll_params_t params = params_of(sums[i]);
        if (ucg_coll_init(group, &params, &sums[i].coll) != UCG_OK) {
            return "no collective";
        }
    }
    std::string complaint;
    for (int round = 0; round < 2 && complaint.empty(); ++round) {
        unsigned outstanding = 0;
        complaint = post(sums, outstanding);
        ucg_coll_params_t barrier = {};
        barrier.type = UCG_COLL_BARRIER;
        if (complaint.empty() && ucg_coll_run(group, &barrier) != UCG_OK) {
            complaint = "no barrier";
        }
        complaint = complaint.empty() ? take_ends(context, outstanding) : complaint;
    }
    const std::string wrong = check(sums, me.meeting->size());
    complaint = complaint.empty() ? wrong : complaint;
    unsigned outstanding = 0;
    complaint = complaint.empty() ? run_or_post(group, sums, outstanding) : complaint;
    complaint = complaint.empty() ? take_ends(context, outstanding) : complaint;
    return complaint.empty() ? check(sums, me.meeting->size()) : complaint;
}

} // namespace

TEST_CASE("capi: the ends of posted collectives are told once", "[capi][nonblocking][shm]") {
    const unsigned ranks = GENERATE(2U, 3U);
    CHECK(run_shm_group(ranks, use_group) == "");
}
