// Equations 1 to 11 against values worked out by hand, and conclusions that the paper draws from
// them.
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
    node.cores_per_socket = cores_per_socket;
    node.within = {.latency_ns = 10, .per_byte_ns = 1, .contended_per_byte_ns = 0.5};
    node.between = {.latency_ns = 100, .per_byte_ns = 4, .contended_per_byte_ns = 3};
    return node;
}

using Cost = std::function<double(const NodeModel&, std::uint64_t)>;

const std::vector<std::pair<const char*, Cost>> kCosts = {
    {"tree reduce", [](const NodeModel& n, std::uint64_t m) { return tree_reduce_ns(n, 2, m); }},
    {"tree reduce, 4-ary",
     [](const NodeModel& n, std::uint64_t m) { return tree_reduce_ns(n, 4, m); }},
    {"one stage", one_stage_broadcast_ns},
    {"two stages", two_stage_broadcast_ns},
    {"tree allreduce",
     [](const NodeModel& n, std::uint64_t m) { return tree_allreduce_ns(n, 2, m); }},
    {"dissemination", dissemination_ns},
    {"tiled reduce", tiled_reduce_ns},
    {"tiled allreduce", tiled_allreduce_ns},
    {"naive", tiled_reduce_naive_ns},
    {"cyclic", tiled_reduce_cyclic_ns},
};

