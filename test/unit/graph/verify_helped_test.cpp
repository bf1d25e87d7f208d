// Schedules whose ranks help one another: each unit that a rank may do for another one is
// self-contained.
#include "test/support/catch.hpp"
#include "test/unit/graph/schedules.hpp"
#include "ucg_coll/graph/helped.hpp"

namespace ucg::graph {
namespace {

using test::request;
using test::verdict;

constexpr std::string_view kRoot = "rank scratch 0 helped\n signal 1\n await 1\n";

/// What verify says of a broadcast from rank 0 to rank 1 with these schedules.
std::string bcast(std::string_view leaf, std::string_view root = kRoot) {
    return verdict(request(Collective::bcast, 2, 24, 0), fmt::format("{}{}", root, leaf), true);
}

/// What verify says of an allreduce of two ranks, each of which does one half for both.
std::string sums(std::string_view first, std::string_view second) {
    Request sum = request(Collective::allreduce, 2, 32);
    sum.element_bytes = 8;
    return verdict(sum, fmt::format("{}{}", first, second), true);
}

/// The schedule of the rank whose peer is `peer`, and which does the half that begins at byte
/// `from`.
std::string half(int peer, int from, std::string_view result = "scratch[0:8]") {
    const auto at = [&](std::string_view buffer, int rank) {
        return rank == peer ? fmt::format("{}@{}[{}:{}]+", buffer, rank, from, from + 8)
                            : fmt::format("{}[{}:{}]+", buffer, from, from + 8);
    };
    return fmt::format("rank scratch 8 helped\n signal {0}\n await {0}\n"
                       "repeat 2..4 times 2 segment 8 last 8 rotation 1\n"
                       " reduce {1} {2} -> scratch[0:8] after 1 3(-1) 4(-1)\n"
                       " copy {5} -> {3} after 2\n copy {5} -> {4} after 2\n"
                       " signal {0} after 3 4\n await {0}\n",
                       peer, at("input", 0), at("input", 1), at("output", 0), at("output", 1),
                       result);
}

} // namespace

TEST_CASE("graph: verify accepts ranks that help one another", "[graph][verify][helped]") {
    CHECK(bcast("rank scratch 0 helped\n await 0\n"
                "repeat 1..1 times 3 segment 8 last 8 rotation 1\n"
                " copy input@0[0:8]+ -> output[0:8]+ after 0\n signal 0 after 1\n") == "");
    CHECK(sums(half(1, 0), half(0, 16)) == "");
}

TEST_CASE("graph: verify sees what another rank could not do", "[graph][verify][helped]") {
    const auto says = [](const std::string& verdict, std::string_view reason) {
        INFO(verdict);
        CHECK(verdict.find(reason) != std::string::npos);
    };
    // One rank does not take part in helping.
    says(bcast("rank scratch 0\n await 0\n copy input@0[0:24] -> output[0:24] after 0\n"
               " signal 0 after 1\n"),
         "rank 1: helped is false, must be true where ranks help one another");
    // A flag slot has one writer, and a helper would have to write it in that rank's place.
    says(bcast("rank scratch 0 helped flag_slot 0\n await 0\n"
               "repeat 1..1 times 3 segment 8 last 8 rotation 1\n"
               " copy input@0[0:8]+ -> output[0:8]+ after 0\n signal 0 after 1\n",
               "rank scratch 0 helped flag_slot 0\n signal 1\n await 1\n"),
         "flag_slots is true, must be false where ranks help one another");
    // No other rank would do what is not in a repeat.
    says(bcast("rank scratch 0 helped\n await 0\n copy input@0[0:24] -> output[0:24] after 0\n"
               " signal 0 after 1\n"),
         "outside of repeats");
    // A message goes from one rank to another and cannot be sent by a helper.
    says(bcast("rank scratch 0 helped\n recv from 0 output[0:24]\n",
               "rank scratch 0 helped\n send to 1 input[0:24]\n"),
         "outside of repeats");
    // An iteration depends on the one before.
    says(bcast("rank scratch 0 helped\n await 0\n copy input@0[0:8] -> output[0:8] after 0\n"
               "repeat 2..2 times 2 segment 8 last 8 rotation 1\n"
               " copy output[0:8]+ -> output[8:16]+ after 1 2(-1)\n signal 0 after 1 2\n"),
         "outside of repeats");
    says(bcast("rank scratch 0 helped\n await 0\n"
               "repeat 1..1 times 2 segment 8 last 8 rotation 1\n"
               " copy input@0[0:8]+ -> output[0:8]+ after 0\n"
               "repeat 2..2 times 2 segment 4 last 4 rotation 1\n"
               " copy output[0:4]+ -> output[16:20]+ after 1\n signal 0 after 1 2\n"),
         "in another unit, and one of the two writes");
    // The scratch holds what another iteration, possibly done by another rank, has put there.
    says(bcast("rank scratch 8 helped\n await 0\n"
               "repeat 1..2 times 3 segment 8 last 8 rotation 1\n"
               " copy scratch[0:8] -> output[0:8]+ after 0 2(-1)\n"
               " copy input@0[0:8]+ -> scratch[0:8] after 0 1\n signal 0 after 1 2\n"),
         "no op before it in the iteration has written");
    // The rule holds even for an op that concerns no other rank.
    says(verdict(request(Collective::allgather, 2, 8),
                 "rank scratch 0 helped\n copy input[0:8] -> output[0:8]\n signal 1\n await 1\n"
                 "repeat 3..3 times 2 segment 4 last 4 rotation 1\n"
                 " copy input@1[0:4]+ -> output[8:12]+ after 2\n signal 1 after 3\n await 1\n"
                 "rank scratch 0 helped\n signal 0\n await 0\n"
                 "repeat 2..3 times 2 segment 4 last 4 rotation 1\n"
                 " copy input@0[0:4]+ -> output[0:4]+ after 1\n"
                 " copy input[0:4]+ -> output[8:12]+ after 1\n signal 0 after 2 3\n await 0\n",
                 true),
         "rank 0, op 0 (copy input[0:8] -> output[0:8]): outside of repeats");
    // The root may leave while its memory is read.
    says(bcast("rank scratch 0 helped\n await 0\n"
               "repeat 1..1 times 3 segment 8 last 8 rotation 1\n"
               " copy input@0[0:8]+ -> output[0:8]+ after 0\n",
               "rank scratch 0 helped\n signal 1\n"),
         "may leave before that ends");
}

TEST_CASE("graph: the ranks that a part names", "[graph][helped]") {
    const std::vector<Request> requests = {[] {
        Request sum = request(Collective::allreduce, 2, 32);
        sum.element_bytes = 8;
        return sum;
    }()};
    const auto schedules = test::programs(requests, half(1, 0) + half(0, 16));
    CHECK(ranks_named(schedules[0], schedules[0].repeats[0]) == std::vector<Rank>{0, 1});
}

} // namespace ucg::graph
