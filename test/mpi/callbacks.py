#!/usr/bin/env python3
"""Runs the program of callbacks that wait: see callbacks.c.

usage: callbacks.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import sys

import mpirun


def check(checks, launcher, program, part, ranks, tls):
    checks.run_part(launcher, [program, part], part, ranks,
                    f"{part} on {ranks} ranks over {tls}", {"coll_ucg_tls": tls})


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for part in ["types", "first_types", "phases"]:
        for count in map(int, ranks):
            check(checks, launcher, program, part, count, "shm,ucx")
        check(checks, launcher, program, part, 2, "ucx")
    checks.end()


main()
