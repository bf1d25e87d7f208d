#!/usr/bin/env python3
"""A topology file is used if it holds all hosts of the job. Otherwise no rank uses it, and one line
says which file, which host and why.

usage: topology_hosts.py COMPONENT-FOLDER LIFECYCLE-PROGRAM
Runs on a host of a cluster (on_hosts.sh) of at least 3 hosts.
"""

import os
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))

import mpirun  # noqa: E402 (found by the line above)

HOSTS = 3
GROUP = re.compile(r"MPI_COMM_WORLD: rank \d of 3 on 3 hosts(?:, .*)?, switches (\w+)")
COMPLAINT = re.compile(r"warning: [^\n]*All ranks do without[^\n]*")

CASES = {
    "all hosts": ("SwitchName=s0 Nodes=n[0-2]", "known", None),
    "more than the job": ("SwitchName=s0 Switches=s[1-2]\nSwitchName=s1 Nodes=n[0-1],x\n"
                          "SwitchName=s2 Nodes=n[2-9]", "known", None),
    "a host is missing": ("SwitchName=s0 Nodes=n[0-1],n7", "unknown",
                          r"topology\.conf: host 'n2' of rank 2 is not in it"),
    "malformed": ("# One.\nSwitchName=s0 Hosts=n[0-2]", "unknown",
                  r"topology\.conf: line 2: unknown key 'Hosts'"),
    "blocks": ("BlockName=b0 Nodes=n[0-2]\nBlockSizes=4", "unknown",
               r"topology\.conf: line 1: 'BlockName' is of Slurm's plugin topology/block"),
    "not there": (None, "unknown", r"topology\.conf: cannot read the topology: No such file"),
}


def main(folder, program):
    launcher = mpirun.Launcher(folder)
    checks = mpirun.Checks()
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "topology.conf")
        for name, (text, known, complaint) in CASES.items():
            if text is not None:
                pathlib.Path(path).write_text(text + "\n", encoding="utf-8")
            elif os.path.exists(path):
                os.remove(path)
            job = launcher.execute(
                ["mpirun", "-N", "1", "-np", str(HOSTS), "-x", "UCG_LOG_LEVEL", "--mca",
                 "coll_ucg_topology", path, program, "use"],
                environment={"UCG_LOG_LEVEL": "info"}, timeout=120)
            told = GROUP.findall(job.output)
            checks.expect(job.status == 0 and told == [known] * HOSTS,
                          f"{name}: status {job.status}, {told}\n{job.output[-3000:]}")
            lines = COMPLAINT.findall(job.output)
            checks.expect(len(lines) == (0 if complaint is None else 1) and
                          all(re.search(complaint, line) for line in lines),
                          f"{name}: {lines}")
    checks.end()


main(*sys.argv[1:])
