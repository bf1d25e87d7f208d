#!/usr/bin/env python3
"""Counts what a communicator costs that has made a few short collectives, and prints it.

usage: communicators.py COMPONENT-FOLDER COMMBENCH RANKS...
"""

import re
import sys

import mpirun

KIB_MAX = 64


def check(checks, launcher, program, ranks):
    job = launcher.run(ranks, [program, "--cycles", "20", "--repetitions", "3", "--live", "16"])
    print(job.output, flush=True)
    checks.expect(job.status == 0, f"status {job.status} on {ranks} ranks")
    found = re.search(r"([\d.]+) KiB of shared files, ([\d.]+) KiB of private", job.output)
    if checks.expect(found is not None, "commbench said nothing of memory"):
        for what, kib in zip(["shared", "private"], found.groups()):
            checks.expect(float(kib) < KIB_MAX,
                          f"{kib} KiB of {what} memory per rank and communicator, {ranks} ranks")


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for count in ranks:
        check(checks, launcher, program, int(count))
    checks.end()


main()
