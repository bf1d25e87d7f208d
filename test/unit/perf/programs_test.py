#!/usr/bin/env python3
"""Tests perf/apps/programs: how it reads results, which results agree, its tables, and what it
leaves out."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import stat
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
PERF = os.path.join(os.path.dirname(os.path.abspath(__file__)), *3 * [".."], "perf")
sys.path[:0] = [PERF, os.path.join(PERF, "apps")]

LOADER = importlib.machinery.SourceFileLoader("programs", os.path.join(PERF, "apps", "programs"))
programs = importlib.util.module_from_spec(importlib.util.spec_from_loader("programs", LOADER))
sys.modules["programs"] = programs  # The dataclasses module looks for their module here.
LOADER.exec_module(programs)

import measure
import workloads
from programs import Case

LAMMPS = """Setting up Verlet run ...
Step Temp TotEng
       0          3.0   -2.2754
      50    1.6842865   -2.2e+00
Loop time of 0.5 on 2 procs
Total wall time: 0:00:01
"""
PW = """     total energy              =     -63.1 Ry
!    total energy              =     -63.32698717 Ry
   JOB DONE.
"""
CP2K = """  *** SCF run converged in    11 steps ***
 ENERGY| Total FORCE_EVAL ( QS ) energy [a.u.]:             -137.304913561054263
  **** **** ******  **  PROGRAM ENDED AT                 2026-11-22
"""
NWCHEM = """         Total SCF energy =    -76.010525255123
 Total times  cpu:        1.9s     wall:       19.8s
"""
HPCC = """5 tests completed and passed residual checks,
0 tests completed and failed residual checks,
1 tests completed and passed residual checks,
0 tests completed and failed residual checks,
MPIFFT_maxErr=1.2e-15
End of HPC Challenge tests.
"""
# Stands for Open MPI's mpirun with a program that prints what it is told: if "ucg" is among its
# words, UCG runs.
MPIRUN = """#!/bin/sh
case "$*" in
*component_path*) test -n "$UCG_BROKEN" && echo "one barrier of 3 ranks" ||
    echo "one barrier of 2 ranks"
    echo "coll/ucg: rank 0 called barrier: 1 by libucg, 0 passed on" >&2;;
