// Flag slots: what they mean in terms of messages, and which uses of them are refused.
#include "test/support/catch.hpp"
#include "test/unit/graph/schedules.hpp"
#include "ucg_coll/graph/flag_slots.hpp"

namespace ucg::graph {
namespace {

using test::programs;
using test::request;
using test::verdict;

constexpr std::string_view kBarrier = "rank flag_slot 0\n share input[0:0]\n"
                                      " copy flag_slot@1[0:0] -> output[0:0]\n"
                                      " copy flag_slot@2[0:0] -> output[0:0]\n"
                                      "rank flag_slot 0\n share input[0:0]\n"
                                      " copy flag_slot@0[0:0] -> output[0:0]\n"
                                      " copy flag_slot@2[0:0] -> output[0:0]\n"
                                      "rank flag_slot 0\n share input[0:0]\n"
                                      " copy flag_slot@0[0:0] -> output[0:0]\n"
                                      " copy flag_slot@1[0:0] -> output[0:0]\n";

constexpr std::string_view kAllreduce =
    "rank flag_slot 8\n share input[0:8]\n reduce input[0:8] flag_slot@1[0:8] -> output[0:8]\n"
    "rank flag_slot 8\n share input[0:8]\n reduce flag_slot@0[0:8] input[0:8] -> output[0:8]\n";

/// What verify says of a broadcast from rank 0 to rank 1 with these schedules.
std::string bcast(std::string_view root, std::string_view leaf) {
    return verdict(request(Collective::bcast, 2, 8, 0),
                   fmt::format("rank flag_slot {}\nrank flag_slot {}\n", root, leaf), true);
}
constexpr std::string_view kRoot = "8\n share input[0:8]";
constexpr std::string_view kLeaf = "0\n copy flag_slot@0[0:8] -> output[0:8]";

TEST_CASE("graph: verify accepts flag slots", "[graph][verify][flag_slots]") {
    CHECK(verdict(request(Collective::barrier, 3, 0), kBarrier, true).empty());
    Request sum = request(Collective::allreduce, 2, 8);
    CHECK(verdict(sum, kAllreduce, true).empty());
    sum.commutative = false;
    CHECK(verdict(sum, kAllreduce, true).empty());
    CHECK(bcast(kRoot, kLeaf).empty());
    // The source of a share may be changed right afterwards, even where peers read the share later.
    CHECK(verdict(request(Collective::bcast, 2, 8, 0),
                  "rank scratch 8 flag_slot 8\n copy input[0:8] -> scratch[0:8]\n"
                  " share scratch[0:8] after 0\n copy input[0:8] -> scratch[0:8] after 1\n"
                  "rank flag_slot 0\n copy flag_slot@0[0:4] -> output[0:4]\n"
                  " copy flag_slot@0[4:8] -> output[4:8]\n",
                  true)
              .empty());
}

TEST_CASE("graph: verify lets a share have gaps that nobody reads", "[graph][verify][flag_slots]") {
    const auto with_gap = [](std::string_view leaf) {
        return verdict(
            request(Collective::bcast, 2, 8, 0),
            fmt::format("rank scratch 12 flag_slot 12\n copy input[0:8] -> scratch[4:12]\n"
                        " share scratch[0:12] after 0\nrank flag_slot {}\n",
                        leaf),
            true);
    };
    CHECK(with_gap("0\n copy flag_slot@0[4:12] -> output[0:8]") == "");
    CHECK(with_gap("0\n copy flag_slot@0[3:11] -> output[0:8]").find("before it was written") !=
          std::string::npos);
}

TEST_CASE("graph: verify sees what flag slots do not do", "[graph][verify][flag_slots]") {
    // Rank 0 does not wait for rank 1.
    CHECK(verdict(request(Collective::barrier, 2, 0),
                  "rank flag_slot 0\n share input[0:0]\n"
                  "rank flag_slot 0\n share input[0:0]\n copy flag_slot@0[0:0] -> output[0:0]\n",
                  true) == "rank 0: no op waits until rank 1 has entered the barrier");
    CHECK(bcast(kRoot, "0\n copy flag_slot@0[4:8] -> output[0:4]\n"
                       " copy flag_slot@0[0:4] -> output[4:8]") != "");
    // Each rank waits for the other's share before it shares.
    const std::string cycle = verdict(
        request(Collective::barrier, 2, 0),
        "rank flag_slot 0\n copy flag_slot@1[0:0] -> output[0:0]\n share input[0:0] after 0\n"
        "rank flag_slot 0\n copy flag_slot@0[0:0] -> output[0:0]\n share input[0:0] after 0\n",
        true);
    CHECK(cycle.find("deadlock") == 0);
    // The same holds without a dependency: a rank that waits for a flag slot issues nothing behind
    // the wait.
    const std::string_view waits_first = "rank flag_slot 0\n copy flag_slot@1[0:0] -> output[0:0]\n"
                                         " share input[0:0]\n"
                                         "rank flag_slot 0\n copy flag_slot@0[0:0] -> output[0:0]\n"
                                         " share input[0:0]\n";
    CHECK(verdict(request(Collective::barrier, 2, 0), waits_first, true).find("deadlock") == 0);
    // The messages that a flag slot stands for are not counted as ops.
    CHECK(verdict(request(Collective::allreduce, 2, 8),
                  "rank flag_slot 8\n share input[0:8]\n"
                  " reduce input[0:8] flag_slot@1[0:8] -> output[0:8]\n"
                  "rank flag_slot 8\n share input[0:8]\n copy flag_slot@0[0:8] -> output[0:8]\n",
                  true)
              .find("rank 1: output[0:8] (written by rank 1, op 1 (copy ") == 0);
    // The source may still be written while it is shared.
    CHECK(verdict(request(Collective::bcast, 2, 8, 0),
                  "rank scratch 8 flag_slot 8\n copy input[0:8] -> scratch[0:8]\n"
                  " share scratch[0:8]\nrank flag_slot 0\n copy flag_slot@0[0:8] -> output[0:8]\n",
                  true)
              .find("race") != std::string::npos);
}

TEST_CASE("graph: verify refuses what is no flag slot", "[graph][verify][flag_slots]") {
    CHECK(bcast("8\n share input[0:8]\n share input[0:8]", kLeaf) ==
          "rank 0, op 1 (share): a rank shares at most once");
    CHECK(bcast("8\n share input[0:4]", kLeaf) ==
          "rank 0, op 0 (share): its target is the whole flag slot, as long as its source");
    CHECK(bcast("8", kLeaf) == "rank 0: has a flag slot of 8 bytes and shares nothing");
    CHECK(bcast("8\n share flag_slot@1[0:8]", kLeaf) ==
          "rank 0, op 0 (share): only own input, output and scratch are shared");
    CHECK(bcast(kRoot, "0\n copy flag_slot@0[0:9] -> output[0:9]") ==
          "rank 1, op 0 (copy): flag_slot@0[0:9] reaches beyond what rank 0 shares, 8 bytes");
    CHECK(bcast(kRoot, "0\n copy flag_slot@2[0:8] -> output[0:8]") ==
          "rank 1, op 0 (copy): flag_slot@2[0:8] is no peer's");
    CHECK(bcast(kRoot, "0\n copy flag_slot[0:8] -> output[0:8]") ==
          "rank 1, op 0 (copy): flag_slot[0:8] is no peer's");
    CHECK(bcast(kRoot, "8\n share output[0:8]\n copy flag_slot@0[0:8] -> flag_slot[0:8]")
              .find("flag slots are written by share") != std::string::npos);
    CHECK(bcast(kRoot,
                "0\n copy flag_slot@0[0:8] -> output[0:8]\n copy scratch[0:8] -> output[0:8]") ==
          "rank 1, op 1 (copy): scratch[0:8] reaches beyond the buffer, which has 0 bytes");
    CHECK(bcast("0", "0\n copy flag_slot@0[0:0] -> output[0:0]") ==
          "rank 1, op 0 (copy): rank 0 shares nothing");
    CHECK(verdict(request(Collective::bcast, 2, 8, 0),
                  fmt::format("rank flag_slot {}\nrank flag_slot {}\n", kRoot, kLeaf),
                  false) == "rank 1, op 0 (copy): flag_slot@0[0:8] is out of reach");
    CHECK(verdict(request(Collective::bcast, 2, 8, 0),
                  "rank flag_slot 8\n share input[0:8]\nrank\n recv from 0 output[0:8]\n", true) ==
          "rank 1: takes no sequence number of the flag slots, rank 0 does otherwise: it is the "
          "same on all "
          "ranks");
}

TEST_CASE("graph: a signal does not stand in for a share", "[graph][verify][flag_slots]") {
    const std::string said = verdict(request(Collective::barrier, 2, 0),
                                     "rank flag_slot 0\n copy flag_slot@1[0:0] -> output[0:0]\n"
                                     " share input[0:0] after 0\n await 1 after 1\n"
                                     "rank flag_slot 0\n signal 0\n"
                                     " copy flag_slot@0[0:0] -> output[0:0] after 0\n"
                                     " share input[0:0] after 1\n",
                                     true);
    CHECK(said.substr(0, 8) == "deadlock");
}

TEST_CASE("graph: flag slots as messages", "[graph][flag_slots]") {
    const std::vector<Schedule> schedules =
        programs({request(Collective::allreduce, 2, 8)}, kAllreduce);
    const std::vector<Schedule> messages = with_messages(schedules);
    CHECK(to_text(messages[1]) ==
          "schedule allreduce by_hand rank 1 of 2 input 8 output 8 scratch 128 element 1\n"
          "0: copy input[0:8] -> scratch[0:8]\n"
          "1: send to 0 scratch[0:8] after 0\n"
          "2: recv from 0 scratch[64:72]\n"
          "3: reduce scratch[64:72] input[0:8] -> output[0:8] after 2\n");
    const std::vector<Schedule> barrier =
        with_messages(programs({request(Collective::barrier, 3, 0)}, kBarrier));
    CHECK(to_text(barrier[0]) ==
          "schedule barrier by_hand rank 0 of 3 input 0 output 0 scratch 0 element 1\n"
          "0: signal 1\n1: signal 2\n"
          "2: await 1\n3: copy scratch[0:0] -> output[0:0] after 2\n"
          "4: await 2\n5: copy scratch[0:0] -> output[0:0] after 4\n");
}

} // namespace
} // namespace ucg::graph
