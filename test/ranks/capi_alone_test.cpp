// What one rank alone does not start, the others do not take for its next collective: the group
// fails, also where the program asks for that.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/ranks/capi_group.hpp"
#include "test/support/catch.hpp"
#include "test/support/scarce_memory.hpp"
#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::allocations_left;
using ucg::test::kNever;
using ucg::test::run_shm_group;
using ucg::test::sum_of_ranks;
using ucg::test::ThreadRank;

constexpr std::size_t kLong = 1U << 17U; ///< Numbers of a vector whose plan has scratch.

ucg_coll_params_t barrier() {
    ucg_coll_params_t params = {};
    params.type = UCG_COLL_BARRIER;
    return params;
}

/// How a rank calls a collective.
using Call = ucg_status_t (*)(ucg_context_h, ucg_group_h, const ucg_coll_params_t&);

ucg_status_t run(ucg_context_h /*context*/, ucg_group_h group, const ucg_coll_params_t& params) {
    return ucg_coll_run(group, &params);
}

/// Waits for the end that polls tell of.
ucg_status_t poll_end(ucg_context_h context) {
    ucg_completion_t end = {};
    while (ucg_context_poll(context, &end, 1) == 0) {
        std::this_thread::yield();
    }
    return end.status;
}

ucg_status_t post(ucg_context_h context, ucg_group_h group, const ucg_coll_params_t& params) {
    unsigned looks = 0;
    ucg_coll_h coll = nullptr;
    ucg_status_t status = ucg_coll_run_or_post(group, &params, &looks, nullptr, &coll);
    allocations_left = kNever;
    if (status == UCG_INPROGRESS) {
        status = poll_end(context);
        if (ucg_coll_free(coll) != UCG_OK) {
            return UCG_ERR_BUSY;
        }
    }
    return status;
}

ucg_status_t pack(void* /*arg*/, const void* buffer, std::uint64_t offset, void* piece,
                  std::uint64_t bytes) {
    std::memcpy(piece, static_cast<const char*>(buffer) + offset, bytes);
    return UCG_OK;
}

ucg_status_t unpack(void* /*arg*/, void* buffer, std::uint64_t offset, const void* piece,
                    std::uint64_t bytes) {
    std::memcpy(static_cast<char*>(buffer) + offset, piece, bytes);
    return UCG_OK;
}

/// The same call, of elements that the program packs.
template <Call call>
ucg_status_t packed(ucg_context_h context, ucg_group_h group, const ucg_coll_params_t& params) {
    const ucg_layout_t layout = {sizeof(std::int64_t), pack, unpack, nullptr};
    ucg_coll_params_t of_layout = params;
    of_layout.field_mask |= UCG_COLL_PARAM_FIELD_LAYOUTS;
    of_layout.send_layout = &layout;
    of_layout.recv_layout = &layout;
    return call(context, group, of_layout);
}

/// Rank 1 has memory for so many allocations of its first sum. Returns what is wrong. `failed`: did
/// that not suffice?
std::string sum_twice(std::uint64_t succeed, Call call, bool& failed) {
    return run_shm_group(2, [&](ThreadRank& me, ucg_context_h context, ucg_group_h group) {
        const std::vector<std::int64_t> in(kLong, 1);
        std::vector<std::int64_t> out(kLong);
        const ucg_coll_params_t sum = sum_of_ranks(in, out);
        allocations_left = me.rank == 1 ? succeed : kNever;
        const ucg_status_t first = call(context, group, sum);
        allocations_left = kNever;
        const bool right = out == std::vector<std::int64_t>(kLong, 2);
        if (me.rank == 1) {
            failed = first != UCG_OK;
        }
        const std::vector<std::int64_t> other(kLong, 10);
        const ucg_coll_params_t next = sum_of_ranks(other, out);
        const ucg_status_t second = call(context, group, next);
        me.meeting->wait(); // From here on all know whether rank 1 has failed.
        if (failed ? first == UCG_OK : first != UCG_OK || !right) {
            return std::string("the first call: ") + ucg_status_string(first);
        }
        if ((second == UCG_OK) == failed) {
            return std::string("the second call: ") + ucg_status_string(second);
        }
        return std::string();
    });
}

} // namespace

TEST_CASE("capi: a rank without memory for a collective fails its group", "[capi][shm][errors]") {
    const Call call = GENERATE(Call(run), Call(post), Call(packed<run>), Call(packed<post>));
    std::uint64_t succeed = 0;
    for (bool failed = true; failed; ++succeed) {
        INFO("after " << succeed << " allocations");
        failed = false;
        REQUIRE(sum_twice(succeed, call, failed) == "");
    }
    CHECK(succeed > 1);
}

