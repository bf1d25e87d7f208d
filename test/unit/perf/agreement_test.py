#!/usr/bin/env python3
"""Tests perf/perftest/agreement: how it reads results, its ratios, which results agree, and
wrong use."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
PERFTEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), *3 * [".."], "perf", "perftest")
PROGRAM = os.path.join(PERFTEST, "agreement")

LOADER = importlib.machinery.SourceFileLoader("agreement", PROGRAM)
agreement = importlib.util.module_from_spec(importlib.util.spec_from_loader("agreement", LOADER))
sys.modules["agreement"] = agreement  # The dataclasses module looks for their module here.
LOADER.exec_module(agreement)

from agreement import Outcome, Primitive, Rounds

RAN = Outcome(0, agreement.HEAD + "\n1000,0.100,0.120,0.130,70.0,70.0,8e6,8e6\n", "")
HEAD_ONLY = Outcome(0, agreement.HEAD + "\n", "")
REFUSED = Outcome(255, "", "[1.2] [h:1:0]  libperf.c:523  UCX  ERROR no put short\nusage\n")
HUNG = Outcome("no end in 10 s", "", "")


class Reading(unittest.TestCase):
    def test_figures_are_percentile_and_mean(self):
        self.assertEqual(agreement.read_figures(RAN), (0.1, 0.13))
        for outcome in (HEAD_ONLY, REFUSED, HUNG, Outcome(0, "", ""), Outcome(1, RAN.text, "")):
            self.assertIsNone(agreement.read_figures(outcome))

    def test_complaints_come_without_where_ucx_found_them(self):
        self.assertEqual(agreement.first_complaint(REFUSED), "no put short")
        self.assertEqual(agreement.first_complaint(Outcome(255, REFUSED.errors, "usage")),
                         "no put short")
        self.assertEqual(agreement.first_complaint(Outcome(2, "", "\nucg_perftest: no\n")),
                         "ucg_perftest: no")
        self.assertEqual(agreement.first_complaint(HUNG), "nothing said")

    def test_what_became_of_a_run(self):
        words = [agreement.became(o) for o in (RAN, HEAD_ONLY, REFUSED, HUNG)]
        self.assertEqual(words, ["ran", "no result, status 0", "refused (255)", "no end in 10 s"])

    def test_alike_is_both_or_neither(self):
        self.assertTrue(agreement.alike(RAN, RAN))
        self.assertTrue(agreement.alike(HUNG, REFUSED))
        self.assertFalse(agreement.alike(RAN, REFUSED))


class Ratios(unittest.TestCase):
    def test_of_medians_and_of_neighbours(self):
        rounds = Rounds(ours={0: (1.0, 2.0), 1: (1.1, 2.0), 2: (9.0, 2.0)},
                      stock={0: (1.0, 1.0), 1: (1.0, 1.0), 2: (3.0, 1.0)})
        row = agreement.summarize("am_lat:posix", rounds)
        self.assertAlmostEqual(row.ratio, 1.1)
        self.assertAlmostEqual(row.overall, 2.0)
        self.assertAlmostEqual(row.pairs[0], (1 + 1.1 + 3) / 3)
        self.assertAlmostEqual(agreement.middle_mean([9, 1, 2, 3, 4, 5, 6, -7]), 3.5)
        self.assertEqual(row.rounds, 3)

    def test_nothing_to_compare(self):
        self.assertIsNone(agreement.summarize("x", Rounds(ours={0: (1.0, 1.0)})))

    def test_the_worst_is_the_furthest_from_1_either_way(self):
        low, high = (agreement.Row("", 1, 1, ratio, (ratio, None), ratio, 1)
                     for ratio in (0.8, 1.2))
        self.assertGreater(low.distance(), high.distance())


class Commands(unittest.TestCase):
    def test_uct_tests_name_the_device_and_ucp_tests_the_environment(self):
        uct, ucp = Primitive("am_lat", "tcp"), Primitive("tag_lat", "tcp")
        self.assertEqual(uct.command()[-4:], ["-x", "tcp", "-d", "lo"])
        self.assertEqual(uct.environment(), {})
        self.assertNotIn("-x", ucp.command())
        self.assertEqual(ucp.environment(), {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"})

    def test_wrong_use(self):
        for options in (["--only", "nothing"], ["--only", "am_lat:quantum"], ["--cpus", "0"],
                        ["--rounds", "0"], ["--program", "/nowhere/ucg_perftest"]):
            result = subprocess.run([sys.executable, PROGRAM, *options], capture_output=True,
                                    text=True, check=False)
            self.assertEqual(result.returncode, 2, options)
            self.assertTrue(result.stderr)


if __name__ == "__main__":
    unittest.main()
