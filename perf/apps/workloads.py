"""The programs that perf/apps/programs runs: Debian's programs, their inputs, and how their results
are read.

Inputs are made from the files in inputs/: words between "@" are parameters. Every run has a folder
of its own.
"""

import glob
import itertools
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field

from measure import ROOT, Wrong

INPUTS = os.path.join(ROOT, "perf", "apps", "inputs")
HPCC_INPUT = os.path.join(ROOT, "test", "mpi", "hpccinf.txt.in")
PSEUDOPOTENTIALS = "/usr/share/espresso/pseudo"
NUMBER = r"-?\d+\.?\d*(?:[eEdD][+-]?\d+)?"


@dataclass
class Workload:
    """A program and an input for it."""

    name: str
    about: str
    program: str  # A command, or a path below the build directory.
    packages: list  # Debian's packages that have the program and the data that it reads.
    arguments: list
    prepare: Callable  # (folder, ranks, parameters): writes the input.
    parameters: dict
    smoke: dict  # The parameters of a short run.
    result: Callable  # (output, folder): {quantity: value}; empty unless it ran to its end.
    # How far a value may be from that of another run, relative to it; if it is below 1, absolutely.
    tolerance: float = 0
    needs: list = field(default_factory=list)  # Files that must exist besides the program.
    # Parameters that differ with several threads: where threads and polling ranks share cores, a
    # run takes tens of times as long.
    threaded: dict = field(default_factory=dict)
    from_build: bool = False

    def parameters_for(self, threads, smoke):
        if smoke:
            return self.smoke
        return {**self.parameters, **(self.threaded if threads > 1 else {})}

    def find(self, build):
        """The program's path; raises Wrong with a message that says what is missing."""
        if self.from_build:
            path = os.path.join(build, self.program)
            if not os.path.exists(path):
                raise Wrong(f"no {path}: build first, or name --build")
            return path
        path = shutil.which(self.program)
        missing = [] if path else [self.program]
        missing += [name for name in self.needs if not os.path.exists(name)]
        if missing:
            raise Wrong(f"no {' and no '.join(missing)}; install {', '.join(self.packages)} by "
                        "tools/packages apps")
        return path


def fill(template, values):
    """The text of the file `template` with all parameters filled in."""
    with open(template, encoding="ascii") as stream:
        text = stream.read()
    return re.sub(r"@(\w+)@", lambda match: str(values[match.group(1)]), text)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="ascii") as stream:
        stream.write(text)


def from_templates(*names):
    """A `prepare` for inputs that depend only on their parameters."""
    def prepare(folder, _ranks, parameters):
        for name in names:
            write(folder, name, fill(os.path.join(INPUTS, name), parameters))
    return prepare


def value_of(text, pattern):
    """The last number that `pattern` finds; None if it finds none."""
    found = re.findall(pattern, text)
    return float(re.sub("[dD]", "e", found[-1])) if found else None


def energy_of(output, pattern, end):
    """The energy that a program prints, which writes `end` when it has come to its end."""
    energy = value_of(output, pattern)
    return {"energy": energy} if energy is not None and re.search(end, output) else {}


# ---- LAMMPS

def thermodynamics(output, _folder):
    """LAMMPS's table of the last run: {"step N, column": value}."""
    if "Total wall time" not in output:
        return {}
    table = re.search(r"^(Step .*)\n((?:\s+[-\d].*\n)+)", output, re.MULTILINE)
    if not table:
        return {}
    columns = table.group(1).split()[1:]
    rows = [line.split() for line in table.group(2).splitlines()]
    return {f"step {row[0]}, {column}": float(value)
            for row in rows for column, value in zip(columns, row[1:])}


# ---- water, for programs that compute molecules

def water(molecules_per_edge, spacing):
    """Lines "element x y z" of a cube of water molecules, in angstrom; every other molecule is
    turned."""
    lines = []
    for cell in itertools.product(range(molecules_per_edge), repeat=3):
        x, y, z = (0.6 + spacing * i for i in cell)
        height = 0.586 if sum(cell) % 2 else -0.586
        lines += [f"O {x:.3f} {y:.3f} {z:.3f}", f"H {x + 0.757:.3f} {y + height:.3f} {z:.3f}",
                  f"H {x - 0.757:.3f} {y + height:.3f} {z:.3f}"]
    return lines


def prepare_cp2k(folder, ranks, parameters):
    edge, spacing = parameters["MOLECULES_PER_EDGE"], 3.1
    values = {"ATOMS": "\n".join(water(edge, spacing)), "EDGE": max(edge * spacing, 5),
              **parameters}
    from_templates("water.cp2k")(folder, ranks, values)


def prepare_nwchem(folder, ranks, parameters):
    atoms = water(2, 3.1)[:3 * parameters["MOLECULES"]]
    from_templates("water.nwchem")(folder, ranks, {"ATOMS": "\n".join(atoms), **parameters})


