#!/usr/bin/env python3
"""Unmodified MPI programs that Slurm's srun starts on several hosts: UCG serves all collectives,
and knows the switches from Slurm's own file and how ranks share processors. Jobs that Slurm ends
leave nothing behind.

usage: slurm_hosts.py COMPONENT-FOLDER LIFECYCLE-PROGRAM ENDLESS-PROGRAM UCG_INFO
Runs on the head of a cluster (on_hosts.sh) of 4 hosts, n0 .. n3. Skipped without Slurm, and where
it has no PMIx.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))

import mpirun  # noqa: E402 (found by the line above)
import slurm  # noqa: E402

HOSTS = ["n0", "n1", "n2", "n3"]
CPUS = min(2, os.cpu_count() or 1)  # The number of each host's CPUs.
SECONDS = 120  # The limit for a job, which takes seconds on an idle machine.
TOPOLOGY = """\
SwitchName=s0 Nodes=n[0-1]
SwitchName=s1 Nodes=n[2-3]
SwitchName=top Switches=s[0-1]
"""
GROUP = re.compile(r"MPI_COMM_WORLD: rank \d of (\d+) on (\d+) hosts(.*)$", re.MULTILINE)
# These are the collectives of lifecycle's part "use".
COLLECTIVES = {"allgather", "allreduce", "barrier", "bcast"}


class Jobs:
    """Runs srun and checks its output."""

    def __init__(self, folder, lifecycle, endless, checks):
        self.launcher = mpirun.Launcher(folder)
        # Hosts of a real cluster have none of the variables that a virtual head sets for mpirun.
        for name in [*self.launcher.environment]:
            if name.startswith(("OMPI_MCA_plm_", "OMPI_MCA_orte_", "PRTE_")):
                del self.launcher.environment[name]
        # When a process of Open MPI 4.1 ends, in whatever way, it has Slurm's PMIx remove the
        # folder of the whole job. What happens to the other processes then is not UCG's matter, and
        # they put nothing there. Without the folder nothing can race for it.
        self.launcher.environment["OMPI_MCA_orte_create_session_dirs"] = "0"
        self.lifecycle, self.endless, self.checks = lifecycle, endless, checks

    def srun(self, *words, say="warn"):
        return self.launcher.execute(["srun", "--job-name=ucg", *words], SECONDS, {
            "UCG_LOG_LEVEL": say, "OMPI_MCA_coll_ucg_verbose": "1", "TMPDIR": "/tmp"})

    def served(self, what, hosts, ranks, words, oversubscribed):
        """Expects a job whose collectives are all served by UCG, with right results."""
        job = self.srun("--mpi=pmix", "-N", str(hosts), *words, self.lifecycle, "use", say="info")
        counted = mpirun.counters(job.output)
        told = GROUP.findall(job.output)
        wrong = [name for name, right in {
            "result": job.status == 0 and re.search(r"^use ok$", job.output, re.MULTILINE),
            "counters": set(counted) == COLLECTIVES and all(
                taken > 0 and passed == 0 for taken, passed in counted.values()),
            "ranks": [(int(of), int(on)) for of, on, _ in told] == [(ranks, hosts)] * ranks,
            "switches": all(("switches known" in rest) == (hosts > 1) for _, _, rest in told),
            "sharing of processors": oversubscribed is None or all(
                ("oversubscribed" in rest) == oversubscribed for _, _, rest in told),
            "warnings": "warning" not in job.output,
        }.items() if not right]
        self.checks.expect(not wrong, f"{what}: {', '.join(wrong)}: status {job.status}\n"
                                      + job.output[-3000:])

    def refused(self, kind):
        """A launch that cannot start an MPI program of several ranks must say so, and soon."""
        job = self.srun(f"--mpi={kind}", "-N", "2", "-n", "2", self.lifecycle, "use")
        self.checks.expect(job.status not in (0, -1) and "SLURM's PMI" in job.output,
                           f"{kind}: status {job.status}\n{job.output[-3000:]}")


def held(host):
    """The processes of jobs, and the files where programs put shared memory and temporary files."""
    names = slurm.on_host(host, "ps -e -o comm=").split()
    files = slurm.on_host(host, "find /dev/shm /tmp -mindepth 1 -maxdepth 1").split()
    shared = {pathlib.Path(path).parts[2] for path in (os.environ["TMPDIR"], __file__)
              if path.startswith("/tmp/")}
    return [name for name in names if name in ("endless", "lifecycle", "slurmstepd")] + [
        path for path in files if pathlib.Path(path).name not in shared]


def nothing_left(checks, what):
    """Checks that a job has ended, for Slurm and for its hosts."""
    deadline = time.monotonic() + SECONDS
    while True:
        left = {host: found for host in HOSTS if (found := held(host))}
        queue = subprocess.run(["squeue", "--noheader"], text=True, capture_output=True,
                               check=True).stdout
        if not left and not queue or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    checks.expect(not left and not queue, f"{what}: left: {left}\n{queue}")


def ends(jobs, what, part, words, end, says):
    """Expects that nothing is left of a job that had shared memory and messages in flight when
    the command `end`, or Slurm, ended it."""
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        process = subprocess.Popen(
            ["srun", "--job-name=ucg", "--mpi=pmix", *words, jobs.endless, part],
            env={**jobs.launcher.environment, "TMPDIR": "/tmp"}, stdin=subprocess.DEVNULL,
            stdout=out, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + SECONDS
        while end and process.poll() is None and time.monotonic() < deadline:
            out.seek(0)
            if "all have reduced" in out.read():
                jobs.checks.expect(any(map(held, HOSTS)), f"{what}: nothing is held while it runs")
                subprocess.run(end, check=True)
                break
            time.sleep(0.2)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            print(f"{what}: no end within {SECONDS} s")
        out.seek(0)
        output = out.read()
    jobs.checks.expect("all have reduced" in output and process.returncode > 0
                       and re.search(says, output),
                       f"{what}: status {process.returncode}\n{output}")
    nothing_left(jobs.checks, what)


def check(jobs, info, groups):
    each = 2 if CPUS > 1 else 1
    everywhere = [f"--ntasks-per-node={each}"]
    jobs.served("all hosts", 4, 4 * each, [*everywhere, "--cpu-bind=cores"], None)
    jobs.served("one host", 1, each, everywhere, False)
    jobs.served("too many ranks", 2, 4 * each, ["--overcommit", "-n", str(4 * each)], True)
    if CPUS > 1:
        jobs.served("two on one processor", 1, 2, ["-n", "2", "--cpu-bind=map_cpu:0,0"], True)
    nothing_left(jobs.checks, "jobs that ended well")
    for kind in ("pmi2", "none"):
        jobs.refused(kind)
    said = jobs.srun("-N", "1", info, "-d").output
    jobs.checks.expect("/etc/slurm/topology.conf: 3 switches, 4 machines; this host is n" in said,
                       f"ucg_info -d:\n{said}")
    ends(jobs, "scancel", "wait", ["-N", "2", *everywhere], ["scancel", "--name=ucg"], "CANCELLED")
    if groups:
        ends(jobs, "memory", "allocate", ["-N", "2", *everywhere, "--mem=300M"], [],
             "Out Of Memory|oom-kill")


def main(folder, lifecycle, endless, info):
    why = slurm.missing()
    if why:
        print(f"skipped: {why}")
        sys.exit(mpirun.SKIPPED)
    checks = mpirun.Checks()
    jobs = Jobs(folder, lifecycle, endless, checks)
    place = pathlib.Path(os.environ["TMPDIR"]) / "slurm"
    place.parent.chmod(0o755)  # Slurm's own user has to read what lies there.
    place.mkdir()
    daemons = slurm.Slurm(place, HOSTS, CPUS, TOPOLOGY)
    if not daemons.has_groups:
        print(f"without limits of memory: {daemons.groups.why_not}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        daemons.start()
        if "pmix" not in jobs.srun("--mpi=list").output:
            print("skipped: this Slurm has no plugin for PMIx")
            sys.exit(mpirun.SKIPPED)
        check(jobs, info, daemons.has_groups)
        if checks.failures:
            print(daemons.logs())
    finally:
        left = daemons.stop()
    checks.expect(not left, f"left of the daemons: {left}")
    checks.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
