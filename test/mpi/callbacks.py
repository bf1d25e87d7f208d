#!/usr/bin/env python3
"""Runs the program of callbacks that wait: see callbacks.c.

usage: callbacks.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import sys

import mpirun

# Groups are made by the first calls, so that no call is left to Open MPI's component.
AT_ONCE = {"coll_ucg_setup_after": "0"}


def check(checks, launcher, program, part, ranks, tls):
    job = launcher.run(ranks, [program, part], {"coll_ucg_tls": tls, **AT_ONCE}, timeout=120)
    checks.expect(job.status == 0 and f"{part} ok" in job.output,
                  f"{part} on {ranks} ranks over {tls}: status {job.status}\n"
                  f"{job.output[-3000:]}")


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for part in ["types", "first_types"]:
        for count in map(int, ranks):
            check(checks, launcher, program, part, count, "shm,ucx")
        check(checks, launcher, program, part, 2, "ucx")
    checks.end()


main()
