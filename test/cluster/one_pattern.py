#!/usr/bin/env python3
"""A floating-point allreduce always gives the same bits: for one placement, or, with
UCG_REPRODUCIBLE=placement, for all placements of the same ranks. This holds for blocking and
nonblocking calls of the library, and for MPI_Allreduce under the component.

usage: one_pattern.py COMPONENT-FOLDER ONE_PATTERN-PROGRAM
Runs on a host of a cluster (on_hosts.sh) of at least 7 hosts, n0 .. n6.
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))

import mpirun  # noqa: E402 (found by the line above)

WAYS = ("ucg_coll_run", "ucg_coll_start", "MPI_Allreduce")
LINE = re.compile(r"^(\w+) 10 runs, (\d+) ranks on (\d+) hosts: ([0-9a-f]{16})$", re.MULTILINE)

# By number of ranks: the hosts that the job is to span, and the options by which mpirun does so.
PLACEMENTS = {
    7: [(1, ["--host", "n0:7", "--bind-to", "none"]),
        (1, ["--host", "n0:7", "--bind-to", "core:overload-allowed"]),
        (2, ["--host", "n0:3,n1:4", "--bind-to", "none"]),
        (7, ["--host", ",".join(f"n{host}:1" for host in range(7))])],
    12: [(1, ["--host", "n1:12", "--bind-to", "none"]),
         (2, ["--host", "n0:6,n1:6", "--map-by", "node"]),
         (2, ["--host", "n0:6,n1:6", "--map-by", "slot", "--bind-to", "core:overload-allowed"]),
         (7, ["--host", ",".join(f"n{host}:2" for host in range(7)), "--map-by", "node"])],
}


def patterns(launcher, checks, program, ranks, placement, setting):
    """{way of calling: bit pattern} of one placement."""
    hosts, options = placement
    what = f"{ranks} ranks, {' '.join(options)}, UCG_REPRODUCIBLE={setting}"
    job = launcher.execute(
        ["mpirun", "-n", str(ranks), *options, "--mca", "coll_ucg_priority", "90",
         "-x", "UCG_REPRODUCIBLE", program], timeout=120,
        environment={"UCG_REPRODUCIBLE": setting})
    lines = {way: (int(ranks), int(hosts), pattern)
             for way, ranks, hosts, pattern in LINE.findall(job.output)}
    expected = {way: (ranks, hosts) for way in WAYS}
    found = {way: line[:2] for way, line in lines.items()}
    checks.expect(job.status == 0 and found == expected,
                  f"{what}: status {job.status}, expected {expected}:\n{job.output[-3000:]}")
    result = {line[2] for line in lines.values()}
    checks.expect(len(result) <= 1, f"{what}: ways of calling differ:\n{lines}")
    return result


def main(folder, program):
    launcher = mpirun.Launcher(folder)
    checks = mpirun.Checks()
    for ranks, placements in PLACEMENTS.items():
        everywhere, here = set(), set()
        for placement in placements:
            everywhere |= patterns(launcher, checks, program, ranks, placement, "placement")
            here |= patterns(launcher, checks, program, ranks, placement, "n")
        checks.expect(len(everywhere) == 1,
                      f"{ranks} ranks, UCG_REPRODUCIBLE=placement: {sorted(everywhere)}")
        print(f"{ranks} ranks, {len(placements)} placements: {len(everywhere)} pattern where asked "
              f"for, else {len(here)}")
    checks.end()


main(*sys.argv[1:])
