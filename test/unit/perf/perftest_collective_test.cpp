#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "perf/perftest/collectives/board.hpp"
#include "perf/perftest/collectives/collective_data.hpp"
#include "perf/perftest/collectives/collective_name.hpp"
#include "perf/perftest/collectives/host_links.hpp"
#include "test/support/catch.hpp"

using namespace ucg;
using namespace ucg::perftest;

namespace {

const CollectiveShape& shape(ucg_coll_type_t type) {
    return collective_shapes()[static_cast<std::size_t>(type)];
}

CollectiveData data(ucg_coll_type_t type, Rank size, std::uint64_t count,
                    ucg_datatype_t datatype = UCG_DT_FLOAT64, ucg_op_t operation = UCG_OP_SUM) {
    return {shape(type), size, 0, count, datatype, operation};
}

std::vector<std::byte> contribution(const CollectiveData& call, Rank rank) {
    std::vector<std::byte> bytes(call.send_bytes(rank));
    call.fill(rank, bytes);
    return bytes;
}

} // namespace

TEST_CASE("Shapes and names are those of the library") {
    for (const CollectiveShape& one : collective_shapes()) {
        CHECK(&one == &shape(one.type));
        CHECK(one.name == ucg_coll_type_string(one.type));
        const auto name = parse_collective_name(fmt::format("{}_persistent", one.name));
        REQUIRE(name.has_value());
        CHECK(name->shape == &one);
        CHECK(name->form == CollectiveForm::persistent);
    }
    CHECK(parse_collective_name("reduce")->shape->type == UCG_COLL_REDUCE);
    CHECK(parse_collective_name("reduce_scatter")->shape->type == UCG_COLL_REDUCE_SCATTER);
    CHECK_FALSE(parse_collective_name("reduce_").has_value());
    CHECK_FALSE(parse_collective_name("").has_value());
}

TEST_CASE("Bandwidths are NCCL's") {
    CHECK(algorithm_bytes(shape(UCG_COLL_ALLREDUCE), 4, 100) == 100);
    CHECK(algorithm_bytes(shape(UCG_COLL_ALLGATHER), 4, 100) == 400);
    CHECK(algorithm_bytes(shape(UCG_COLL_SCATTER), 4, 100) == 400);
    CHECK(bus_factor(shape(UCG_COLL_ALLREDUCE), 4) == 1.5);
    CHECK(bus_factor(shape(UCG_COLL_REDUCE_SCATTER), 4) == 0.75);
    CHECK(bus_factor(shape(UCG_COLL_BCAST), 4) == 1);
}

TEST_CASE("The least that must be moved") {
    CHECK(least_bytes(shape(UCG_COLL_BARRIER), 4, 8) == 0);
    CHECK(least_bytes(shape(UCG_COLL_BCAST), 4, 100) == 300);
    CHECK(least_bytes(shape(UCG_COLL_ALLREDUCE), 4, 100) == 600);
    CHECK(least_bytes(shape(UCG_COLL_ALLTOALL), 4, 100) == 1600);
    CHECK(least_bytes(shape(UCG_COLL_REDUCE_SCATTER), 4, 100) == 1200);
    CHECK(least_bytes(shape(UCG_COLL_ALLREDUCE), 1, 100) == 100);
}

TEST_CASE("A common start is said some microseconds before it at most") {
    CHECK(start_lead(100e-9, 2) == Approx(200e-9));
    // As measured while others have the processors.
    CHECK(start_lead(10e-3, 2) == Approx(20.2e-6));
    CHECK(start_lead(200e-9, 1000) == Approx(120e-6));
}

TEST_CASE("What hosts must send or receive at least") {
    const std::vector<std::size_t> two = {0, 1, 0, 1};
    const std::vector<std::size_t> uneven = {0, 0, 0, 1};
    CHECK(number_hosts({"a", "b", "a", "b"}) == two);
    CHECK(number_hosts({"x", "x"}) == std::vector<std::size_t>{0, 0});
    CHECK(least_link_bytes(shape(UCG_COLL_BARRIER), two, 0, 8) == 0);
    CHECK(least_link_bytes(shape(UCG_COLL_BCAST), two, 0, 100) == 100);
    CHECK(least_link_bytes(shape(UCG_COLL_ALLREDUCE), two, 0, 100) == 100);
    CHECK(least_link_bytes(shape(UCG_COLL_ALLTOALL), two, 0, 100) == 400);
    CHECK(least_link_bytes(shape(UCG_COLL_ALLTOALL), uneven, 0, 100) == 300);
    CHECK(least_link_bytes(shape(UCG_COLL_ALLGATHER), uneven, 0, 100) == 300);
    CHECK(least_link_bytes(shape(UCG_COLL_GATHER), uneven, 0, 100) == 100);
    CHECK(least_link_bytes(shape(UCG_COLL_GATHER), uneven, 3, 100) == 300);
}

