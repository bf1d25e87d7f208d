#!/usr/bin/env python3
"""Checks the Open MPI component as users see it: parameters, counters, refusals, leftovers.

usage: component.py COMPONENT-FOLDER LIFECYCLE-PROGRAM REPETITIONS-PROGRAM OTHER-SERIES-LIBRARY
                    OTHER-VERSION-LIBRARY FAILING-PMIX-LIBRARY
"""

import os
import re
import sys
import tempfile
import uuid

import mpirun

PARAMETERS = ["priority", "verbose", "setup_after", "assume_alike", "tls", "heap_size",
              "enable_allreduce", "enable_barrier", "enable_ibarrier", "enable_barrier_init",
              "allreduce_algorithm"]


def check_parameters(checks, launcher):
    job = launcher.execute(["env", f"LD_PRELOAD={launcher.preloaded()}", "ompi_info", "--param",
                            "coll", "ucg", "--level", "9"])
    for name in PARAMETERS:
        checks.expect(f'"coll_ucg_{name}"' in job.output, f"no parameter coll_ucg_{name}")
    for name in ["alltoallw_algorithm", "neighbor_allgather_algorithm"]:
        checks.expect(f'"coll_ucg_{name}"' not in job.output,
                      f"parameter coll_ucg_{name}, which has no algorithms of its own")
    checks.expect("taken_allreduce" in job.output, "ompi_info does not show the counters")


def check_counters(checks, launcher, program):
    job = launcher.run(3, [program, "use"], {"coll_ucg_verbose": "1"})
    counted = mpirun.counters(job.output)
    checks.expect(job.status == 0, job.output)
    for name in ["allreduce", "bcast", "allgather", "barrier"]:
        checks.expect(counted.get(name) == (1, 0), f"{name} was counted {counted.get(name)}")


def check_switches(checks, launcher, program):
    job = launcher.run(3, [program, "use"],
                       {"coll_ucg_verbose": "1", "coll_ucg_enable_bcast": "0"})
    counted = mpirun.counters(job.output)
    checks.expect(job.status == 0, job.output)
    checks.expect("bcast" not in counted, "bcast was switched off and served")
    checks.expect(counted.get("allreduce") == (1, 0), "allreduce was not served")
    job = launcher.run(3, [program, "use"], {"coll_ucg_verbose": "1", "coll": "^ucg"})
    checks.expect(job.status == 0 and not mpirun.counters(job.output), "coll ^ucg was ignored")
    job = launcher.run(3, [program, "use"], {"coll_ucg_verbose": "1", "coll_ucg_priority": "-1"})
    checks.expect(job.status == 0 and "use ok" in job.output and not mpirun.counters(job.output),
                  f"a negative priority was ignored: {job.output}")


def check_setup_after(checks, launcher, program):
    """The first collectives of each communicator go to other components: here five of its
    twelve."""
    mca = {"coll_ucg_verbose": "1", "coll_ucg_setup_after": "5"}
    job = launcher.run(3, [program, "crowd"], mca)
    counted = mpirun.counters(job.output)
    checks.expect(job.status == 0, job.output)
    checks.expect(counted.get("allreduce") == (60, 120), f"5 of 12 calls passed on: {counted}")
    for name in ["bcast", "allgather", "barrier"]:
        checks.expect(counted.get(name) == (120, 60), f"5 of 12 calls passed on: {counted}")
    job = launcher.run(3, [program, "crowd"], mca,
                       environment={"UCG_REPRODUCIBLE": "placement"})
    checks.expect(mpirun.counters(job.output).get("allreduce") == (180, 0),
                  f"sums that must be reproducible were passed on: {job.output}")
    mca["coll_ucg_setup_after"] = "1000"
    job = launcher.run(3, [program, "use"], mca)
    checks.expect(job.status == 0, job.output)
    checks.expect(mpirun.counters(job.output).get("allreduce") == (1, 0),
                  "MPI_COMM_WORLD was not served at once")


def check_other_host(checks, launcher, program):
    """With the basic component, the earlier allgather calls UCG's own functions during set-up."""
    job = launcher.run(3, [program, "use"],
                       {"coll_ucg_verbose": "1", "coll": "ucg,basic,libnbc,self,inter"})
    checks.expect(job.status == 0, job.output)
    checks.expect(mpirun.counters(job.output).get("allreduce") == (1, 0), "not served over basic")