*) echo "one barrier of 2 ranks";;
esac
"""


def result(name, output, folder="."):
    return programs.known()[name].result(output, folder)


class Results(unittest.TestCase):
    def test_energies(self):
        self.assertEqual(result("qe", PW), {"energy": -63.32698717})
        self.assertEqual(result("cp2k", CP2K), {"energy": -137.304913561054263})
        self.assertEqual(result("nwchem", NWCHEM), {"energy": -76.010525255123})

    def test_a_program_that_did_not_come_to_its_end_has_no_result(self):
        self.assertEqual(result("qe", PW.replace("JOB DONE", "")), {})
        self.assertEqual(result("cp2k", CP2K.replace("run converged", "run NOT converged")), {})
        self.assertEqual(result("nwchem", NWCHEM.replace("Total times", "")), {})
        self.assertEqual(result("melt", LAMMPS.replace("Total wall time", "")), {})
        self.assertEqual(result("start_up", ""), {})

    def test_every_figure_of_the_thermodynamics(self):
        self.assertEqual(result("melt", LAMMPS),
                         {"step 0, Temp": 3.0, "step 0, TotEng": -2.2754,
                          "step 50, Temp": 1.6842865, "step 50, TotEng": -2.2})

    def test_verdicts_of_hpcc(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(result("hpcc", "", folder), {})
            for report, right in ((HPCC, 1.0), (HPCC.replace("1.2e-15", "-1"), 0.0)):
                with open(os.path.join(folder, "hpccoutf.txt"), "w", encoding="ascii") as stream:
                    stream.write(report)
                self.assertEqual(result("hpcc", "", folder),
                                 {"passed": 6, "failed": 0, "FFT is right": right})


class Differences(unittest.TestCase):
    def test_tolerance_is_relative_and_below_one_absolute(self):
        self.assertEqual(programs.differences({"e": -100.5}, {"e": -100}, 0.01), "")
        self.assertIn("e -102", programs.differences({"e": -102}, {"e": -100}, 0.01))
        self.assertEqual(programs.differences({"e": 0.005}, {"e": 0.0}, 0.01), "")
        self.assertIn("nan", programs.differences({"e": float("nan")}, {"e": 1}, 0.01))

    def test_figures_that_are_missing(self):
        self.assertIn("step 50", programs.differences({"a": 1}, {"a": 1, "step 50": 2}, 1))


class Inputs(unittest.TestCase):
    def test_every_parameter_is_put_in(self):
        for workload in workloads.PROGRAMS:
            for threads, smoke in ((1, False), (2, False), (1, True)):
                parameters = workload.parameters_for(threads, smoke)
                with tempfile.TemporaryDirectory() as folder:
                    workload.prepare(folder, 4, parameters)
                    self.assertTrue(os.listdir(folder), workload.name)
                    for name in os.listdir(folder):
                        with open(os.path.join(folder, name), encoding="ascii") as stream:
                            self.assertNotRegex(stream.read(), r"@\w+@", name)

    def test_molecules(self):
        atoms = workloads.water(2, 3.1)
        self.assertEqual(len(atoms), 24)
        self.assertEqual([line[0] for line in atoms[:3]], ["O", "H", "H"])


class Launch(unittest.TestCase):
    def test_placement(self):
        with unittest.mock.patch.object(programs, "cores", return_value=2):
            self.assertEqual(programs.placement(2, 1, None), [])
            self.assertEqual(programs.placement(2, 2, None), ["--bind-to", "none"])
            self.assertEqual(programs.placement(4, 1, None), ["--oversubscribe"])
            self.assertEqual(programs.placement(2, 2, "socket"), ["--bind-to", "socket"])

    def test_both_sides_get_the_same_words(self):
        arguments = programs.parse_arguments(["-x", "A=1", "-x", "B", "--mca", "pml", "ucx"])
        with unittest.mock.patch.object(measure, "openmpi_mpirun", return_value="mpirun"):
            words = programs.launch(Case("melt", 1, 2), arguments, programs.STOCK)
        self.assertEqual(" ".join(words), "mpirun -np 1 --bind-to none -x OMP_NUM_THREADS=2 -x A=1 "
                         "-x B --mca coll ^ucg --mca pml ucx")


class Tables(unittest.TestCase):
    def setUp(self):
        self.samples = measure.Samples({"stock": {}, "ucg": {}})
        self.ours = measure.Configuration("ucg", [], "", stock=False)

    def add(self, case, stock, ours):
        for name, seconds in (("stock", stock), ("ucg", ours)):
            for number, value in enumerate(seconds):
                self.samples.add(name, case, number, programs.Run(value * 1e6, processor_us=7))

    def text(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            programs.finish(self.samples, [programs.STOCK, self.ours],
                            programs.parse_arguments([]))
        return out.getvalue()

    def test_the_worst_is_first_and_both_ratios_are_told(self):
        self.add(Case("melt", 2, 1), [1, 2, 4], [1, 2, 4])
        self.add(Case("qe", 2, 2), [1, 2, 4], [2, 4, 8])
        lines = self.text().splitlines()
        self.assertEqual(lines[1].split(), ["qe", "2", "2", "2.000", "4.000", "1.000", "2.000",
                                            "2.000", "+-0.0%"])
        self.assertEqual(lines[2].split()[0], "melt")
        self.assertIn("over 2 cases: 1.414 by ratios of medians, 1.414 by pairs; worst 2.000 (qe, "
                      "2 ranks, 2 threads)", lines[3])

    def test_start_up_is_a_difference(self):
        self.add(Case("start_up", 4, 1), [0.1, 0.2, 0.3], [0.105, 0.205, 0.315])
        lines = self.text().splitlines()
        self.assertEqual(lines[1].split(), ["4", "200.0", "205.0", "0.0", "5.0", "+-5.0"])


class Jobs(unittest.TestCase):
    """Whole runs, with a script for mpirun."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.build = os.path.join(self.folder, "build")
        self.tool("mpirun.openmpi", MPIRUN)
        os.makedirs(os.path.join(self.build, "perf", "apps"))
        self.tool("build/perf/apps/one_barrier", "#!/bin/sh\n")
        self.enterContext(unittest.mock.patch.object(
            measure, "with_component", return_value=["--mca", "component_path", "x"]))

    def tool(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as stream:
            stream.write(text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def run_with(self, *words, **environment):
        path = os.pathsep.join([self.folder, "/bin", "/usr/bin"])
        with unittest.mock.patch.dict(os.environ, {"PATH": path, **environment}), \
                contextlib.redirect_stdout(io.StringIO()) as out:
            status = programs.run(programs.parse_arguments(["--build", self.build, *words]))
        return status, out.getvalue()

    def test_a_run_and_its_figures(self):
        path = os.path.join(self.folder, "out.json")
        status, text = self.run_with("--only", "start_up", "--np", "2", "--runs", "3", "--json",
                                     path)
        self.assertEqual(status, 0, text)
        with open(path, encoding="utf-8") as stream:
            figures = json.load(stream)
        self.assertTrue(all(run["processor_seconds"] >= 0 for run in figures["runs"]))
        self.assertEqual([run["side"] for run in figures["runs"]], ["stock"] * 3 + ["ucg"] * 3)
        self.assertEqual(figures["calls_of_rank_0"]["start_up, 2 ranks, 1 thread"],
                         {"barrier": {"served": 1, "passed_on": 0}})

    def test_another_result_is_not_timed(self):
        status, text = self.run_with("--only", "start_up", "--np", "2", UCG_BROKEN="1")
        self.assertEqual(status, 1)
        self.assertIn("another result than stock's: ranks 3.0 instead of 2.0", text)
        self.assertNotIn("more ms", text)

    def test_a_component_that_serves_nothing(self):
        self.tool("mpirun.openmpi", "#!/bin/sh\necho one barrier of 2 ranks\n")
        status, text = self.run_with("--only", "start_up", "--np", "2")
        self.assertEqual(status, 1)
        self.assertIn("UCG served no collective", text)

    def test_what_is_not_installed_is_named(self):
        with unittest.mock.patch.object(workloads.shutil, "which", return_value=None):
            status, text = self.run_with("--list", "--only", "qe,start_up")
        self.assertEqual(status, 3)
        self.assertIn("NOT THERE qe: no pw.x", text)
        self.assertIn("quantum-espresso-data", text)

    def test_wrong_wishes(self):
        for words in (["--only", "nobody"], ["--runs", "0"], ["--timeout", "0"],
                      ["--json", "/nowhere/x"], ["--np", "0"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                self.run_with(*words)


if __name__ == "__main__":
    unittest.main()
