// Schedules with one mistake each: verify rejects them and says what is wrong.
#include "test/support/catch.hpp"
#include "test/unit/graph/schedules.hpp"

namespace ucg::graph {
namespace {

using test::request;
using test::verdict;

std::string allreduce(std::string_view bodies, bool shared_memory = false) {
    return verdict(request(Collective::allreduce, 2, 8), bodies, shared_memory);
}
std::string bcast(std::string_view bodies, bool shared_memory = false) {
    return verdict(request(Collective::bcast, 2, 8), bodies, shared_memory);
}

TEST_CASE("graph: verify rejects messages that do not meet", "[graph][verify][broken]") {
    SECTION("dropped") {
        CHECK(bcast("rank\nrank\n recv from 0 output[0:8]\n") ==
              "rank 1, op 0 (recv from 0 output[0:8]): rank 0 never sends this message");
    }
    SECTION("extra") {
        CHECK(bcast("rank\n send to 1 input[0:8]\n send to 1 input[0:8]\n"
                    "rank\n recv from 0 output[0:8]\n") ==
              "rank 0, op 1 (send to 1 input[0:8]): rank 1 never receives this message");
    }
    SECTION("unequal lengths") {
        CHECK(
            bcast("rank\n send to 1 input[0:8]\nrank\n recv from 0 output[0:4]\n") ==
            "rank 1, op 0 (recv from 0 output[0:4]): rank 0 sends 8 bytes here (its op 0 (send to "
            "1 input[0:8])), 4 are received");
    }
    SECTION("a signal that nobody awaits") {
        CHECK(bcast("rank\n signal 1\nrank\n") ==
              "rank 0, op 0 (signal 1): rank 1 never awaits it");
    }
    SECTION("an await of no signal") {
        CHECK(bcast("rank\n send to 1 input[0:8]\nrank\n await 0\n recv from 0 output[0:8]\n") ==
              "rank 1, op 0 (await 0): rank 0 never signals it");
    }
}

TEST_CASE("graph: verify rejects wrong combinations", "[graph][verify][broken]") {
    const std::string exchange_0 =
        "rank scratch 8\n send to 1 input[0:8]\n recv from 1 scratch[0:8]\n";
    const std::string exchange_1 =
        "rank scratch 8\n send to 0 input[0:8]\n recv from 0 scratch[0:8]\n";
    const std::string right_0 = " reduce input[0:8] scratch[0:8] -> output[0:8] after 1\n";
    const std::string right_1 = " reduce scratch[0:8] input[0:8] -> output[0:8] after 1\n";
    const std::string swapped_0 = right_1;
    const std::string swapped_1 = right_0;
    SECTION("right") {
        CHECK(allreduce(exchange_0 + right_0 + exchange_1 + right_1).empty());
    }
    SECTION("swapped operands, not commutative") {
        Request r = request(Collective::allreduce, 2, 8);
        r.commutative = false;
        CHECK(verdict(r, exchange_0 + swapped_0 + exchange_1 + swapped_1) ==
              "rank 0: output[0:8] (written by rank 0, op 2 (reduce scratch[0:8] input[0:8] -> "
              "output[0:8])) combines rank 1 before rank 0, and the operator does not commute");
    }
    SECTION("swapped alike, commutative") {
        CHECK(allreduce(exchange_0 + swapped_0 + exchange_1 + swapped_1).empty());
    }
    SECTION("another order than on rank 0") {
        CHECK(allreduce(exchange_0 + right_0 + exchange_1 + swapped_1) ==
              "rank 1: output[0:8] (written by rank 1, op 2 (reduce input[0:8] scratch[0:8] -> "
              "output[0:8])) is combined in another order than on rank 0, so the bits may differ");
    }
    SECTION("a contribution twice") {
        CHECK(allreduce(exchange_0 +
                        " reduce input[0:8] input[0:8] scratch[0:8] -> output[0:8] after 1\n" +
                        exchange_1 + right_1)
                  .find("has the contribution of rank 0 more than once") != std::string::npos);
    }
    SECTION("a contribution missing") {
        CHECK(allreduce(exchange_0 + " copy input[0:8] -> output[0:8]\n" + exchange_1 + right_1)
                  .find("output[0:8] (written by rank 0, op 2 (copy input[0:8] -> output[0:8])) "
                        "lacks the contribution of rank 1") != std::string::npos);
    }
    SECTION("a contribution of a rank that does not belong") {
        CHECK(verdict(request(Collective::exscan, 2, 8),
                      "rank\n send to 1 input[0:8]\n"
                      "rank scratch 8\n recv from 0 scratch[0:8]\n"
                      " reduce scratch[0:8] input[0:8] -> output[0:8] after 0\n")
                  .find("has the contribution of rank 1, which does not belong there") !=
              std::string::npos);
    }
    SECTION("bytes of different places") {
        CHECK(verdict(request(Collective::allreduce, 1, 8),
                      "rank scratch 4\n reduce input[0:4] input[4:8] -> scratch[0:4]\n")
                  .find("combines byte 0 of one contribution with byte 4 of another") !=
              std::string::npos);
    }
    SECTION("no operator") {
        CHECK(bcast("rank scratch 4\n reduce input[0:4] input[4:8] -> scratch[0:4]\nrank\n")
                  .find("bcast has no operator") != std::string::npos);
    }
    SECTION("another rank's block") {
        CHECK(verdict(request(Collective::allgather, 2, 4),
                      "rank\n send to 1 input[0:4]\n recv from 1 output[0:4]\n"
                      " copy input[0:4] -> output[4:8]\n"
                      "rank\n send to 0 input[0:4]\n recv from 0 output[0:4]\n"
                      " copy input[0:4] -> output[4:8]\n")
                  .find("output[0:4] (written by rank 0, op 1 (recv from 1 output[0:4])) holds the "
                        "contribution of rank 1, must be rank 0's") != std::string::npos);
    }
    SECTION("the wrong bytes of the right rank") {
        CHECK(verdict(request(Collective::scatter, 2, 4, 0),
                      "rank\n send to 1 input[0:4]\n copy input[0:4] -> output[0:4]\n"
                      "rank\n recv from 0 output[0:4]\n")
                  .find("holds bytes from 0 of the contribution, must be from 4") !=
              std::string::npos);
    }
}

TEST_CASE("graph: verify rejects deadlocks", "[graph][verify][broken]") {
    SECTION("both receive first") {
        CHECK(
            verdict(request(Collective::allgather, 2, 4),
                    "rank\n recv from 1 output[4:8]\n send to 1 input[0:4] after 0\n"
                    " copy input[0:4] -> output[0:4]\n"
                    "rank\n recv from 0 output[0:4]\n send to 0 input[0:4] after 0\n"
                    " copy input[0:4] -> output[4:8]\n") ==
            "deadlock: rank 0, op 0 (recv from 1 output[4:8]) cannot complete before rank 1, op 1 "
            "(send to 0 input[0:4]) starts; rank 1, op 1 (send to 0 input[0:4]) cannot start "
            "before rank 1, op 0 (recv from 0 output[0:4]) completes; rank 1, op 0 (recv from 0 "
            "output[0:4]) cannot complete before rank 0, op 1 (send to 1 input[0:4]) starts; "
            "rank 0, op 1 (send to 1 input[0:4]) cannot start before rank 0, op 0 (recv from 1 "
            "output[4:8]) completes");
    }
    SECTION("only a buffered send would help") {
        // Each rank waits until its send is taken before it posts the receive.
        CHECK(verdict(request(Collective::allgather, 2, 4),
                      "rank\n send to 1 input[0:4]\n recv from 1 output[4:8] after 0\n"
                      " copy input[0:4] -> output[0:4]\n"
                      "rank\n send to 0 input[0:4]\n recv from 0 output[0:4] after 0\n"
                      " copy input[0:4] -> output[4:8]\n")
                  .rfind("deadlock: ", 0) == 0);
    }
    SECTION("an independent op stands behind a blocked one") {
        CHECK(verdict(request(Collective::barrier, 2, 0),
                      "rank\n await 1\n signal 1 after 0\nrank\n await 0\n signal 0 after 0\n")
                  .rfind("deadlock: ", 0) == 0);
        // The copy waits for a message that comes late, and the signal is issued after the copy.
        CHECK(verdict(request(Collective::bcast, 2, 8),
                      "rank\n await 1\n send to 1 input[0:8] after 0\n"
                      "rank scratch 8\n recv from 0 scratch[0:8]\n"
                      " copy scratch[0:8] -> output[0:8] after 0\n signal 0\n")
                  .rfind("deadlock: ", 0) == 0);
    }
}

TEST_CASE("graph: verify rejects a repeat that outruns its messages in flight",
          "[graph][verify][broken][repeat]") {
    // Rank 1 receives only after rank 0 has sent all its messages.
    const auto sends_first = [](int iterations, int rotation) {
        return verdict(request(Collective::bcast, 2, static_cast<std::uint64_t>(4 * iterations)),
                       fmt::format("rank\nrepeat 0..0 times {0} segment 4 last 4 rotation {1}\n"
                                   " send to 1 input[0:4]+\n signal 1\n"
                                   "rank\n await 0\n"
                                   "repeat 1..1 times {0} segment 4 last 4 rotation {1}\n"
                                   " recv from 0 output[0:4]+ after 0\n",
                                   iterations, rotation));
    };
    CHECK(sends_first(4, 1).empty());
    CHECK(sends_first(8, 4).empty());
    CHECK(sends_first(16, 15).empty());
    CHECK(sends_first(5, 3) ==
          "deadlock: rank 0, op 0 iteration 0 (send to 1 input[0:4]) cannot complete before rank "
          "1, op 1 iteration 0 (recv from 0 output[0:4]) starts; rank 1, op 1 iteration 0 (recv "
          "from 0 output[0:4]) cannot start before rank 1, op 0 (await 0) completes; rank 1, op 0 "
          "(await 0) cannot complete before rank 0, op 1 (signal 1) starts; rank 0, op 0 "
          "iteration 4 (send to 1 input[16:20]) cannot start before rank 0, op 0 iteration 0 "
          "(send to 1 input[0:4]) completes");
    CHECK(sends_first(9, 4).find("deadlock: ") == 0);
    CHECK(sends_first(17, 8).find("deadlock: ") == 0);
}

TEST_CASE("graph: verify rejects races", "[graph][verify][broken]") {
    SECTION("two writes") {
        CHECK(bcast("rank\n send to 1 input[0:4]\n send to 1 input[4:8]\n"
                    "rank scratch 4\n recv from 0 scratch[0:4]\n recv from 0 scratch[0:4]\n")
                  .find("race: writes scratch[0:4] while op 0 (recv from 0 scratch[0:4]) may still "
                        "write it") != std::string::npos);
    }
    SECTION("a source that changes while it is sent") {
        const std::string tail = "\nrank scratch 8\n recv from 0 scratch[0:8]\n"
                                 " copy scratch[0:8] -> output[0:8] after 0\n";
        const std::string head = "rank scratch 8\n copy input[0:8] -> scratch[0:8]\n"
                                 " send to 1 scratch[0:8] after 0\n"
                                 " copy input[0:8] -> scratch[0:8] after 0";
        CHECK(bcast(head + tail) == "rank 0, op 2 (copy input[0:8] -> scratch[0:8]): race: writes "
                                    "scratch[0:8] while op 1 (send to 1 scratch[0:8]) may still "
                                    "read it");
        CHECK(bcast(head + " 1" + tail).empty());
    }
    SECTION("a read that does not wait") {
        CHECK(bcast("rank\n send to 1 input[0:8]\n"
                    "rank scratch 8\n recv from 0 scratch[0:8]\n"
                    " copy scratch[0:8] -> output[0:8]\n")
                  .find("may still") != std::string::npos);
    }
    SECTION("a peer's slice without await") {
        CHECK(bcast("rank\n copy input[0:8] -> scratch@1[0:8]\n"
                    "rank scratch 8\n copy scratch[0:8] -> output[0:8]\n",
                    true)
                  .find("race: ") != std::string::npos);
    }
    SECTION("an await that nothing depends on") {
        CHECK(bcast("rank\n copy input[0:8] -> scratch@1[0:8]\n signal 1 after 0\n"
                    "rank scratch 8\n await 0\n copy scratch[0:8] -> output[0:8]\n",
                    true)
                  .find("race: ") != std::string::npos);
    }
    SECTION("a signal that does not wait") {
        CHECK(bcast("rank\n copy input[0:8] -> scratch@1[0:8]\n signal 1\n"
                    "rank scratch 8\n await 0\n copy scratch[0:8] -> output[0:8] after 0\n",
                    true)
                  .find("race: ") != std::string::npos);
    }
    SECTION("a started receive tells its sender nothing") {
        // Rank 0 may not conclude from its completed send that rank 1 has got that far.
        CHECK(bcast("rank\n send to 1 input[0:8]\n copy input[0:8] -> scratch@1[0:8] after 0\n"
                    "rank scratch 8\n copy output[0:0] -> scratch[0:0]\n"
                    " recv from 0 output[0:8]\n copy output[0:8] -> scratch[0:8] after 1\n",
                    true)
                  .find("race: ") != std::string::npos);
    }
}

TEST_CASE("graph: verify rejects peers' slices outside their lifetime", "[graph][verify][broken]") {
    SECTION("before the peer has entered") {
        CHECK(bcast("rank\n copy input[0:8] -> scratch@1[0:8]\n signal 1 after 0\n"
                    "rank scratch 8\n await 0\n copy scratch[0:8] -> output[0:8] after 0\n",
                    true) == "rank 0, op 0 (copy input[0:8] -> scratch@1[0:8]): touches "
                             "scratch@1[0:8] before rank 1 is known to have entered");
    }
    SECTION("after the peer may have left") {
        CHECK(bcast("rank scratch 8\n copy input[0:8] -> scratch[0:8]\n signal 1 after 0\n"
                    "rank\n await 0\n copy scratch@0[0:8] -> output[0:8] after 0\n",
                    true) == "rank 1, op 1 (copy scratch@0[0:8] -> output[0:8]): touches "
                             "scratch@0[0:8], and rank 0 may leave before that ends");
        // This holds for no bytes, too: a rank that has left no longer makes its buffers known.
        CHECK(bcast("rank\n send to 1 input[0:8]\nrank\n recv from 0 output[0:8]\n"
                    " copy scratch@0[0:0] -> output[0:0] after 0\n",
                    true)
                  .find("rank 0 may leave before that ends") != std::string::npos);
    }
    SECTION("in between") {
        CHECK(
            bcast("rank scratch 8\n copy input[0:8] -> scratch[0:8]\n signal 1 after 0\n await 1\n"
                  "rank\n await 0\n copy scratch@0[0:8] -> output[0:8] after 0\n"
                  " signal 0 after 1\n",
                  true)
                .empty());
    }
}

TEST_CASE("graph: verify rejects misuse of staging buffers", "[graph][verify][broken][shared]") {
    const auto with_staging_buffer = [](std::uint64_t staging_buffer_0,
                                        std::uint64_t staging_buffer_1, std::string_view bodies) {
        const Request r = request(Collective::bcast, 2, 16);
        std::vector<Schedule> schedules = test::programs({r}, bodies);
        schedules[0].staging_buffer_bytes = staging_buffer_0;
        schedules[1].staging_buffer_bytes = staging_buffer_1;
        for (Schedule& schedule : schedules) {
            schedule.exposed = true;
        }
        const auto all_share = [](Rank, Rank, const void*) { return true; };
        return std::string(verify(schedules, {&r, 1}, all_share).message());
    };
    const std::string reader =
        "rank\n await 0\n copy input@0[0:16] -> output[0:16] after 0\n signal 0 after 1\n";
    SECTION("right") {
        CHECK(with_staging_buffer(
                  16, 16, "rank\n publish input[0:16]\n signal 1 after 0\n await 1\n" + reader) ==
              "");
    }
    SECTION("right, beside scratch that the rank keeps to itself") {
        CHECK(with_staging_buffer(16, 16,
                                  "rank scratch 64 own_scratch 64\n publish input[0:16]\n"
                                  " signal 1 after 0\n await 1\n" +
                                      reader) == "");
    }
    SECTION("what is read was not published") {
        CHECK(with_staging_buffer(
                  16, 16, "rank\n publish input[0:8]\n signal 1 after 0\n await 1\n" + reader)
                  .find("by way of staging buffers: ") == 0);
    }
    SECTION("published after the signal") {
        const std::string problem = with_staging_buffer(
            16, 16, "rank\n signal 1\n publish input[0:16]\n await 1\n" + reader);
        CHECK(problem.find("by way of staging buffers: ") == 0);
        CHECK(problem.find("race: ") != std::string::npos);
    }
    SECTION("across the end of a staging buffer") {
        CHECK(with_staging_buffer(
                  8, 8, "rank\n publish input[0:16]\n signal 1 after 0\n await 1\n" + reader) ==
              "rank 0, op 0 (publish input[0:16]): goes across a multiple of the staging buffer's "
              "8 bytes");
    }
    SECTION("staging buffers of different length") {
        CHECK(with_staging_buffer(
                  16, 32, "rank\n publish input[0:16]\n signal 1 after 0\n await 1\n" + reader) ==
              "rank 1: staging_buffer_bytes is 32, rank 0 has 16: it is the same on all ranks");
    }
    SECTION("a peer's bytes") {
        CHECK(with_staging_buffer(
                  16, 16, "rank\n publish input@1[0:16]\n signal 1 after 0\n await 1\n" + reader) ==
              "rank 0, op 0 (publish input@1[0:16]): input@1[0:16] reaches beyond the buffer, "
              "which has 0 bytes");
    }
}

TEST_CASE("graph: verify rejects ranges and peers that do not exist", "[graph][verify][broken]") {
    SECTION("beyond the buffer") {
        CHECK(bcast("rank\n send to 1 input[4:12]\nrank\n recv from 0 output[0:8]\n") ==
              "rank 0, op 0 (send to 1 input[4:12]): input[4:12] reaches beyond the buffer, which "
              "has 8 bytes");
    }
    SECTION("write to the input") {
        CHECK(allreduce("rank\n recv from 1 input[0:8]\nrank\n send to 0 input[0:8]\n") ==
              "rank 0, op 0 (recv from 1 input[0:8]): writes to the input");
    }
    SECTION("peer out of range") {
        CHECK(bcast("rank\n send to 2 input[0:8]\nrank\n") ==
              "rank 0, op 0 (send to 2 input[0:8]): there is no rank 2");
    }
    SECTION("message to itself") {
        CHECK(bcast("rank\n send to 0 input[0:8]\nrank\n") ==
              "rank 0, op 0 (send to 0 input[0:8]): its peer is the rank itself");
    }
    SECTION("owner out of range") {
        CHECK(bcast("rank\n copy input[0:8] -> output@5[0:8]\nrank\n", true)
                  .find("there is no rank 5") != std::string::npos);
    }
    SECTION("no shared memory") {
        CHECK(
            bcast("rank\n copy input[0:8] -> output@1[0:8]\nrank\n") ==
            "rank 0, op 0 (copy input[0:8] -> output@1[0:8]): output@1[0:8] is out of reach: ranks "
            "0 and 1 share no memory");
    }
    SECTION("a peer that does not expose its buffers") {
        const Request r = request(Collective::bcast, 2, 8);
        const auto schedules =
            test::programs({r}, "rank\n copy input[0:8] -> output@1[0:8]\nrank\n");
        const auto all_share = [](Rank, Rank, const void*) { return true; };
        CHECK(
            verify(schedules, std::span(&r, 1), all_share).message() ==
            "rank 0, op 0 (copy input[0:8] -> output@1[0:8]): output@1[0:8] is out of reach: rank "
            "1 does not expose its buffers");
    }
    SECTION("a rank that names a peer's slice and does not expose its own buffers") {
        const Request r = request(Collective::bcast, 2, 8);
        std::vector<Schedule> schedules = test::programs(
            {r}, "rank scratch 8\n copy input[0:8] -> scratch[0:8]\n signal 1 after 0\n await 1\n"
                 "rank\n await 0\n copy scratch@0[0:8] -> output[0:8] after 0\n"
                 " signal 0 after 1\n");
        schedules[0].exposed = true;
        const auto all_share = [](Rank, Rank, const void*) { return true; };
        CHECK(verify(schedules, std::span(&r, 1), all_share).message() ==
              "rank 1, op 1 (copy scratch@0[0:8] -> output[0:8]): scratch@0[0:8] is out of reach: "
              "rank 1 does not expose its own buffers");
    }
    SECTION("scratch that a peer keeps to itself") {
        CHECK(bcast("rank scratch 64 own_scratch 8\n copy input[0:8] -> scratch[56:64]\n"
                    " signal 1 after 0\n await 1\n"
                    "rank\n await 0\n copy scratch@0[56:64] -> output[0:8] after 0\n"
                    " signal 0 after 1\n",
                    true) ==
              "rank 1, op 1 (copy scratch@0[56:64] -> output[0:8]): scratch@0[56:64] "
              "is out of reach: from byte 56 on rank 0 keeps its scratch to itself");
    }
    SECTION("a slice of scratch that peers reach in part, or in some iterations") {
        CHECK(
            bcast("rank scratch 64 own_scratch 8\n copy input[0:8] -> scratch[52:60]\nrank\n",
                  true) ==
            "rank 0, op 0 (copy): scratch[52:60] goes on from what peers may name to own scratch");
        CHECK(bcast("rank scratch 16 own_scratch 8\n"
                    "repeat 0..0 times 2 segment 8 last 8 rotation 2\n"
                    " copy input[0:8] -> scratch[0:8]%\nrank\n",
                    true) ==
              "rank 0, op 0 (copy): scratch[0:8]% goes on from what peers may name to own scratch");
        const std::string up_to_it = bcast("rank scratch 16 own_scratch 8\n"
                                           "repeat 0..0 times 2 segment 4 last 4 rotation 1\n"
                                           " copy input[0:4] -> scratch[0:4]+\nrank\n",
                                           true);
        CHECK(up_to_it.find("goes on") == std::string::npos);
    }
    SECTION("own scratch where peers name nothing") {
        CHECK(bcast("rank scratch 64 own_scratch 8\nrank\n") ==
              "rank 0: own_scratch_bytes is 8, must be a part of the 64 bytes of scratch, and 0 "
              "where peers name nothing");
    }
    SECTION("a peer's buffer that is not published") {
        CHECK(bcast("rank\n signal 1\n await 1\nrank\n await 0\n"
                    " copy input@0[0:8] -> output[0:8] after 0\n signal 0 after 1\n",
                    true) == "rank 1, op 1 (copy input@0[0:8] -> output[0:8]): input@0[0:8] is out "
                             "of reach: rank 0 has no staging buffer, and publishes nothing");
    }
    SECTION("dependency forward") {
        CHECK(bcast("rank\n send to 1 input[0:8] after 1\n signal 1\nrank\n") ==
              "rank 0, op 0 (send): depends on op 1, which does not come before it");
    }
    SECTION("dependency on no op") {
        CHECK(bcast("rank\n send to 1 input[0:8] after 7\nrank\n") ==
              "rank 0, op 0 (send): depends on op 7, there are 1");
    }
    SECTION("distance outside repeats") {
        CHECK(bcast("rank\n signal 1\n signal 1 after 0(-1)\nrank\n")
                  .find("which is not in its repeat") != std::string::npos);
    }
    SECTION("stride outside repeats") {
        CHECK(bcast("rank\n send to 1 input[0:8]+\nrank\n") ==
              "rank 0, op 0 (send): a slice moves outside a repeat");
    }
    SECTION("a body's slice that is no segment") {
        CHECK(bcast("rank\nrepeat 0..0 times 2 segment 4 last 4\n send to 1 input[0:8]+\nrank\n") ==
              "rank 0, op 0 (send): input[0:8]+ is not a segment, 4 bytes, long");
    }
    SECTION("copy of unequal lengths") {
        CHECK(allreduce("rank\n copy input[0:4] -> output[0:8]\nrank\n")
                  .find("source and target differ in length") != std::string::npos);
    }
    SECTION("overlapping operand") {
        CHECK(allreduce("rank scratch 8\n reduce input[0:8] scratch[0:8] -> scratch[0:8]\nrank\n")
                  .find("operand scratch[0:8] overlaps the target; only the first may be it") !=
              std::string::npos);
    }
}

TEST_CASE("graph: verify rejects misuse of memory", "[graph][verify][broken]") {
    SECTION("output written twice") {
        CHECK(verdict(request(Collective::allreduce, 1, 8),
                      "rank\n copy input[0:8] -> output[0:8]\n"
                      " copy input[0:8] -> output[0:8] after 0\n") ==
              "rank 0, op 1 (copy input[0:8] -> output[0:8]): writes output[0:8] a second time, "
              "after rank 0, op 0 (copy input[0:8] -> output[0:8])");
    }
    SECTION("output byte not written") {
        CHECK(verdict(request(Collective::allreduce, 1, 8),
                      "rank\n copy input[0:7] -> output[0:7]\n") ==
              "rank 0: output[7:8] (written by no op) is left undefined");
    }
    SECTION("output byte that is not the collective's") {
        Request gaps = request(Collective::allgatherv, 1, 0);
        gaps.receive = {{4}, {4}};
        CHECK(verdict(gaps, "rank\n copy input[0:4] -> output[4:8]\n"
                            " copy input[0:4] -> output[0:4]\n")
                  .find("is not the collective's to write") != std::string::npos);
    }
    SECTION("exscan defines nothing on rank 0") {
        CHECK(verdict(request(Collective::exscan, 1, 8), "rank\n copy input[0:8] -> output[0:8]\n")
                  .find("is not the collective's to write") != std::string::npos);
    }
    SECTION("scratch read before written") {
        CHECK(verdict(request(Collective::allreduce, 1, 8),
                      "rank scratch 8\n copy input[0:4] -> scratch[0:4]\n"
                      " copy scratch[0:8] -> output[0:8] after 0\n") ==
              "rank 0, op 1 (copy scratch[0:8] -> output[0:8]): reads scratch[4:8] before it was "
              "written");
    }
    SECTION("a reduction of part of an element") {
        Request r = request(Collective::allreduce, 2, 8);
        r.element_bytes = 4;
        CHECK(verdict(r, "rank scratch 8\n recv from 1 scratch[0:6]\n"
                         " reduce input[0:6] scratch[0:6] -> output[0:6] after 0\n"
                         "rank\n send to 0 input[0:6]\n")
                  .find("cuts inside an element: 6 bytes, elements of 4") != std::string::npos);
        CHECK(verdict(r, "rank scratch 8\n recv from 1 scratch[0:4]\n"
                         " reduce input[2:6] scratch[0:4] -> output[2:6] after 0\n"
                         "rank\n send to 0 input[2:6]\n")
                  .find("input[2:6] is cut inside an element of 4 bytes") != std::string::npos);
    }
}

TEST_CASE("graph: verify rejects misuse of MPI_IN_PLACE", "[graph][verify][broken][in_place]") {
    Request r = request(Collective::allreduce, 2, 8);
    r.in_place = true;
    SECTION("the input is not there") {
        CHECK(
            verdict(r, "rank\n send to 1 input[0:8]\nrank\n") ==
            "rank 0, op 0 (send to 1 input[0:8]): input[0:8] reaches beyond the buffer, which has "
            "0 bytes");
    }
    SECTION("the contribution is overwritten before it was sent") {
        CHECK(verdict(r, "rank scratch 8\n recv from 1 scratch[0:8]\n send to 1 output[0:8]\n"
                         " reduce output[0:8] scratch[0:8] -> output[0:8] after 0\n"
                         "rank scratch 8\n send to 0 output[0:8]\n recv from 0 scratch[0:8]\n"
                         " reduce scratch[0:8] output[0:8] -> output[0:8] after 0 1\n")
                  .find("overlaps the target") != std::string::npos);
        r.commutative = true;
        CHECK(verdict(r, "rank scratch 8\n recv from 1 scratch[0:8]\n send to 1 output[0:8]\n"
                         " reduce output[0:8] scratch[0:8] -> output[0:8] after 0\n"
                         "rank scratch 16\n send to 0 output[0:8]\n recv from 0 scratch[0:8]\n"
                         " reduce scratch[0:8] output[0:8] -> scratch[8:16] after 1\n"
                         " copy scratch[8:16] -> output[0:8] after 0 2\n")
                  .find("race: writes output[0:8] while op 1 (send to 1 output[0:8]) may still "
                        "read it") != std::string::npos);
    }
    SECTION("the result is left as it was") {
        CHECK(verdict(r, "rank\nrank\n") ==
              "rank 0: output[0:8] (written by no op) lacks the contribution of rank 1");
    }
    SECTION("the schedule is for another request") {
        std::vector<Schedule> schedules = test::programs({r}, "rank\nrank\n");
        schedules[1].in_place = false;
        CHECK(verify(schedules, std::span(&r, 1)).message() ==
              "rank 1: in_place is false, must be true");
    }
    SECTION("beyond the first block of reduce_scatter") {
        Request block = request(Collective::reduce_scatter_block, 1, 8);
        block.in_place = true;
        CHECK(verdict(block, "rank\n").empty());
        Request v = request(Collective::reduce_scatter, 2, 0);
        v.receive.bytes = {4, 4};
        v.in_place = true;
        CHECK(verdict(v, "rank scratch 4\n send to 1 output[4:8]\n recv from 1 scratch[0:4]\n"
                         " reduce output[0:4] scratch[0:4] -> output[0:4] after 1\n"
                         "rank scratch 4\n send to 0 output[0:4]\n recv from 0 scratch[0:4]\n"
                         " reduce output[4:8] scratch[0:4] -> output[4:8] after 1\n")
                  .find("rank 1: output[0:4]") == 0);
    }
}

TEST_CASE("graph: verify rejects what does not fit the request", "[graph][verify][broken]") {
    const Request r = request(Collective::bcast, 2, 8);
    std::vector<Schedule> schedules =
        test::programs({r}, "rank\n send to 1 input[0:8]\nrank\n recv from 0 output[0:8]\n");
    const auto problem = [&](std::vector<Request> requests) {
        return std::string(verify(schedules, requests).message());
    };
    REQUIRE(problem({r}).empty());
    SECTION("no schedules") {
        CHECK(verify({}, std::span(&r, 1)).message() == "no schedules");
    }
    SECTION("number of requests") {
        CHECK(problem({r, r, r}) == "3 requests for 2 schedules");
    }
    SECTION("number of ranks") {
        CHECK(problem({request(Collective::bcast, 3, 8)}) ==
              "rank 0: the request is for 3 ranks, there are 2 schedules");
    }
    SECTION("malformed request") {
        CHECK(problem({request(Collective::bcast, 2, 8, 2)}) ==
              "rank 0, request root: 2 is not in 0 .. 1");
    }
    SECTION("requests that disagree") {
        CHECK(problem({r, request(Collective::bcast, 2, 9)}).find("rank 1: its request differs") ==
              0);
    }
    SECTION("another root") {
        CHECK(problem({request(Collective::bcast, 2, 8, 1)}) ==
              "rank 0: input_bytes is 8, must be 0");
    }
    SECTION("ranks in another order") {
        std::swap(schedules[0], schedules[1]);
        CHECK(problem({r}) == "rank 0: rank is 1, must be 0");
    }
    SECTION("array ranges") {
        schedules[0].ops[0].first_dependency = 1;
        CHECK(problem({r}) == "rank 0, op 0 (send): its dependencies are not a range of the array");
    }
    SECTION("repeats") {
        schedules[0].repeats = {{0, 2, 2, 8, 8, 1}};
        CHECK(problem({r}).find("rank 0, repeat 0: its ops are not a range") == 0);
        schedules[0].repeats = {{0, 1, 1, 8, 8, 1}};
        CHECK(problem({r}).find("iterations must be at least 2") != std::string::npos);
        schedules[0].repeats = {{0, 1, 2, 8, 9, 1}};
        CHECK(problem({r}).find("last_bytes must be") != std::string::npos);
        schedules[0].repeats = {{0, 1, 2, 8, 8, 16}};
        CHECK(problem({r}).find("rotation must be") != std::string::npos);
        schedules[0].repeats = {{0, 1, std::uint64_t{1} << 60, 8, 8, 1}};
        CHECK(problem({r}).find("iterations must be") != std::string::npos);
    }
    SECTION("a barrier that does not wait") {
        CHECK(verdict(request(Collective::barrier, 2, 0), "rank\n signal 1\nrank\n await 0\n") ==
              "rank 0: no op waits until rank 1 has entered the barrier");
    }
}

} // namespace
} // namespace ucg::graph
