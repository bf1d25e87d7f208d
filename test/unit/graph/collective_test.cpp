#include "test/support/catch.hpp"
#include "test/unit/graph/schedules.hpp"

namespace ucg::graph {
namespace {

using test::request;

TEST_CASE("graph: collectives have MPI's names", "[graph][collective]") {
    for (const Collective collective : kCollectives) {
        CHECK(parse_collective(name(collective)) == collective);
    }
    CHECK(name(Collective::reduce_scatter_block) == "reduce_scatter_block");
    CHECK_FALSE(parse_collective("allreduc").has_value());
}

TEST_CASE("graph: ranks combine most of what goes one way in reduce and short scans",
          "[graph][collective]") {
    CHECK(message_use(Collective::bcast, 2) == MessageUse::one_way);
    CHECK(message_use(Collective::gatherv, 9) == MessageUse::one_way);
    CHECK(message_use(Collective::exscan, 2) == MessageUse::one_way); // Nothing is combined.
    CHECK(message_use(Collective::scan, 2) == MessageUse::combined);
    CHECK(message_use(Collective::scan, 3) == MessageUse::one_way);
    CHECK(message_use(Collective::reduce, 3) == MessageUse::combined);
    CHECK(message_use(Collective::allreduce, 2) == MessageUse::exchanged_combined);
    CHECK(message_use(Collective::reduce_scatter, 2) == MessageUse::exchanged_combined);
}

TEST_CASE("graph: collectives have vectors or blocks", "[graph][collective]") {
    for (const Collective collective : kCollectives) {
        INFO(name(collective));
        CHECK((has_blocks(collective) || !has_block_vectors(collective)));
        const Request request = {.collective = collective, .rank_count = 3, .bytes = 8};
        if (!has_block_vectors(collective) && collective != Collective::barrier) {
            const BufferSizes sizes = buffer_sizes(request, 0);
            CHECK(has_blocks(collective) == (sizes.input == 24 || sizes.output == 24));
        }
    }
}

TEST_CASE("graph: buffer sizes follow the collective", "[graph][collective]") {
    const auto sizes = [](Request r, Rank rank, bool in_place) {
        r.in_place = in_place;
        return buffer_sizes(r, rank);
    };
    using Sizes = BufferSizes;
    CHECK(sizes(request(Collective::barrier, 4, 0), 1, false) == Sizes{0, 0});
    CHECK(sizes(request(Collective::bcast, 4, 8, 2), 2, false) == Sizes{8, 0});
    CHECK(sizes(request(Collective::bcast, 4, 8, 2), 0, false) == Sizes{0, 8});
    CHECK(sizes(request(Collective::reduce, 4, 8, 2), 2, false) == Sizes{8, 8});
    CHECK(sizes(request(Collective::reduce, 4, 8, 2), 2, true) == Sizes{0, 8});
    CHECK(sizes(request(Collective::reduce, 4, 8, 2), 1, true) == Sizes{8, 0});
    CHECK(sizes(request(Collective::allreduce, 4, 8), 1, true) == Sizes{0, 8});
    CHECK(sizes(request(Collective::allgather, 4, 8), 1, false) == Sizes{8, 32});
    CHECK(sizes(request(Collective::alltoall, 4, 8), 1, false) == Sizes{32, 32});
    CHECK(sizes(request(Collective::gather, 4, 8, 1), 1, true) == Sizes{0, 32});
    CHECK(sizes(request(Collective::gather, 4, 8, 1), 0, false) == Sizes{8, 0});
    CHECK(sizes(request(Collective::scatter, 4, 8, 1), 1, true) == Sizes{32, 0});
    CHECK(sizes(request(Collective::scatter, 4, 8, 1), 0, false) == Sizes{0, 8});
    CHECK(sizes(request(Collective::reduce_scatter_block, 4, 8), 0, false) == Sizes{32, 8});
    CHECK(sizes(request(Collective::reduce_scatter_block, 4, 8), 0, true) == Sizes{0, 32});
    CHECK(sizes(request(Collective::exscan, 4, 8), 0, false) == Sizes{8, 8});

    Request v = request(Collective::allgatherv, 3, 0);
    v.receive = {{4, 0, 8}, {10, 1000, 0}};
    CHECK(sizes(v, 2, false) == Sizes{8, 14}); // The offset of an empty block does not count.
    v.collective = Collective::reduce_scatter;
    CHECK(sizes(v, 2, false) == Sizes{12, 8});
    CHECK(sizes(v, 2, true) == Sizes{0, 12});
}

TEST_CASE("graph: malformed requests name the field", "[graph][collective]") {
    const auto problem = [](const Request& r, Rank rank = 0) {
        return std::string(validate(r, rank).message());
    };
    Request r = request(Collective::allreduce, 4, 16);
    CHECK(problem(r).empty());
    SECTION("rank") {
        CHECK(problem(r, 4) == "rank: 4 is not in 0 .. 3");
    }
    SECTION("rank_count") {
        r.rank_count = 0;
        CHECK(problem(r) == "rank_count: 0, must be at least 1");
    }
    SECTION("root") {
        CHECK(problem(request(Collective::bcast, 4, 8, 4)) == "root: 4 is not in 0 .. 3");
    }
    SECTION("bytes") {
        r.element_bytes = 3;
        CHECK(problem(r) == "bytes: 16 is no multiple of element_bytes, 3");
        Request blocks = request(Collective::reduce_scatter, 2, 0);
        blocks.element_bytes = 8;
        blocks.receive = {{8, 12}, {}};
        CHECK(problem(blocks) ==
              "receive.bytes: block 1, 12 bytes, is no multiple of element_bytes, 8");
    }
    SECTION("element_bytes") {
        r.element_bytes = 0;
        CHECK(problem(r) == "element_bytes: must be at least 1");
    }
    SECTION("overflow") {
        r.bytes = ~std::uint64_t{0} / 3;
        CHECK(problem(r) == "bytes: times rank_count exceeds 64 bits");
    }
    SECTION("in_place") {
        Request b = request(Collective::barrier, 4, 0);
        b.in_place = true;
        CHECK(problem(b).rfind("in_place: ", 0) == 0);
    }
    SECTION("block vectors") {
        Request v = request(Collective::allgatherv, 2, 0);
        CHECK(problem(v) == "receive.bytes: has 0 entries for 2 ranks");
        v.receive = {{4, 4}, {0}};
        CHECK(problem(v) == "receive.offsets: has 1 entries for 2 ranks");
        v.receive = {{4, 4}, {0, ~std::uint64_t{0}}};
        CHECK(problem(v) == "receive: block 1 ends beyond 64 bits");
    }
    SECTION("the root's own block") {
        Request g = request(Collective::gatherv, 2, 4, 0);
        g.receive = {{8, 4}, {0, 8}};
        CHECK(problem(g) == "bytes: 4, but the root's block in receive has 8");
        CHECK(problem(g, 1).empty());
    }
    SECTION("an own block of each rank") {
        Request v = request(Collective::alltoallv, 2, 0);
        v.send = {{8, 4}, {0, 8}};
        v.receive = {{8, 8}, {0, 8}};
        CHECK(problem(v).empty());
        CHECK(problem(v, 1) ==
              "send.bytes: rank 1 sends itself 4, but its own block in receive has 8");
        v.in_place = true;
        CHECK(problem(v, 1).empty());
    }
    SECTION("edges") {
        Request n = request(Collective::neighbor_alltoallv, 3, 0);
        n.send = {{4, 8}, {0, 4}, {1, 0}};
        n.receive = {{8, 4}, {0, 8}, {0, 1}};
        CHECK(problem(n).empty());
        n.receive.bytes[0] = 4;
        CHECK(problem(n) == "peers: rank 0 sends itself other blocks than it receives from itself");
        CHECK(problem(n, 2).empty());
        n.receive.peers[1] = 3;
        CHECK(problem(n, 2) == "receive.peers: 3 is not in 0 .. 2");
        n.send.offsets.pop_back();
        CHECK(problem(n, 2) == "send.offsets: has 1 entries for 2 peers");
    }
}

} // namespace
} // namespace ucg::graph
