#!/usr/bin/env python3
"""Jobs that are killed at random moments end in bounded time and leave nothing behind.

usage: kills.py COMPONENT-FOLDER FAULTS-PROGRAM [SEED]
"""

import os
import random
import signal
import subprocess
import sys
import time

import sandbox

RANKS = 4
ROUNDS = 4
END_WITHIN = 60  # Seconds. Open MPI gives ranks time to end themselves.
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1


class LoopingJob:
    """A loop of collectives."""

    def __init__(self, bench, tls):
        self.program = bench.program
        self.output = open(bench.folder / "output", "w+", encoding="utf-8", errors="replace")
        command = ["mpirun", "--oversubscribe", "-n", str(RANKS), "--mca", "coll_ucg_tls", tls,
                   bench.program, "loop"]
        self.mpirun = subprocess.Popen(command, env=bench.launcher.environment,
                                       stdout=self.output, stderr=subprocess.STDOUT)

    def ranks(self):
        return sandbox.running(self.program)

    def text(self):
        self.output.seek(0)
        return self.output.read()

    def await_condition(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition() and self.mpirun.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        return condition()

    def await_ranks(self):
        return self.await_condition(lambda: len(self.ranks()) == RANKS)

    def await_loop(self):
        return self.await_condition(lambda: "looping" in self.text())


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def kill_one_rank(job, numbers):
    kill([numbers.choice(job.ranks())])


def kill_all_ranks(job, _):
    kill(job.ranks())


def kill_mpirun(job, _):
    kill([job.mpirun.pid])


def round_of(bench, what, tls, victim, numbers, in_set_up):
    """One job, killed in its set-up or in its loop."""
    job = LoopingJob(bench, tls)
    arrived = job.await_ranks() if in_set_up else job.await_loop()
    if not bench.checks.expect(arrived, f"{what}: did not start\n{job.text()}"):
        sandbox.end_all()
        return
    time.sleep(numbers.uniform(0, 1.0 if in_set_up else 0.3))
    victim(job, numbers)
    killed = time.monotonic()
    try:
        status = job.mpirun.wait(END_WITHIN)
        bench.checks.expect(status != 0, f"{what}: mpirun calls this a success\n{job.text()}")
    except subprocess.TimeoutExpired:
        bench.checks.expect(False, f"{what}: no end within {END_WITHIN} s\n{job.text()}")
    sandbox.expect_nothing_left(bench.checks, what, bench.folder, END_WITHIN)
    print(f"{what}: all gone after {time.monotonic() - killed:.1f} s", flush=True)
    job.output.close()


def rounds_of(bench, victim):
    numbers = random.Random(f"{SEED} {victim.__name__}")
    for i in range(ROUNDS):
        tls = "ucx" if i == ROUNDS - 1 else "shm,ucx"
        in_set_up = i == 0
        what = f"{victim.__name__}, round {i} of seed {SEED}, {tls}"
        round_of(bench, what, tls, victim, numbers, in_set_up)


def one_rank(bench):
    rounds_of(bench, kill_one_rank)


def all_ranks(bench):
    rounds_of(bench, kill_all_ranks)


def launcher(bench):
    rounds_of(bench, kill_mpirun)


sandbox.run([one_rank, all_ranks, launcher])
