#!/usr/bin/env python3
"""Runs the program with MPI functions that the other programs do not call: see further.c.

usage: further.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import sys

import mpirun

PARTS = ["edges"]


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for part in PARTS:
        for count in map(int, ranks):
            checks.run_part(launcher, [program, part], part, count, f"{part} on {count} ranks",
                            None)
    checks.end()


main()
