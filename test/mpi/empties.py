#!/usr/bin/env python3
"""Runs collectives of no bytes that ranks describe by different counts: see empties.c.

usage: empties.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import sys

import mpirun


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for count in map(int, ranks):
        for setup_after in ["0", "1", "3"]:
            mca = {"coll_ucg_setup_after": setup_after, "coll_ucg_verbose": "1"}
            # Before there is a group Open MPI's own collectives serve them, and these may hang.
            vectors = ["vectors"] if setup_after == "0" else []
            job = launcher.run(count, [program, *vectors], mca, timeout=30)
            checks.expect(job.status == 0 and "empties ok" in job.output,
                          f"{count} ranks, a group after {setup_after} calls: status {job.status}\n"
                          f"{job.output[-3000:]}")
            checks.expect(mpirun.counters(job.output).get("allreduce", (0, 0))[0] > 0,
                          f"{count} ranks: no sum was served")
    checks.end()


main()
