#!/usr/bin/env python3
"""Compares the neighbourhood collectives under UCG with those of Open MPI's own components.

usage: neighbors.py [--form nonblocking|persistent] --reference FOLDER COMPONENT-FOLDER PROGRAM
                    RANKS...

The program calls them over Cartesian topologies of one to three dimensions, graphs and distributed
graphs, and writes a digest of all memory that a call may have written. With a form it calls them so
under UCG, and blocking under Open MPI, whose nonblocking ones take the wrong block in periodic
dimensions of one and two. UCG must serve every call but those blocking ones of graphs that a
process may leave out.
"""

import argparse
import itertools
import tempfile

import mpirun

CALLS = [f"neighbor_{name}" for name in ("allgather", "allgatherv", "alltoall", "alltoallv",
                                          "alltoallw")]
# Where counts are zero, Open MPI returns from these functions without calling a component.
LEFT_OUT = ["neighbor_allgather", "neighbor_alltoall"]
NAMES = {None: "{}", "nonblocking": "i{}", "persistent": "{}_init"}


def lines(prefix, rank):
    with open(f"{prefix}.{rank}", encoding="ascii") as stream:
        return stream.read().splitlines()


def output_of(checks, job, ranks):
    """The output of a job; None if it failed."""
    good = checks.expect(job.status == 0, f"{ranks} ranks: status {job.status}\n"
                                          + job.output[-4000:])
    return job.output if good else None


def run(checks, launcher, program, ranks, prefix, form):
    """The output of a run under UCG, or None."""
    environment = {"DIFFERENTIAL_FORM": form} if form is not None else {}
    return output_of(checks, launcher.run(ranks, [program, prefix], {"coll_ucg_verbose": "1"},
                                          timeout=600, environment=environment), ranks)


def check_counters(checks, ranks, output, form):
    """Every function of the form was called, and no call of any form was passed on that need not
    be."""
    names = {NAMES[form].format(name) for name in CALLS}
    counted = {name: value for name, value in mpirun.counters(output).items()
               if "neighbor_" in name}
    checks.expect(set(counted) == names, f"{ranks} ranks: called {sorted(counted)}")
    checks.expect(all(taken > 0 and (passed > 0) == (name in LEFT_OUT)
                      for name, (taken, passed) in counted.items()),
                  f"{ranks} ranks: passed on: {counted}")


def compare(checks, launcher, reference, ranks, folder, form):
    theirs, ours = reference.prefix(ranks), f"{folder}/ours{ranks}"
    if output_of(checks, reference.run(ranks, 600), ranks) is None:
        return
    output = run(checks, launcher, reference.program, ranks, ours, form)
    if output is None:
        return
    if ranks > 1:
        check_counters(checks, ranks, output, form)
    for rank in range(ranks):
        wrong = [f"{mine} is not {other}" for mine, other
                 in itertools.zip_longest(lines(ours, rank), lines(theirs, rank))
                 if mine != other]
        checks.expect(not wrong, f"{ranks} ranks, rank {rank}: {len(wrong)} cases differ: "
                                 + "; ".join(wrong[:5]))
    print(f"{ranks} ranks: {len(lines(ours, 0))} cases on rank 0", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", choices=["nonblocking", "persistent"])
    parser.add_argument("--reference", metavar="FOLDER", required=True)
    parser.add_argument("component")
    parser.add_argument("program")
    parser.add_argument("ranks", nargs="+", type=int)
    given = parser.parse_args()
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(given.component)
    reference = mpirun.Reference(launcher, given.program, given.reference)
    with tempfile.TemporaryDirectory() as folder:
        for count in given.ranks:
            compare(checks, launcher, reference, count, folder, given.form)
    checks.end()


if __name__ == "__main__":
    main()