TEST_CASE("capi: a root whose own block has two lengths fails its group", "[capi][shm][errors]") {
    const Call call = GENERATE(Call(run), Call(post));
    CHECK(run_shm_group(2, [&](ThreadRank& me, ucg_context_h context, ucg_group_h group) {
              const std::vector<int> parts = {0, 1};
              const std::vector<int> counts = {1, 1};
              const std::vector<int> displacements = {0, 1};
              std::vector<int> mine(2);
              ucg_coll_params_t params = {};
              params.type = UCG_COLL_SCATTERV;
              params.field_mask = UCG_COLL_PARAM_FIELD_INT_VECTORS;
              params.element_bytes = sizeof(int);
              params.send_buffer = parts.data();
              params.recv_buffer = mine.data();
              params.int_send_counts = counts.data();
              params.int_send_displs = displacements.data();
              params.count = me.rank == 0 ? 2 : 1;
              const ucg_status_t first = call(context, group, params);
              params.count = 1;
              const ucg_status_t second = call(context, group, params);
              me.meeting->wait();
              if (first == UCG_OK || (me.rank == 0 && first != UCG_ERR_DISAGREEMENT)) {
                  return std::string("the first call: ") + ucg_status_string(first);
              }
              return second != UCG_OK ? std::string() : std::string("the second call succeeded");
          }) == "");
}

TEST_CASE("capi: a call that is refused for its arguments does not fail its group",
          "[capi][shm][errors]") {
    CHECK(run_shm_group(2, [](ThreadRank& me, ucg_context_h, ucg_group_h group) -> std::string {
              std::vector<std::int64_t> in(1, 1);
              std::vector<std::int64_t> out(1);
              ucg_coll_params_t params = sum_of_ranks(in, out);
              params.element_bytes = me.rank == 0 ? 3 : 8;
              if (me.rank == 0 && ucg_coll_run(group, &params) != UCG_ERR_INVALID_PARAM) {
                  return "three bytes for eight";
              }
              params.element_bytes = 8;
              return ucg_coll_run(group, &params) == UCG_OK && out[0] == 2 ? "" : "no sum";
          }) == "");
}

TEST_CASE("capi: a group that is given up ends what is posted, and can be destroyed",
          "[capi][shm][errors]") {
    // Short ones share on flag slots, long ones post messages.
    const std::size_t count = GENERATE(std::size_t{1}, kLong);
    CHECK(run_shm_group(2, [&](ThreadRank& me, ucg_context_h context, ucg_group_h group) {
              const std::vector<std::int64_t> in(count, 1);
              std::vector<std::int64_t> out(count);
              const ucg_coll_params_t sum = sum_of_ranks(in, out);
              if (me.rank == 1) {
                  me.meeting->wait();           // It comes when the group is given up.
                  ucg_status_t status = UCG_OK; // Of what the other has shared before.
                  for (int i = 0; i < 100 && status == UCG_OK; ++i) {
                      status = ucg_coll_run(group, &sum);
                      if (status == UCG_OK && out != std::vector<std::int64_t>(count, 2)) {
                          return std::string("a wrong sum");
                      }
                  }
                  return status == UCG_ERR_IO_ERROR ? std::string() : ucg_status_string(status);
              }
              // More than may be in progress at a time, and one that is not started.
              std::vector<ucg_coll_h> all(100);
              int numbers = 0;
              for (ucg_coll_h& coll : all) {
                  unsigned looks = 0;
                  if (ucg_coll_run_or_post(group, &sum, &looks, &numbers, &coll) !=
                      UCG_INPROGRESS) {
                      return std::string("not in progress");
                  }
              }
              ucg_coll_h prepared = nullptr;
              ucg_coll_init(group, &sum, &prepared);
              if (ucg_group_destroy(group) != UCG_ERR_BUSY) {
                  return std::string("destroyed while posted");
              }
              ucg_group_fail(group);
              std::vector<ucg_completion_t> ends(all.size());
              if (ucg_context_poll(context, ends.data(), 100) != 100) {
                  return std::string("ends are missing");
              }
              std::string complaint;
              for (std::size_t i = 0; i < all.size(); ++i) {
                  if (ends[i].status != UCG_ERR_IO_ERROR || ends[i].user_data != &numbers ||
                      ucg_coll_free(all[i]) != UCG_OK) {
                      complaint = "a wrong end";
                  }
              }
              ucg_group_fail(group); // Once more: nothing changes.
              if (ucg_coll_start(prepared) != UCG_ERR_IO_ERROR ||
                  ucg_coll_free(prepared) != UCG_OK || ucg_coll_run(group, &sum) == UCG_OK) {
                  complaint += " started later";
              }
              me.meeting->wait();
              return complaint;
          }) == "");
}

