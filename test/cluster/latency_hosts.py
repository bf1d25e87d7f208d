#!/usr/bin/env python3
"""Where messages between hosts take far longer than usual, all ranks of a communicator plan by that
from its start on; elsewhere they plan by the usual time.

usage: latency_hosts.py slow|usual COMPONENT-FOLDER LIFECYCLE-PROGRAM
Runs on a host of a cluster (on_hosts.sh) of at least 3 hosts, whose links have a latency of 1 ms if
they are slow.
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))

import mpirun  # noqa: E402 (found by the line above)

HOSTS = 3  # The last host has no other one that it can time messages with.
STARTS = 5
LINE = re.compile(r": rank \d of 3 on 3 hosts.* network (.*), switches", re.MULTILINE)
EXPECTED = {"slow": "one_kernel with messages of 1000 us", "usual": "one_kernel"}


def networks(launcher, checks, program, settings):
    """The networks that the groups of all ranks report."""
    job = launcher.execute(
        ["mpirun", "-N", "1", "-np", str(HOSTS), *(w for name in settings for w in ("-x", name)),
         program, "use"], environment=settings, timeout=120)
    checks.expect(job.status == 0, f"status {job.status}\n{job.output[-3000:]}")
    found = LINE.findall(job.output)
    checks.expect(found and len(found) % HOSTS == 0, f"{settings}: {job.output[-3000:]}")
    return set(found)


def main(links, folder, program):
    launcher = mpirun.Launcher(folder)
    checks = mpirun.Checks()
    known = {"UCG_LOG_LEVEL": "info"}
    for _ in range(STARTS):
        found = networks(launcher, checks, program, known)
        checks.expect(found == {EXPECTED[links]}, f"{links}: {found}")
    found = networks(launcher, checks, program, {**known, "UCG_REPRODUCIBLE": "placement"})
    checks.expect(found == {EXPECTED["usual"]}, f"reproducible, {links}: {found}")
    checks.end()


main(*sys.argv[1:])