TEST_CASE("A right result passes, and the first wrong element is found") {
    const CollectiveData call = data(UCG_COLL_ALLREDUCE, 3, 5);
    std::vector<double> sum(5, 0);
    for (Rank rank = 0; rank < 3; ++rank) {
        const std::vector<std::byte> bytes = contribution(call, rank);
        for (std::size_t i = 0; i < sum.size(); ++i) {
            double value = 0;
            std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
            sum[i] += value;
        }
    }
    CHECK_FALSE(call.check(1, std::as_bytes(std::span(sum))).has_value());
    sum[3] += 1;
    const auto wrong = call.check(1, std::as_bytes(std::span(sum)));
    REQUIRE(wrong.has_value());
    CHECK(wrong->element == 3);
}

TEST_CASE("Small whole numbers have the bits of their type") {
    // The first element of rank 0 is 1, the second one 12.
    const auto elements = [](ucg_datatype_t datatype) {
        std::array<std::byte, 64> bytes = {};
        const CollectiveData call = data(UCG_COLL_ALLGATHER, 2, 2, datatype);
        call.fill(0, std::span(bytes).first(call.block_bytes()));
        return bytes;
    };
    const auto halves = std::bit_cast<std::array<std::uint16_t, 32>>(elements(UCG_DT_FLOAT16));
    CHECK(halves[0] == 0x3c00);
    CHECK(halves[1] == 0x4a00);
    const auto brains = std::bit_cast<std::array<std::uint16_t, 32>>(elements(UCG_DT_BFLOAT16));
    CHECK(brains[0] == 0x3f80);
    CHECK(brains[1] == 0x4140);
    const auto floats = std::bit_cast<std::array<float, 16>>(elements(UCG_DT_COMPLEX64));
    CHECK((floats[0] == 1 && floats[1] == 0 && floats[2] == 12 && floats[3] == 0));
    const auto doubles = std::bit_cast<std::array<double, 8>>(elements(UCG_DT_COMPLEX128));
    CHECK((doubles[0] == 1 && doubles[1] == 0 && doubles[2] == 12 && doubles[3] == 0));
}

TEST_CASE("An imaginary part that is not zero is found") {
    const CollectiveData call = data(UCG_COLL_BCAST, 2, 2, UCG_DT_COMPLEX64);
    std::vector<std::byte> bytes = contribution(call, 0);
    bytes.resize(call.block_bytes());
    call.fill(0, bytes);
    CHECK_FALSE(call.check(1, bytes).has_value());
    bytes.back() = std::byte{1};
    CHECK(call.check(1, bytes)->element == 1);
}

TEST_CASE("An alltoall's blocks come from their senders") {
    const CollectiveData call = data(UCG_COLL_ALLTOALL, 2, 3, UCG_DT_INT16);
    std::vector<std::byte> received(call.receive_bytes(1));
    for (Rank from = 0; from < 2; ++from) {
        const std::vector<std::byte> sent = contribution(call, from);
        std::memcpy(received.data() + static_cast<std::size_t>(from) * call.block_bytes(),
                    sent.data() + call.block_bytes(), call.block_bytes());
    }
    CHECK_FALSE(call.check(1, received).has_value());
    CHECK(call.check(0, received).has_value());
}

TEST_CASE("What nobody wrote is found in every collective that gives something") {
    for (const CollectiveShape& one : collective_shapes()) {
        const CollectiveData call{one, 3, 0, 4, UCG_DT_FLOAT32, UCG_OP_PROD};
        for (Rank rank = 0; rank < 3; ++rank) {
            const std::vector<std::byte> untouched(call.receive_bytes(rank), std::byte{0x5a});
            const bool is_free = one.type == UCG_COLL_EXSCAN && rank == 0;
            INFO(one.name << " rank " << rank);
            CHECK(call.check(rank, untouched).has_value() == (!untouched.empty() && !is_free));
        }
    }
}

TEST_CASE("Datatypes and operators have the names of ucg.h") {
    for (int value = UCG_DT_INT8; value <= UCG_DT_FLOAT64; ++value) {
        const auto datatype = static_cast<ucg_datatype_t>(value);
        CHECK(find_datatype(name(datatype)) == datatype);
    }
    for (int value = UCG_OP_SUM; value < UCG_OP_USER; ++value) {
        const auto operation = static_cast<ucg_op_t>(value);
        CHECK(find_operation(name(operation)) == operation);
    }
    CHECK_FALSE(find_datatype("opaque").has_value());
    CHECK_FALSE(find_operation("user").has_value());
    CHECK(applies(UCG_OP_MAX, UCG_DT_FLOAT32));
    CHECK_FALSE(applies(UCG_OP_BAND, UCG_DT_FLOAT32));
}
