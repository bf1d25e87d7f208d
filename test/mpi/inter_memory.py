#!/usr/bin/env python3
"""Runs reductions on inter-communicators that get no memory: see inter_memory.c.

usage: inter_memory.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import re
import sys

import mpirun


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for count in map(int, ranks):
        job = launcher.run(count, [program], {"coll_ucg_setup_after": "0"}, timeout=100)
        refused = re.search(r"inter_memory ok: (\d+) refused", job.output)
        # Two processes need memory for counts; more processes on a side also need a place for what
        # they combine.
        checks.expect(job.status == 0 and refused and int(refused[1]) >= (2 if count == 2 else 3),
                      f"{count} ranks: status {job.status}\n{job.output[-3000:]}")
    checks.end()


main()
