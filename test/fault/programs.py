#!/usr/bin/env python3
"""Programs that could make a library leak, hang or break: wrong counts, many communicators and
fork; and ranks that are late.

usage: programs.py COMPONENT-FOLDER FAULTS-PROGRAM [COMMUNICATORS]
"""

import re
import signal
import sys

import sandbox

RANKS = 4
COMMUNICATORS = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
# The limits of what a process may keep of communicators that are gone.
KEPT_KB = 1 << 10
# In this order: resident and mapped kB once the allocator has settled (1.3 MB were measured with
# 200 communicators alive, for 2,000 as for 10,000 in all), mappings (each of the 24 ranges that a
# heap keeps may be one, and none is kept before communicators are freed), descriptors, leased kB,
# and ids of communicators.
SLACK = (4 << 10, 4 << 10, 32, 2, KEPT_KB, 0)

LATE_MS = [500, 2000, 8000]  # More only where other programs leave too little time for naps.
NAPS_MIN = 5
NAPS_PER_MS = 4  # Some 550 naps are expected in 500 ms, with the shorter ones before a millisecond.


def run_until_mpirun_survives(bench, arguments, mca):
    """Runs a job until mpirun itself survives: that of Open MPI 4.1.4 sometimes crashes in PMIx
    while it collects the messages of ranks that all abort, and then does not report what the
    ranks did. It has a status of its own for a rank that a signal ends; if mpirun ends in any
    other way than this, the test fails."""
    for _ in range(6):
        job = bench.launcher.run(RANKS, [bench.program, *arguments], mca, timeout=60)
        crashed = job.status == -signal.SIGSEGV and re.search("ORTE_ERROR_LOG|libpmix", job.output)
        if not crashed:
            break
    return job


def different_counts(bench):
    """The transport sees a length that it did not expect, and names the sender before anything
    hangs."""
    for tls in ["shm", "ucx"]:
        for size in ["64", "6000", "2000000"]:
            what = f"a broadcast of {size} bytes or half of it, {tls}"
            job = run_until_mpirun_survives(bench, ["mismatch", size], {"coll_ucg_tls": tls})
            bench.checks.expect(job.status > 0, f"{what}: {job.status}\n{job.output[-3000:]}")
            told = re.search(r"rank \d+ sent .*(length|expected)", job.output)
            failed = re.search(r"rank \d+: the broadcast failed, as Open MPI says it", job.output)
            bench.checks.expect(told and failed, f"{what}: not said:\n{job.output[-3000:]}")
            sandbox.expect_nothing_left(bench.checks, what, bench.folder)


def two_lengths_of_a_block(bench):
    """A rank whose own block has other lengths on the two sides of a collective gets an error, and
    nothing is written beyond the shorter one, even if Open MPI itself is not to check."""
    mca = {"coll_ucg_tls": "shm", "mpi_param_check": "0"}
    for name in ["scatter", "gather", "allgather", "allgatherv", "alltoall", "alltoallv",
                 "alltoallw", "gatherv", "scatterv"]:
        job = run_until_mpirun_survives(bench, ["own_block", name], mca)
        said = re.search("sends 16 bytes to itself, and receives 32|sends 32 bytes to itself, and "
                         "receives 16|but (the root's|its own) block in (send|receive) has",
                         job.output)
        failed = f"the {name} failed, as Open MPI says it" in job.output
        bench.checks.expect(job.status > 0 and said and failed,
                            f"{name} of two lengths: {job.status}\n{job.output[-3000:]}")


def going_on_after_an_error(bench):
    """If ranks go on after an error, they do not keep a rank waiting that has had none."""
    for size in ["64", "6000", "2000000"]:
        what = f"a broadcast of {size} bytes or half of it, and on"
        job = bench.launcher.run(RANKS, [bench.program, "go_on", size], {"coll_ucg_tls": "shm"},
                                 timeout=60)
        bench.checks.expect(job.status == 0 and job.output.count("went on") == RANKS,
                            f"{what}: {job.status}\n{job.output[-3000:]}")


