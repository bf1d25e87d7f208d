#!/usr/bin/env python3
"""Runs algorithms by levels on machines that are not at hand (UCG_MACHINE), and compares them with
Open MPI's own collectives.

usage: machines.py [--hosts N] COMPONENT-FOLDER PROGRAM UCG_TOPO UCG_PLAN RANKS=MACHINE...

On each MACHINE, hwloc's synthetic description, that many ranks run; with --hosts, which is for a
cluster (on_hosts.sh), on each of N hosts. The planner says which algorithms serve only where such
levels are known and, on one host, which plan otherwise there. Each of them is asked for by name,
every plan is proved before it is used, and each must have been used.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import differential  # noqa: E402 (found by the line above)
import mpirun  # noqa: E402

SIZES = ["8", "1k", "64k"]
# The lengths from which on the second and the third algorithm of a run take over. Cases have
# vectors between these lengths and on both sides of them.
LIMITS = ["64", "4k"]
REDUCTIONS = {"allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"}


class Levels:
    """What the planner does on a machine, according to its tools."""

    def __init__(self, topo, plan, machine, hosts, ranks, folder):
        self.plan = plan
        self.one_host = hosts == 1
        self.places = []
        # Some communicators of the program have their ranks in another order than that of the
        # cores.
        for order in ["core", "package"]:
            self.places.append(f"{folder}/{order}")
            pathlib.Path(self.places[-1]).write_text(
                self.output([topo, "placement", "--synthetic", machine, "--hosts", str(hosts),
                             "--ranks-per-host", str(ranks), "--map", order]), encoding="ascii")
        count = hosts * ranks
        self.unknown = ["--ranks", str(count), "--hosts", str(1 if self.one_host else count)]

    @staticmethod
    def output(command):
        """The tool's output. It is empty where the command fails, since an algorithm does not
        serve there."""
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def schedules(self, collective, algorithm, size, place):
        bytes_each = "0" if collective == "barrier" else size
        return self.output([self.plan, "show", "--collective", collective, "--algorithm", algorithm,
                            "--bytes", bytes_each, *place])

    def eligible(self):
        """Pairs of a collective and an algorithm that serves it, by size."""
        for size in SIZES:
            rows = json.loads(self.output([self.plan, "list", "--placement", self.places[0],
                                           "--bytes", size, "--format", "json"]))
            for row in rows:
                if row["eligible"]:
                    yield size, row["collective"], row["algorithm"]

    def algorithms(self):
        """{collective: algorithms by levels}; first those that serve nowhere else. Across hosts
        flat algorithms plan otherwise, too, since messages between hosts have other prices."""
        nowhere_else, otherwise = {}, {}
        for size, collective, algorithm in self.eligible():
            without = self.schedules(collective, algorithm, size, self.unknown)
            if not without:
                nowhere_else.setdefault(collective, {})[algorithm] = None
            elif self.one_host and any(
                    self.schedules(collective, algorithm, size, ["--placement", place]) != without
                    for place in self.places):
                otherwise.setdefault(collective, {})[algorithm] = None
        return {collective: [*nowhere_else.get(collective, {}), *otherwise.get(collective, {})]
                for collective in {**nowhere_else, **otherwise}}


def parts(collectives):
    """The parts of the program that call these collectives."""
    return {"reductions" if name in REDUCTIONS else "vectors" if name.endswith("v") else "moves"
            for name in collectives}


def by_size(names):
    """The setting that gives each of up to three algorithms sizes of its own."""
    limits = LIMITS if len(names) == 3 else LIMITS[-1:]
    ranges = zip(["0", *limits], [*limits, "inf"])
    return ";".join(f"{low}-{high}:{name}" for (low, high), name in zip(ranges, names))


def turns(algorithms, swap):
    """The settings of each run: first the first algorithm of each collective, then three by
    size. Those of a barrier, which has only one size, each have a run."""
    yield {collective: names[0] for collective, names in algorithms.items()}
    rest = {collective: names[1:] for collective, names in algorithms.items()}
    while any(rest.values()):
        asked = {}
        for collective, names in rest.items():
            taken = names[:1 if collective == "barrier" else 3]
            rest[collective] = names[len(taken):]
            if taken:
                asked[collective] = (by_size(taken[::-1] if swap else taken) if len(taken) > 1
                                     else taken[0])
        yield asked


def cases_of(checks, launcher, program, ranks, prefix, what, environment, mca):
    """Runs the program. Returns the output, and the cases of each rank or None."""
    job = launcher.run(ranks, [program, prefix], mca, timeout=300, environment=environment)
    if not checks.expect(job.status == 0, f"{what}: status {job.status}\n{job.output[-4000:]}"):
        return job.output, None
    return job.output, [differential.read(prefix, rank) for rank in range(ranks)]


def compare(checks, what, ours, theirs):
    for rank, (mine, other) in enumerate(zip(ours, theirs)):
        checks.expect("end" in mine, f"{what}: rank {rank} did not come to the end")
        # Of each part only the cases that it has.
        differential.compare_rank(checks, rank, mine, {name: fields for name, fields in
                                                       other.items() if name in mine})


def check_machine(checks, given, folder, ranks, machine, swap):
    launcher = mpirun.Launcher(given.component)
    count = ranks * given.hosts
    algorithms = Levels(given.topo, given.plan, machine, given.hosts, ranks, folder).algorithms()
    checks.expect(algorithms, f"{machine}: the planner has no algorithms by levels")
    called = {"DIFFERENTIAL_PARTS": ",".join(parts(algorithms))}
    _, theirs = cases_of(checks, launcher, given.program, count, f"{folder}/theirs",
                         f"{machine}, Open MPI", called, {"coll": "^ucg"})
    for asked in turns(algorithms, swap):
        what = f"{given.hosts} x {ranks} ranks on {machine}, {asked}"
        environment = {f"UCG_{name.upper()}": algorithm for name, algorithm in asked.items()}
        environment.update(UCG_MACHINE=machine, UCG_VERIFY="y", UCG_LOG_LEVEL="debug",
                           DIFFERENTIAL_PARTS=",".join(parts(asked)))
        output, ours = cases_of(checks, launcher, given.program, count, f"{folder}/ours", what,
                                environment, {"coll_ucg_verbose": "1"})
        print(what, flush=True)
        if ours is None or theirs is None:
            continue
        compare(checks, what, ours, theirs)
        for collective, text in asked.items():
            for algorithm in {item.split(":")[-1] for item in text.split(";")}:
                used = re.search(rf": {collective} of \d+ bytes by {algorithm}[:\n]", output)
                checks.expect(used, f"{what}: no {collective} by {algorithm}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("component")
    parser.add_argument("program")
    parser.add_argument("topo")
    parser.add_argument("plan")
    parser.add_argument("machines", nargs="+", metavar="RANKS=MACHINE")
    given = parser.parse_args()
    checks = mpirun.Checks()
    for number, machine in enumerate(given.machines):
        ranks, description = machine.split("=", 1)
        with tempfile.TemporaryDirectory() as folder:
            check_machine(checks, given, folder, int(ranks), description, number % 2 == 1)
    checks.end()


if __name__ == "__main__":
    main()
