#!/usr/bin/env python3
"""First calls that get no memory on one rank: see lacking.c.

usage: lacking.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import sys

import mpirun

# The number of allocations that such a call makes for its place.
WAYS = {"blocking": 2, "vectors": 3, "persistent": 1}


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    mca = {"coll_ucg_tls": "shm", "coll_ucg_setup_after": "0"}
    for count in map(int, ranks):
        for way, number in WAYS.items():
            job = launcher.run(count, [program, way, str(number)], mca, timeout=60)
            checks.expect(job.status == 0 and "lacking ok" in job.output,
                          f"{count} ranks, {way}: status {job.status}\n{job.output[-3000:]}")
    checks.end()


main()
