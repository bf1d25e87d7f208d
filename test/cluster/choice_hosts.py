#!/usr/bin/env python3
"""Where the switches between hosts are known, long alltoalls and alltoallvs go in phases without
contention, and short ones do not. For an alltoallv, whose lengths change, ranks agree on which it
is.

usage: choice_hosts.py COMPONENT-FOLDER ALLTOALL-BLOCKS-PROGRAM
Runs on a host of a cluster (on_hosts.sh) of at least 4 hosts.
"""

import os
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))

import mpirun  # noqa: E402 (found by the line above)

HOSTS = 4
TOPOLOGY = "SwitchName=s0 Nodes=n[0-3] LinkSpeed=10mbit\n"
SHORT, LONG = 8, 65536
CALLS = 70  # This is more than lie between two agreements.
SEED = 7
PLAN = re.compile(r"MPI_COMM_WORLD: (alltoallv?) of (\d+) bytes by ([\w:]+)")


def plans(launcher, checks, program, what, arguments, settings):
    """{(collective, bytes, algorithm)} of the plans; all ranks must have made each equally
    often."""
    job = launcher.execute(
        ["mpirun", "-N", "1", "-np", str(HOSTS), "--mca", "coll_ucg_priority", "90",
         *(word for name in settings for word in ("-x", name)), program, *arguments],
        environment=settings, timeout=120)
    found = PLAN.findall(job.output)
    checks.expect(job.status == 0 and re.search(r"^ok$", job.output, re.MULTILINE),
                  f"{what}: status {job.status}\n{job.output[-3000:]}")
    checks.expect(found and all(found.count(plan) % HOSTS == 0 for plan in found),
                  f"{what}: ranks have not planned alike: {found}")
    return {(collective, int(length), algorithm) for collective, length, algorithm in found}


def by_phases(algorithm):
    """Does the algorithm avoid contention on links, whatever its window is?"""
    return algorithm.split(":")[0] == "aapc"


def main(folder, program):
    launcher = mpirun.Launcher(folder)
    checks = mpirun.Checks()
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "topology.conf")
        pathlib.Path(path).write_text(TOPOLOGY, encoding="utf-8")
        known = {"UCG_LOG_LEVEL": "debug", "UCG_TOPOLOGY": path}
        sizes = f"{SHORT},{LONG}"

        found = plans(launcher, checks, program, "alltoall", [sizes, "2", "1"], known)
        checks.expect({length for _, length, algorithm in found if by_phases(algorithm)} == {LONG},
                      f"alltoall: {found}")

        changing = [f"{LONG},{SHORT},{LONG}", str(CALLS), "1", str(SEED)]
        found = plans(launcher, checks, program, "alltoallv", changing, known)
        checks.expect(any(length > LONG // 4 and by_phases(algorithm)
                          for _, length, algorithm in found), f"long alltoallv: {found}")
        checks.expect(any(length < 4 * SHORT and not by_phases(algorithm)
                          for _, length, algorithm in found), f"short alltoallv: {found}")

        named = [sizes, "2", "1", str(SEED)]
        found = plans(launcher, checks, program, "named", named,
                      {**known, "UCG_ALLTOALLV": "pairwise"})
        checks.expect(found == {("alltoallv", 0, "pairwise")}, f"named: {found}")

        found = plans(launcher, checks, program, "no topology", named,
                      {**known, "UCG_TOPOLOGY": "none"})
        checks.expect(found and all(length == 0 for _, length, _ in found),
                      f"no topology: {found}")
    checks.end()


main(*sys.argv[1:])
