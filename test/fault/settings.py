#!/usr/bin/env python3
"""Settings that cannot be followed are reported in a clear line, and programs run correctly all the
same.

usage: settings.py COMPONENT-FOLDER FAULTS-PROGRAM
"""

import os
import tempfile

import sandbox

RANKS = 4
FALLBACK = "uses Open MPI's other collectives"


def expect_fallback(bench, what, job, reason, reasons):
    """All ranks go on without the component. There must be `reasons` lines that say why, and one
    that says so."""
    bench.expect_right(what, job, "check")
    bench.expect_lines(what, job, reason, reasons)
    bench.expect_lines(what, job, FALLBACK, 1)


def expect_served(bench, what, job):
    bench.expect_right(what, job, "check")
    bench.expect_lines(what, job, FALLBACK, 0)
    served = sandbox.mpirun.counters(job.output).get("allreduce", (0, 0))
    bench.checks.expect(served[0] > 0 and served[1] == 0, f"{what}: allreduce counted {served}")


def unknown_transport(bench):
    job = bench.launcher.run(RANKS, [bench.program, "check"], environment={"UCG_TLS": "rocket"})
    expect_fallback(bench, "UCG_TLS=rocket", job, "UCG_TLS: expected .* found 'rocket'", 1)
    # A rank whose settings differ from those of rank 0 reports them itself.
    program = sandbox.mpirun.on_ranks([3], {"UCG_TLS": "rocket"}, [bench.program, "check"])
    job = bench.launcher.run(RANKS, program)
    expect_fallback(bench, "UCG_TLS=rocket on rank 3", job,
                    "UCG_TLS: expected .* found 'rocket'", 1)


def no_profile(bench):
    """One process of each host reports that the file cannot be read."""
    there_is_none = {"UCG_PROFILE": "/nonexistent/profile.toml"}
    reason = "UCG_PROFILE: .*/nonexistent/profile.toml"
    job = bench.launcher.run(RANKS, [bench.program, "check"], environment=there_is_none)
    expect_fallback(bench, "UCG_PROFILE without a file", job, reason, 1)
    program = sandbox.mpirun.on_ranks([3], there_is_none, [bench.program, "check"])
    job = bench.launcher.run(RANKS, program)
    expect_fallback(bench, "UCG_PROFILE without a file on rank 3", job, reason, 1)


def no_size(bench):
    job = bench.launcher.run(RANKS, [bench.program, "check"],
                             environment={"UCG_HEAP_SIZE": "lots"})
    expect_fallback(bench, "UCG_HEAP_SIZE=lots", job, "UCG_HEAP_SIZE: expected .* found 'lots'",
                    1)


def unknown_algorithm(bench):
    """The planner chooses instead."""
    job = bench.launcher.run(RANKS, [bench.program, "check"], {"coll_ucg_verbose": "1"},
                             environment={"UCG_ALLREDUCE": "no_such"})
    expect_served(bench, "UCG_ALLREDUCE=no_such", job)
    bench.expect_lines("UCG_ALLREDUCE=no_such", job,
                       "allreduce has no algorithm 'no_such'; it has: .*ring", 1)


def algorithms_that_do_not_fit(bench):
    """Each algorithm is reported once, however many calls it was meant for."""
    wanted = "0-1k:recursive_multiplying:a5,a5;1k-inf:recursive_multiplying:a7"
    job = bench.launcher.run(RANKS, [bench.program, "check"], {"coll_ucg_verbose": "1"},
                             environment={"UCG_ALLREDUCE": wanted})
    expect_served(bench, "UCG_ALLREDUCE by size", job)
    bench.expect_lines("UCG_ALLREDUCE by size", job,
                       "argument 'a5,a5'.*; the planner chooses instead", 1)


def no_algorithm_list(bench):
    job = bench.launcher.run(RANKS, [bench.program, "check"],
                             environment={"UCG_ALLREDUCE": "0-4k;ring"})
    expect_fallback(bench, "UCG_ALLREDUCE=0-4k;ring", job,
                    "UCG_ALLREDUCE: '0-4k;ring', position 4: expected", 1)


def different_algorithms(bench):
    """Ranks with different settings of algorithms would not understand one another, so the job
    must not use them."""
    program = sandbox.mpirun.on_ranks([2, 3], {"UCG_ALLREDUCE": "ring"}, [bench.program, "check"])
    job = bench.launcher.run(RANKS, program)
    bench.expect_right("different UCG_ALLREDUCE", job, "check")
    bench.expect_lines("different UCG_ALLREDUCE", job, FALLBACK + ".*[Rr]anks disagree", 1)
    bench.checks.expect("rank 0 and rank 2 have different settings of UCG_ALLREDUCE ('' at rank 0)"
                        in job.output,
                        f"what differs is not said:\n{job.output[-3000:]}")


def no_ucx_transport(bench):
    job = bench.launcher.run(RANKS, [bench.program, "check"],
                             {"coll_ucg_tls": "ucx", "pml": "ob1"},
                             environment={"UCX_TLS": "bogus"})
    bench.expect_right("UCX_TLS=bogus", job, "check")
    bench.expect_lines("UCX_TLS=bogus", job, FALLBACK, 1)
    bench.checks.expect("does UCX_TLS name a transport" in job.output,
                        f"the remedy is not said:\n{job.output[-3000:]}")


def no_ucx_transport_on_one_rank(bench):
    program = sandbox.mpirun.on_ranks([3], {"UCX_TLS": "bogus"}, [bench.program, "check"])
    job = bench.launcher.run(RANKS, program, {"pml": "ob1"}, environment={"UCG_TLS": "ucx"})
    bench.expect_right("UCX_TLS=bogus on rank 3", job, "check")
    bench.expect_lines("UCX_TLS=bogus on rank 3", job, FALLBACK, 1)


def ucx_unused(bench):
    """Where shared memory reaches all ranks, UCX is not started, so a failure of UCX does not
    matter."""
    job = bench.launcher.run(RANKS, [bench.program, "check"],
                             {"coll_ucg_verbose": "1", "pml": "ob1"},
                             environment={"UCX_TLS": "bogus"})
    expect_served(bench, "UCX_TLS=bogus and shared memory", job)


def no_ucx_library(bench):
    """The part of libucg that uses UCX is loaded when a group needs it, and not before."""
    # The path is not one where the test looks for files that a job has left.
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        with open(os.path.join(folder, "libucg_ucx.so"), "w", encoding="ascii") as broken:
            broken.write("no library")
        environment = {"LD_LIBRARY_PATH": os.pathsep.join(
            filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))}
        job = bench.launcher.run(RANKS, [bench.program, "check"], {"coll_ucg_verbose": "1"},
                                 environment=environment)
        expect_served(bench, "no libucg_ucx and shared memory", job)
        job = bench.launcher.run(RANKS, [bench.program, "check"], {"coll_ucg_tls": "ucx"},
                                 environment=environment)
        expect_fallback(bench, "no libucg_ucx", job, "UCX cannot be loaded: .*libucg_ucx.so", 1)


sandbox.run([unknown_transport, no_profile, no_size, unknown_algorithm, algorithms_that_do_not_fit,
             no_algorithm_list, different_algorithms,
             no_ucx_transport, no_ucx_transport_on_one_rank, ucx_unused,
             no_ucx_library])
