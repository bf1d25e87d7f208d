#!/usr/bin/env python3
"""A call that fails on one rank alone is an error for all: see alone.c.

usage: alone.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import sys

import mpirun

WAYS = ["blocking", "nonblocking", "persistent", "memory", "inter"]


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    mca = {"coll_ucg_tls": "shm", "coll_ucg_setup_after": "0"}
    for count in map(int, ranks):
        for way in WAYS:
            job = launcher.run(count, [program, way], mca, timeout=60)
            checks.expect(job.status == 0 and "alone ok" in job.output,
                          f"{count} ranks, {way}: status {job.status}\n{job.output[-3000:]}")
    checks.end()


main()
