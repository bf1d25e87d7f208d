#!/usr/bin/env python3
"""Buffers that the kernel copies for no process: see secret.c.

usage: secret.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import sys

import mpirun

VARIANTS = [{}, {"coll_ucg_help_peers": "always"}, {"coll_ucg_help_peers": "never"},
            {"coll_ucg_cma": "64k", "coll_ucg_staging": "64k"}]


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for count in map(int, ranks):
        for mca in VARIANTS:
            job = launcher.run(count, [program], mca, timeout=120)
            if "no secret memory" in job.output:
                sys.exit(mpirun.SKIPPED)
            checks.expect(job.status == 0 and "secret ok" in job.output,
                          f"{count} ranks, {mca}: status {job.status}\n{job.output[-3000:]}")
    checks.end()


main()
