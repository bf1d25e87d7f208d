#!/usr/bin/env python3
"""Runs the program that reads the component's counters by MPI_T: see counters.c.

usage: counters.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import sys

import mpirun


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for count in map(int, ranks):
        job = launcher.run(count, [program], {"coll_ucg_setup_after": "5"})
        checks.expect(job.status == 0 and "counters ok" in job.output,
                      f"{count} ranks: status {job.status}\n{job.output[-3000:]}")
    checks.end()


main()
