// How groups of the C API are made: how many exchanges their ranks need, and of how many bytes.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/capi/wireup/hello.hpp"
#include "ucg_coll/capi/wireup/network.hpp"

namespace {

using ucg::test::run_thread_ranks;
using ucg::test::ThreadRank;

/// A rank that counts its exchanges.
struct CountedRank {
    ThreadRank* rank;
    int exchanges = 0;
    std::size_t bytes = 0; ///< What it has told in all.

    static int allgather(void* self, const void* send, void* receive, std::size_t bytes) {
        auto* me = static_cast<CountedRank*>(self);
        ++me->exchanges;
        me->bytes += bytes;
        return ThreadRank::allgather(me->rank, send, receive, bytes);
    }
};

ucg_context_h make_context(const char* transports = "shm,ucx") {
    ucg_config_h config = nullptr;
    ucg_context_h context = nullptr;
    ucg_config_read(&config);
    ucg_config_modify(config, "TLS", transports);
    ucg_context_create(nullptr, config, &context);
    ucg_config_release(config);
    return context;
}

/// Some of the ranks, which find each other through a meeting of their own.
struct Part {
    ucg::test::Meeting meeting;
    std::vector<unsigned> ranks;

    explicit Part(std::vector<unsigned> members)
        : meeting(static_cast<unsigned>(members.size())), ranks(std::move(members)) {}
};

/// A group together with the number of exchanges that it took.
class CountedGroup {
  public:
    CountedGroup(ucg_context_h context, ThreadRank me) : me_(me), counted_{&me_} {
        ucg_group_params_t params = me_.group_params();
        params.oob_allgather = CountedRank::allgather;
        params.oob_arg = &counted_;
        static_cast<void>(ucg_group_create(context, &params, &group_));
    }
    ~CountedGroup() {
        if (group_ != nullptr) {
            ucg_group_destroy(group_);
        }
    }
    CountedGroup(const CountedGroup&) = delete;
    CountedGroup& operator=(const CountedGroup&) = delete;

    /// How many bytes the rank has told the others.
    std::size_t bytes() const { return counted_.bytes; }

    /// Empty if it took so many exchanges and adds up right, both by its own algorithm and by
    /// messages.
    std::string complaint(int exchanges) {
        if (group_ == nullptr) {
            return "no group";
        }
        if (counted_.exchanges != exchanges) {
            return std::to_string(counted_.exchanges) + " exchanges, not " +
                   std::to_string(exchanges);
        }
        return adds_up(1) && adds_up(20000) ? "" : "wrong sums";
    }

  private:
    bool adds_up(std::size_t count) {
        const std::vector<std::int64_t> in(count, me_.rank + 1);
        std::vector<std::int64_t> out(count);
        const ucg_coll_params_t params = ucg::test::sum_of_ranks(in, out);
        const std::int64_t size = me_.meeting->size();
        return ucg_coll_run(group_, &params) == UCG_OK &&
               out == std::vector<std::int64_t>(count, size * (size + 1) / 2);
    }

    ThreadRank me_;
    CountedRank counted_;
    ucg_group_h group_ = nullptr;
};

/// Makes a group of `part` if `me` is in it, and then waits for all ranks. Returns what was
/// unexpected; empty for ranks that are not in the part.
std::string make_group_of(Part& part, ThreadRank& me, ucg_context_h context, int exchanges) {
    std::string complaint;
    const auto found = std::find(part.ranks.begin(), part.ranks.end(), me.rank);
    if (found != part.ranks.end()) {
        const auto rank = static_cast<unsigned>(found - part.ranks.begin());
        complaint = CountedGroup(context, {&part.meeting, rank}).complaint(exchanges);
    }
    me.meeting->wait();
    return complaint;
}

/// Makes groups one after another and returns what was unexpected. The first one takes `first`
/// exchanges.
std::string make_groups(ThreadRank& me, ucg_context_h context, int first) {
    std::string complaint;
    for (const int exchanges : {first, 1, 1}) {
        complaint += CountedGroup(context, me).complaint(exchanges);
    }
    return complaint;
}

} // namespace

