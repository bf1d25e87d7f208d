// Calls that repeat earlier ones, and calls that only look as if they did. The group has one rank,
// so every collective is local.
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg/ucg.h"

namespace {

int gather_alone(void* /*argument*/, const void* send, void* receive, std::size_t bytes) {
    std::memcpy(receive, send, bytes);
    return 0;
}

class Alone {
  public:
    Alone() {
        REQUIRE(ucg_context_create(nullptr, nullptr, &context_) == UCG_OK);
        ucg_group_params_t params = {};
        params.size = 1;
        params.oob_allgather = gather_alone;
        REQUIRE(ucg_group_create(context_, &params, &group_) == UCG_OK);
    }
    ~Alone() {
        ucg_group_destroy(group_);
        ucg_context_destroy(context_);
    }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

    ucg_status_t run(const ucg_coll_params_t& params) { return ucg_coll_run(group_, &params); }
    ucg_group_h group() const { return group_; }
    std::uint64_t planned() const {
        ucg_group_attr_t attributes;
        attributes.field_mask = UCG_GROUP_ATTR_FIELD_PLANNED;
        REQUIRE(ucg_group_query(group_, &attributes) == UCG_OK);
        return attributes.planned;
    }

  private:
    ucg_context_h context_ = nullptr;
    ucg_group_h group_ = nullptr;
};

using Words = std::array<std::int64_t, 4>;

/// One block of one word, from element 0 of `in` to wherever the displacement says in `out`.
struct Alltoallv {
    ucg_coll_params_t params() {
        ucg_coll_params_t result = {};
        result.field_mask = UCG_COLL_PARAM_FIELD_VECTORS;
        result.type = UCG_COLL_ALLTOALLV;
        result.element_bytes = sizeof(std::int64_t);
        result.send_buffer = in.data();
        result.recv_buffer = out.data();
        result.send_counts = &send_count;
        result.send_displs = &send_displ;
        result.recv_counts = &recv_count;
        result.recv_displs = &recv_displ;
        return result;
    }

    Words in = {1, 2, 3, 4};
    Words out = {};
    std::uint64_t send_count = 1;
    std::uint64_t recv_count = 1;
    std::int64_t send_displ = 0;
    std::int64_t recv_displ = 0;
};

ucg_coll_params_t allreduce_of(const Words& in, Words& out, ucg_op_t op) {
    ucg_coll_params_t params = {};
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.type = UCG_COLL_ALLREDUCE;
    params.element_bytes = sizeof(std::int64_t);
    params.count = in.size();
    params.send_buffer = in.data();
    params.recv_buffer = out.data();
    params.datatype = UCG_DT_INT64;
    params.op = op;
    return params;
}

void ignore(void* /*argument*/, const void* /*left*/, const void* /*right*/, void* /*target*/,
            std::size_t /*count*/) {}

} // namespace

TEST_CASE("capi: vectors that the caller changes in place are another call") {
    Alone alone;
    Alltoallv call;
    REQUIRE(alone.run(call.params()) == UCG_OK);
    CHECK(call.out == Words{1, 0, 0, 0});

    call.recv_displ = 2;
    call.send_displ = 1;
    REQUIRE(alone.run(call.params()) == UCG_OK);
    CHECK(call.out == Words{1, 0, 2, 0});

    call.send_count = 2;
    call.recv_count = 2;
    REQUIRE(alone.run(call.params()) == UCG_OK);
    CHECK(call.out == Words{1, 0, 2, 3});

    call.recv_displ = -1;
    ucg_coll_params_t params = call.params();
    params.recv_buffer = &call.out[1];
    REQUIRE(alone.run(params) == UCG_OK);
    CHECK(call.out == Words{2, 3, 2, 3});
}

TEST_CASE("capi: vectors of int say the same as those of 64 bits, of one plan") {
    Alone alone;
    Alltoallv call;
    REQUIRE(alone.run(call.params()) == UCG_OK);
    const int count = 1;
    const int send_displ = 0;
    int recv_displ = 0;
    ucg_coll_params_t params = call.params();
    params.field_mask = UCG_COLL_PARAM_FIELD_INT_VECTORS;
    params.int_send_counts = params.int_recv_counts = &count;
    params.int_send_displs = &send_displ;
    params.int_recv_displs = &recv_displ;
    call.out = {};
    REQUIRE(alone.run(params) == UCG_OK);
    CHECK(call.out == Words{1, 0, 0, 0});
    CHECK(alone.planned() == 1);

    recv_displ = -1;
    params.recv_buffer = &call.out[2];
    REQUIRE(alone.run(params) == UCG_OK);
    CHECK(call.out == Words{1, 1, 0, 0});

    const int negative = -1;
    params.int_recv_counts = &negative;
    CHECK(alone.run(params) == UCG_ERR_INVALID_PARAM);
    params.int_recv_counts = nullptr;
    CHECK(alone.run(params) == UCG_ERR_INVALID_PARAM);
}

