#!/usr/bin/env python3
"""Where there is little shared memory, programs run correctly without it, and say so once.

usage: memory.py COMPONENT-FOLDER FAULTS-PROGRAM
"""

import resource
import subprocess

import sandbox

RANKS = 4
WARNING = "has no shared memory"
NO_UCX = "UCX is not started"
FALLBACK = "uses Open MPI's other collectives"


def tiny_on_all_ranks(bench):
    job = bench.launcher.run(RANKS, [bench.program, "check"], {"coll_ucg_heap_size": "8k"})
    bench.expect_right("a tiny heap", job, "check")
    bench.expect_lines("a tiny heap", job, WARNING, 1)
    bench.expect_lines("a tiny heap", job, FALLBACK, 0)


def tiny_on_one_rank(bench):
    program = sandbox.mpirun.on_ranks([2], {"UCG_HEAP_SIZE": "8k"}, [bench.program, "check"])
    job = bench.launcher.run(4, program)
    bench.expect_right("a tiny heap on rank 2", job, "check")
    bench.expect_lines("a tiny heap on rank 2", job, "rank 2 of 4 " + WARNING, 1)
    bench.expect_lines("a tiny heap on rank 2", job, WARNING, 1)


def tiny_and_nothing_else(bench):
    """Without UCX only Open MPI's own collectives are left."""
    job = bench.launcher.run(RANKS, [bench.program, "check"],
                             {"coll_ucg_heap_size": "8k", "coll_ucg_tls": "shm"})
    bench.expect_right("a tiny heap and no UCX", job, "check")
    bench.expect_lines("a tiny heap and no UCX", job, WARNING, 1)
    bench.expect_lines("a tiny heap and no UCX", job, FALLBACK, 1)


def small_files(bench):
    """Without care, a file that grows beyond the limit would end the process by a signal."""
    for size, fallbacks in [(64 << 20, 0), (4096, 1), (0, 1)]:
        what = f"RLIMIT_FSIZE {size}"
        job = bench.launcher.run(RANKS, [bench.program, "limit", "fsize", str(size)],
                                 {"coll_ucg_tls": "shm"})
        bench.expect_right(what, job, "limit")
        bench.expect_lines(what, job, WARNING, fallbacks)
        bench.expect_lines(what, job, FALLBACK, fallbacks)


def step_down_under(bench, limit, amount, only_rank=None):
    """There is no room for shared memory and none for UCX, on all ranks or on one: all ranks go
    on without both, and there is one line for each reason. A rank that gives up does not keep
    the others waiting: their time-out is longer than the job may take. Where all ranks lack the
    same, the first of them to find out reports it."""
    what = f"{limit} {amount}, rank {only_rank or 'any'}"
    program = [bench.program, "limit", limit, str(amount)] + ([only_rank] if only_rank else [])
    job = bench.launcher.run(RANKS, program, timeout=60, environment={"UCG_TIMEOUT": "600"})
    bench.expect_right(what, job, "limit")
    bench.expect_lines(what, job, f"rank {only_rank or '[0-9]+'} of {RANKS} {WARNING}", 1)
    bench.expect_lines(what, job, NO_UCX, 1)
    bench.expect_lines(what, job, FALLBACK, 1)
    bench.expect_lines(what, job, "ucg (warning|error)", 2)


def small_files_everywhere(bench):
    """The same signal would end UCX."""
    step_down_under(bench, "fsize", 0)


def limited_address_space(bench):
    """A limit that leaves room for small heaps of all ranks changes nothing."""
    for mebibytes in [16 << 10, 64]:
        what = f"RLIMIT_AS {mebibytes} MiB above what MPI_Init took"
        job = bench.launcher.run(RANKS, [bench.program, "limit", "as", str(mebibytes << 20)])
        bench.expect_right(what, job, "limit")
        bench.expect_lines(what, job, WARNING, 0)
        bench.expect_lines(what, job, FALLBACK, 0)
    step_down_under(bench, "as", 16 << 20, "2")


def few_descriptors(bench):
    """A heap keeps two descriptors, and needs a few more while it is made together with others,
    however many these are."""
    for more in [1, 2]:
        step_down_under(bench, "nofile", more)
    step_down_under(bench, "nofile", 2, "2")
    job = bench.launcher.run(RANKS, [bench.program, "limit", "nofile", "6"],
                             {"coll_ucg_tls": "shm"}, timeout=60)
    bench.expect_right("six descriptors", job, "limit")
    bench.expect_lines("six descriptors", job, "ucg (warning|error)", 0)


def no_descriptors(bench):
    """No file can be opened, not even the one that shows which ranks share a host."""
    job = bench.launcher.run(RANKS, [bench.program, "limit", "nofile", "0"], timeout=60)
    bench.expect_right("no descriptors", job, "limit")
    bench.expect_lines("no descriptors", job, "cannot tell which processes share this host", 1)
    bench.expect_lines("no descriptors", job, "UCX cannot be loaded", 1)
    bench.expect_lines("no descriptors", job, FALLBACK, 1)


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


def small_control_group(bench):
    """All heaps of a host's ranks together would take more memory than the group has. Then no
    rank may take its heap, or the kernel would kill some."""
    ranks, environment = 8, {"UCG_STAGING": "24M"}
    with sandbox.memory_group(256 << 20) as enter:
        if enter is None:
            print("skipped: a small control group (this system allows none)")
            return
        mpirun = ["mpirun", "--oversubscribe", "-n", str(ranks), "-x", "UCG_STAGING"]
        job = bench.launcher.execute(enter + mpirun + [bench.program, "check"],
                                     environment=environment)
        bench.expect_right("256 MiB for 8 ranks", job, "check")
        bench.expect_lines("256 MiB for 8 ranks", job, FALLBACK, 0)


def small_shm_mount(bench):
    """The heap does not lie in /dev/shm, so there must be no warning."""
    with sandbox.small_shm("64m"):
        job = bench.launcher.run(RANKS, [bench.program, "check"])
        bench.expect_right("64 MiB of /dev/shm", job, "check")
        bench.expect_lines("64 MiB of /dev/shm", job, WARNING, 0)
        bench.expect_lines("64 MiB of /dev/shm", job, FALLBACK, 0)


def full_shm_mount(bench):
    """Open MPI's own shared memory is switched off, since it would not start."""
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
             small_files_everywhere, limited_address_space, few_descriptors, no_descriptors,
             no_locked_memory, small_control_group, small_shm_mount, full_shm_mount])
