#!/usr/bin/env python3
"""Messages between hosts along the edges of a neighbourhood are combined by rooms that ranks agree
on, while blocks change their lengths. Results are right, also where all plans are proved first.

usage: neighbor_hosts.py COMPONENT-FOLDER NEIGHBOR-ROOMS-PROGRAM
Runs on a host of a cluster (on_hosts.sh) of at least 2 hosts with 3 ranks each.
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))

import mpirun  # noqa: E402 (found by the line above)

HOSTS, RANKS_EACH = 2, 3
CALLS = 150  # In the end, ranks agree at every 32nd call.
CALLS_PROVED = 40
PLAN = re.compile(r"\[(\w+:\d+)\].*neighbor_alltoallv of \d+ bytes by (\w+)")


def algorithms(launcher, checks, program, calls, settings):
    """{algorithm: number of processes that planned by it}."""
    settings = {"UCG_LOG_LEVEL": "debug", **settings}
    job = launcher.execute(
        ["mpirun", "-N", str(RANKS_EACH), "-np", str(HOSTS * RANKS_EACH),
         "--mca", "coll_ucg_verbose", "1", *(word for name in settings for word in ("-x", name)),
         program, str(calls)], environment=settings, timeout=120)
    checks.expect(job.status == 0 and re.search(r"^ok$", job.output, re.MULTILINE),
                  f"{settings}: status {job.status}\n{job.output[-3000:]}")
    passed = {name: on for name, (_, on) in mpirun.counters(job.output).items()
              if "neighbor" in name and on > 0}
    checks.expect(not passed, f"{settings}: passed on: {passed}")
    found = {}
    for process, algorithm in PLAN.findall(job.output):
        found.setdefault(algorithm, set()).add(process)
    return found


def main(folder, program):
    launcher = mpirun.Launcher(folder)
    checks = mpirun.Checks()
    for calls, settings in [(CALLS, {}), (CALLS_PROVED, {"UCG_VERIFY": "y"})]:
        found = algorithms(launcher, checks, program, calls, settings)
        checks.expect(len(found.get("two_level", [])) == HOSTS * RANKS_EACH,
                      f"{settings}: planned by {found}")
    found = algorithms(launcher, checks, program, CALLS_PROVED,
                       {"UCG_NEIGHBOR_ALLTOALLV": "linear"})
    checks.expect(set(found) == {"linear"}, f"linear was asked for: {found}")
    checks.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
