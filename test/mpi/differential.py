#!/usr/bin/env python3
"""Compares every collective under UCG with the same call under Open MPI's own components.

usage: differential.py [--form nonblocking|persistent] [--heap LIBRARY] [--help-always]
                       [--reference FOLDER] [--without NAMES] COMPONENT-FOLDER PROGRAM RANKS...

The program writes a digest of all memory that a call may have written, call by call and rank by
rank. With a form it calls them so under UCG, and blocking under Open MPI. Digests must be equal,
except for sums that round: those must be equal on all ranks and in two runs, and close to the other
implementation's. With a heap, which is preloaded under UCG, ranks reach one another's buffers.
Functions that UCG is to go without are Open MPI's, which call others that are UCG's. A
folder of reference keeps Open MPI's digests for the other tests that run the program on one host.
"""

import argparse
import os
import tempfile

import mpirun

ROUNDING = 1e-12
# The part of the program that has all cases whose results are rounded.
ROUNDED_PARTS = "reductions"
CALLS = {
    "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier",
    "bcast", "exscan", "gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block",
    "scan", "scatter", "scatterv",
}


def read(prefix, rank):
    """The cases of one rank: {name: fields}."""
    cases = {}
    with open(f"{prefix}.{rank}", encoding="ascii") as stream:
        for line in stream:
            name, *fields = line.rstrip("\n").split("\t")
            cases[name] = fields
    return cases


def compare_rank(checks, rank, ours, theirs):
    """Compares every case of one rank with the other implementation."""
    wrong = []
    for name, fields in ours.items():
        if fields[0] == "verdict":
            good = fields[1] == "ok"
        elif name not in theirs:
            good = False
        elif fields[0] == "exact":
            good = fields == theirs[name]
        else:
            mine, other = float(fields[2]), float(theirs[name][2])
            good = abs(mine - other) <= ROUNDING * max(abs(other), 1.0)
        if not good:
            wrong.append(name)
    wrong += [f"{name} (did not run)" for name in theirs if name not in ours]
    checks.expect(not wrong, f"rank {rank}: {len(wrong)} of {len(ours)} cases differ, first: "
                             + "; ".join(wrong[:8]))


def compare_rounded(checks, ranks, first, second):
    """Sums that are rounded must be equal on all ranks of a communicator, and in both runs."""
    values = {}
    for rank in range(ranks):
        for name, fields in first[rank].items():
            if fields[0] == "rounded":
                values.setdefault(name, set()).add(fields[1])
                checks.expect(second[rank].get(name) == fields,
                              f"rank {rank}: {name} differs from run to run")
    for name, digests in values.items():
        checks.expect(len(digests) == 1, f"{name} differs between ranks")


def run(checks, launcher, program, ranks, prefix, form=None, heap=None, helped=False, parts=None,
        without=()):
    """One run under UCG of all cases, or of some parts. Returns the cases of each rank, or None."""
    mca = {"coll_ucg_verbose": "1"}
    if helped:
        mca["coll_ucg_help_peers"] = "always"
    mca.update({f"coll_ucg_enable_{name}": "0" for name in without})
    environment = {"DIFFERENTIAL_MIXED": "1"}
    if form is not None:
        environment["DIFFERENTIAL_FORM"] = form
    if heap is not None:
        environment["LD_PRELOAD"] = heap
    if parts is not None:
        environment["DIFFERENTIAL_PARTS"] = parts
    job = launcher.run(ranks, [program, prefix], mca, timeout=900, environment=environment)
    return outcome(checks, job, ranks, prefix, True, form, parts, without)


def run_stock(checks, reference, ranks):
    """The cases of each rank under Open MPI's own collectives, or None."""
    return outcome(checks, reference.run(ranks, 900), ranks, reference.prefix(ranks), False)


def check_form(checks, what, job, form):
    """Every function of the form was served, and none of its calls was passed on, except some of
    MPI_Iallreduce: those of one int by MPI_MAX and MPI_MIN are Open MPI's own."""
    names = {f"i{name}" if form == "nonblocking" else f"{name}_init" for name in CALLS}
    counted = mpirun.counters(job.output)
    checks.expect(names <= set(counted), f"{what}: not called: {sorted(names - set(counted))}")
    passed = {name: counted[name] for name in (names & set(counted)) - {"iallreduce"}
              if counted[name][1] > 0}
    checks.expect(not passed, f"{what}: passed on: {passed}")


def outcome(checks, job, ranks, prefix, ucg, form=None, parts=None, without=()):
    """The cases of each rank, or None where the run failed."""
    what = f"{ranks} ranks, {'UCG' if ucg else 'Open MPI'}"
    if not checks.expect(job.status == 0, f"{what}: status {job.status}\n{job.output[-4000:]}"):
        for rank in range(ranks):
            if os.path.exists(f"{prefix}.{rank}"):
                print(f"rank {rank} ended after: {list(read(prefix, rank))[-1:]}")
        return None
    if ucg and ranks > 1 and form is not None:
        check_form(checks, what, job, form)
    elif ucg and ranks > 1 and parts is None:
        served = {name for name, (taken, _) in mpirun.counters(job.output).items() if taken > 0}
        missing = CALLS - set(without) - served
        checks.expect(not missing, f"{what}: not served by UCG: {sorted(missing)}")
        checks.expect(not served & set(without), f"{what}: served: {served & set(without)}")
    return [read(prefix, rank) for rank in range(ranks)]


def compare(checks, launcher, program, ranks, folder, given):
    reference = mpirun.Reference(launcher, program, given.reference or folder)
    theirs = run_stock(checks, reference, ranks)
    ours = run(checks, launcher, program, ranks, f"{folder}/ours{ranks}", given.form, given.heap,
               given.help_always, without=given.without)
    if theirs is None or ours is None:
        return
    for rank in range(ranks):
        compare_rank(checks, rank, ours[rank], theirs[rank])
    if 1 < ranks <= 5 and given.form is None:
        again = run(checks, launcher, program, ranks, f"{folder}/again{ranks}", heap=given.heap,
                    parts=ROUNDED_PARTS, without=given.without)
        if again is not None:
            compare_rounded(checks, ranks, ours, again)
    print(f"{ranks} ranks: {len(ours[0])} cases on rank 0", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", choices=["nonblocking", "persistent"])
    parser.add_argument("--heap", type=os.path.abspath)
    parser.add_argument("--help-always", action="store_true")
    parser.add_argument("--reference", metavar="FOLDER", type=os.path.abspath)
    parser.add_argument("--without", metavar="NAMES", default=[],
                        type=lambda names: names.split(","))
    parser.add_argument("component")
    parser.add_argument("program")
    parser.add_argument("ranks", nargs="+", type=int)
    given = parser.parse_args()
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(given.component)
    with tempfile.TemporaryDirectory() as folder:
        for count in given.ranks:
            compare(checks, launcher, given.program, count, folder, given)
    checks.end()


if __name__ == "__main__":
    main()
