#!/usr/bin/env python3
"""Compares every collective under UCG with the same call under Open MPI's own components.

usage: differential.py COMPONENT-FOLDER PROGRAM RANKS...

The program writes a digest of all memory that a call may have written, call by call and rank by
rank. Digests must be equal, except for sums that round: those must be equal on all ranks and in two
runs, and close to the other implementation's.
"""

import os
import sys
import tempfile

import mpirun

ROUNDING = 1e-12
CALLS = {
    "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier",
    "bcast", "exscan", "gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block",
    "scan", "scatter", "scatterv",
}


def read(prefix, rank):
    """The cases of one rank: {name: fields}."""
    cases = {}
    with open(f"{prefix}.{rank}", encoding="ascii") as stream:
        for line in stream:
            name, *fields = line.rstrip("\n").split("\t")
            cases[name] = fields
    return cases


def compare_rank(checks, rank, ours, theirs):
    """Every case of one rank against the other implementation."""
    wrong = []
    for name, fields in ours.items():
        if fields[0] == "verdict":
            good = fields[1] == "ok"
        elif name not in theirs:
            good = False
        elif fields[0] == "exact":
            good = fields == theirs[name]
        else:
            mine, other = float(fields[2]), float(theirs[name][2])
            good = abs(mine - other) <= ROUNDING * max(abs(other), 1.0)
        if not good:
            wrong.append(name)
    wrong += [f"{name} (did not run)" for name in theirs if name not in ours]
    checks.expect(not wrong, f"rank {rank}: {len(wrong)} of {len(ours)} cases differ, first: "
                             + "; ".join(wrong[:8]))


def compare_rounded(checks, ranks, first, second):
    """Sums that round: one value on all ranks of a communicator, and in both runs."""
    values = {}
    for rank in range(ranks):
        for name, fields in first[rank].items():
            if fields[0] == "rounded":
                values.setdefault(name, set()).add(fields[1])
                checks.expect(second[rank].get(name) == fields,
                              f"rank {rank}: {name} differs from run to run")
    for name, digests in values.items():
        checks.expect(len(digests) == 1, f"{name} differs between ranks")


def run(checks, launcher, program, ranks, prefix, ucg):
    """One run of all cases. Returns the cases of each rank, or None."""
    mca = {"coll_ucg_verbose": "1"} if ucg else {"coll": "^ucg"}
    environment = {"DIFFERENTIAL_MIXED": "1"} if ucg else None
    job = launcher.run(ranks, [program, prefix], mca, timeout=600, environment=environment)
    return outcome(checks, job, ranks, prefix, ucg)


def outcome(checks, job, ranks, prefix, ucg):
    """The cases of each rank, or None where the run failed."""
    what = f"{ranks} ranks, {'UCG' if ucg else 'Open MPI'}"
    if not checks.expect(job.status == 0, f"{what}: status {job.status}\n{job.output[-4000:]}"):
        for rank in range(ranks):
            if os.path.exists(f"{prefix}.{rank}"):
                print(f"rank {rank} ended after: {list(read(prefix, rank))[-1:]}")
        return None
    if ucg and ranks > 1:
        served = {name for name, (taken, _) in mpirun.counters(job.output).items() if taken > 0}
        checks.expect(served >= CALLS, f"{what}: not served by UCG: {sorted(CALLS - served)}")
    return [read(prefix, rank) for rank in range(ranks)]


def compare(checks, launcher, program, ranks, folder):
    theirs = run(checks, launcher, program, ranks, f"{folder}/theirs{ranks}", False)
    ours = run(checks, launcher, program, ranks, f"{folder}/ours{ranks}", True)
    if theirs is None or ours is None:
        return
    for rank in range(ranks):
        compare_rank(checks, rank, ours[rank], theirs[rank])
    if 1 < ranks <= 5:
        again = run(checks, launcher, program, ranks, f"{folder}/again{ranks}", True)
        if again is not None:
            compare_rounded(checks, ranks, ours, again)
    print(f"{ranks} ranks: {len(ours[0])} cases on rank 0", flush=True)


def main():
    component, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(component)
    with tempfile.TemporaryDirectory() as folder:
        for count in ranks:
            compare(checks, launcher, program, int(count), folder)
    checks.end()


if __name__ == "__main__":
    main()