TEST_CASE("capi: a peer that waits is told when a group is given up", "[capi][shm][errors]") {
    const std::size_t count = GENERATE(std::size_t{1}, kLong);
    CHECK(run_shm_group(3, [&](ThreadRank& me, ucg_context_h, ucg_group_h group) {
              const std::vector<std::int64_t> in(count, 1);
              std::vector<std::int64_t> out(count);
              const ucg_coll_params_t sum = sum_of_ranks(in, out);
              if (me.rank == 1) {
                  ucg_group_fail(group);
                  return std::string();
              }
              const ucg_status_t status = ucg_coll_run(group, &sum);
              return status == UCG_ERR_IO_ERROR ? std::string() : ucg_status_string(status);
          }) == "");
}

namespace {

/// A process with threads, alone in waiting for a group whose other rank never comes.
struct Waiting {
    std::function<ucg_status_t(ucg_group_h)> wait;
    const char* transports = "shm";

    std::string play(ThreadRank& me) const {
        ucg_config_h config = nullptr;
        ucg_config_read(&config);
        ucg_config_modify(config, "TLS", transports);
        ucg_config_modify(config, "SLEEP_AFTER", "0");
        ucg_context_params_t of_context = {};
        of_context.field_mask = UCG_CONTEXT_PARAM_FIELD_THREAD_MODE;
        of_context.thread_mode = UCG_THREAD_MODE_MULTIPLE;
        ucg_context_h context = nullptr;
        ucg_context_create(&of_context, config, &context);
        ucg_config_release(config);
        const ucg_group_params_t params = me.group_params();
        ucg_group_h group = nullptr;
        std::string complaint = "no group";
        if (ucg_group_create(context, &params, &group) == UCG_OK) {
            complaint = me.rank == 0 ? wait_for_nobody(group) : "";
            me.meeting->wait();
            complaint += ucg_group_destroy(group) == UCG_OK ? "" : " in use";
        }
        ucg_context_destroy(context);
        return complaint;
    }

  private:
    std::string wait_for_nobody(ucg_group_h group) const {
        ucg_status_t status = UCG_INPROGRESS;
        std::thread waiter([&] { status = wait(group); });
        std::this_thread::sleep_for(std::chrono::milliseconds(50)); // It may sleep by then.
        ucg_group_fail(group);
        waiter.join();
        return status == UCG_ERR_IO_ERROR ? "" : ucg_status_string(status);
    }
};

} // namespace

TEST_CASE("capi: a thread that waits ends its wait when another gives the group up",
          "[capi][errors]") {
    const char* const transports = GENERATE("shm", "ucx");
    const std::size_t count = GENERATE(std::size_t{1}, kLong);
    const Waiting scene = {[&](ucg_group_h group) {
                               const std::vector<std::int64_t> in(count, 1);
                               std::vector<std::int64_t> out(count);
                               const ucg_coll_params_t sum = sum_of_ranks(in, out);
                               return ucg_coll_run(group, &sum);
                           },
                           transports};
    CHECK(ucg::test::run_thread_ranks(2, [&](ThreadRank& me) { return scene.play(me); }) == "");
}

TEST_CASE("capi: an operator and the host's progress may give the group up", "[capi][errors]") {
    struct Host {
        ucg_group_h group = nullptr;
        static unsigned progress(void* self, unsigned /*flags*/) {
            if (auto* const host = static_cast<Host*>(self); host->group != nullptr) {
                ucg_group_fail(std::exchange(host->group, nullptr));
            }
            return 0;
        }
    };
    CHECK(ucg::test::run_thread_ranks(2, [](ThreadRank& me) -> std::string {
              Host host;
              ucg_context_params_t of_context = {};
              of_context.field_mask = UCG_CONTEXT_PARAM_FIELD_PROGRESS;
              of_context.progress = Host::progress;
              of_context.progress_arg = &host;
              ucg_context_h context = nullptr;
              ucg_context_create(&of_context, nullptr, &context);
              const ucg_group_params_t params = me.group_params();
              ucg_group_h group = nullptr;
              if (ucg_group_create(context, &params, &group) != UCG_OK) {
                  return "no group";
              }
              const ucg_coll_params_t call = barrier();
              host.group = me.rank == 0 ? group : nullptr;
              std::string complaint;
              if (me.rank == 0 && ucg_coll_run(group, &call) != UCG_ERR_IO_ERROR) {
                  complaint = "no error";
              }
              me.meeting->wait();
              complaint += ucg_group_destroy(group) == UCG_OK ? "" : " in use";
              ucg_context_destroy(context);
              return complaint;
          }) == "");
}
