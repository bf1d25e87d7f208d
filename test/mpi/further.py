#!/usr/bin/env python3
"""Runs the program with MPI functions that the other programs do not call: see further.c.

usage: further.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import sys

import mpirun

PARTS = ["edges", "create_group", "attributes", "finalize", "completions"]


def check_reasons(checks, launcher, program):
    """Each reason to go without UCG is told, also after another one."""
    other = mpirun.on_ranks([2], {"OMPI_MCA_coll_ucg_setup_after": "3"}, [program, "halves"])
    job = launcher.run(3, other, {"coll_ucg_tls": "pigeons"})
    told = [job.output.count(text) for text in
            ("rank 2 has other parameters that choose collectives",
             "(2 processes) uses Open MPI's other collectives")]
    checks.expect(job.status == 0 and "halves ok" in job.output and told == [1, 1],
                  f"two reasons: told {told}\n{job.output[-3000:]}")


def check_parameter(checks, launcher, program):
    """Tools see what the user has set, although reproducible results overrule it."""
    job = launcher.run(2, [program, "parameter"], {"coll_ucg_setup_after": "7"},
                       environment={"UCG_REPRODUCIBLE": "placement"})
    checks.expect(job.status == 0 and "coll_ucg_setup_after is 7" in job.output,
                  f"the parameter: {job.output[-3000:]}")


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for part in PARTS:
        for count in map(int, ranks):
            job = checks.run_part(launcher, [program, part], part, count,
                                  f"{part} on {count} ranks", None)
            checks.expect(part != "finalize" or "used at the end" in job.output,
                          f"{part} on {count} ranks:\n{job.output[-3000:]}")
    check_reasons(checks, launcher, program)
    check_parameter(checks, launcher, program)
    checks.end()


main()