TEST_CASE("capi: displacements of empty blocks do not matter") {
    Alone alone;
    Alltoallv call;
    call.send_count = call.recv_count = 0;
    for (const std::int64_t displ : {0, 1 << 20, -(1 << 20)}) {
        call.send_displ = call.recv_displ = displ;
        REQUIRE(alone.run(call.params()) == UCG_OK);
    }
    CHECK(alone.planned() == 1);
}

TEST_CASE("capi: a call is not taken for a repetition when it lacks what the first one had") {
    Alone alone;
    Alltoallv call;
    ucg_coll_params_t params = call.params();
    REQUIRE(alone.run(params) == UCG_OK);
    params.recv_counts = nullptr;
    CHECK(alone.run(params) == UCG_ERR_INVALID_PARAM);
    params = call.params();
    params.send_displs = nullptr;
    CHECK(alone.run(params) == UCG_ERR_INVALID_PARAM);
    params = call.params();
    params.field_mask = 0;
    CHECK(alone.run(params) == UCG_ERR_INVALID_PARAM);

    Words out = {};
    ucg_coll_params_t reduction = allreduce_of(call.in, out, UCG_OP_USER);
    reduction.reduce = ignore;
    REQUIRE(alone.run(reduction) == UCG_OK);
    reduction.reduce = nullptr;
    CHECK(alone.run(reduction) == UCG_ERR_INVALID_PARAM);
    reduction.reduce = ignore;
    reduction.field_mask = 0;
    CHECK(alone.run(reduction) == UCG_ERR_INVALID_PARAM);
}

TEST_CASE("capi: repeated calls do not plan again, in whatever order they come") {
    Alone alone;
    const Words in = {1, 2, 3, 4};
    Words out = {};
    constexpr std::array kOps = {UCG_OP_SUM, UCG_OP_MAX, UCG_OP_MIN};
    for (int round = 0; round < 3; ++round) {
        for (const ucg_op_t op : kOps) {
            out = {};
            REQUIRE(alone.run(allreduce_of(in, out, op)) == UCG_OK);
            CHECK(out == in);
        }
    }
    CHECK(alone.planned() == 1);

    // A bitwise operator on floating-point numbers is an error, so it matches no call that ran
    // before.
    ucg_coll_params_t wrong = allreduce_of(in, out, UCG_OP_BAND);
    wrong.datatype = UCG_DT_FLOAT64;
    CHECK(alone.run(wrong) == UCG_ERR_UNSUPPORTED);
}

TEST_CASE("capi: a loop over more sizes than the cache has plans for plans few of them anew") {
    constexpr std::uint64_t kSizes = 600;
    constexpr std::uint64_t kRounds = 8;
    Alone alone;
    const std::vector<std::int64_t> in(kSizes, 7);
    std::vector<std::int64_t> out(kSizes);
    for (std::uint64_t round = 0; round < kRounds; ++round) {
        for (std::uint64_t count = 1; count <= kSizes; ++count) {
            ucg_coll_params_t params = {};
            params.type = UCG_COLL_ALLGATHER;
            params.element_bytes = sizeof(std::int64_t);
            params.count = count;
            params.send_buffer = in.data();
            params.recv_buffer = out.data();
            REQUIRE(alone.run(params) == UCG_OK);
        }
    }
    CHECK(out == in);
    CHECK(alone.planned() < kSizes * kRounds * 3 / 5);
}

TEST_CASE("a group that is trimmed serves its requests, and plans other calls anew") {
    const Alone group;
    const Words in = {1, 2, 3, 4};
    Words kept = {};
    Words run = {};
    const ucg_coll_params_t call = allreduce_of(in, kept, UCG_OP_SUM);
    ucg_coll_params_t shorter = allreduce_of(in, run, UCG_OP_SUM);
    shorter.count = 2;
    ucg_coll_h coll = nullptr;
    REQUIRE(ucg_coll_init(group.group(), &call, &coll) == UCG_OK);
    REQUIRE(ucg_coll_run(group.group(), &shorter) == UCG_OK);
    const std::uint64_t planned = group.planned();
    REQUIRE(ucg_group_trim(group.group(), 1U << 20) == UCG_OK);
    REQUIRE(ucg_coll_run(group.group(), &shorter) == UCG_OK);
    CHECK(group.planned() == planned);
    REQUIRE(ucg_group_trim(group.group(), 0) == UCG_OK);
    CHECK(ucg_coll_start(coll) == UCG_OK);
    CHECK(kept == in);
    run = {};
    REQUIRE(ucg_coll_run(group.group(), &shorter) == UCG_OK);
    CHECK(run == Words{1, 2, 0, 0});
    CHECK(group.planned() == planned + 1);
    CHECK(ucg_coll_free(coll) == UCG_OK);
}
