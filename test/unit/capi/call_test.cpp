// How the arguments of a call of the C API become a request in bytes.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/call.hpp"

using ucg::Code;
using ucg::Rank;

namespace {

// Its low 32 bits alone are a valid length, too.
constexpr std::uint64_t kHuge = (std::uint64_t{1} << 32U) + 24;

void keep_left(void* /*argument*/, const void* /*left*/, const void* /*right*/, void* /*target*/,
               std::size_t /*count*/) {}

/// A reduction of the caller's own elements of that size.
ucg_coll_params_t reduction(ucg_coll_type_t type, std::uint64_t count,
                            std::uint64_t element_bytes) {
    ucg_coll_params_t params = {};
    params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    params.type = type;
    params.count = count;
    params.element_bytes = element_bytes;
    params.op = UCG_OP_USER;
    params.reduce = keep_left;
    return params;
}

/// A call with one block for each of two ranks.
struct TwoBlocks {
    explicit TwoBlocks(std::uint64_t element_bytes) {
        params.field_mask = UCG_COLL_PARAM_FIELD_VECTORS;
        params.type = UCG_COLL_ALLGATHERV;
        params.element_bytes = element_bytes;
        params.recv_counts = counts.data();
        params.recv_displs = displs.data();
    }
    TwoBlocks(const TwoBlocks&) = delete;
    TwoBlocks& operator=(const TwoBlocks&) = delete;

    ucg::Result<ucg::graph::Request> request() const {
        const auto key = ucg::capi::key_of(params, 0, 2);
        REQUIRE(key.ok());
        return ucg::capi::request_of(params, *key, 0, 2);
    }

    std::array<std::uint64_t, 2> counts = {1, 1};
    std::array<std::int64_t, 2> displs = {0, 1};
    ucg_coll_params_t params = {};
};

/// Rank 1 of 3 has three edges out and two in, and `int` vectors as MPI passes them.
struct Edges {
    Edges() {
        params.field_mask = UCG_COLL_PARAM_FIELD_INT_VECTORS | UCG_COLL_PARAM_FIELD_NEIGHBORS;
        params.type = UCG_COLL_NEIGHBOR_ALLTOALLV;
        params.element_bytes = 4;
        params.int_send_counts = send_counts.data();
        params.int_send_displs = send_displs.data();
        params.int_recv_counts = receive_counts.data();
        params.int_recv_displs = receive_displs.data();
        params.neighbors = &neighbors;
    }
    Edges(const Edges&) = delete;
    Edges& operator=(const Edges&) = delete;

    ucg::Result<ucg::graph::Request> request() const {
        const auto key = ucg::capi::key_of(params, 1, 3);
        if (!key.ok()) {
            return key.status();
        }
        return ucg::capi::request_of(params, *key, 1, 3);
    }
    /// Does this call repeat the one that `kept` was taken from?
    bool repeats(const ucg::capi::GivenVectors& kept) const {
        return kept.repeated_by(params, use);
    }
    ucg::capi::GivenVectors given() const { return {params, use, 3}; }

    static constexpr ucg::capi::VectorUse use = {.send = true, .receive = true, .neighbors = true};

    std::array<int, 3> destinations = {0, 1, 0};
    std::array<int, 2> sources = {2, 1};
    ucg_neighbors_t neighbors = {destinations.data(), sources.data(), 3, 2};
    std::array<int, 3> send_counts = {1, 5, 3}, send_displs = {-2, -2, 7};
    std::array<int, 2> receive_counts = {2, 5}, receive_displs = {5, 0};
    ucg_coll_params_t params = {};
};

} // namespace

TEST_CASE("edges of a neighbourhood become blocks with peers") {
    Edges edges;
    const auto request = edges.request();
    REQUIRE(request.ok());
    using ucg::graph::Blocks;
    CHECK(request->send == Blocks{{4, 20, 12}, {0, 0, 36}, {0, 1, 0}});
    CHECK(request->receive == Blocks{{8, 20}, {20, 0}, {2, 1}});
    CHECK(request->bytes == 0);
}

TEST_CASE("neighbours are no operator's argument") {
    Edges edges;
    int argument = 0;
    edges.params.reduce_arg = &argument;
    const auto request = edges.request();
    REQUIRE(request.ok());
    CHECK(request->send == ucg::graph::Blocks{{4, 20, 12}, {0, 0, 36}, {0, 1, 0}});
}

