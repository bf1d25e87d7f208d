#!/usr/bin/env python3
"""ucg_perftest between hosts compares collectives with what the links between the hosts allow.

usage: perftest_hosts.py UCG-PERFTEST
Runs on a host of a cluster (on_hosts.sh) of at least 2 hosts.
"""

import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))

import mpirun  # noqa: E402 (found by the line above)


def main(program):
    launcher = mpirun.Launcher("")
    # The program does not use Open MPI's components.
    del launcher.environment["OMPI_MCA_mca_base_component_path"]
    checks = mpirun.Checks()
    job = launcher.execute(
        ["mpirun", "-N", "1", "--bind-to", "none", "-x", "UCX_TLS=tcp", program,
         "-t", "allreduce", "--sizes", "8,1M", "-n", "20", "-w", "5", "--check", "--json", "-"],
        timeout=120)
    checks.expect(job.status == 0, f"status {job.status}\n{job.output[-3000:]}")
    if job.status == 0:
        short, long = json.loads(job.output[job.output.index("{"):])["results"]
        for row in (short, long):
            limit = row["limit"]
            checks.expect(limit["message_round_trip_us"] > 0 and limit["round_trips"] > 0, limit)
            checks.expect(limit["link_bytes_per_second"] > 0 and limit["link_percent"] > 0, limit)
            checks.expect(limit["least_link_bytes"] == row["size"][0], limit)
    checks.end()


main(*sys.argv[1:])
