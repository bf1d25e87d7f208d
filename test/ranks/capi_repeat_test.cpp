// ucg_coll_repeat and ucg_coll_restart: a prepared collective with other buffers, on the short path
// and off it.
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/thread_ranks.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::run_thread_ranks;
using ucg::test::ThreadRank;

constexpr int kRounds = 120; // These go several times around the flag slots.

ucg_coll_params_t sum_of(std::uint64_t count) {
    ucg_coll_params_t params = {};
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.type = UCG_COLL_ALLREDUCE;
    params.count = count;
    params.element_bytes = sizeof(std::int64_t);
    params.datatype = UCG_DT_INT64;
    params.op = UCG_OP_SUM;
    return params;
}

void add(void* offset, const void* left, const void* right, void* target, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        static_cast<std::int64_t*>(target)[i] = static_cast<const std::int64_t*>(left)[i] +
                                                static_cast<const std::int64_t*>(right)[i] +
                                                *static_cast<std::int64_t*>(offset);
    }
}

/// Restarts the collective and waits for its end: by itself, or by polling the context for ends.
ucg_status_t restart(ucg_context_h context, ucg_coll_h coll, const void* send, void* receive,
                     bool posts) {
    ucg_status_t status = ucg_coll_restart(coll, send, receive);
    if (status != UCG_INPROGRESS || !posts) {
        return status == UCG_INPROGRESS ? ucg_coll_wait(coll) : status;
    }
    unsigned looks = 10;
    status = ucg_coll_post_started(coll, &looks, &status);
    if (status != UCG_INPROGRESS) {
        return status;
    }
    if (ucg_coll_restart(coll, send, receive) != UCG_ERR_BUSY ||
        ucg_coll_repeat(coll, send, receive) != UCG_ERR_BUSY) {
        return UCG_ERR_INTERNAL;
    }
    ucg_completion_t end = {};
    while (ucg_context_poll(context, &end, 1) == 0) {
    }
    return end.user_data == &status ? end.status : UCG_ERR_INTERNAL;
}

/// Sums of `count` elements, each round in other memory. Some ranks repeat or restart what they
/// have prepared, the others make each call anew. Returns what was wrong, or nothing.
std::string sums(ThreadRank& me, ucg_context_h context, ucg_group_h group, std::uint64_t count,
                 bool own_operator) {
    const std::int64_t size = me.meeting->size();
    std::int64_t offset = 1;
    ucg_coll_params_t params = sum_of(count);
    if (own_operator) {
        params.datatype = UCG_DT_OPAQUE;
        params.op = UCG_OP_USER;
        params.reduce = add;
        params.reduce_arg = &offset;
    }
    ucg_coll_h coll = nullptr;
    if (ucg_coll_init(group, &params, &coll) != UCG_OK) {
        return "not prepared";
    }
    std::vector<std::int64_t> send(count + kRounds);
    std::vector<std::int64_t> receive(count + kRounds);
    std::string complaint;
    for (int round = 0; round < kRounds && complaint.empty(); ++round) {
        std::int64_t* const mine = send.data() + round;
        std::int64_t* const result = receive.data() + (kRounds - 1 - round);
        std::fill_n(mine, count, round + static_cast<std::int64_t>(me.rank));
        ucg_status_t status = UCG_OK;
        const int way = (round / 10 + static_cast<int>(me.rank)) % 4;
        if (way == 0) {
            params.send_buffer = mine;
            params.recv_buffer = result;
            status = ucg_coll_run(group, &params);
        } else {
            status = way == 1 ? ucg_coll_repeat(coll, mine, result)
                              : restart(context, coll, mine, result, way == 2);
        }
        const std::int64_t expected =
            size * round + size * (size - 1) / 2 + (own_operator ? size - 1 : 0);
        if (status != UCG_OK || result[0] != expected || result[count - 1] != expected) {
            complaint = "round " + std::to_string(round) + ": status " + std::to_string(status) +
                        ", " + std::to_string(result[0]) + " where " + std::to_string(expected) +
                        " was expected";
        }
    }
    ucg_coll_free(coll);
    return complaint;
}