def wrapped(checks, launcher, program, what, mca):
    """A run under a component that wraps whichever component serves a collective; None where
    that one does not work without UCG either (coll/sync of Open MPI 6.0.0a1 crashes)."""
    if (mpirun.series() >= (6, 0)
            and launcher.run(3, [program, "sync"], {**mca, "coll": "^ucg"}).status != 0):
        print(f"skipped: {what} of this Open MPI does not work", flush=True)
        return None
    job = launcher.run(3, [program, "sync"], {**mca, "coll_ucg_verbose": "1"})
    counted = mpirun.counters(job.output)
    checks.expect(job.status == 0 and counted.get("scan") == (30, 0),
                  f"{what}: {counted}\n{job.output}")
    return counted


def check_wrappers(checks, launcher, program):
    """Components that wrap another one: UCG serves the collectives, and the wrappers still act."""
    for when in ["before", "after"]:
        counted = wrapped(checks, launcher, program, f"coll/sync {when}",
                          {f"coll_sync_barrier_{when}": "10"})
        checks.expect(counted is None or counted.get("barrier") == (6, 0),
                      f"coll/sync {when}: {counted}")
    with tempfile.TemporaryDirectory() as folder:
        record = f"{folder}/sent.0.prof"
        mca = {"pml_monitoring_enable": "2", "pml_monitoring_enable_output": "3",
               "pml_monitoring_filename": f"{folder}/sent"}
        wrapped(checks, launcher, program, "coll/monitoring", mca)
        if mpirun.series() >= (6, 0) and not os.path.exists(record):
            print("skipped: coll/monitoring of this Open MPI writes nothing", flush=True)
            return
        with open(record, encoding="ascii") as stream:
            checks.expect(re.search("^O2A\t0\t240 bytes\t30 msgs", stream.read(), re.MULTILINE),
                          "coll/monitoring did not see the broadcasts")


def check_disagreement(checks, launcher, program):
    """Errors are reported, also for calls that repeat others; each of these errors is made once."""
    job = launcher.run(2, [program, "disagree"], {"coll_ucg_verbose": "1"})
    checks.expect(job.status == 0 and "disagree ok" in job.output, job.output)
    counted = mpirun.counters(job.output)
    for name, calls in [("alltoallw", 10), ("allgather", 5)]:
        checks.expect(counted.get(name) == (calls, 0), f"{name} was counted {counted.get(name)}")


# The bytes in use that may come with each communicator and stay, beyond Open MPI's own. A block
# that nobody frees takes at least 32; what Open MPI keeps for later varies by less than 5.
STAY_MAX = 16

# Blocks that a thread has freed and keeps for itself count as in use, unless it keeps none.
NO_THREAD_CACHE = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


def check_flat(checks, launcher, program):
    """Freed communicators leave no memory behind."""
    grown = []
    for mca in ({"coll": "^ucg"}, {}):
        job = launcher.run(2, [program, "flat"], mca, environment=NO_THREAD_CACHE)
        checks.expect(job.status == 0 and "flat ok" in job.output, job.output)
        found = re.findall(r"rank (\d): (\d+) bytes, then (\d+), of (\d+)", job.output)
        grown.append({rank: (int(then) - int(before)) / int(count)
                      for rank, before, then, count in found})
    alone, with_ucg = grown
    checks.expect(len(alone) == len(with_ucg) == 2 and
                  all(with_ucg[rank] < alone[rank] + STAY_MAX for rank in alone),
                  f"bytes left of each communicator: {with_ucg}, without UCG {alone}")


def check_fallback(checks, launcher, program):
    """All ranks, or one of them, have no context: all ranks go on without UCG, and say it once."""
    everywhere = launcher.run(3, [program, "use"], {"coll_ucg_tls": "pigeons"})
    somewhere = launcher.run(3, mpirun.on_ranks([0], {"UCG_TLS": "pigeons"}, [program, "use"]))
    for job in [everywhere, somewhere]:
        checks.expect(job.status == 0 and "use ok" in job.output, job.output)
        told = len(re.findall("uses Open MPI's other collectives", job.output))
        checks.expect(told == 1, f"the user was told {told} times:\n{job.output}")


def check_unknown_variable(checks, launcher, program):
    job = launcher.run(3, [program, "use"], environment={"UCG_ALREDUCE": "ring"})
    told = len(re.findall(r"UCG_ALREDUCE \(maybe UCG_ALLREDUCE\?\)", job.output))
    checks.expect(job.status == 0 and told == 1, f"the user was told {told} times:\n{job.output}")
    silent = launcher.run(3, [program, "use"], {"coll_ucg_warn_unused_env_vars": "n"},
                          environment={"UCG_ALREDUCE": "ring"})
    checks.expect(silent.status == 0 and "UCG_ALREDUCE" not in silent.output, silent.output)


