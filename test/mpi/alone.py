#!/usr/bin/env python3
"""A call that fails on one rank alone is an error for all: see alone.c and lacking.c.

usage: alone.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import os
import sys

import mpirun

WAYS = {
    "alone": ["blocking", "nonblocking", "persistent", "memory", "inter"],
    # With the number of allocations that such a call makes for its place.
    "lacking": ["blocking 2", "vectors 3", "persistent 1"],
}


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    mca = {"coll_ucg_tls": "shm", "coll_ucg_setup_after": "0"}
    name = os.path.basename(program)
    for count in map(int, ranks):
        for way in WAYS[name]:
            checks.run_part(launcher, [program, *way.split()], name, count,
                            f"{count} ranks, {way}", mca)
    checks.end()


main()