TEST_CASE("capi: the first group takes two exchanges, three where ranks meet that have heaps "
          "already, and another like it one",
          "[capi][shm]") {
    // The number of ranks that have asked for memory before.
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

TEST_CASE("capi: ranks that know others, or more, take the exchanges that this needs",
          "[capi][shm]") {
    Part low({0, 1});
    Part high({1, 2});
    Part ends({0, 2});
    CHECK(run_thread_ranks(3, [&](ThreadRank& me) -> std::string {
              ucg_context_h context = make_context();
              std::string complaint;
              complaint += make_group_of(low, me, context, 2);
              complaint += make_group_of(low, me, context, 1);
              complaint += make_group_of(high, me, context, 3); // Rank 2 is new to it.
              // Rank 1 knows one rank more than rank 0. Each rank's own state looks right, and no
              // rank knows this of the others.
              complaint += make_group_of(low, me, context, 2);
              complaint += make_group_of(ends, me, context, 2);
              complaint += make_group_of(low, me, context, 1);
              complaint += CountedGroup(context, me).complaint(2); // It is the first of this size.
              complaint += CountedGroup(context, me).complaint(1);
              ucg_context_destroy(context);
              return complaint;
          }) == "");
}

TEST_CASE("capi: a rank that guesses wrongly loses nothing but time", "[capi][shm]") {
    constexpr int kWithStaging = 16;
    CHECK(run_thread_ranks(2, [](ThreadRank& me) -> std::string {
              ucg_context_h context = make_context();
              std::string complaint;
              std::vector<std::unique_ptr<CountedGroup>> live;
              for (int i = 0; i < kWithStaging + 4; ++i) {
                  // The first group that has no memory for peers to read differs from the one
                  // before.
                  const int exchanges = i == 0 || i == kWithStaging ? 2 : 1;
                  live.push_back(std::make_unique<CountedGroup>(context, me));
                  complaint += live.back()->complaint(exchanges);
              }
              live.clear();
              complaint += CountedGroup(context, me).complaint(2);
              ucg_context_destroy(context);
              return complaint;
          }) == "");
}

TEST_CASE("capi: where ranks guess differently all take the exchanges that one of them needs",
          "[capi][shm]") {
    constexpr int kMoreThanHaveStaging = 17;
    Part low({0, 1});
    Part ends({0, 2});
    CHECK(run_thread_ranks(3, [&](ThreadRank& me) -> std::string {
              ucg_context_h context = make_context();
              std::string complaint = make_group_of(low, me, context, 2);
              // Rank 0 then guesses that there is no memory for peers to read, and rank 1 that
              // there is.
              std::vector<std::unique_ptr<CountedGroup>> live;
              for (int i = 0; i < kMoreThanHaveStaging && me.rank != 1; ++i) {
                  const ThreadRank here = {&ends.meeting, me.rank / 2};
                  live.push_back(std::make_unique<CountedGroup>(context, here));
                  // Rank 0 knows one rank more than rank 2, so they have to ask each time.
                  complaint += live.back()->complaint(i == 0 ? 3 : 2);
              }
              complaint += make_group_of(low, me, context, 2);
              live.clear();
              me.meeting->wait();
              ucg_context_destroy(context);
              return complaint;
          }) == "");
}

TEST_CASE("capi: a group that one rank declines leaves the guess of the others as it was",
          "[capi][shm][errors]") {
    CHECK(run_thread_ranks(2, [](ThreadRank& me) -> std::string {
              ucg_context_h context = make_context();
              std::string complaint = make_groups(me, context, 2);
              for (int i = 0; i < 3; ++i) {
                  const ucg_group_params_t params = me.group_params();
                  ucg_group_h group = nullptr;
                  if (ucg_group_create(me.rank == 1 ? nullptr : context, &params, &group) !=
                      UCG_ERR_UNREACHABLE) {
                      return "a group that one rank is not in";
                  }
                  complaint += CountedGroup(context, me).complaint(1);
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

namespace {

/// Exchanges of a group over UCX, and bytes that a rank tells in it where all know one another.
constexpr int kOfStrangers = 4;
constexpr int kOfAcquaintances = 3;
/// The table in ucg_coll/capi/README.md has these sizes.
static_assert(sizeof(ucg::capi::NetworkEnd) == 88 && sizeof(ucg::capi::ShmOffer) == 144);
constexpr std::size_t kBytesOfAcquaintances =
    sizeof(ucg::capi::Hello) + sizeof(ucg::capi::NetworkEnd) + sizeof(std::uint32_t);

} // namespace

TEST_CASE("capi: addresses are told once, not again in a duplicate", "[capi][ucx]") {
    CHECK(run_thread_ranks(3, [](ThreadRank& me) -> std::string {
              ucg_context_h context = make_context("ucx");
              std::string complaint;
              {
                  CountedGroup first(context, me);
                  complaint += first.complaint(kOfStrangers);
                  CountedGroup duplicate(context, me);
                  complaint += duplicate.complaint(kOfAcquaintances);
                  complaint += CountedGroup(context, me).complaint(kOfAcquaintances);
                  if (duplicate.bytes() != kBytesOfAcquaintances ||
                      first.bytes() < duplicate.bytes() + 64) {
                      complaint += std::to_string(first.bytes()) + " bytes, then " +
                                   std::to_string(duplicate.bytes());
                  }
              }
              me.meeting->wait();
              ucg_context_destroy(context);
              return complaint;
          }) == "");
}

TEST_CASE("capi: where some process is new to another one all tell their addresses",
          "[capi][ucx]") {
    Part low({0, 1});
    Part high({1, 2});
    CHECK(
        run_thread_ranks(3, [&](ThreadRank& me) -> std::string {
            ucg_context_h context = make_context("ucx");
            std::string complaint;
            std::vector<std::unique_ptr<CountedGroup>> live;
            const auto make = [&](ucg::test::Meeting& meeting, unsigned rank, int exchanges) {
                live.push_back(std::make_unique<CountedGroup>(context, ThreadRank{&meeting, rank}));
                complaint += live.back()->complaint(exchanges);
            };
            if (me.rank < 2) {
                make(low.meeting, me.rank, kOfStrangers);
            }
            if (me.rank > 0) {
                make(high.meeting, me.rank - 1, kOfStrangers);
            }
            me.meeting->wait();
            make(*me.meeting, me.rank, kOfStrangers); // Rank 1 alone knows all.
            make(*me.meeting, me.rank, kOfAcquaintances);
            me.meeting->wait();
            live.clear();
            me.meeting->wait();
            ucg_context_destroy(context);
            return complaint;
        }) == "");
}

TEST_CASE("capi: a process that has opened its context anew is another one", "[capi][ucx]") {
    std::atomic<bool> reopened = false;
    CHECK(run_thread_ranks(3, [&](ThreadRank& me) -> std::string {
              ucg_context_h context = make_context("ucx");
              std::string complaint;
              auto before = std::make_unique<CountedGroup>(context, me);
              complaint += before->complaint(kOfStrangers);
              me.meeting->wait();
              if (me.rank == 1) {
                  before.reset();
                  ucg_context_destroy(context);
                  context = make_context("ucx");
                  reopened = true;
              }
              while (!reopened) {
                  ucg_context_progress(context); // It answers the good-bye.
              }
              {
                  CountedGroup after(context, me);
                  complaint += after.complaint(kOfStrangers);
                  complaint += CountedGroup(context, me).complaint(kOfAcquaintances);
                  me.meeting->wait();
              }
              before.reset();
              me.meeting->wait();
              ucg_context_destroy(context);
              return complaint;
          }) == "");
}