def check_other_series(checks, launcher, program, library):
    job = launcher.run(2, [program, "use"], environment={"LD_PRELOAD": library})
    checks.expect(job.status == 0 and "use ok" in job.output, job.output)
    mine = ".".join(map(str, mpirun.series()))
    told = f"was built for Open MPI {mine} and does not work with Open MPI v99.3.1"
    checks.expect(told in job.output,
                  f"another series was not refused:\n{job.output}")
    # Under srun, processes have no variable of mpirun's.
    job = launcher.run(2, ["env", "-u", "OMPI_COMM_WORLD_RANK", program, "use"],
                       environment={"LD_PRELOAD": library})
    count = job.output.count(told)
    checks.expect(job.status == 0 and count == 1,
                  f"another series without mpirun's variable: told {count} times\n{job.output}")


def check_fault_tolerance(checks, launcher, program):
    """There, waits must end when a peer ends, so Open MPI's own collectives serve."""
    job = launcher.execute(launcher.command("--with-ft", "ulfm", "-n", "3", program, "use"))
    told = len(re.findall("collectives run without it: fault tolerance is on", job.output))
    checks.expect(job.status == 0 and "use ok" in job.output and told == 1,
                  f"under --with-ft ulfm the user was told {told} times:\n{job.output}")


UNLIKE = "a communicator of . processes uses Open MPI's other collectives: its rank"


def check_unlike(checks, launcher, what, command, told=1):
    """The job works, and a line says that UCG leaves a communicator to other components."""
    job = launcher.execute(launcher.command(*command))
    checks.expect(job.status == 0 and " ok" in job.output,
                  f"{what}: status {job.status}\n{job.output[-3000:]}")
    count = len(re.findall(UNLIKE, job.output))
    checks.expect(count == told, f"{what}: the user was told {count} times:\n{job.output[-3000:]}")


def check_unlike_ranks(checks, launcher, program):
    """One job whose last rank would choose other collectives than the first two ranks."""
    for name, value in [("coll", "^ucg"), ("coll_ucg_priority", "-1"), ("coll_ucg_priority", "20"),
                        ("coll_ucg_setup_after", "3"), ("coll_ucg_enable_allreduce", "0"),
                        ("coll_ucg_enable_scatterv_init", "0"), ("coll_tuned_priority", "99")]:
        command = mpirun.on_ranks([2], {f"OMPI_MCA_{name}": value}, [program, "use"])
        check_unlike(checks, launcher, f"a rank with {name}={value}", ["-n", "3", *command])


def check_machines(checks, launcher, program):
    """Ranks are told once which machine is ignored, or that they have different machines."""
    two = "package:2 core:2 pu:1"
    use = [program, "use"]
    for said, job in [
            ("UCG_MACHINE: expected a synthetic description",
             launcher.run(3, use, environment={"UCG_MACHINE": "packge:2 pu:1"})),
            ("UCG_MACHINE: /nowhere/x.xml: cannot read the machine: No such file",
             launcher.run(3, use, {"coll_ucg_machine": "/nowhere/x.xml"})),
            ("rank 0 and rank 1 are on different machines by UCG_MACHINE",
             launcher.run(3, mpirun.on_ranks([1], {"UCG_MACHINE": two}, use))),
            ("UCG_MACHINE: expected a synthetic description",
             launcher.run(3, mpirun.on_ranks([2], {"UCG_MACHINE": "packge:2"}, use)))]:
        checks.expect(job.status == 0 and "use ok" in job.output, job.output)
        told = [job.output.count(text) for text in (said, "uses Open MPI's other collectives")]
        checks.expect(told == [1, 1], f"{said}: the user was told {told} times:\n{job.output}")


def check_unlike_jobs(checks, launcher, program, other_version):
    """Two jobs share communicators; one of them has no UCG, or another version."""
    without = "OMPI_MCA_coll=^ucg"
    # In Open MPI 5.0 spawned processes connect to their parents by TCP, which leaves out the
    # loopback.
    tcp = ["--mca", "btl_tcp_if_include", "lo", "-n", "2"]
    spawn = [*tcp, program, "spawn"]
    check_unlike(checks, launcher, "children like their parents", spawn, told=0)
    check_unlike(checks, launcher, "children without", spawn + [without])
    check_unlike(checks, launcher, "parents without",
                 [*tcp, "env", without, program, "spawn", "-u", "OMPI_MCA_coll"])
    other = f"LD_PRELOAD={launcher.preloaded(other_version)}"
    check_unlike(checks, launcher, "children with another version", [*spawn, other],
                 told=2)  # Each job reports it, since neither knows the other.


