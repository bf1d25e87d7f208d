#!/usr/bin/env python3
"""Counts and prints the memory of a communicator that has run a few short collectives; and checks
that many communicators can share memory.

usage: communicators.py COMPONENT-FOLDER COMMBENCH RANKS...
"""

import re
import sys

import mpirun

# The limits in KiB beyond what Open MPI alone takes: one part at first, and one for each rank. Each
# is somewhat above what was measured with 2 to 16 ranks.
KIB_MAX = {"shared files": (12, 2.0), "private memory": (14, 1.0), "page tables": (2, 0.8)}


def count(checks, launcher, program, ranks, mca=None):
    """The KiB per rank and communicator, by kind of memory."""
    job = launcher.run(ranks, [program, "--cycles", "20", "--repetitions", "3", "--live", "16"],
                       mca)
    print(job.output, flush=True)
    checks.expect(job.status == 0, f"status {job.status} on {ranks} ranks")
    found = {what: re.search(rf"([\d.]+) KiB of {what}", job.output) for what in KIB_MAX}
    if not checks.expect(all(found.values()), "commbench said nothing of memory"):
        return dict.fromkeys(KIB_MAX, 0.0)
    return {what: float(match.group(1)) for what, match in found.items()}


def check(checks, launcher, program, ranks):
    alone = count(checks, launcher, program, ranks, {"coll": "^ucg"})
    with_ucg = count(checks, launcher, program, ranks)
    for what, (first, each) in KIB_MAX.items():
        more = with_ucg[what] - alone[what]
        checks.expect(more < first + each * ranks,
                      f"{more:.1f} KiB of {what} per rank and communicator, {ranks} ranks")


def check_many(checks, launcher, program):
    """There are so many communicators that none could have as much address space as few have;
    all share memory."""
    ranks, live, heap_mib, mib_of_few = 4, 600, 256, 0.9
    checks.expect(live * mib_of_few > 2 * heap_mib, "that is room for all")
    job = launcher.run(ranks, [program, "--cycles", "1", "--repetitions", "1", "--live", str(live)],
                       environment={"UCG_HEAP_SIZE": f"{heap_mib}M", "UCG_LOG_LEVEL": "info"})
    made = re.findall(r": rank 0 of \d+ on 1 hosts, shared memory (\w+), .* ucx (\w+),", job.output)
    checks.expect(job.status == 0, f"status {job.status} with {live} communicators")
    checks.expect(len(made) > live and set(made) == {("on", "off")},
                  f"{len(made)} groups, shared memory and ucx: {set(made)}")


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for count in ranks:
        check(checks, launcher, program, int(count))
    check_many(checks, launcher, program)
    checks.end()


main()