def in_place_at_one(bench):
    """If only one rank passes MPI_IN_PLACE, the result is right, or an error names the rank."""
    for algorithm in ["recursive_doubling", "tiled_naive", "numa_tree", "all_read"]:
        what = f"{algorithm}, in place at rank 1"
        job = bench.launcher.run(RANKS, [bench.program, "in_place", "200000"], timeout=60,
                                 environment={"UCG_ALLREDUCE": algorithm})
        told = (re.search(r"ucg error: .*MPI_IN_PLACE", job.output)
                and re.search(r"rank \d+: the allreduce failed", job.output))
        right = job.status == 0 and "in_place ok" in job.output
        bench.checks.expect(right or (job.status > 0 and told),
                            f"{what}: {job.status}\n{job.output[-3000:]}")
        sandbox.expect_nothing_left(bench.checks, what, bench.folder)


USAGE = (r"rank (\d) round (\d+): (\d+) kB resident, (\d+) kB mapped, (\d+) mappings, "
         r"(\d+) descriptors, (\d+) kB leased, ids to (\d+)")


def flat_communicators(bench, tls, alive):
    """A rank holds as much after a tenth of the communicators as after all of them. Prints what
    each rank leases when they are gone."""
    what = f"{COMMUNICATORS} communicators, {alive} alive, {tls}"
    job = bench.launcher.run(2, [bench.program, "communicators", str(COMMUNICATORS), str(alive)],
                             {"coll_ucg_tls": tls})
    bench.expect_right(what, job, "communicators")
    usage = {(int(rank), int(number)): tuple(map(int, values))
             for rank, number, *values in re.findall(USAGE, job.output)}
    ends = []
    for rank in range(2):
        early, late, end = (usage.get((rank, number)) for number in
                            [COMMUNICATORS // 10, COMMUNICATORS, COMMUNICATORS + 1])
        flat = early and late and all(b - a <= s for a, b, s in zip(early, late, SLACK))
        bench.checks.expect(flat, f"{what}: rank {rank} grew from {early} to {late}")
        ends.append(end and end[4])
    print(f"{what}: {early} early, {late} late, {end} without", flush=True)
    return ends


def many_communicators(bench):
    for tls in ["shm", "ucx"]:
        leased = [flat_communicators(bench, tls, alive) for alive in [1, 200]]
        bench.checks.expect(all(rest is not None and rest <= KEPT_KB for rest in sum(leased, [])),
                            f"{tls}: {leased} kB stay leased after communicators")


def children(bench):
    for tls in ["shm", "ucx"]:
        what = f"children, {tls}"
        job = bench.launcher.run(RANKS, [bench.program, "children"], {"coll_ucg_tls": tls})
        bench.expect_right(what, job, "children")
        bench.checks.expect("/proc/" in job.output or "->" in job.output,
                            f"{what}: no child listed its files\n{job.output[-3000:]}")
        bench.checks.expect("memfd:ucg" not in job.output,
                            f"{what}: a program that a rank executes inherits the heap")


def late_ranks(bench):
    """Waiting ranks sleep, and not so briefly that waking is work. The test counts naps, which
    does not depend on how busy the machine is: a nap lasts a sixteenth of the wait so far and at
    most a millisecond, or two where two ranks share each processor, so some hundred naps fit; a
    rank that polls takes none. On a busy machine naps last longer, so there may be more time for
    them. Ranks that may not share a processor are told to sleep."""
    for ranks in [2, RANKS]:
        for late_ms in LATE_MS:
            what = f"rank 0 of {ranks} comes {late_ms} ms late"
            job = bench.launcher.run(ranks, [bench.program, "late", str(late_ms)],
                                     environment={"UCG_SLEEP_AFTER": "1000"})
            bench.expect_right(what, job, "late")
            told = re.findall(r"waited rank \d+: (\d+) naps, (\d+) us used", job.output)
            print(f"{what}: naps and us used: {told}", flush=True)
            sleeps = all(NAPS_MIN <= int(naps) <= NAPS_PER_MS * late_ms for naps, _ in told)
            if sleeps:
                break
        bench.checks.expect(len(told) == ranks - 1 and sleeps, f"{what}: {told}")


sandbox.run([different_counts, two_lengths_of_a_block, going_on_after_an_error, in_place_at_one,
             many_communicators, children, late_ranks])
