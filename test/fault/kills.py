#!/usr/bin/env python3
"""Killed jobs end in bounded time and leave nothing behind, wherever they were: one rank stops at a
named point and says so, then a rank, all ranks or mpirun are killed.

usage: kills.py COMPONENT-FOLDER POINTS-PROGRAM [SEED|all]

At each point one of the victims is killed, drawn from the seed; with "all", each of them in turn.
"""

import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import time

import sandbox

RANKS = 4  # It is a power of two, so in recursive doubling every rank calls the operator.
START_WITHIN = 60  # Seconds.
END_WITHIN = 60  # Open MPI gives ranks time to end themselves.
LAUNCHER_WITHIN = 10  # For an mpirun that has no ranks.
SEED = sys.argv[3] if len(sys.argv) > 3 else "1"

# The points in the order in which a job reaches them. A name of a system call means the first of
# libucg's calls of it.
BOTH = ["before_init", "before_first_collective", "short_operator", "long_operator",
        "communicator_made", "communicator_used", "before_finalize", "after_finalize"]
# Rank 0 makes the segment of all ranks.
ONE_RANK = ["memfd_create"]
SHARED = ["memfd_create", "listen", "leasing", "sendmsg", "recvmsg", "process_vm_readv",
          "last_lease_returned"]
PLACES = [(point, "shm,ucx") for point in BOTH + SHARED] + [(point, "ucx") for point in BOTH[1:6]]


class StoppingJob:
    """A job of which one rank stops at a point."""

    def __init__(self, bench, point, tls, rank):
        self.program = bench.program
        self.stopped = 0  # The process that has stopped; known once it has arrived.
        self.say, self.go = (self.new_pipe(bench.folder / name) for name in ["say", "go"])
        self.output = open(bench.folder / "output", "w+", encoding="utf-8", errors="replace")
        command = ["mpirun", "--oversubscribe", "-n", str(RANKS), "--mca", "coll_ucg_tls", tls,
                   "--mca", "coll_ucg_allreduce_algorithm", "recursive_doubling",
                   "-x", "POINTS_SAY", "-x", "POINTS_GO", bench.program, point, str(rank)]
        self.mpirun = subprocess.Popen(
            command, stdout=self.output, stderr=subprocess.STDOUT,
            env={**bench.launcher.environment, "POINTS_SAY": str(bench.folder / "say"),
                 "POINTS_GO": str(bench.folder / "go")})

    @staticmethod
    def new_pipe(path):
        """A pipe that is open at both ends here, so that neither this test nor a rank waits to
        open it."""
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        return os.open(path, os.O_RDWR)

    def ranks(self):
        return sandbox.running(self.program)

    def text(self):
        self.output.seek(0)
        return self.output.read()

    def arrived(self, point):
        """Waits until the rank says that it has stopped, and until all ranks have started."""
        end = time.monotonic() + START_WITHIN
        while not select.select([self.say], [], [], 0.01)[0]:
            if self.mpirun.poll() is not None or time.monotonic() > end:
                return False
        said, pid = os.read(self.say, 100).decode().split()
        self.stopped = int(pid)
        while point == "before_init" and len(self.ranks()) < RANKS and time.monotonic() < end:
            time.sleep(0.01)
        return said == point

    def go_on(self):
        os.write(self.go, b".")

    def close(self):
        self.output.close()
        os.close(self.say)
        os.close(self.go)


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def stopped_rank(job):
    kill([job.stopped])


def other_rank(job):
    """A rank that waits for the stopped one, or is at its end."""
    kill([pid for pid in job.ranks() if pid != job.stopped][:1])


def all_ranks(job):
    kill(job.ranks())


def launcher(job):
    kill([job.mpirun.pid])


VICTIMS = [stopped_rank, other_rank, all_ranks, launcher]
ALONE = [stopped_rank, all_ranks, launcher]  # After the end of MPI no rank waits for another one.


def end_of(mpirun, what):
    """The exit status of an mpirun that has no ranks any more. None of UCG's code runs in it
    then, but it may hang by a fault of its own: PMIx 4.2 frees the record of a rank twice that
    dies while it connects to mpirun, and at its end may wait for a lock in the freed memory,
    without reacting to SIGTERM."""
    for means in [signal.SIGTERM, signal.SIGKILL]:
        try:
            return mpirun.wait(LAUNCHER_WITHIN)
        except subprocess.TimeoutExpired:
            print(f"{what}: mpirun without ranks does not end; {means.name}", flush=True)
            mpirun.send_signal(means)
    return mpirun.wait(LAUNCHER_WITHIN)


def has_libucg(pid):
    """Has the process opened the library? Open MPI does so within MPI_Init."""
    try:
        return "libucg" in pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    except OSError:
        return False


def expect_an_end(bench, job, what, point):
    """Ranks end, except those that PMIx 4.2 keeps: its PMIx_Init may wait for ever where mpirun is
    killed while the rank connects to it."""
    left = sandbox.await_none(job.ranks, END_WITHIN)
    of_pmix = point == "before_init" and not any(map(has_libucg, left))
    bench.checks.expect(not left or of_pmix,
                        f"{what}: ranks left after {END_WITHIN} s\n{job.text()}")
    if left:
        print(f"{what}: {len(left)} ranks do not end, {'before' if of_pmix else 'after'} "
              "libucg was opened; killed", flush=True)
        sandbox.end_all()
    status = end_of(job.mpirun, what)
    bench.checks.expect(status != 0, f"{what}: mpirun calls this a success\n{job.text()}")


def round_of(bench, place, victim, numbers):
    """Runs one job and kills it at one point."""
    point, tls = place
    what = f"{victim.__name__} at {point}, {tls}, seed {SEED}"
    rank = numbers.randrange(RANKS)
    job = StoppingJob(bench, point, tls, 0 if point in ONE_RANK else rank)
    if bench.checks.expect(job.arrived(point), f"{what}: did not get there\n{job.text()}"):
        victim(job)
        killed = time.monotonic()
        job.go_on()  # The ranks that are left go on after what has happened.
        expect_an_end(bench, job, what, point)
        sandbox.expect_nothing_left(bench.checks, what, bench.folder, END_WITHIN)
        print(f"{what}: all gone after {time.monotonic() - killed:.1f} s", flush=True)
    else:
        sandbox.end_all()
    job.close()


def rounds(bench):
    numbers = random.Random(SEED)
    for place in PLACES:
        victims = ALONE if place[0] == "after_finalize" else VICTIMS
        for victim in victims if SEED == "all" else [numbers.choice(victims)]:
            round_of(bench, place, victim, numbers)


sandbox.run([rounds])
