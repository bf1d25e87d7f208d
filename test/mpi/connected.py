#!/usr/bin/env python3
"""Two jobs that meet by MPI_Comm_accept and MPI_Comm_connect: UCG serves the communicators that
they share, or, if one job has no UCG, neither uses it. Both end and leave nothing.

usage: connected.py COMPONENT-FOLDER PROGRAM

The jobs find one another by ompi-server of Open MPI 4.1, which later series do not have.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import mpirun

RANKS = {"accept": 2, "connect": 3}
TIMES = 2
ROOTS = TIMES * sum(RANKS.values())  # The program makes as many nonblocking calls of each kind.
# What Open MPI calls itself while jobs connect may be passed on.
SERVED = {"allreduce": 4 * TIMES, "alltoall": 4 * TIMES, "barrier": 4 * TIMES, "bcast": ROOTS,
          "reduce": ROOTS, "ibcast": ROOTS, "ireduce": ROOTS, "iallreduce": 4 * TIMES}
NEVER_PASSED = ["allreduce", "alltoall", "barrier", "reduce"]


class Server:
    """Runs ompi-server as long as the jobs run."""

    def __init__(self, folder):
        self.file = os.path.join(folder, "server")
        self.process = subprocess.Popen(["ompi-server", "--no-daemonize", "-r", self.file],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while time.monotonic() < end and not self.is_there():
            time.sleep(0.05)

    def is_there(self):
        return os.path.exists(self.file) and os.path.getsize(self.file) > 0

    def stop(self):
        self.process.terminate()
        self.process.wait()


def meet(launcher, program, settings):
    """Runs both jobs and returns {side: its job}. `settings`: {side: parameters}"""
    jobs = {}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)

        def start(side):
            words = [word for name, value in settings.get(side, {}).items()
                     for word in ("--mca", name, value)]
            jobs[side] = launcher.execute(
                launcher.command("--ompi-server", f"file:{server.file}", "-n", str(RANKS[side]),
                                 *words, program, side, os.path.join(folder, "port"), str(TIMES)),
                timeout=120)

        threads = [threading.Thread(target=start, args=(side,)) for side in RANKS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.stop()
    return jobs


def check_ends(checks, jobs, what):
    for side, job in jobs.items():
        checks.expect(job.status == 0 and f"{side} ok" in job.output,
                      f"{what}, {side}: status {job.status}\n{job.output[-3000:]}")


def check_alike(checks, launcher, program):
    verbose = {"coll_ucg_verbose": "1"}
    jobs = meet(launcher, program, {side: verbose for side in RANKS})
    check_ends(checks, jobs, "both have UCG")
    for side, job in jobs.items():
        counted = mpirun.counters(job.output)
        for name, least in SERVED.items():
            checks.expect(counted.get(name, (0, 0))[0] >= least,
                          f"{side}: {name} {counted.get(name)}, wanted {least}")
        for name in NEVER_PASSED:
            checks.expect(counted.get(name, (0, 0))[1] == 0, f"{side}: {name} {counted.get(name)}")


def check_unlike(checks, launcher, program):
    """First only the one job has UCG, then only the other."""
    for without in RANKS:
        settings = {side: {"coll_ucg_verbose": "1"} for side in RANKS}
        settings[without] = {"coll": "^ucg"}
        jobs = meet(launcher, program, settings)
        check_ends(checks, jobs, f"{without} has no UCG")
        (other,) = (job for side, job in jobs.items() if side != without)
        counted = mpirun.counters(other.output)
        # The others are those of the communicator that Open MPI keeps for each side.
        checks.expect("alltoall" not in counted,
                      f"{without} has no UCG, but the other used it: {counted}")


def main(folder, program):
    if mpirun.series() >= (5, 0) or shutil.which("ompi-server") is None:
        print("skipped: no ompi-server, by which two jobs find one another")
        sys.exit(mpirun.SKIPPED)
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    before = mpirun.shared_memory()
    check_alike(checks, launcher, program)
    check_unlike(checks, launcher, program)
    left = mpirun.left_in_shared_memory(before)
    checks.expect(not left, f"left in /dev/shm: {left}")
    checks.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
