// Correct schedules pass: each collective once by hand, the in-place forms, shared memory and
// repeats.
#include "test/support/catch.hpp"
#include "test/unit/graph/schedules.hpp"

namespace ucg::graph {
namespace {

using test::request;
using test::verdict;

Request in_place(Request request) {
    request.in_place = true;
    return request;
}

TEST_CASE("graph: verify accepts barrier, bcast, reduce, allreduce", "[graph][verify]") {
    CHECK(verdict(request(Collective::barrier, 2, 0), "rank\n signal 1\n await 1\n"
                                                      "rank\n signal 0\n await 0\n")
              .empty());
    CHECK(verdict(request(Collective::barrier, 1, 0), "rank").empty());
    CHECK(verdict(request(Collective::bcast, 3, 8, 1), "rank\n recv from 1 output[0:8]\n"
                                                       "rank\n send to 0 input[0:8]\n"
                                                       " send to 2 input[0:8]\n"
                                                       "rank\n recv from 1 output[0:8]\n")
              .empty());
    const std::string_view to_root = "rank scratch 8\n recv from 1 scratch[0:8]\n"
                                     " reduce input[0:8] scratch[0:8] -> output[0:8] after 0\n"
                                     "rank\n send to 0 input[0:8]\n";
    CHECK(verdict(request(Collective::reduce, 2, 8), to_root).empty());
    CHECK(verdict(request(Collective::allreduce, 2, 8),
                  "rank scratch 8\n send to 1 input[0:8]\n recv from 1 scratch[0:8]\n"
                  " reduce input[0:8] scratch[0:8] -> output[0:8] after 1\n"
                  "rank scratch 8\n send to 0 input[0:8]\n recv from 0 scratch[0:8]\n"
                  " reduce scratch[0:8] input[0:8] -> output[0:8] after 1\n")
              .empty());
    CHECK(verdict(request(Collective::allreduce, 1, 8), "rank\n copy input[0:8] -> output[0:8]\n")
              .empty());
}

TEST_CASE("graph: verify accepts gathering and scattering", "[graph][verify]") {
    CHECK(verdict(request(Collective::gather, 2, 4, 1), "rank\n send to 1 input[0:4]\n"
                                                        "rank\n recv from 0 output[0:4]\n"
                                                        " copy input[0:4] -> output[4:8]\n")
              .empty());
    CHECK(verdict(request(Collective::scatter, 2, 4, 0), "rank\n send to 1 input[4:8]\n"
                                                         " copy input[0:4] -> output[0:4]\n"
                                                         "rank\n recv from 0 output[0:4]\n")
              .empty());
    const std::string_view allgather = "rank\n send to 1 input[0:4]\n recv from 1 output[4:8]\n"
                                       " copy input[0:4] -> output[0:4]\n"
                                       "rank\n send to 0 input[0:4]\n recv from 0 output[0:4]\n"
                                       " copy input[0:4] -> output[4:8]\n";
    CHECK(verdict(request(Collective::allgather, 2, 4), allgather).empty());
    Request v = request(Collective::allgatherv, 2, 0);
    v.receive = {{4, 4}, {0, 4}};
    CHECK(verdict(v, allgather).empty());
    CHECK(verdict(request(Collective::alltoall, 2, 4),
                  "rank\n send to 1 input[4:8]\n recv from 1 output[4:8]\n"
                  " copy input[0:4] -> output[0:4]\n"
                  "rank\n send to 0 input[0:4]\n recv from 0 output[0:4]\n"
                  " copy input[4:8] -> output[4:8]\n")
              .empty());
}

TEST_CASE("graph: verify accepts blocks of different length", "[graph][verify]") {
    std::vector<Request> gatherv(2, request(Collective::gatherv, 2, 4, 0));
    gatherv[0].receive = {{4, 6}, {10, 0}};
    gatherv[1].bytes = 6;
    CHECK(verdict(gatherv, "rank\n copy input[0:4] -> output[10:14]\n recv from 1 output[0:6]\n"
                           "rank\n send to 0 input[0:6]\n")
              .empty());
    std::vector<Request> scatterv(2, request(Collective::scatterv, 2, 4, 0));
    scatterv[0].send = {{4, 6}, {10, 0}};
    scatterv[1].bytes = 6;
    CHECK(verdict(scatterv, "rank\n copy input[10:14] -> output[0:4]\n send to 1 input[0:6]\n"
                            "rank\n recv from 0 output[0:6]\n")
              .empty());
    std::vector<Request> alltoallv(2, request(Collective::alltoallv, 2, 0));
    alltoallv[0].send = {{0, 3}, {0, 5}};
    alltoallv[0].receive = {{0, 2}, {0, 1}};
    alltoallv[1].send = {{2, 1}, {0, 2}};
    alltoallv[1].receive = {{3, 1}, {1, 0}};
    CHECK(verdict(alltoallv, "rank\n send to 1 input[5:8]\n recv from 1 output[1:3]\n"
                             "rank\n send to 0 input[0:2]\n recv from 0 output[1:4]\n"
                             " copy input[2:3] -> output[0:1]\n")
              .empty());
    alltoallv[1].receive = {{4, 1}, {1, 0}};
    CHECK(verdict(alltoallv, "rank\nrank\n") ==
          "rank 0: its request gives rank 1 3 bytes, which expects 4");
}

TEST_CASE("graph: verify matches the k-th edge of two ranks with the k-th", "[graph][verify]") {
    // Rank 0 sends two blocks to rank 1 and one to itself. Rank 1 receives its two blocks in the
    // opposite order of places.
    std::vector<Request> edges(2, request(Collective::neighbor_alltoallv, 2, 0));
    edges[0].send = {{2, 5, 3}, {0, 9, 0}, {1, 0, 1}};
    edges[0].receive = {{5}, {1}, {0}};
    edges[1].receive = {{2, 3}, {3, 0}, {0, 0}};
    const std::string sends = "rank\n send to 1 input[0:2]\n send to 1 input[0:3]\n";
    const std::string copies = " copy input[9:14] -> output[1:6]\n";
    CHECK(verdict(edges,
                  sends + copies + "rank\n recv from 0 output[3:5]\n recv from 0 output[0:3]\n")
              .empty());
    SECTION("a block that goes to the place of another") {
        edges[0].send.bytes = edges[1].receive.bytes = {3, 3};
        edges[0].send = {{3, 5, 3}, {0, 9, 4}, {1, 0, 1}};
        const std::string apart = "rank\n send to 1 input[0:3]\n send to 1 input[4:7]\n";
        CHECK(verdict(edges,
                      apart + copies + "rank\n recv from 0 output[3:6]\n recv from 0 output[0:3]\n")
                  .empty());
        CHECK_FALSE(verdict(edges, apart + copies +
                                       "rank\n recv from 0 output[0:3]\n recv from 0 "
                                       "output[3:6]\n")
                        .empty());
    }
    SECTION("lengths that differ") {
        edges[1].receive.bytes = {3, 2};
        CHECK(verdict(edges, "rank\nrank\n") ==
              "rank 0: its request gives rank 1 blocks of [2, 3] bytes, which expects [3, 2]");
    }
    SECTION("an edge that the other end does not know") {
        edges[1].receive = {{2}, {3}, {0}};
        CHECK(verdict(edges, "rank\nrank\n") ==
              "rank 0: its request gives rank 1 blocks of [2, 3] bytes, which expects [2]");
    }
}

TEST_CASE("graph: verify accepts reduce_scatter, scan and exscan", "[graph][verify]") {
    const std::string_view pair =
        "rank scratch 4\n send to 1 input[4:8]\n recv from 1 scratch[0:4]\n"
        " reduce input[0:4] scratch[0:4] -> output[0:4] after 1\n"
        "rank scratch 4\n send to 0 input[0:4]\n recv from 0 scratch[0:4]\n"
        " reduce scratch[0:4] input[4:8] -> output[0:4] after 1\n";
    CHECK(verdict(request(Collective::reduce_scatter_block, 2, 4), pair).empty());
    Request v = request(Collective::reduce_scatter, 2, 0);
    v.receive.bytes = {4, 4};
    v.commutative = false;
    CHECK(verdict(v, pair).empty());
    CHECK(verdict(request(Collective::scan, 2, 4),
                  "rank\n send to 1 input[0:4]\n copy input[0:4] -> output[0:4]\n"
                  "rank scratch 4\n recv from 0 scratch[0:4]\n"
                  " reduce scratch[0:4] input[0:4] -> output[0:4] after 0\n")
              .empty());
    CHECK(verdict(request(Collective::exscan, 2, 4), "rank\n send to 1 input[0:4]\n"
                                                     "rank\n recv from 0 output[0:4]\n")
              .empty());
}

TEST_CASE("graph: verify accepts MPI_IN_PLACE", "[graph][verify][in_place]") {
    CHECK(verdict(in_place(request(Collective::allreduce, 2, 8)),
                  "rank scratch 8\n send to 1 output[0:8]\n recv from 1 scratch[0:8]\n"
                  " reduce output[0:8] scratch[0:8] -> output[0:8] after 0 1\n"
                  "rank scratch 8\n send to 0 output[0:8]\n recv from 0 scratch[0:8]\n"
                  " reduce scratch[0:8] output[0:8] -> scratch[0:8] after 0 1\n"
                  " copy scratch[0:8] -> output[0:8] after 2 0\n")
              .empty());
    CHECK(verdict(in_place(request(Collective::allgather, 2, 4)),
                  "rank\n send to 1 output[0:4]\n recv from 1 output[4:8]\n"
                  "rank\n send to 0 output[4:8]\n recv from 0 output[0:4]\n")
              .empty());
    CHECK(verdict(in_place(request(Collective::alltoall, 2, 4)),
                  "rank scratch 4\n send to 1 output[4:8]\n recv from 1 scratch[0:4]\n"
                  " copy scratch[0:4] -> output[4:8] after 0 1\n"
                  "rank scratch 4\n send to 0 output[0:4]\n recv from 0 scratch[0:4]\n"
                  " copy scratch[0:4] -> output[0:4] after 0 1\n")
              .empty());
    std::vector<Request> gather(2, request(Collective::gather, 2, 4, 0));
    gather[0].in_place = true;
    CHECK(verdict(gather, "rank\n recv from 1 output[4:8]\nrank\n send to 0 input[0:4]\n").empty());
    std::vector<Request> scatter(2, request(Collective::scatter, 2, 4, 0));
    scatter[0].in_place = true;
    CHECK(
        verdict(scatter, "rank\n send to 1 input[4:8]\nrank\n recv from 0 output[0:4]\n").empty());
    CHECK(verdict(in_place(request(Collective::reduce_scatter_block, 2, 4)),
                  "rank scratch 4\n send to 1 output[4:8]\n recv from 1 scratch[0:4]\n"
                  " reduce output[0:4] scratch[0:4] -> output[0:4] after 1\n"
                  "rank scratch 4\n send to 0 output[0:4]\n recv from 0 scratch[0:4]\n"
                  " reduce scratch[0:4] output[4:8] -> output[0:4] after 0 1\n")
              .empty());
}

TEST_CASE("graph: verify follows peers' slices through signals", "[graph][verify][shared]") {
    // Rank 0 reduces its input and what is in rank 1's scratch, and puts the result there.
    CHECK(verdict(request(Collective::allreduce, 2, 8),
                  "rank\n await 1\n reduce input[0:8] scratch@1[0:8] -> output[0:8] after 0\n"
                  " copy output[0:8] -> scratch@1[8:16] after 1 0\n signal 1 after 2\n"
                  "rank scratch 16\n copy input[0:8] -> scratch[0:8]\n signal 0 after 0\n"
                  " await 0\n copy scratch[8:16] -> output[0:8] after 2\n",
                  true)
              .empty());
    // One piece of scratch is used twice: each time rank 0 writes it and rank 1 reads it.
    CHECK(verdict(request(Collective::bcast, 2, 16),
                  "rank\n await 1\n copy input[0:8] -> scratch@1[0:8] after 0\n"
                  " signal 1 after 1\n await 1\n"
                  " copy input[8:16] -> scratch@1[0:8] after 3 1\n signal 1 after 4\n"
                  "rank scratch 8\n signal 0\n await 0\n"
                  " copy scratch[0:8] -> output[0:8] after 1\n signal 0 after 2\n await 0\n"
                  " copy scratch[0:8] -> output[8:16] after 4\n",
                  true)
              .empty());
}

TEST_CASE("graph: verify writes repeats out", "[graph][verify][repeat]") {
    const std::string_view pipelined =
        "rank\n"
        "repeat 0..0 times 3 segment 16 last 8 rotation 1\n send to 1 input[0:16]+\n"
        "rank scratch 32\n"
        "repeat 0..1 times 3 segment 16 last 8 rotation 2\n"
        " recv from 0 scratch[0:16]% after 1(-2)\n"
        " copy scratch[0:16]% -> output[0:16]+ after 0\n";
    CHECK(verdict(request(Collective::bcast, 2, 40), pipelined).empty());
    std::string broken(pipelined);
    broken.replace(broken.find(" after 1(-2)"), 12, "");
    CHECK(verdict(request(Collective::bcast, 2, 40), broken) ==
          "rank 1, op 0 iteration 2 (recv from 0 scratch[0:8]): race: writes scratch[0:8] while op "
          "0 iteration 0 (recv from 0 scratch[0:16]) may still write it");
}

TEST_CASE("graph: k operands at once equal k operands from the left", "[graph][verify]") {
    const std::string_view exchange_0 = "rank scratch 8\n send to 1 input[0:4]\n"
                                        " send to 2 input[0:4]\n recv from 1 scratch[0:4]\n"
                                        " recv from 2 scratch[4:8]\n";
    const std::string_view exchange_1 = "rank scratch 8\n send to 0 input[0:4]\n"
                                        " send to 2 input[0:4]\n recv from 0 scratch[0:4]\n"
                                        " recv from 2 scratch[4:8]\n";
    const std::string_view exchange_2 = "rank scratch 8\n send to 0 input[0:4]\n"
                                        " send to 1 input[0:4]\n recv from 0 scratch[0:4]\n"
                                        " recv from 1 scratch[4:8]\n";
    const std::string text =
        fmt::format("{} reduce input[0:4] scratch[0:4] scratch[4:8] -> output[0:4] after 2 3\n"
                    "{} reduce scratch[0:4] input[0:4] -> scratch[0:4] after 2\n"
                    " reduce scratch[0:4] scratch[4:8] -> output[0:4] after 4 3\n"
                    "{} reduce scratch[0:4] scratch[4:8] input[0:4] -> output[0:4] after 2 3\n",
                    exchange_0, exchange_1, exchange_2);
    CHECK(verdict(request(Collective::allreduce, 3, 4), text).empty());
}

} // namespace
} // namespace ucg::graph
