// How groups of the C API come to be: how often their ranks exchange what they are.
#include <string>

#include "test/support/catch.hpp"
#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::run_thread_ranks;
using ucg::test::ThreadRank;

/// A rank that counts its exchanges.
struct CountedRank {
    ThreadRank* rank;
    int exchanges = 0;

    static int allgather(void* self, const void* send, void* receive, std::size_t bytes) {
        auto* me = static_cast<CountedRank*>(self);
        ++me->exchanges;
        return ThreadRank::allgather(me->rank, send, receive, bytes);
    }
};

ucg_context_h make_context() {
    ucg_context_h context = nullptr;
    return ucg_context_create(nullptr, nullptr, &context) == UCG_OK ? context : nullptr;
}

/// Makes groups one after the other and returns what was unexpected. The first takes so many
/// exchanges.
std::string make_groups(ThreadRank& me, ucg_context_h context, int first) {
    CountedRank counted = {&me};
    ucg_group_params_t params = me.group_params();
    params.oob_allgather = CountedRank::allgather;
    params.oob_arg = &counted;
    std::string complaint;
    for (const int exchanges : {first, 2, 2}) {
        ucg_group_h group = nullptr;
        counted.exchanges = 0;
        if (ucg_group_create(context, &params, &group) != UCG_OK) {
            return "no group";
        }
        if (counted.exchanges != exchanges) {
            complaint = std::to_string(counted.exchanges) + " exchanges";
        }
        ucg_group_destroy(group);
    }
    return complaint;
}

} // namespace

TEST_CASE(
    "capi: a group is made in two exchanges, in three where ranks meet that have heaps already",
    "[capi][shm]") {
    // Which ranks have asked for memory before.
    const int owners = GENERATE(0, 1, 3, 4);
    CHECK(run_thread_ranks(4, [owners](ThreadRank& me) -> std::string {
              ucg_context_h context = make_context();
              void* memory = nullptr;
              if (me.rank < static_cast<std::uint32_t>(owners) &&
                  ucg_mem_alloc(context, 1, &memory) != UCG_OK) {
                  return "no memory";
              }
              me.meeting->wait();
              const std::string complaint = make_groups(me, context, owners == 0 ? 2 : 3);
              me.meeting->wait();
              if (memory != nullptr && ucg_mem_free(context, memory) != UCG_OK) {
                  return "memory that cannot be freed";
              }
              ucg_context_destroy(context);
              return complaint;
          }) == "");
}

TEST_CASE("capi: where one process has no context nobody makes the group", "[capi][errors]") {
    CHECK(run_thread_ranks(3, [](ThreadRank& me) -> std::string {
              ucg_context_h context = me.rank == 1 ? nullptr : make_context();
              const ucg_group_params_t params = me.group_params();
              ucg_group_h group = nullptr;
              const ucg_status_t status = ucg_group_create(context, &params, &group);
              if (context != nullptr) {
                  ucg_context_destroy(context);
              }
              return status == UCG_ERR_UNREACHABLE && group == nullptr ? ""
                                                                       : ucg_status_string(status);
          }) == "");
}
