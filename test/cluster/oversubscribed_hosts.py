#!/usr/bin/env python3
"""Hosts under one kernel share its processors: their ranks find out that there are more of them
than processors, although each host has fewer ranks than it shows processors.

usage: oversubscribed_hosts.py COMPONENT-FOLDER LIFECYCLE-PROGRAM
Runs on a host of a cluster (on_hosts.sh) of at least 4 hosts.
"""

import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))

import mpirun  # noqa: E402 (found by the line above)

HOSTS = 4
LINE = re.compile(r"MPI_COMM_WORLD: rank \d of 4 on 4 hosts(.*)$", re.MULTILINE)


def main(folder, program):
    launcher = mpirun.Launcher(folder)
    checks = mpirun.Checks()
    cpus = sorted(os.sched_getaffinity(0))
    for chosen in [cpus[:1], cpus[:HOSTS]]:
        oversubscribed = len(chosen) < HOSTS
        allowed = ",".join(map(str, chosen))
        job = launcher.execute(
            ["mpirun", "-N", "1", "--bind-to", "none", "-x", "UCG_LOG_LEVEL",
             "taskset", "-c", allowed, program, "use"],
            environment={"UCG_LOG_LEVEL": "info"}, timeout=120)
        told = LINE.findall(job.output)
        checks.expect(job.status == 0 and len(told) == HOSTS,
                      f"status {job.status}\n{job.output[-3000:]}")
        checks.expect(all(("oversubscribed" in line) == oversubscribed for line in told),
                      f"{HOSTS} ranks on processors {allowed}: {told}")
    checks.end()


main(*sys.argv[1:])
