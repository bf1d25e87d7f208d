#!/usr/bin/env python3
"""Compares the neighbourhood collectives under UCG with those of Open MPI's own components.

usage: neighbors.py COMPONENT-FOLDER PROGRAM RANKS...

The program calls them over Cartesian topologies of one to three dimensions, graphs and distributed
graphs, and writes a digest of all memory that a call may have written. UCG must serve every call.
"""

import itertools
import sys
import tempfile

import mpirun

CALLS = {"neighbor_" + name
         for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")}


def lines(prefix, rank):
    with open(f"{prefix}.{rank}", encoding="ascii") as stream:
        return stream.read().splitlines()


def run(checks, launcher, program, ranks, prefix, mca):
    """The output of a run, or None."""
    job = launcher.run(ranks, [program, prefix], mca, timeout=600)
    good = checks.expect(job.status == 0, f"{ranks} ranks: status {job.status}\n"
                                          + job.output[-4000:])
    return job.output if good else None


def compare(checks, launcher, program, ranks, folder):
    theirs, ours = f"{folder}/theirs{ranks}", f"{folder}/ours{ranks}"
    if run(checks, launcher, program, ranks, theirs, {"coll": "^ucg"}) is None:
        return
    output = run(checks, launcher, program, ranks, ours, {"coll_ucg_verbose": "1"})
    if output is None:
        return
    if ranks > 1:
        counted = {name: value for name, value in mpirun.counters(output).items()
                   if name in CALLS}
        checks.expect(set(counted) == CALLS, f"{ranks} ranks: called {sorted(counted)}")
        checks.expect(all(taken > 0 == passed for taken, passed in counted.values()),
                      f"{ranks} ranks: passed on: {counted}")
    for rank in range(ranks):
        wrong = [f"{mine} is not {other}" for mine, other
                 in itertools.zip_longest(lines(ours, rank), lines(theirs, rank))
                 if mine != other]
        checks.expect(not wrong, f"{ranks} ranks, rank {rank}: {len(wrong)} cases differ: "
                                 + "; ".join(wrong[:5]))
    print(f"{ranks} ranks: {len(lines(ours, 0))} cases on rank 0", flush=True)


def main():
    component, program, *counts = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(component)
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            compare(checks, launcher, program, int(count), folder)
    checks.end()


if __name__ == "__main__":
    main()