TEST_CASE("a neighbourhood call repeats one with equal edges alone") {
    Edges edges;
    const ucg::capi::GivenVectors kept = edges.given();
    CHECK(edges.repeats(kept));
    SECTION("another peer") {
        edges.destinations[2] = 2;
    }
    SECTION("another length") {
        edges.receive_counts[0] = 3;
    }
    SECTION("fewer edges, of which each is as it was") {
        edges.neighbors.destination_count = 2;
    }
    SECTION("more edges, which nobody may read of what is kept") {
        edges.neighbors.source_count = 1 << 20;
    }
    SECTION("none") {
        edges.params.neighbors = nullptr;
    }
    CHECK_FALSE(edges.repeats(kept));
}

TEST_CASE("a rank without edges needs no vectors") {
    Edges edges;
    edges.neighbors = {nullptr, nullptr, 0, 0};
    edges.params.int_send_counts = edges.params.int_send_displs = nullptr;
    edges.params.int_recv_counts = edges.params.int_recv_displs = nullptr;
    REQUIRE(edges.request().ok());
    CHECK(edges.repeats(edges.given()));
}

TEST_CASE("edges that make no sense are refused") {
    Edges edges;
    SECTION("no field") {
        edges.params.field_mask = UCG_COLL_PARAM_FIELD_INT_VECTORS;
    }
    SECTION("no neighbours") {
        edges.params.neighbors = nullptr;
    }
    SECTION("no destinations") {
        edges.neighbors.destinations = nullptr;
    }
    SECTION("no lengths") {
        edges.params.int_send_counts = nullptr;
    }
    SECTION("a negative length") {
        edges.receive_counts[1] = -1;
    }
    SECTION("a negative degree") {
        edges.neighbors.source_count = static_cast<std::uint32_t>(-1);
    }
    SECTION("a rank that does not exist") {
        edges.sources[0] = 3;
    }
    SECTION("no rank") {
        edges.destinations[0] = -2;
    }
    SECTION("another block to itself than from itself") {
        edges.receive_counts[1] = 4;
    }
    SECTION("in place") {
        edges.params.flags = UCG_COLL_FLAG_IN_PLACE;
    }
    const auto request = edges.request();
    REQUIRE_FALSE(request.ok());
    CHECK(request.status().code() == Code::invalid_argument);
}

TEST_CASE("edges to what is no rank are refused by the key, before anybody looks for a host") {
    Edges edges;
    std::string named;
    SECTION("beyond the group") {
        edges.sources[1] = 3;
        named = "source 1 is 3,";
    }
    SECTION("below") {
        edges.destinations[2] = -2;
        named = "destination 2 is -2,";
    }
    const auto key = ucg::capi::key_of(edges.params, 1, 3);
    REQUIRE_FALSE(key.ok());
    CHECK(key.status().code() == Code::invalid_argument);
    CHECK_THAT(std::string(key.status().message()), ContainsSubstring(named));
}

TEST_CASE("elements of more than 4 GiB keep their size") {
    for (const ucg_coll_type_t type :
         {UCG_COLL_REDUCE, UCG_COLL_ALLREDUCE, UCG_COLL_REDUCE_SCATTER_BLOCK, UCG_COLL_SCAN,
          UCG_COLL_EXSCAN}) {
        for (const std::uint64_t count : {0, 1, 3}) {
            CAPTURE(static_cast<int>(type), count);
            const ucg_coll_params_t params = reduction(type, count, kHuge);
            const auto key = ucg::capi::key_of(params, 1, 2);
            REQUIRE(key.ok());
            CHECK(key->element_bytes == kHuge);
            CHECK(key->bytes == count * kHuge);
            const auto request = ucg::capi::request_of(params, *key, 1, 2);
            REQUIRE(request.ok());
            CHECK(request->element_bytes == kHuge);
            CHECK(request->bytes == count * kHuge);
        }
    }
}

TEST_CASE("sizes that differ above 32 bits are different calls") {
    const auto small = ucg::capi::key_of(reduction(UCG_COLL_ALLREDUCE, 0, 24), 0, 2);
    const auto huge = ucg::capi::key_of(reduction(UCG_COLL_ALLREDUCE, 0, kHuge), 0, 2);
    REQUIRE((small.ok() && huge.ok()));
    CHECK(!(*small == *huge));
    CHECK(small->hash() != huge->hash());
}

