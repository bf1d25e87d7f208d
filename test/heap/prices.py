#!/usr/bin/env python3
"""The costs of algorithms are the same in a program and in ucg_plan --unbound for the same facts:
buffers in the shared heap and outside it, ranks that have a CPU each and ranks that share CPUs.

usage: prices.py LIBRARY PROGRAM UCG_PLAN PROFILE
"""

import json
import os
import subprocess
import sys

LIBRARY, PROGRAM, PLAN, PROFILE = sys.argv[1:]


def run(command, **environment):
    # The profile is marked as measured, so no process measures at its start how fast the kernel
    # copies.
    done = subprocess.run(command, env={**os.environ, "UCG_PROFILE": PROFILE, **environment},
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        sys.exit(f"{command}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def in_a_program(ranks, collective, size, preload):
    lines = run([PROGRAM, str(ranks), collective, str(size)],
                **({"LD_PRELOAD": LIBRARY} if preload else {})).splitlines()
    return [line.split()[:2] for line in lines[1:]]


def in_the_tool(ranks, collective, size, preload):
    said = json.loads(run([PLAN, "explain", "--unbound", "--nonblocking", "--format", "json",
                           "--ranks", str(ranks), "--collective", collective, "--bytes", str(size),
                           *(["--shared-heap"] if preload else [])]))
    return [[row["algorithm"], f"{row['predicted_ns']:.0f}"] for row in said["candidates"]]


def main():
    failures = 0
    for preload in [False, True]:
        for ranks in [2, 3, 8]:
            for collective in ["bcast", "allreduce", "allgather", "alltoall"]:
                for size in [64, 64 << 10, 1 << 20]:
                    call = (ranks, collective, size, preload)
                    program, tool = in_a_program(*call), in_the_tool(*call)
                    if program != tool:
                        failures += 1
                        print(f"FAILED: {call}: a program has\n{program}\nucg_plan has\n{tool}")
    sys.exit(1 if failures else 0)


main()
