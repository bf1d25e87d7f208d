#!/usr/bin/env python3
"""Runs the program of callbacks that wait: see callbacks.c.

usage: callbacks.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import sys

import mpirun


def check(checks, launcher, program, part, ranks, tls, setup_after="0"):
    what = f"{part} on {ranks} ranks over {tls}, groups after {setup_after} calls"
    job = checks.run_part(launcher, [program, part, setup_after], part, ranks, what,
                          {"coll_ucg_tls": tls, "coll_ucg_setup_after": setup_after})
    checks.expect("free them first" not in job.output,
                  f"{what}: a group was left behind\n{job.output[-3000:]}")


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    parts = [("types", "0"), ("first_types", "0"), ("phases", "0"), ("nested", "0"),
             ("nested", "16"), ("within", "0"), ("first_within", "0"),
             ("first_within", "16"), ("interrupted", "0"),
             ("ends", "0")]
    for part, setup_after in parts:
        for count in map(int, ranks):
            check(checks, launcher, program, part, count, "shm,ucx", setup_after)
        check(checks, launcher, program, part, 2, "ucx", setup_after)
    checks.end()


main()