TEST_CASE("blocks of elements of more than 4 GiB lie where they were put") {
    TwoBlocks call(kHuge);
    call.counts = {3, 2};
    call.displs = {-2, 5};
    const auto request = call.request();
    REQUIRE(request.ok());
    CHECK(request->receive.bytes == std::vector<std::uint64_t>{3 * kHuge, 2 * kHuge});
    CHECK(request->receive.offsets == std::vector<std::uint64_t>{0, 7 * kHuge});
    const auto key = ucg::capi::key_of(call.params, 0, 2);
    const ucg::capi::CallBinding binding = ucg::capi::binding_of(call.params, *key, 0, 2);
    CHECK(binding.output_offset == -2 * static_cast<std::int64_t>(kHuge));
}

TEST_CASE("what an alltoallv brings of others leaves the own block out") {
    constexpr std::array<std::uint64_t, 3> kSent = {0, 0, 0};
    constexpr std::array<std::uint64_t, 3> kReceived = {5, 7, 0};
    constexpr std::array<std::int64_t, 3> kDisplacements = {0, 5, 12};
    ucg_coll_params_t params = {};
    params.field_mask = UCG_COLL_PARAM_FIELD_VECTORS;
    params.type = UCG_COLL_ALLTOALLV;
    params.element_bytes = 4;
    params.send_counts = kSent.data();
    params.send_displs = kDisplacements.data();
    params.recv_counts = kReceived.data();
    params.recv_displs = kDisplacements.data();
    CHECK(ucg::capi::bytes_of_others(params, 0, 3) == 28);
    CHECK(ucg::capi::bytes_of_others(params, 1, 3) == 20);
    CHECK(ucg::capi::bytes_of_others(params, 2, 3) == 48);
    constexpr std::array<int, 3> kInts = {1, 2, 3};
    params.field_mask = UCG_COLL_PARAM_FIELD_INT_VECTORS;
    params.int_send_counts = kInts.data();
    params.int_send_displs = kInts.data();
    params.int_recv_counts = kInts.data();
    params.int_recv_displs = kInts.data();
    CHECK(ucg::capi::bytes_of_others(params, 1, 3) == 16);
}

TEST_CASE("blocks that no address space holds are refused") {
    SECTION("by their length") {
        TwoBlocks call(kHuge);
        call.counts = {1, std::uint64_t{1} << 32U};
        CHECK(call.request().status().code() == Code::invalid_argument);
    }
    SECTION("by their distance") {
        TwoBlocks call(16);
        call.displs = {std::numeric_limits<std::int64_t>::min() / 16,
                       std::numeric_limits<std::int64_t>::max()};
        CHECK(call.request().status().code() == Code::invalid_argument);
    }
    SECTION("by where they begin") {
        TwoBlocks call(16);
        call.displs = {std::numeric_limits<std::int64_t>::min(), 0};
        CHECK(call.request().status().code() == Code::invalid_argument);
    }
    SECTION("but an empty block lies nowhere") {
        TwoBlocks call(16);
        call.counts = {1, 0};
        call.displs = {0, std::numeric_limits<std::int64_t>::max()};
        CHECK(call.request().ok());
    }
}

TEST_CASE("a count that is negative is refused in either width, by every call with vectors") {
    const std::array<std::uint64_t, 2> counts = {1, ~std::uint64_t{0}};
    const std::array<int, 2> int_counts = {1, -1};
    const std::array<std::int64_t, 2> displs = {0, 0};
    const std::array<int, 2> int_displs = {0, 0};
    const std::array<int, 2> ends = {0, 1};
    const ucg_neighbors_t neighbors = {ends.data(), ends.data(), 2, 2};
    for (const ucg_coll_type_t type :
         {UCG_COLL_ALLGATHERV, UCG_COLL_GATHERV, UCG_COLL_SCATTERV, UCG_COLL_ALLTOALLV,
          UCG_COLL_REDUCE_SCATTER, UCG_COLL_NEIGHBOR_ALLTOALLV}) {
        for (const bool ints : {false, true}) {
            ucg_coll_params_t params = reduction(type, 1, 1);
            params.neighbors = &neighbors;
            params.field_mask |= UCG_COLL_PARAM_FIELD_NEIGHBORS;
            if (ints) {
                params.field_mask |= UCG_COLL_PARAM_FIELD_INT_VECTORS;
                params.int_send_counts = params.int_recv_counts = int_counts.data();
                params.int_send_displs = params.int_recv_displs = int_displs.data();
            } else {
                params.field_mask |= UCG_COLL_PARAM_FIELD_VECTORS;
                params.send_counts = params.recv_counts = counts.data();
                params.send_displs = params.recv_displs = displs.data();
            }
            INFO("collective " << type << ", counts of int: " << ints);
            const auto key = ucg::capi::key_of(params, 0, 2);
            REQUIRE_FALSE(key.ok());
            CHECK(key.status().code() == Code::invalid_argument);
        }
    }
}

