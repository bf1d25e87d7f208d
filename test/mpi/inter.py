#!/usr/bin/env python3
"""Collectives on inter-communicators under UCG, which must serve all that it can.

usage: inter.py COMPONENT-FOLDER PROGRAM RANKS:ONE-SIDE...

The program checks the results itself. It also runs with threads that make their groups at the same
time, with proofs of all plans, with UCG from the 17th call of each communicator on, with
MPI_Comm_idup at the same time before that, and with a rank that has no UCG, so that no rank uses
it.
"""

import argparse

import mpirun


def run(checks, launcher, ranks, program, mca=None, environment=None):
    """The output of a run, or None."""
    job = launcher.run(ranks, program, mca, timeout=300, environment=environment)
    good = job.status == 0 and "inter ok" in job.output
    checks.expect(good, f"{ranks} ranks, {' '.join(program[-2:])}: status {job.status}\n"
                        + job.output[-4000:])
    return job.output if good else None


def check_earned(checks, launcher, program):
    """The first calls of a communicator go to Open MPI's own components."""
    output = run(checks, launcher, 3, [program, "1", "plain"],
                 {"coll_ucg_setup_after": "16", "coll_ucg_verbose": "1"})
    if output is not None:
        counted = mpirun.counters(output)["alltoallw"]
        checks.expect(counted[0] > 0 and counted[1] > 0, f"alltoallw, served and not: {counted}")
    for ranks, one_side in ((4, "2"), (5, "2")):
        run(checks, launcher, ranks, [program, one_side, "idup"], {"coll_ucg_setup_after": "16"})


def check_without(checks, launcher, program):
    """A process on one side has no UCG."""
    for rank in (0, 2):
        command = mpirun.on_ranks([rank], {"OMPI_MCA_coll": "^ucg"}, [program, "1", "plain"])
        output = run(checks, launcher, 3, command, {"coll_ucg_verbose": "1"})
        if output is not None:
            counted = mpirun.counters(output)
            checks.expect("alltoallw" not in counted, f"rank {rank} has no UCG, others: {counted}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("component")
    parser.add_argument("program")
    parser.add_argument("sides", nargs="+")
    given = parser.parse_args()
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(given.component)
    for sides in given.sides:
        ranks, one_side = sides.split(":")
        run(checks, launcher, int(ranks), [given.program, one_side, "counted"])
        run(checks, launcher, int(ranks), [given.program, one_side, "threads"])
        run(checks, launcher, int(ranks), [given.program, one_side, "counted"],
            environment={"UCG_VERIFY": "y"})
        print(f"{one_side} + {int(ranks) - int(one_side)} processes", flush=True)
    check_earned(checks, launcher, given.program)
    check_without(checks, launcher, given.program)
    checks.end()


if __name__ == "__main__":
    main()
