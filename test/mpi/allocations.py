#!/usr/bin/env python3
"""Runs the program that finds out who allocates: see allocations.c.

usage: allocations.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import sys

import mpirun


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for count in map(int, ranks):
        # Over UCX, a message that comes before its receive has memory of its own.
        mca = {"coll_ucg_tls": "shm", "coll_ucg_verbose": "1"}
        job = launcher.run(count, [program], mca, timeout=200)
        checks.expect(job.status == 0 and "allocations ok" in job.output,
                      f"{count} ranks: status {job.status}\n{job.output[-3000:]}")
        # All 22 functions in both forms are served, besides the two blocking ones of the program
        # itself.
        served = {name for name, (taken, _) in mpirun.counters(job.output).items() if taken > 0}
        checks.expect(len(served) >= 44, f"{count} ranks: served: {sorted(served)}")
    checks.end()


main()