TEST_CASE("more than 2^63 bytes are refused, whether one block has them or each rank") {
    TwoBlocks blocks(16);
    blocks.counts = {1, std::uint64_t{1} << 59U};
    CHECK_FALSE(blocks.request().ok());
    blocks.counts = {1, (std::uint64_t{1} << 59U) - 1};
    CHECK(blocks.request().ok());
    for (const ucg_coll_type_t type : {UCG_COLL_BCAST, UCG_COLL_GATHERV, UCG_COLL_SCATTERV}) {
        ucg_coll_params_t params = reduction(type, ~std::uint64_t{0}, 1);
        params.root = 1;
        const auto key = ucg::capi::key_of(params, 0, 2);
        REQUIRE_FALSE(key.ok());
        CHECK(key.status().code() == Code::invalid_argument);
    }
}

TEST_CASE("calls that differ in one field have different shapes") {
    const ucg_coll_params_t call = reduction(UCG_COLL_ALLREDUCE, 8, 4);
    std::array<ucg_coll_params_t, 8> others;
    others.fill(call);
    others[0].count = 9;
    others[1].element_bytes = 8;
    others[2].type = UCG_COLL_SCAN;
    others[3].root = 1;
    others[4].flags = UCG_COLL_FLAG_IN_PLACE;
    others[5].op = UCG_OP_MAX;
    others[6].datatype = UCG_DT_INT32;
    others[7].field_mask |= UCG_COLL_PARAM_FIELD_VECTORS;
    const ucg::capi::CallShape shape = ucg::capi::shape_of(call);
    const ucg::capi::GivenValues given(call);
    CHECK(shape == ucg::capi::shape_of(call));
    CHECK(given.same(call));
    for (std::size_t i = 0; i < others.size(); ++i) {
        CAPTURE(i);
        CHECK_FALSE(shape == ucg::capi::shape_of(others[i]));
        CHECK(shape.hash() != ucg::capi::shape_of(others[i]).hash());
        CHECK_FALSE(given.same(others[i]));
    }
}

TEST_CASE("where nothing is reduced, operator and datatype are not of the shape") {
    ucg_coll_params_t call = {};
    call.type = UCG_COLL_ALLGATHER;
    call.count = 3;
    call.element_bytes = 4;
    ucg_coll_params_t other = call;
    other.op = UCG_OP_MAX;
    other.datatype = UCG_DT_FLOAT64;
    CHECK(ucg::capi::shape_of(call) == ucg::capi::shape_of(other));
    CHECK(ucg::capi::GivenValues(call).same(other));
}

TEST_CASE("what a caller has not set may be anything") {
    ucg_coll_params_t call;
    std::memset(&call, 0xA5, sizeof(call));
    call.field_mask = 0;
    call.type = UCG_COLL_BCAST;
    call.flags = 0;
    call.root = 0;
    call.recv_buffer = nullptr;
    call.count = 3;
    call.element_bytes = 4;
    ucg_coll_params_t other = call;
    constexpr std::size_t kUnset = offsetof(ucg_coll_params_t, datatype);
    std::memset(reinterpret_cast<char*>(&other) + kUnset, 0x5A, sizeof(call) - kUnset);
    CHECK(ucg::capi::GivenValues(call).same(other));
    CHECK(ucg::capi::shape_of(call) == ucg::capi::shape_of(other));
    CHECK(ucg::capi::key_of(call, 0, 1).ok());
    CHECK(ucg::capi::key_of(call, 0, 1).value() == ucg::capi::key_of(other, 0, 1).value());
}