/// The smallest m up to 1 GiB from which on tiled reduction costs no more than a binary tree.
std::uint64_t crossover(const NodeModel& node) {
    std::uint64_t low = 0;
    std::uint64_t high = std::uint64_t{1} << 30;
    while (low < high) {
        const std::uint64_t middle = (low + high) / 2;
        if (tiled_allreduce_ns(node, middle) <= tree_allreduce_ns(node, 2, middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/// Two packages with six cores each: the latencies are those of figure 15, the rates are those of
/// that time.
NodeModel westmere() {
    NodeModel node;
    node.sockets = 2;
    node.cores_per_socket = 6;
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

TEST_CASE("memory: equations 1 to 3, reduction by trees", "[cost][memory]") {
    // q = 8: there are three steps with 1, 2 and 4 readers: 10 + max(1, .5) 100, + 10 + max(1, 1)
    // 100, + 10 + max(1, 2) 100.
    CHECK(tree_reduce_within_ns(node(4, 8), 2, 100) == Approx(110 + 110 + 210));
    // n = 4: there are two steps with 1 and 4 readers, each with three children.
    CHECK(tree_reduce_within_ns(node(4, 8), 4, 100) == Approx(3 * (110 + 210)));
    CHECK(tree_reduce_between_ns(node(4, 8), 2, 100) == Approx((100 + 400) * 2));
    CHECK(tree_reduce_between_ns(node(4, 8), 4, 100) == Approx(3 * (100 + 400)));
    CHECK(tree_reduce_ns(node(4, 8), 2, 100) == Approx(430 + 1000));
    // The example of section 3.4 has as many steps: for q = 6 and s = 2, without bytes, 3 + 1.
    CHECK(tree_reduce_ns(node(2, 6), 2, 0) == Approx(3 * 10 + 100));
    CHECK(tree_reduce_within_ns(node(4, 1), 2, 100) == 0);
    CHECK(tree_reduce_between_ns(node(1, 8), 2, 100) == 0);
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

TEST_CASE("memory: equation 5, allreduce by a tree, and the barrier", "[cost][memory]") {
    CHECK(tree_allreduce_ns(node(4, 8), 2, 100) == Approx(1430 + 860));
    CHECK(barrier_ns(node(4, 8), 2) == Approx(3 * 10 + 2 * 100 + 100));
}

TEST_CASE("memory: equations 6 and 7, dissemination", "[cost][memory]") {
    // (10 + .5 * 8 * 100) * 3 + (100 + 3 * 8 * 100) * 2.
    CHECK(dissemination_ns(node(4, 8), 100) == Approx(410 * 3 + 2500 * 2));
    // q = 6: q' = 4, r = 2: (10 + .5 * 4 * 100) * 2 + (100 + 3 * 4 * 100) * 1
    // + 2 (10 + max(1, .5 * 2) * 100).
    CHECK(dissemination_ns(node(2, 6), 100) == Approx(210 * 2 + 1300 + 2 * 110));
    // Sockets that are not a power of two have no cores in excess.
    CHECK(dissemination_ns(node(3, 4), 100) == Approx(210 * 2 + 1300 * 2));
    CHECK(dissemination_ns(node(1, 1), 100) == 0);
}

TEST_CASE("memory: equations 8 to 11, tiled reduction", "[cost][memory]") {
    CHECK(tiled_reduce_within_ns(node(4, 8), 800) == Approx(10 * 8 + 0.5 * 8 * 800));
    CHECK(tiled_reduce_between_ns(node(4, 8), 800) == Approx((100 + 3 * 800) * 2));
    CHECK(tiled_reduce_ns(node(4, 8), 800) == Approx(3280 + 5000));
    const double broadcast = (10 + 0.5 * 7 * 800) + (100 + 4 * 800);
    CHECK(tiled_allreduce_ns(node(4, 8), 800) == Approx(8280 + broadcast));
    CHECK(tiled_reduce_within_ns(node(4, 1), 800) == 0);
    // Tiles need not be whole bytes.
    CHECK(tiled_reduce_within_ns(node(1, 3), 1) == Approx(3 * 10 + 1.5));
}

TEST_CASE("memory: tiles without regard to sockets", "[cost][memory]") {
    // p = 32, tile 25: 24 readers of one socket's link in each of 32 steps.
    CHECK(tiled_reduce_naive_ns(node(4, 8), 800) == Approx(32 * (100 + 3 * 24 * 25)));
    CHECK(tiled_reduce_cyclic_ns(node(4, 8), 800) ==
          Approx(8 * (10 + 0.5 * 8 * 25) + 24 * (100 + 3 * 8 * 25)));
    // In one socket all three are the same.
    CHECK(tiled_reduce_naive_ns(node(1, 8), 800) == Approx(tiled_reduce_ns(node(1, 8), 800)));
    CHECK(tiled_reduce_cyclic_ns(node(1, 8), 800) == Approx(tiled_reduce_ns(node(1, 8), 800)));
    // Figure 13: the cyclic form is better than the naive one, the hierarchical form is better than
    // both.
    for (const std::uint64_t bytes : {64ULL << 10, 1ULL << 20, 16ULL << 20}) {
        CHECK(tiled_reduce_cyclic_ns(node(4, 8), bytes) < tiled_reduce_naive_ns(node(4, 8), bytes));
        CHECK(tiled_reduce_ns(node(4, 8), bytes) < tiled_reduce_cyclic_ns(node(4, 8), bytes));
    }
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

TEST_CASE("memory: binary trees are the best reduction trees", "[cost][memory]") {
    for (const std::uint64_t bytes : {0ULL, 64ULL, 64ULL << 10, 8ULL << 20}) {
        for (unsigned radix = 3; radix <= 8; ++radix) {
            CHECK(tree_reduce_ns(node(4, 8), 2, bytes) <= tree_reduce_ns(node(4, 8), radix, bytes));
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

TEST_CASE("memory: trees for short vectors, tiles for long ones", "[cost][memory]") {
    const std::uint64_t bytes = crossover(westmere());
    CHECK(bytes > 0);
    CHECK(bytes < 64 << 10);
    CHECK(tree_allreduce_ns(westmere(), 2, bytes / 2) < tiled_allreduce_ns(westmere(), bytes / 2));
    CHECK(tree_allreduce_ns(westmere(), 2, 2 * bytes) > tiled_allreduce_ns(westmere(), 2 * bytes));

    // Tiles pay more latencies: the higher these are, the longer vectors must be before tiles win.
    NodeModel slow_flags = westmere();
    slow_flags.within.latency_ns *= 4;
    CHECK(crossover(slow_flags) == Approx(4 * bytes).epsilon(0.01));
    // Trees move whole vectors over the link: the slower it is for one reader, the sooner tiles
    // win.
    NodeModel slow_link = westmere();
    slow_link.between.per_byte_ns *= 2;
    CHECK(crossover(slow_link) < bytes);
    // Where each further reader costs as much as the first, both algorithms pay for their total of
    // bytes, and trees on six cores move seven vectors where tiles move six.
    NodeModel oversubscribed = westmere();
    oversubscribed.within.contended_per_byte_ns = oversubscribed.within.per_byte_ns;
    CHECK(crossover(oversubscribed) > bytes / 2);
    CHECK(crossover(oversubscribed) < 64 << 10);
}

TEST_CASE("memory: dissemination moves more than tiles", "[cost][memory]") {
    for (const std::uint64_t bytes : {64ULL << 10, 4ULL << 20}) {
        CHECK(dissemination_ns(westmere(), bytes) > tiled_allreduce_ns(westmere(), bytes));
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
        CHECK(node.cores() == 1);
        CHECK(tiled_allreduce_ns(node, 4096) == 0);
        CHECK(tree_allreduce_ns(node, 2, 4096) == 0);
    }
}