def check_failing_pmix(checks, launcher, program, library):
    """PMIx fails when it is asked about the component, as often as a process asks again, or
    always."""
    def run(looks, status, ranks, mca=None):
        command = mpirun.on_ranks(ranks, {"FAILING_LOOKS": looks, "FAILING_STATUS": status},
                                  [program, "use"])
        return launcher.run(2, command, {"coll_ucg_verbose": "1", **(mca or {})}, timeout=60,
                            environment={"LD_PRELOAD": library})
    error, timeout = "-1", "-24"
    for looks in ["1", "2", "3", "5", "8"]:
        job = run(looks, error, [1])
        checks.expect(job.status == 0 and mpirun.counters(job.output).get("allreduce") == (1, 0),
                      f"PMIx fails {looks} times: status {job.status}\n{job.output[-3000:]}")
    job = run("1000", error, [1])
    checks.expect(job.status != 0 and "PMIx does not tell what process 0 of job" in job.output,
                  f"PMIx always fails: status {job.status}\n{job.output[-3000:]}")
    job = run("1000", error, [1], {"coll_ucg_assume_alike": "1"})
    checks.expect(job.status == 0 and mpirun.counters(job.output).get("allreduce") == (1, 0),
                  f"nobody is asked: status {job.status}\n{job.output[-3000:]}")
    job = run("1000", timeout, [0, 1])
    told = len(re.findall(UNLIKE, job.output))
    # Both processes report it, since neither knows about the other.
    checks.expect(job.status == 0 and "use ok" in job.output and told == 2,
                  f"PMIx always waits: status {job.status}\n{job.output[-3000:]}")


def check_forgotten(checks, launcher, program):
    """Forgotten requests keep their communicators. The context of each process is destroyed all
    the same, and a line says so."""
    job = launcher.run(3, [program, "forget"], environment={"UCG_LOG_LEVEL": "info"})
    gone = job.output.count("coll/ucg: waits slept")
    checks.expect(job.status == 0 and "forget ok" in job.output and gone == 3,
                  f"forgotten requests: status {job.status}, {gone} contexts ended\n"
                  f"{job.output[-3000:]}")


def check_part(checks, launcher, program, part, ranks, mca=None):
    job = launcher.run(ranks, [program, part], mca, timeout=240)
    if "needs more threads" in job.output:
        return
    checks.expect(job.status == 0 and f"{part} ok" in job.output,
                  f"{part} on {ranks} ranks: status {job.status}\n{job.output[-3000:]}")


def check_all(checks, launcher, program, library, other_version, failing_pmix):
    check_parameters(checks, launcher)
    check_counters(checks, launcher, program)
    check_switches(checks, launcher, program)
    check_setup_after(checks, launcher, program)
    check_other_host(checks, launcher, program)
    check_wrappers(checks, launcher, program)
    check_disagreement(checks, launcher, program)
    check_flat(checks, launcher, program)
    check_fallback(checks, launcher, program)
    check_other_series(checks, launcher, program, library)
    if mpirun.series() >= (5, 0):
        check_fault_tolerance(checks, launcher, program)
    check_unlike_ranks(checks, launcher, program)
    check_machines(checks, launcher, program)
    check_unlike_jobs(checks, launcher, program, other_version)
    check_failing_pmix(checks, launcher, program, failing_pmix)
    check_forgotten(checks, launcher, program)
    for part, ranks in [("use", 1), ("leak", 4), ("repeat", 2), ("repeat", 3), ("churn", 3),
                        ("crowd", 4), ("serialized", 2), ("multiple", 2), ("multiple", 3),
                        ("levels", 3), ("join", 2), ("join", 4), ("free_first", 2),
                        ("free_first", 3)]:
        check_part(checks, launcher, program, part, ranks)
        print(f"{part} on {ranks} ranks: done", flush=True)
    for part in ["churn", "multiple"]:
        check_part(checks, launcher, program, part, 3, {"coll_ucg_setup_after": "3"})


def main():
    folder, program, repetitions, library, other_version, failing_pmix = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    marker = f"UCG_TEST_MARKER={uuid.uuid4()}"
    launcher.environment.update([marker.split("=")])
    before = mpirun.shared_memory()
    check_all(checks, launcher, program, library, other_version, failing_pmix)
    for ranks in [2, 3, 5]:
        check_part(checks, launcher, repetitions, "walk", ranks)
    left = {name for name in mpirun.shared_memory() - before if "ucg" in name}
    checks.expect(not left, f"left in /dev/shm: {sorted(left)}")
    running = mpirun.processes(marker) - {os.getpid()}
    checks.expect(not running, f"still running: {sorted(running)}")
    checks.end()


main()
