#!/usr/bin/env python3
"""Runs the program in which one rank computes meanwhile: see absent.c.

usage: absent.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import sys

import mpirun

FUNCTIONS = {"ibcast", "ireduce", "iallreduce", "iallgather", "ialltoall"}


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for count in map(int, ranks):
        mca = {"coll_ucg_help_peers": "always", "coll_ucg_verbose": "1"}
        job = launcher.run(count, [program], mca, timeout=200)
        checks.expect(job.status == 0 and "absent ok" in job.output,
                      f"{count} ranks: status {job.status}\n{job.output[-3000:]}")
        # Open MPI calls MPI_Iallreduce itself while it makes the window's communicator; these calls
        # are passed on.
        served = {name for name, (taken, passed) in mpirun.counters(job.output).items()
                  if taken > 0 and (passed == 0 or name == "iallreduce")}
        checks.expect(served >= FUNCTIONS, f"{count} ranks: not served: {FUNCTIONS - served}")
    checks.end()


main()
