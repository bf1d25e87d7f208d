#!/usr/bin/env python3
"""Where shared memory is short, programs run right without it, and say so once.

usage: memory.py COMPONENT-FOLDER FAULTS-PROGRAM
"""

import resource
import subprocess

import sandbox

RANKS = 4
WARNING = "has no shared memory"
FALLBACK = "uses Open MPI's other collectives"


def tiny_on_all_ranks(bench):
    job = bench.launcher.run(RANKS, [bench.program, "check"], {"coll_ucg_heap_size": "8k"})
    bench.expect_right("a tiny heap", job, "check")
    bench.expect_lines("a tiny heap", job, WARNING, 1)
    bench.expect_lines("a tiny heap", job, FALLBACK, 0)


def tiny_on_one_rank(bench):
    command = ["mpirun", "--oversubscribe", "-n", "2", bench.program, "check",
               ":", "-n", "1", "-x", "UCG_HEAP_SIZE=8k", bench.program, "check",
               ":", "-n", "1", bench.program, "check"]
    job = bench.launcher.execute(command)
    bench.expect_right("a tiny heap on rank 2", job, "check")
    bench.expect_lines("a tiny heap on rank 2", job, "rank 2 of 4 " + WARNING, 1)
    bench.expect_lines("a tiny heap on rank 2", job, WARNING, 1)


def tiny_and_nothing_else(bench):
    """Without UCX there is nothing to step down to but Open MPI's own collectives."""
    job = bench.launcher.run(RANKS, [bench.program, "check"],
                             {"coll_ucg_heap_size": "8k", "coll_ucg_tls": "shm"})
    bench.expect_right("a tiny heap and no UCX", job, "check")
    bench.expect_lines("a tiny heap and no UCX", job, WARNING, 1)
    bench.expect_lines("a tiny heap and no UCX", job, FALLBACK, 1)


def small_files(bench):
    """A file that grows beyond the limit would end the process by a signal."""
    for size, fallbacks in [(64 << 20, 0), (4096, 1), (0, 1)]:
        what = f"RLIMIT_FSIZE {size}"
        job = bench.launcher.run(RANKS, [bench.program, "limit", "fsize", str(size)],
                                 {"coll_ucg_tls": "shm"})
        bench.expect_right(what, job, "limit")
        bench.expect_lines(what, job, WARNING, fallbacks)
        bench.expect_lines(what, job, FALLBACK, fallbacks)


def limited_address_space(bench):
    """With room for the heaps, a limit alone changes nothing."""
    what = "RLIMIT_AS 16 GiB above what MPI_Init took"
    job = bench.launcher.run(RANKS, [bench.program, "limit", "as", str(16 << 30)])
    bench.expect_right(what, job, "limit")
    bench.expect_lines(what, job, WARNING, 0)


def no_locked_memory(bench):
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, before[1]))
    try:
        for tls in ["shm", "ucx"]:
            job = bench.launcher.run(RANKS, [bench.program, "check"], {"coll_ucg_tls": tls})
            bench.expect_right(f"no locked memory, {tls}", job, "check")
            bench.expect_lines(f"no locked memory, {tls}", job, WARNING, 0)
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, before)


def small_shm_mount(bench):
    """The heap does not live in /dev/shm, so nobody is to be warned."""
    with sandbox.small_shm("64m"):
        job = bench.launcher.run(RANKS, [bench.program, "check"])
        bench.expect_right("64 MiB of /dev/shm", job, "check")
        bench.expect_lines("64 MiB of /dev/shm", job, WARNING, 0)
        bench.expect_lines("64 MiB of /dev/shm", job, FALLBACK, 0)


def full_shm_mount(bench):
    """Open MPI's own shared memory has to be out of the way: it would not start."""
    with sandbox.small_shm("1m"):
        with open("/dev/shm/pmix_filler", "wb") as filler:
            subprocess.run(["dd", "if=/dev/zero", "bs=4k"], stdout=filler,
                           stderr=subprocess.DEVNULL, timeout=60)
        job = bench.launcher.run(RANKS, [bench.program, "check"],
                                 {"pml": "ob1", "btl": "tcp,self", "btl_tcp_if_include": "lo",
                                  "coll_ucg_tls": "shm"})
        bench.expect_right("/dev/shm full", job, "check")
        bench.expect_lines("/dev/shm full", job, WARNING, 0)
        bench.expect_lines("/dev/shm full", job, FALLBACK, 0)


sandbox.run([tiny_on_all_ranks, tiny_on_one_rank, tiny_and_nothing_else, small_files,
             limited_address_space, no_locked_memory, small_shm_mount, full_shm_mount])
