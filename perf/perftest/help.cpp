#include "perf/perftest/help.hpp"

#include <fmt/format.h>

#include "perf/perftest/collectives/collective_shape.hpp"
#include "perf/perftest/test.hpp"

namespace ucg::perftest {

namespace {

constexpr const char* kText = R"(
Processes
  With --np N they are forked here, and supervised: when one dies the others are ended, and the
  message says which and why. Without --np and HOST this process is a server and waits for a
  client on port -p; the client, given HOST, brings the tests along and prints the results. A
  server with --launcher socket --np N waits for N - 1 clients, whose first brings the tests. Under
  mpirun or srun, where PMIx is in the environment, the processes are theirs.

Tests of UCT and UCP
  Their table, their CSV (-v) and their batch files (-b) are ucx_perftest's. A latency is half a
  round trip where the test is a ping-pong.

Tests of collectives
  Each time is that of the slowest rank: of iteration i the maximum over all ranks. Percentiles are
  over the iterations, of which the last 1048576 are kept. The size is that of one rank's block of
  those collectives that have one for each rank (allgather, alltoall, gather, scatter,
  reduce_scatter and their variants), else of the vector. v-variants have equal blocks. Iterations
  without -n: as many as fit into --time. In neighbor_alltoallv ranks form a ring: two blocks each.
  algorithm   bandwidth as NCCL's tests define it: the vector's bytes, of all blocks, divided by the
              median time (that of -R)
  bus         the same times 2(N-1)/N of allreduce, (N-1)/N of those with blocks, 1 of the others:
              what the busiest link of a ring would carry
  limit       how far the row is from what this machine can do, measured in the same run. "rt": so
              many times as long as a cache line needs from rank 0 to rank 1 and back. "%": of the
              rate at which all ranks together copy, each out of its neighbour's memory, counting
              the bytes that must be copied or summed at least: bcast N-1, allreduce 2(N-1), reduce,
              exscan N-1, scan N vectors; gather, scatter N, reduce_scatter N(N-1), allgather,
              alltoall N*N, neighbor_alltoallv 2N blocks. Which of the two is shown depends on which
              takes longer.
              Where ranks outnumber processors, giving way to others is part of both round trips.
              "moved": the round trip was another one after the run than before. "-": there is one
              rank. Tests of UCT and UCP say both with -I.
              Between several hosts "rt" counts round trips of a message of 8 bytes from rank 0 to
              another host, and "%" is of the rate at which the slowest host sends while others
              do, too, by UCX, counting the bytes that some host must send or receive at least:
              of bcast, reduce, scans one vector, of allreduce 2(H-1)/H with H hosts; of alltoall as
              many blocks as pairs of ranks here and elsewhere, of neighbor_alltoallv two, of the
              others as many as ranks elsewhere, or here if these are more.
  MB are 1048576 bytes. By --mode sep all ranks begin together, and nothing is pipelined.

Batch files
  # is a comment. "name options", for instance
      short  -t allreduce -s 8
      long   -t allreduce -s 1M --collective-algorithm ring
  A second file is run for each line of the first, whose options its lines inherit; names are
  printed joined by a slash.

Where the time of short messages goes: ucg_perftest breakdown --help; what a faster part would gain:
ucg_perftest what-if --help.

Exit status: 0 done, 1 failed (a process was lost, a test cannot run here, a result is wrong, a
malformed batch file), 2 wrong usage; 128 and the signal's number after Ctrl-C.

Examples:
  ucg_perftest --np 2 -t am_lat -x posix -d memory
  ucg_perftest --np 4 -t allreduce --sizes 8:1M --check
  ucg_perftest --np 2 -t allreduce_persistent -s 8 --mode b2b --json -
  ucg_perftest &  ucg_perftest localhost -t tag_lat
  mpirun -np 4 ucg_perftest -t bcast -s 64k --buffers heap)";

} // namespace

std::string help_footer() {
    std::string text = "Tests:\n";
    for (const TestInfo& test : primitive_tests()) {
        text += fmt::format("  {:<14} {}\n", test.name, test.description);
    }
    text += "  Collectives, each also as <name>_nonblocking (prepared, started and tested until "
            "done) and\n  <name>_persistent (prepared once):\n  ";
    std::size_t column = 2;
    for (const CollectiveShape& shape : collective_shapes()) {
        if (column + shape.name.size() > 96) {
            text += "\n  ";
            column = 2;
        }
        text += fmt::format("{} ", shape.name);
        column += shape.name.size() + 1;
    }
    return text + "\n" + kText;
}

} // namespace ucg::perftest
