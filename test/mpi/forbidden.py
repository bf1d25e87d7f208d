#!/usr/bin/env python3
"""The kernel refuses to copy between ranks once they run: see forbidden.c.

usage: forbidden.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import itertools
import re
import sys

import mpirun

WAYS = ["undumpable", "filter", "user"]
VARIANTS = [{"coll_ucg_cma": "64k"}, {"coll_ucg_cma": "64k", "coll_ucg_help_peers": "always"},
            {"coll_ucg_cma": "64k", "coll_ucg_help_peers": "never"}]


def warnings(output):
    """How many lines each process has written about the refusal."""
    processes = re.findall(r"\[([^\]]+)\] ucg warning: .*the kernel no longer copies", output)
    return {process: processes.count(process) for process in processes}


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    ran = False
    for turn, (count, way) in enumerate(itertools.product(map(int, ranks), WAYS)):
        for first, mca in enumerate([VARIANTS[0], VARIANTS[1 + turn % 2]]):
            job = launcher.run(count, [program, way, str(first + turn)], mca, timeout=120)
            if job.status == 0 and "nothing to forbid" in job.output:
                continue
            ran = True
            what = f"{count} ranks, {way}, {mca}"
            checks.expect(job.status == 0 and "forbidden ok" in job.output,
                          f"{what}: status {job.status}\n{job.output[-3000:]}")
            told = warnings(job.output)
            checks.expect(told and max(told.values()) == 1, f"{what}: lines {told}")
    if not ran:
        sys.exit(mpirun.SKIPPED)
    checks.end()


main()
