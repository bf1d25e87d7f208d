#!/usr/bin/env python3
"""Jobs that are killed end in bounded time and leave nothing behind, wherever they were: a rank
stops at a named point and says so, then a rank, all ranks or mpirun are killed.

usage: kills.py COMPONENT-FOLDER POINTS-PROGRAM [SEED|all]

Each point meets one of the victims, drawn from the seed; with "all" every point meets every one.
"""

import os
import random
import select
import signal
import subprocess
import sys
import time

import sandbox

RANKS = 4  # A power of two: every rank calls the operator in recursive doubling.
START_WITHIN = 60  # Seconds.
END_WITHIN = 60  # Open MPI gives ranks time to end themselves.
LAUNCHER_WITHIN = 10  # An mpirun without ranks.
SEED = sys.argv[3] if len(sys.argv) > 3 else "1"

# In the order in which a job comes by. Names of system calls: in libucg, before the first of them.
BOTH = ["before_init", "before_first_collective", "short_operator", "long_operator",
        "communicator_made", "communicator_used", "before_finalize", "after_finalize"]
# The first rank makes the segment of all.
ONE_RANK = ["memfd_create"]
SHARED = ["memfd_create", "listen", "leasing", "sendmsg", "recvmsg", "process_vm_readv",
          "last_lease_returned"]
PLACES = [(point, "shm,ucx") for point in BOTH + SHARED] + [(point, "ucx") for point in BOTH[1:6]]


class StoppingJob:
    """A job of which one rank stops at a point."""

    def __init__(self, bench, point, tls, rank):
        self.program = bench.program
        self.stopped = 0  # The process that did; known when it has arrived.
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
        """Open at both ends, so that neither this test nor a rank waits to open it."""
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        return os.open(path, os.O_RDWR)

    def ranks(self):
        return sandbox.running(self.program)

    def text(self):
        self.output.seek(0)
        return self.output.read()

    def arrived(self, point):
        """Waits until the rank says that it has stopped, and all have been born."""
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
    """One that waits for the stopped one, or is at its end."""
    kill([pid for pid in job.ranks() if pid != job.stopped][:1])


def all_ranks(job):
    kill(job.ranks())


def launcher(job):
    kill([job.mpirun.pid])


VICTIMS = [stopped_rank, other_rank, all_ranks, launcher]
ALONE = [stopped_rank, all_ranks, launcher]  # After the end of MPI nobody waits for anybody.


def end_of(mpirun, what):
    """The exit status of mpirun, which has no ranks any more. Nothing in it is ours then, and it
    may hang by its own fault: PMIx 4.2 releases the record of a rank that dies while it connects
    to mpirun twice, and may wait at its end for a lock in the freed memory, deaf to SIGTERM."""
    for means in [signal.SIGTERM, signal.SIGKILL]:
        try:
            return mpirun.wait(LAUNCHER_WITHIN)
        except subprocess.TimeoutExpired:
            print(f"{what}: mpirun without ranks does not end; {means.name}", flush=True)
            mpirun.send_signal(means)
    return mpirun.wait(LAUNCHER_WITHIN)


def expect_an_end(bench, job, what):
    left = sandbox.await_none(job.ranks, END_WITHIN)
    bench.checks.expect(not left, f"{what}: ranks left after {END_WITHIN} s\n{job.text()}")
    if left:
        sandbox.end_all()
    status = end_of(job.mpirun, what)
    bench.checks.expect(status != 0, f"{what}: mpirun calls this a success\n{job.text()}")


def round_of(bench, place, victim, numbers):
    """One job, killed at one point."""
    point, tls = place
    what = f"{victim.__name__} at {point}, {tls}, seed {SEED}"
    rank = numbers.randrange(RANKS)
    job = StoppingJob(bench, point, tls, 0 if point in ONE_RANK else rank)
    if bench.checks.expect(job.arrived(point), f"{what}: did not get there\n{job.text()}"):
        victim(job)
        killed = time.monotonic()
        job.go_on()  # Who is left meets what has happened.
        expect_an_end(bench, job, what)
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
