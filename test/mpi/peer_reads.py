#!/usr/bin/env python3
"""Compares the algorithms in which ranks read one another's memory with Open MPI's own collectives.

usage: peer_reads.py COMPONENT-FOLDER PROGRAM HEAP-LIBRARY REFERENCE-FOLDER RANKS...

Every case of differential.py runs with these algorithms, each on the odd or on the even numbers of
ranks. Runs differ in how much memory the ranks share, in whether libucg_heap.so is preloaded (then
some buffers of a call are read in place and others by way of staging buffers, other ones on each
rank), and in the sockets that ranks believe they are on.
"""

import os
import re
import sys
import tempfile

import differential
import mpirun

# Each run has one algorithm of each collective. Where it cannot serve a call, the planner chooses.
ROWS = [
    {"allreduce": "all_read", "bcast": "one_stage", "reduce": "numa_tree"},
    {"allreduce": "tiled_naive", "bcast": "two_stage", "reduce": "tiled"},
    {"allreduce": "tiled_cyclic", "bcast": "flag_slots_allgather", "reduce": "tiled"},
    {"allreduce": "tiled_hierarchical", "bcast": "two_stage", "reduce": "numa_tree"},
    {"allreduce": "numa_tree", "bcast": "two_stage", "reduce": "numa_tree"},
    {"allreduce": "numa_dissemination", "bcast": "read_allgather", "reduce": "tiled"},
    {"allreduce": "tiled_exchange", "bcast": "one_stage", "reduce": "tiled"},
    {"allreduce": "flag_slots_allgather", "bcast": "one_stage", "reduce": "flag_slots_gather"},
]
READS = ["allgather", "allgatherv", "gather", "scatter", "alltoall", "reduce_scatter",
         "reduce_scatter_block"]
# Vectors of these cases go in one segment, in several, and in many; the last size leaves room for
# few elements.
STAGINGS = ["1M", "64k", "4k"]
# The ranks of a socket follow one another, are dealt round robin, or are all on one socket.
LAYOUTS = ["block", "dealt", "one"]
NEEDS_SOCKETS = {"two_stage", "tiled_hierarchical"}
NEEDS_THREE_RANKS = {"flag_slots_allgather", "flag_slots_gather"}

# This stands between mpirun and the program, so that only ranks get the heap, and possibly a
# machine of two packages, on one of which each rank is.
STAND_IN = """
import os, sys
layout, heap, *command = sys.argv[1:]
rank, size = (int(os.environ["OMPI_COMM_WORLD_" + name]) for name in ("RANK", "SIZE"))
if layout != "one":
    socket = rank * 2 // size if layout == "block" else rank % 2
    os.sched_setaffinity(0, {socket})
    os.environ.update(HWLOC_THISSYSTEM="1", HWLOC_SYNTHETIC="package:2 core:1 pu:1")
if heap:
    os.environ.update(LD_PRELOAD=heap, DIFFERENTIAL_MAPPED="1")
os.execv(command[0], command)
"""


def settings(rows, staging):
    """The environment of one run."""
    environment = {f"UCG_{name.upper()}": row for name, row in rows.items()}
    environment.update({f"UCG_{name.upper()}": "peer_read" for name in READS})
    environment.update(UCG_STAGING=staging, UCG_LOG_LEVEL="debug", DIFFERENTIAL_MIXED="1")
    return environment


def expect_served(checks, job, rows, layout, ranks, what):
    """Each algorithm was used, except those that need more sockets or ranks than there are."""
    wanted = [*rows.items(), *((name, "peer_read") for name in READS)]
    for collective, row in wanted:
        # Two ranks are on one socket.
        if row in NEEDS_SOCKETS and (layout == "one" or ranks < 3):
            continue
        if row in NEEDS_THREE_RANKS and ranks < 3:
            continue
        checks.expect(re.search(rf": {collective} of \d+ bytes by {row}\n", job.output),
                      f"{what}: no {collective} by {row}")
    checks.expect("ordinary memory" not in job.output, f"{what}: without the heap")


def compare_run(checks, launcher, program, ranks, prefix, run):
    rows, staging, layout, heap = run
    what = f"{ranks} ranks, {' '.join(rows.values())}, staging {staging}, sockets {layout}" \
           f"{', heap' if heap else ''}"
    command = [sys.executable, "-c", STAND_IN, layout, heap, program, prefix]
    job = launcher.run(ranks, command,
                       {"coll_ucg_verbose": "1", "hwloc_base_binding_policy": "none"},
                       timeout=600, environment=settings(rows, staging))
    print(what, flush=True)
    cases = differential.outcome(checks, job, ranks, prefix, True)
    expect_served(checks, job, rows, layout, ranks, what)
    return cases


def compare(checks, launcher, program, heap, ranks, folder, reference):
    """Runs every other algorithm; which ones these are depends on whether the number of ranks is
    odd. The rest of the settings take turns."""
    theirs = differential.run_stock(checks, reference, ranks)
    # The packages consist of CPUs 0 and 1.
    sockets = LAYOUTS if {0, 1} <= os.sched_getaffinity(0) else ["one"]
    for turn, rows in enumerate(ROWS[ranks % 2::2]):
        needy = not NEEDS_SOCKETS.isdisjoint(rows.values())
        layouts = sockets[:2] if needy else sockets
        run = (rows, STAGINGS[(turn + ranks) % len(STAGINGS)],
               layouts[(turn + ranks // 2) % len(layouts)], heap if (turn + ranks // 2) % 2 else "")
        ours = compare_run(checks, launcher, program, ranks, f"{folder}/ours{ranks}", run)
        if theirs is None or ours is None:
            continue
        for rank in range(ranks):
            differential.compare_rank(checks, rank, ours[rank], theirs[rank])


def main():
    component, program, heap, kept, *counts = sys.argv[1:]
    heap = heap and os.path.abspath(heap)  # If it is empty there is no heap to preload.
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(component)
    reference = mpirun.Reference(launcher, program, kept)
    with tempfile.TemporaryDirectory() as folder:
        for ranks in counts:
            compare(checks, launcher, program, heap, int(ranks), folder, reference)
    checks.end()


if __name__ == "__main__":
    main()
