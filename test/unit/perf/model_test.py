#!/usr/bin/env python3
"""Tests perf/model: a run in which the library refused the algorithm is not a measurement of it."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True
PERF = os.path.join(os.path.dirname(os.path.abspath(__file__)), *3 * [".."], "perf")
sys.path.insert(0, PERF)

LOADER = importlib.machinery.SourceFileLoader("model", os.path.join(PERF, "model"))
model = importlib.util.module_from_spec(importlib.util.spec_from_loader("model", LOADER))
LOADER.exec_module(model)

NEEDS = "it needs one host with several sockets, and staging memory that ranks share"


def refusal(level, group, collective, size):
    return (f"[host:7] ucg {level}: {group}: {collective} algorithm 'two_stage' cannot serve this "
            f"request ({size} bytes, 4 ranks on 1 hosts, commutative): {NEEDS}; the planner "
            "chooses instead")


class Refusals(unittest.TestCase):
    def test_those_of_measured_calls_count_and_nothing_else_is_lost(self):
        said = "\n".join([
            # This call is Open MPI's own.
            refusal("warning", "MPI COMMUNICATOR 3 DUP FROM 0", "bcast", 4136),
            refusal("warning", "MPI_COMM_WORLD", "reduce", 64),
            refusal("debug", "MPI_COMM_WORLD", "bcast", 8),
            "[host:7] ucg debug: MPI_COMM_WORLD: bcast of 8 bytes by knomial",
            "[host:7] ucg info: coll/ucg: waits slept 0 times",
            "[host:7] ucg warning: something else",
            "mpirun: hello"])
        with contextlib.redirect_stderr(io.StringIO()) as passed_on:
            found = model.refusals(said, "bcast")
        self.assertEqual(found, {(8, "two_stage"): NEEDS})
        self.assertEqual(passed_on.getvalue(),
                         "[host:7] ucg warning: something else\nmpirun: hello\n")


class SameSchedules(unittest.TestCase):
    SHOWN = {"linear": "schedule alltoall linear rank 0\n0: send",
             "pairwise": "schedule alltoall pairwise rank 0\n0: send",
             "flag_slots": "schedule alltoall flag_slots rank 0\n0: share"}

    def groups(self):
        with unittest.mock.patch.object(
                model, "plan", lambda *arguments: self.SHOWN[arguments[-1]]):
            return model.alike(None, "alltoall", "8", list(self.SHOWN), None)

    def test_the_name_alone_makes_no_difference(self):
        self.assertEqual(self.groups(), {"linear": ["linear", "pairwise"],
                                         "pairwise": ["linear", "pairwise"],
                                         "flag_slots": ["flag_slots"]})

    def test_their_samples_are_put_together_but_for_what_was_refused(self):
        medians = model.medians_of(self.groups(), {"linear": [1, 2], "pairwise": [9],
                                                   "flag_slots": [4]})
        self.assertEqual(medians, {"linear": 2, "pairwise": 2, "flag_slots": 4})
        medians = model.medians_of(self.groups(), {"pairwise": [9], "flag_slots": []})
        self.assertEqual(medians, {"pairwise": 9})


class Errors(unittest.TestCase):
    SAID = '{"candidates": [{"algorithm": "linear", "predicted_ns": 3000}]}'

    def row(self, collective):
        with unittest.mock.patch.object(model, "plan", lambda *arguments: self.SAID):
            predicted = model.predictions(None, collective, "8", None)
        return {"collective": collective, "bytes": 8, "chosen": "linear", "best": "linear",
                "predicted_us": predicted, "measured_us": {"linear": 2.0}, "ratio": 1.0}

    def test_nothing_is_predicted_where_ranks_know_their_own_lengths_alone(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            model.print_rows([self.row("gather"), self.row("gatherv")])
        gather, gatherv = printed.getvalue().splitlines()[1:]
        self.assertEqual(gather.split()[3], "3.00")
        self.assertEqual(gatherv.split()[3], "-")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            model.print_errors([self.row("gatherv"), self.row("gather")])
        self.assertIn("off by 50.0% in the median of 1;", printed.getvalue())
        self.assertNotIn("gatherv", printed.getvalue())
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            model.print_errors([self.row("alltoallv")])
        self.assertEqual(printed.getvalue(), "")


if __name__ == "__main__":
    unittest.main()
