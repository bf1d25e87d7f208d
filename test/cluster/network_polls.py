#!/usr/bin/env python3
"""While a nonblocking collective of one host is in progress, few calls of MPI look at the network;
and the component tells UCX how many processes the job has.

usage: network_polls.py COMPONENT-FOLDER NETWORK_POLLS-PROGRAM
Runs on a host of a cluster (on_hosts.sh) of two hosts.
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))

import mpirun  # noqa: E402 (found by the line above)

LOOKS = re.compile(r"^network_polls: ([0-9.]+) looks for each test$", re.MULTILINE)
ESTIMATE = re.compile(r"ucx: opened for (\d+) processes, ")


def main(folder, program):
    launcher = mpirun.Launcher(folder)
    checks = mpirun.Checks()
    job = launcher.execute(
        ["mpirun", "-n", "4", "--mca", "coll_ucg_priority", "90", "--mca", "pml", "ob1",
         "--mca", "osc", "^ucx", "-x", "UCG_LOG_LEVEL", program], timeout=120,
        environment={"UCG_LOG_LEVEL": "debug"})
    looks = [float(each) for each in LOOKS.findall(job.output)]
    checks.expect(job.status == 0 and len(looks) == 2,
                  f"status {job.status}:\n{job.output[-3000:]}")
    checks.expect(all(0 < each < 0.2 for each in looks),
                  f"looks at the network for each test: {looks}")
    estimates = ESTIMATE.findall(job.output)
    checks.expect(estimates == ["4"] * 4, f"UCX was told of {estimates} processes, not of 4")
    print(f"looks at the network for each test: {looks}")
    checks.end()


main(*sys.argv[1:])
