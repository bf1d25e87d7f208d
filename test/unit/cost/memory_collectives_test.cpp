// Equation 4 against values worked out by hand, a conclusion that the paper draws from it, and the
// sockets that are found in a placement.
#include <functional>

#include "test/support/catch.hpp"
#include "ucg_coll/cost/cost.hpp"

using namespace ucg;
using namespace ucg::cost;

namespace {

// Numbers that are easy to calculate with: a = 10, b = 1, B = 0.5 within a socket, 100, 4 and 3
// between sockets.
NodeModel node(unsigned sockets, unsigned cores_per_socket) {
    NodeModel node;
    node.sockets = sockets;
    node.cores_per_socket = node.cores_min = node.cores_of_root = cores_per_socket;
    node.cores = sockets * cores_per_socket;
    node.within = {.latency_ns = 10, .per_byte_ns = 1, .contended_per_byte_ns = 0.5};
    node.between = {.latency_ns = 100, .per_byte_ns = 4, .contended_per_byte_ns = 3};
    return node;
}

using Cost = std::function<double(const NodeModel&, std::uint64_t)>;

const std::vector<std::pair<const char*, Cost>> kCosts = {
    {"one stage", one_stage_broadcast_ns},
    {"two stages", two_stage_broadcast_ns},
};

/// Two packages with six cores each: the latencies are those of figure 15, the rates are those of
/// that time.
NodeModel westmere() {
    NodeModel node;
    node.sockets = 2;
    node.cores_per_socket = node.cores_min = node.cores_of_root = 6;
    node.cores = 12;
    node.within = {.latency_ns = 28.5, .per_byte_ns = 0.1, .contended_per_byte_ns = 0.025};
    node.between = {.latency_ns = 105.2, .per_byte_ns = 0.2, .contended_per_byte_ns = 0.1};
    return node;
}

} // namespace

TEST_CASE("memory: a logarithm without a logarithm", "[cost][memory]") {
    CHECK(ceil_log(2, 1) == 0);
    CHECK(ceil_log(2, 2) == 1);
    CHECK(ceil_log(2, 5) == 3);
    CHECK(ceil_log(2, 8) == 3);
    CHECK(ceil_log(3, 9) == 2);
    CHECK(ceil_log(3, 10) == 3);
    CHECK(ceil_log(8, 4000000000U) == 11);
}

TEST_CASE("memory: equation 4, broadcast", "[cost][memory]") {
    // In two stages: 10 + .5 * 7 * 100 within a socket, + 100 + 4 * 100 between; in one: 100 + 3 *
    // 8 * 100.
    CHECK(two_stage_broadcast_ns(node(4, 8), 100) == Approx(360 + 500));
    CHECK(one_stage_broadcast_ns(node(4, 8), 100) == Approx(2500));
    CHECK(broadcast_ns(node(4, 8), 100) == Approx(860));
    CHECK(broadcast_ns(node(4, 8), 0) == Approx(100)); // One stage has only one latency.
    // One socket has q - 1 readers; a single reader pays its own rate b, which is above B.
    CHECK(broadcast_ns(node(1, 8), 100) == Approx(360));
    CHECK(broadcast_ns(node(1, 2), 100) == Approx(110));
    CHECK(broadcast_ns(node(1, 1), 100) == 0);
    CHECK(broadcast_ns(node(4, 1), 100) == Approx(500));
}

TEST_CASE("memory: broadcast among sockets of unequal size", "[cost][memory]") {
    NodeModel unequal = node(2, 8);
    unequal.cores = 9;
    unequal.cores_min = 1;
    // One core reads over the link, 100 + 4 * 100, and 7 the root's, 10 + .5 * 7 * 100.
    CHECK(one_stage_broadcast_ns(unequal, 100) == Approx(500));
    CHECK(two_stage_broadcast_ns(unequal, 100) == Approx(500));
    // The root is alone: eight read over the link, or one and then 7 of that one's.
    unequal.cores_of_root = 1;
    CHECK(one_stage_broadcast_ns(unequal, 100) == Approx(2500));
    CHECK(two_stage_broadcast_ns(unequal, 100) == Approx(500 + 360));
}