# ---- HPC Challenge

def prepare_hpcc(folder, ranks, parameters):
    rows = max(p for p in range(1, ranks + 1) if ranks % p == 0 and p * p <= ranks)
    values = {"P": rows, "Q": ranks // rows, **parameters}
    write(folder, "hpccinf.txt", fill(HPCC_INPUT, values))


def hpcc_verdicts(_output, folder):
    """The program's own verdicts, except that of RandomAccess: it drops updates that come late,
    with any library."""
    path = os.path.join(folder, "hpccoutf.txt")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="ascii", errors="replace") as stream:
        report = stream.read()
    error = value_of(report, rf"MPIFFT_maxErr=({NUMBER})")
    if "End of HPC Challenge tests" not in report or error is None:
        return {}
    return {
        "passed": sum(map(int, re.findall(r"(\d+) tests completed and passed", report))),
        "failed": sum(map(int, re.findall(r"(\d+) tests completed and failed", report))),
        "FFT is right": float(0 <= error < 1e-12),
    }


# ---- start-up

def barrier_done(output, _folder):
    ranks = value_of(output, r"one barrier of (\d+) ranks")
    return {"ranks": ranks} if ranks else {}


START_UP = Workload(
    "start_up", "starts, calls MPI_Barrier once, and ends", "perf/apps/one_barrier", [], [],
    from_templates(), {}, {}, barrier_done, from_build=True)

PROGRAMS = [
    Workload(
        "melt", "LAMMPS: a Lennard-Jones crystal melts; short-range forces", "lmp", ["lammps"],
        ["-in", "melt.lammps", "-log", "none"], from_templates("melt.lammps"),
        {"CELLS": 10, "STEPS": 1500}, {"CELLS": 5, "STEPS": 50}, thermodynamics, tolerance=1e-6),
    Workload(
        "pppm", "LAMMPS: water with long-range charges (PPPM), SHAKE, a barostat", "lmp",
        ["lammps"], ["-in", "water.lammps", "-log", "none"],
        from_templates("water.lammps", "water.molecule"),
        {"CELLS": 8, "STEPS": 400}, {"CELLS": 7, "STEPS": 10}, thermodynamics, tolerance=1e-6),
    Workload(
        "qe", "Quantum ESPRESSO (pw.x): eight atoms of silicon, self-consistent", "pw.x",
        ["quantum-espresso", "quantum-espresso-data"], ["-in", "silicon.pw"],
        from_templates("silicon.pw"),
        {"CUTOFF": 24, "GRID": 4, "PSEUDOPOTENTIALS": PSEUDOPOTENTIALS},
        {"CUTOFF": 8, "GRID": 1, "PSEUDOPOTENTIALS": PSEUDOPOTENTIALS},
        lambda output, _: energy_of(output, rf"!\s+total energy\s+=\s+({NUMBER})", "JOB DONE"),
        tolerance=1e-8, needs=[os.path.join(PSEUDOPOTENTIALS, "Si.pz-vbc.UPF")]),
    Workload(
        "cp2k", "CP2K: eight molecules of water by density functional theory, MPI and OpenMP",
        "cp2k.psmp", ["cp2k", "cp2k-data"], ["water.cp2k"], prepare_cp2k,
        {"MOLECULES_PER_EDGE": 2, "CUTOFF": 240}, {"MOLECULES_PER_EDGE": 1, "CUTOFF": 120},
        lambda output, _: energy_of(
            output, rf"ENERGY\| Total FORCE_EVAL .*:\s+({NUMBER})",
            r"SCF run converged[\s\S]*PROGRAM ENDED"),
        tolerance=1e-8, needs=["/usr/share/cp2k/GTH_BASIS_SETS"],
        threaded={"MOLECULES_PER_EDGE": 1}),
    Workload(
        "nwchem", "NWChem: SCF of water with Global Arrays, which are MPI windows", "nwchem",
        ["nwchem", "nwchem-data", "nwchem-openmpi"], ["water.nwchem"], prepare_nwchem,
        {"MOLECULES": 6, "BASIS": "6-31g*"}, {"MOLECULES": 1, "BASIS": "sto-3g"},
        lambda output, _: energy_of(output, rf"Total SCF energy =\s+({NUMBER})", "Total times"),
        tolerance=1e-8, needs=["/usr/share/nwchem/libraries"]),
    Workload(
        "hpcc", "HPC Challenge: HPL, PTRANS, RandomAccess, FFT, latencies and bandwidths", "hpcc",
        ["hpcc"], [], prepare_hpcc, {"N": 2000}, {"N": 200}, hpcc_verdicts),
]


# ---- threads

def openmp_blas():
    """The folder of Debian's BLAS that runs OpenMP threads; None where it is not installed."""
    found = glob.glob("/usr/lib/*/openblas-openmp/libblas.so.3")
    return os.path.dirname(found[0]) if found else None