/// Collectives in which ranks have different roles, which change; the root runs ahead of the
/// others.
std::string mixture(ThreadRank& me, ucg_group_h group) {
    ucg_coll_params_t params = {};
    params.type = UCG_COLL_BCAST;
    params.count = 8;
    params.element_bytes = 1;
    ucg_coll_h bcast = nullptr;
    ucg_coll_h barrier = nullptr;
    ucg_coll_params_t nothing = {};
    nothing.type = UCG_COLL_BARRIER;
    if (ucg_coll_init(group, &params, &bcast) != UCG_OK ||
        ucg_coll_init(group, &nothing, &barrier) != UCG_OK) {
        return "not prepared";
    }
    std::string complaint;
    for (std::uint64_t round = 0; round < kRounds && complaint.empty(); ++round) {
        std::uint64_t word = me.rank == 0 ? round : ~std::uint64_t{0};
        if (ucg_coll_repeat(bcast, nullptr, &word) != UCG_OK || word != round) {
            complaint = "bcast";
        }
        if (round % 20 == 7 && ucg_coll_repeat(barrier, nullptr, nullptr) != UCG_OK) {
            complaint = "barrier";
        }
    }
    ucg_coll_free(bcast);
    ucg_coll_free(barrier);
    return complaint;
}

std::string repeat_all(ThreadRank& me, const char* transports) {
    ucg_config_h config = nullptr;
    ucg_config_read(&config);
    ucg_config_modify(config, "TLS", transports);
    ucg_context_h context = nullptr;
    ucg_context_create(nullptr, config, &context);
    ucg_config_release(config);
    ucg_group_h group = nullptr;
    const ucg_group_params_t params = me.group_params();
    if (ucg_group_create(context, &params, &group) != UCG_OK) {
        return "no group";
    }
    std::string complaint;
    for (const std::uint64_t count : {1, 2, 4, 5, 100, 2000}) {
        for (const bool own_operator : {false, true}) {
            if (complaint.empty()) {
                complaint = sums(me, context, group, count, own_operator);
            }
        }
    }
    if (complaint.empty()) {
        complaint = mixture(me, group);
    }
    ucg_group_destroy(group);
    ucg_context_disconnect(context);
    me.meeting->wait();
    ucg_context_destroy(context);
    return complaint;
}

/// While it lives, what is written to standard error goes to a file.
class StandardError {
  public:
    StandardError() : before_(dup(STDERR_FILENO)), file_(std::tmpfile()) {
        dup2(fileno(file_), STDERR_FILENO);
    }
    ~StandardError() {
        end();
        std::fclose(file_);
    }
    StandardError(const StandardError&) = delete;
    StandardError& operator=(const StandardError&) = delete;

    /// Returns all of the text, once.
    std::string end() {
        if (before_ >= 0) {
            dup2(before_, STDERR_FILENO);
            close(before_);
            before_ = -1;
        }
        std::string text;
        std::rewind(file_);
        for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) {
            text += static_cast<char>(c);
        }
        return text;
    }

  private:
    int before_;
    std::FILE* file_;
};

} // namespace

TEST_CASE("capi: a start with other buffers that is too early says nothing",
          "[capi][repeat][shm]") {
    StandardError error;
    const std::string complaint =
        run_thread_ranks(2, [](ThreadRank& me) { return repeat_all(me, "shm"); });
    CHECK(error.end() == "");
    CHECK(complaint == "");
}

TEST_CASE("capi: a collective is repeated with other buffers, over shared memory",
          "[capi][repeat][shm]") {
    for (const unsigned ranks : {1U, 2U, 3U, 5U}) {
        CHECK(run_thread_ranks(ranks, [](ThreadRank& me) { return repeat_all(me, "shm"); }) == "");
    }
}

TEST_CASE("capi: a collective is repeated with other buffers, over UCX", "[capi][repeat][ucx]") {
    CHECK(run_thread_ranks(2, [](ThreadRank& me) { return repeat_all(me, "ucx"); }) == "");
}
