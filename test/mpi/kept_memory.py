#!/usr/bin/env python3
"""Runs the program that finds out what is kept after many calls: see kept_memory.c.

usage: kept_memory.py COMPONENT-FOLDER PROGRAM RANKS
"""

import sys

import mpirun


def main():
    folder, program, ranks = sys.argv[1:]
    checks = mpirun.Checks()
    for helped in ("never", "always"):  # Helped runs have rooms of their own.
        job = mpirun.Launcher(folder).run(
            int(ranks), [program],
            {"coll_ucg_verbose": "1", "coll_ucg_help_peers": helped}, timeout=90)
        checks.expect(job.status == 0 and "kept memory ok" in job.output,
                      f"help_peers {helped}: status {job.status}\n{job.output[-3000:]}")
        counters = mpirun.counters(job.output)
        for name, least in (("iallgather", 600), ("iallreduce", 600), ("allgather", 200)):
            checks.expect(counters.get(name, (0, 0))[0] >= least, f"{name}: {counters.get(name)}")
    checks.end()


main()