TEST_CASE("memory: more bytes, cores or sockets are never cheaper", "[cost][memory]") {
    for (const auto& [name, cost] : kCosts) {
        CAPTURE(name);
        for (const unsigned sockets : {1U, 2U, 4U}) {
            for (const unsigned cores : {1U, 2U, 4U, 8U, 64U}) {
                CAPTURE(sockets, cores);
                double previous = -1;
                for (std::uint64_t bytes = 0; bytes <= 1U << 30; bytes = 2 * bytes + 1) {
                    const double ns = cost(node(sockets, cores), bytes);
                    CHECK(ns >= previous);
                    CHECK(ns <= cost(node(sockets, cores), 2 * bytes + 1));
                    previous = ns;
                }
                CHECK(cost(node(sockets, cores), 4096) <= cost(node(2 * sockets, cores), 4096));
            }
        }
    }
}

TEST_CASE("memory: one stage for two sockets, two stages for many", "[cost][memory]") {
    // The paper's two machines: on one, q readers hardly disturb one another; on the other they do.
    NodeModel calm = westmere();
    calm.between.contended_per_byte_ns = calm.between.per_byte_ns / calm.cores_per_socket;
    NodeModel oversubscribed = westmere();
    oversubscribed.between.contended_per_byte_ns = oversubscribed.between.per_byte_ns;
    for (const std::uint64_t bytes : {4096ULL, 1ULL << 20}) {
        CHECK(one_stage_broadcast_ns(calm, bytes) < two_stage_broadcast_ns(calm, bytes));
        CHECK(two_stage_broadcast_ns(oversubscribed, bytes) <
              one_stage_broadcast_ns(oversubscribed, bytes));
    }
}

TEST_CASE("memory: a placement as sockets of cores", "[cost][memory]") {
    MemoryModel model;
    for (std::size_t i = 0; i < kMemoryLevelCount; ++i) {
        model.levels[i].latency_ns = static_cast<double>(i + 1);
    }
    const auto place = [](std::uint32_t package, std::uint32_t numa, std::uint32_t core) {
        return topo::Place{0, package, numa, numa, core};
    };
    SECTION("two packages, three and two ranks, dealt in turn") {
        const topo::Placement placement(
            {place(0, 0, 0), place(1, 1, 4), place(0, 0, 1), place(1, 1, 5), place(0, 0, 2)});
        const NodeModel node = node_model(model, placement, 0);
        CHECK(node.sockets == 2);
        CHECK(node.cores_per_socket == 3);
        CHECK(node.cores_min == 2);
        CHECK(node.cores_of_root == 3);
        CHECK(node.cores == 5);
        CHECK(node.within == model.level(topo::Distance::cache));
        CHECK(node.between == model.level(topo::Distance::host));
    }
    SECTION("domains within packages belong to the socket") {
        const topo::Placement placement(
            {place(0, 0, 0), place(0, 1, 1), place(1, 2, 2), place(1, 3, 3)});
        const NodeModel node = node_model(model, placement, 0);
        CHECK(node.sockets == 2);
        CHECK(node.cores_per_socket == 2);
        CHECK(node.within == model.level(topo::Distance::package));
    }
    SECTION("one cache") {
        const topo::Placement placement({place(0, 0, 0), place(0, 0, 1), place(0, 0, 2)});
        const NodeModel node = node_model(model, placement, 0);
        CHECK(node.sockets == 1);
        CHECK(node.cores_per_socket == 3);
        CHECK(node.within == model.level(topo::Distance::cache));
    }
    SECTION("ranks that are not bound") {
        const NodeModel node = node_model(model, topo::Placement::regular(2, 6), 1);
        CHECK(node.sockets == 1);
        CHECK(node.cores_per_socket == 6);
        CHECK(node.within == model.level(topo::Distance::host));
    }
    SECTION("one rank") {
        const NodeModel node = node_model(model, topo::Placement({place(0, 0, 0)}), 0);
        CHECK(node.cores == 1);
        CHECK(broadcast_ns(node, 4096) == 0);
    }
}
