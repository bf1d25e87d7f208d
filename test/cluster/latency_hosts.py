#!/usr/bin/env python3
"""Where messages between hosts take far longer than usual, all ranks of a communicator plan by that
from its start on; elsewhere they plan by the usual time.

Messages take longer than their links do where other programs use the processors: ranks must agree
in every start, slow links must look slow in every one, and usual ones usual in some start.

usage: latency_hosts.py slow|usual COMPONENT-FOLDER LIFECYCLE-PROGRAM
Runs on a host of a cluster (on_hosts.sh) of at least 3 hosts, whose links have a latency of 1 ms if
they are slow.
"""

import collections
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))

import mpirun  # noqa: E402 (found by the line above)

HOSTS = 3  # The last host has no other one that it can time messages with.
STARTS = 5
STARTS_MAX = 40  # So many until one is undisturbed.
LINE = re.compile(r": rank \d of 3 on 3 hosts.* network (.*), switches", re.MULTILINE)
USUAL = "one_kernel"
SLOW = re.compile(re.escape(USUAL) + r" with messages of (\d+) us")
SLOW_US = 1000  # A message crosses two links of 1 ms, and times are listed as powers of ten.


def network(launcher, checks, program, settings):
    """The network that the groups of all ranks of a start report, which must be the same."""
    job = launcher.execute(
        ["mpirun", "-N", "1", "-np", str(HOSTS), *(w for name in settings for w in ("-x", name)),
         program, "use"], environment=settings, timeout=120)
    checks.expect(job.status == 0, f"status {job.status}\n{job.output[-3000:]}")
    found = LINE.findall(job.output)
    agreed = len(set(found)) == 1 and len(found) % HOSTS == 0
    checks.expect(agreed, f"{settings}: {found}\n{job.output[-3000:]}")
    return found[0] if agreed else None


def check_slow(found, checks):
    for start in found:
        match = SLOW.fullmatch(start or "")
        checks.expect(match and int(match[1]) >= SLOW_US, f"slow links, but {start}")


def check_usual(found, checks):
    for start in found:
        checks.expect(start == USUAL or SLOW.fullmatch(start or ""), f"usual links, but {start}")
    checks.expect(USUAL in found, f"usual links, which look slow in all of {len(found)} starts")


def main(links, folder, program):
    launcher = mpirun.Launcher(folder)
    checks = mpirun.Checks()
    known = {"UCG_LOG_LEVEL": "info"}
    found = [network(launcher, checks, program, known) for _ in range(STARTS)]
    while (links == "usual" and USUAL not in found and checks.failures == 0
           and len(found) < STARTS_MAX):
        found.append(network(launcher, checks, program, known))
    for start, times in collections.Counter(found).most_common():
        print(f"{links}: {times} of {len(found)} starts: {start}")
    {"slow": check_slow, "usual": check_usual}[links](found, checks)
    fixed = network(launcher, checks, program, {**known, "UCG_REPRODUCIBLE": "placement"})
    checks.expect(fixed == USUAL, f"reproducible, {links}: {fixed}")
    checks.end()


main(*sys.argv[1:])
