#!/usr/bin/env python3
"""Programs that make libraries leak, hang or break: wrong counts, many communicators, fork.

usage: programs.py COMPONENT-FOLDER FAULTS-PROGRAM
"""

import re
import signal

import sandbox

RANKS = 4
RESIDENT_SLACK_KB = 16 << 10
MAPPED_SLACK_KB = 32 << 10
DESCRIPTOR_SLACK = 2


def failed(job):
    """Did it end, and not well? When several ranks abort at a time, their messages meet in two
    threads of Open MPI 4.1's mpirun, which may not survive that (rml/oob, from PMIx's log)."""
    return job.status > 0 or job.status == -signal.SIGSEGV


def different_counts(bench):
    """The transport sees a length that it did not await, and says whose, before anything hangs."""
    for tls in ["shm", "ucx"]:
        for size in ["64", "6000", "2000000"]:
            what = f"a broadcast of {size} bytes or half of it, {tls}"
            job = bench.launcher.run(RANKS, [bench.program, "mismatch", size],
                                     {"coll_ucg_tls": tls}, timeout=60)
            bench.checks.expect(failed(job), f"{what}: {job.status}\n{job.output[-3000:]}")
            told = re.search(r"rank \d+ sent .*(length|expected)", job.output)
            bench.checks.expect(told, f"{what}: not said:\n{job.output[-3000:]}")
            sandbox.expect_nothing_left(bench.checks, what, bench.folder)


def many_communicators(bench):
    pattern = r"rank (\d) round (\d+): (\d+) kB resident, (\d+) kB mapped, (\d+) descriptors"
    for tls in ["shm", "ucx"]:
        what = f"200 communicators, {tls}"
        job = bench.launcher.run(RANKS, [bench.program, "communicators"], {"coll_ucg_tls": tls})
        bench.expect_right(what, job, "communicators")
        usage = {(int(rank), int(number)): tuple(map(int, values))
                 for rank, number, *values in re.findall(pattern, job.output)}
        for rank in range(RANKS):
            early, late = usage.get((rank, 50)), usage.get((rank, 200))
            slack = (RESIDENT_SLACK_KB, MAPPED_SLACK_KB, DESCRIPTOR_SLACK)
            flat = early and late and all(b - a <= s for a, b, s in zip(early, late, slack))
            bench.checks.expect(flat, f"{what}: rank {rank} grew from {early} to {late}")
        print(f"{what}: {usage.get((0, 50))} after 50, {usage.get((0, 200))} after 200", flush=True)


def children(bench):
    for tls in ["shm", "ucx"]:
        what = f"children, {tls}"
        job = bench.launcher.run(RANKS, [bench.program, "children"], {"coll_ucg_tls": tls})
        bench.expect_right(what, job, "children")
        bench.checks.expect("/proc/" in job.output or "->" in job.output,
                            f"{what}: no child listed its files\n{job.output[-3000:]}")
        bench.checks.expect("memfd:ucg" not in job.output,
                            f"{what}: a program that a rank executes inherits the heap")


sandbox.run([different_counts, many_communicators, children])
