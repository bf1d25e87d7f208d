#!/usr/bin/env python3
"""Tests perf/measure.py: rows, gating by the ping-pong, the best of several, and ratios round by
round."""

import argparse
import os
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), *3 * [".."], "perf"))

import link_limits
import measure
import plot
import provenance
from measure import Configuration, Sample, Samples

FAR = 90
NEAR_PINGS, FAR_PINGS, MOVED_PINGS = (40, 41), (180, 190), (40, 190)
CELL = ("allreduce", 8)
TUNED, UCX, UCG = (Configuration("tuned", [], ""), Configuration("ucx", [], ""),
                   Configuration("ucg", [], "", stock=False))


def samples_of(by_name):
    """{name: [(us, pings), ...]} of one cell, round by round; None for a round that failed."""
    samples = Samples({name: {} for name in by_name})
    for name, rounds in by_name.items():
        for number, sample in enumerate(rounds):
            if sample:
                samples.add(name, CELL, number, Sample(*sample))
    return samples


class Rows(unittest.TestCase):
    def test_rows_are_found_among_other_output(self):
        text = "# head\nwarning\nphase,bytes,mean_us,result\na,8,1.5,ok\nb,0,2,WRONG\nnoise\n"
        rows = measure.read_rows(text, "phase,bytes")
        self.assertEqual([(row["phase"], row["result"]) for row in rows],
                         [("a", "ok"), ("b", "WRONG")])
        self.assertEqual(measure.read_rows("nothing", "phase,bytes"), [])

    def test_over_rounds_each_has_each_place(self):
        self.assertEqual([measure.ordered("AB", number) for number in range(3)],
                         [["A", "B"], ["B", "A"], ["B", "A"]])
        for count in (1, 2, 3, 5, 8):
            orders = [measure.ordered(range(count), number) for number in range(2 * count)]
            for place in range(count):
                self.assertEqual(sorted(order[place] for order in orders),
                                 sorted([*range(count), *range(count)]))
        self.assertEqual(measure.ordered([], 3), [])

    def run_round(self, script, head="collective,bytes", **options):
        """The samples of one round of a program that is a script of the shell, and what it said."""
        samples = Samples({"x": {}})
        heard = []
        measure.take_round(samples, Configuration("x", ["sh", "-c", script], "program", **options),
                          0, [], argparse.Namespace(timeout=20), head, heard.append)
        return samples, "".join(heard)

    def test_a_turn_runs_the_program_and_keeps_problems(self):
        samples, said = self.run_round("printf 'phase,bytes,mean_us,result\\na,8,1.5,ok\\n"
                                  "a,16,1.5,WRONG\\n'; echo oh >&2; exit 3", "phase,bytes")
        # The time of a wrong result is none.
        self.assertEqual(samples.by_name["x"], {("a", 8): {0: Sample(1.5)}})
        self.assertEqual(samples.problems, ["round 1, x: a of 16 bytes: wrong result",
                                            "round 1, x: status 3"])
        self.assertEqual(said, "oh\n")

    def test_ucg_has_to_serve_what_is_measured_under_its_name(self):
        rows = "printf 'collective,bytes,median_us,result\\nbarrier,0,1,ok\\nscan,8,2,ok\\n'; "
        counter = "echo '[vm:1] coll/ucg: rank 0 called {}: {} by libucg, 4 passed on' >&2; "
        barrier, scan = counter.format("barrier", 3), counter.format("scan", 0)
        for script, kinds, problems in (
                (rows + barrier + counter.format("scan", 9), ["barrier", "scan"], []),
                (rows + barrier + scan, ["barrier"], ["round 1, x: UCG did not serve scan: the "
                                                      "times are left out"]),
                (rows, [], ["round 1, x: UCG did not serve barrier, scan: the times are left out"]),
                # A run that failed may not have come to the counters.
                (rows + "exit 3", ["barrier", "scan"], ["round 1, x: status 3"])):
            with self.subTest(script):
                samples, said = self.run_round(script, expects_ucg=True)
                self.assertEqual([kind for kind, _ in samples.by_name["x"]], kinds)
                self.assertEqual(samples.problems, problems)
                self.assertEqual(said, "")
        self.assertEqual(self.run_round(rows)[0].problems, [])
        # Phases are no collectives: any that was served will do.
        phases = rows.replace("collective", "phase").replace("scan", "sum")
        for said, problems in ((barrier, []), (scan, ["round 1, x: UCG did not serve any "
                                                      "collective: the times are left out"])):
            samples, _ = self.run_round(phases + said, "phase,bytes", expects_ucg=True)
            self.assertEqual(samples.problems, problems)

    def test_wrong_options_end_the_measurement(self):
        samples = Samples({"x": {}})
        wrong = Configuration("x", ["sh", "-c", "exit 2"], "program")
        with self.assertRaises(measure.Wrong) as raised:
            measure.take_round(samples, wrong, 0, ["--sizes", "1"],
                              argparse.Namespace(timeout=20), "phase,bytes")
        self.assertIn("x: program does not accept --sizes 1", str(raised.exception))

    def test_a_cycle_and_its_bare_barrier(self):
        samples = Samples({"x": {}, "y": {}})
        for name, alone in (("x", 3), ("y", 5)):
            shell = ["sh", "-c", "printf 'collective,bytes,median_us,bare_us,alone_us,result\\n"
                                 f"allreduce,8,9,2,{alone},ok\\n'"]
            measure.take_round(samples, Configuration(name, shell, "program"), 0, [],
                              argparse.Namespace(timeout=20), "collective,bytes")
        self.assertEqual(measure.whole_cycles(samples, CELL), (2, {"x": 9, "y": 9}))
        self.assertEqual(measure.by_state(samples.by_name["x"][CELL], None), {"any": {0: 3}})
        # All rounds decide together: short ones count, unless most are.
        for number, alone in ((1, -0.5), (2, 0.2)):
            samples.add("x", CELL, number, Sample(2, (), 2, alone))
        self.assertEqual(measure.by_state(samples.by_name["x"][CELL], None),
                         {"any": {0: 3, 1: -0.5, 2: 0.2}})
        self.assertEqual(measure.not_told(samples, None), [])
        samples.add("x", CELL, 2, Sample(2, (), 2, 0.05))
        self.assertEqual(measure.by_state(samples.by_name["x"][CELL], None), {})
        self.assertEqual(measure.not_told(samples, None), [CELL])
        for number in (1, 2):
            del samples.by_name["x"][CELL][number]
        samples.add("x", CELL, 0, Sample(9))  # Another mode has neither of the two.
        self.assertEqual(measure.whole_cycles(samples, CELL), (2, {"y": 9}))

    def test_whole_cycles_are_compared(self):
        samples = Samples({"stock": {}, "ucg": {}})
        for number in range(3):
            samples.add("stock", CELL, number, Sample(10, (), 6, 4))
            samples.add("ucg", CELL, number, Sample(8, (), 7, 1))
        configurations = [Configuration("stock", [], ""), Configuration("ucg", [], "", stock=False)]
        row = measure.compare_cells(samples, configurations)[0]
        self.assertAlmostEqual(row.cycle_ratio("ucg"), 0.8)
        self.assertAlmostEqual(row.ratios["ucg"].medians, 0.25)
        self.assertIsNone(row.cycle_ratio("another"))

    def test_a_job_that_does_not_end_is_ended(self):
        status, _ = measure.execute(["sleep", "1000"], 0.05)
        self.assertIn("no end", status)


class Links(unittest.TestCase):
    """Four hosts of two ranks each, with links that carry a byte each microsecond."""

    def least_us(self, collective, size=8):
        return link_limits.least_us(collective, size, 4, 2, 8e6)

    def test_what_must_pass_the_busiest_link(self):
        for collective in ("bcast", "reduce", "scan", "exscan", "ibcast", "reduce_init"):
            self.assertEqual(self.least_us(collective), 8, collective)
        self.assertEqual(self.least_us("allreduce"), 12)
        for collective in ("allgather", "gatherv", "scatter", "reduce_scatter_block"):
            self.assertEqual(self.least_us(collective), 48, collective)
        self.assertEqual(self.least_us("alltoallv"), 96)

    def test_what_has_no_limit(self):
        self.assertIsNone(self.least_us("barrier", 0))
        self.assertIsNone(self.least_us("allgather", 0))
        self.assertIsNone(self.least_us("neighbor_alltoall"))


class Gate(unittest.TestCase):
    def test_states(self):
        self.assertEqual(measure.state_of(Sample(1, NEAR_PINGS), FAR), "near")
        self.assertEqual(measure.state_of(Sample(1, FAR_PINGS), FAR), "far")
        self.assertIsNone(measure.state_of(Sample(1, MOVED_PINGS), FAR))
        self.assertEqual(measure.state_of(Sample(1, MOVED_PINGS), None), "any")
        self.assertEqual(measure.state_of(Sample(1), FAR), "any")

    def test_only_like_is_compared_with_like(self):
        near, far = [(2, NEAR_PINGS)] * 4, [(20, FAR_PINGS)] * 3
        ours = [(1, NEAR_PINGS)] * 4 + [(30, FAR_PINGS)] * 3
        rows = measure.compare_cells(samples_of({"tuned": near + far, "ucg": ours}), [TUNED, UCG],
                                     FAR, rounds_min=3)
        self.assertEqual([(r.state, r.rounds, r.ratios["ucg"].pairs) for r in rows],
                         [("near", 4, 0.5), ("far", 3, 1.5)])
        rows = measure.compare_cells(samples_of({"tuned": near + far, "ucg": ours}), [TUNED, UCG],
                                     FAR, rounds_min=4)
        self.assertEqual([r.state for r in rows], ["near"])

    def test_one_state_alone(self):
        samples = samples_of({"tuned": [(2, NEAR_PINGS)] * 4 + [(20, FAR_PINGS)] * 3,
                              "ucg": [(1, NEAR_PINGS)] * 4 + [(30, FAR_PINGS)] * 3})
        rows = measure.compare_cells(samples, [TUNED, UCG], FAR, "far")
        self.assertEqual([(r.state, r.rounds, r.ratios["ucg"].pairs) for r in rows],
                         [("far", 3, 1.5)])
        rows = measure.compare_cells(samples_of({"tuned": [(2, NEAR_PINGS)]}), [TUNED, UCG], FAR,
                                     "far")
        self.assertEqual([(r.state, r.medians) for r in rows], [(None, {})])

    def test_cells_that_always_moved_are_shown_without_figures(self):
        rows = measure.compare_cells(samples_of({"tuned": [(2, MOVED_PINGS)]}), [TUNED, UCG], FAR)
        self.assertEqual([(r.state, r.medians) for r in rows], [(None, {})])


class Best(unittest.TestCase):
    def test_best_is_the_least_median_of_the_stock_ones(self):
        row, = measure.compare_cells(
            samples_of({"tuned": [(4,), (1,), (4,)], "ucx": [(3,), (3,), (3,)],
                        "ucg": [(6,), (6,), (6,)]}), [TUNED, UCX, UCG])
        self.assertEqual((row.best, row.ratios["ucg"].pairs), ("ucx", 2))

    def test_a_configuration_without_the_cell_is_no_reference(self):
        row, = measure.compare_cells(samples_of({"tuned": [], "ucx": [(3,)], "ucg": [(6,)]}),
                                     [TUNED, UCX, UCG])
        self.assertEqual((row.best, row.ratios["ucg"].pairs), ("ucx", 2))

    def test_neighbours_in_time_are_compared(self):
        # After two rounds the machine became twice as slow; a failed round changes nothing.
        row, = measure.compare_cells(
            samples_of({"tuned": [(2,), (2,), None, (4,), (4,)], "ucg": [(1,), (1,), (2,), (2,)]}),
            [TUNED, UCG])
        self.assertEqual(row.ratios["ucg"].pairs, 0.5)

    def test_medians_may_tell_another_ratio_than_pairs(self):
        row, = measure.compare_cells(
            samples_of({"tuned": [(1,), (2,), (3,)], "ucg": [(2,), (2,), (2,)]}), [TUNED, UCG])
        self.assertEqual(row.ratios["ucg"].medians, 1)
        row, = measure.compare_cells(
            samples_of({"tuned": [(1,), (5,), (6,)], "ucg": [(2,), (5,), (12,)]}), [TUNED, UCG])
        self.assertEqual((row.ratios["ucg"].medians, row.ratios["ucg"].pairs), (1, 2))


class Pictures(unittest.TestCase):
    def test_a_map_has_each_cell_once_with_its_ratio(self):
        rows = [measure.Row(("bcast", size), "near", 3, {}, ratios={"ucg": measure.Ratio(*ratio)})
                for size, *ratio in ((8, 0.25, 1, None), (1 << 20, 3.5, 1, None))]
        rows.append(measure.Row(("bcast", 8), "far", 3, {},
                                ratios={"ucg": measure.Ratio(9, 9, None)}))
        with unittest.mock.patch.object(plot, "draw") as drawn:
            plot.ratio_map("x.svg", rows, "ucg", "title")
        script = drawn.call_args.args[2]
        self.assertIn("0 0 0.25\n1 0 3.5\n", script)
        self.assertIn("'8' 0, '1M' 1", script)
        with self.assertRaises(measure.Wrong):
            plot.ratio_map("x.svg", [], "ucg", "title")

    def test_sizes_are_written_as_options_have_them(self):
        self.assertEqual([plot.size_name(size) for size in (0, 8, 1000, 1024, 65536, 3 << 20)],
                         ["-", "8", "1000", "1k", "64k", "3M"])


class Spread(unittest.TestCase):
    def test_few_values_have_no_quartiles(self):
        self.assertEqual(measure.spread([3]), (3, None))
        self.assertEqual(measure.spread([1, 2, 3]), (2, 0.5))
        self.assertEqual(measure.spread([1, 2, 2, 2, 9]), (2, 1.0))


class Origin(unittest.TestCase):
    def test_a_report_says_what_it_is_of(self):
        mpirun = Configuration("tuned", ["mpirun", "--mca", "coll", "^ucg"], "")
        said = {"mpirun": "mpirun (Open MPI) 4.1.4\n\nReport bugs\n",
                "git": f"{provenance.ROOT}\n",
                "ucg_info": "UCG 0.2.0 (API 0.2)\n  UCX  compiled for 1.13, running 1.13.1\n",
                "mpirun.mpich": "HYDRA build details:\n    Version:       4.0.2\n"}
        hydra = Configuration("mpich", ["/opt/mpirun.mpich", "-np", "2"], "")
        own = Configuration("own", ["./launcher"], "")
        with unittest.mock.patch.object(
                provenance, "said_by",
                lambda words, cwd=None: said.get(os.path.basename(words[0]), "")), \
                unittest.mock.patch.object(provenance.shutil, "which", lambda name: name), \
                unittest.mock.patch.object(provenance.os, "sched_getaffinity",
                                           lambda process: {0, 1, 2, 5}):
            lines = measure.origin("/nowhere", [mpirun, hydra, own]).splitlines()
        self.assertTrue(lines[0].startswith("# ") and "commit " in lines[0])
        self.assertTrue(lines[0].endswith("profile of UCG: not known"))
        self.assertTrue(lines[1].startswith("# ") and "measure_test.py" in lines[1])
        self.assertEqual(lines[2:], [
            f"# processors 0-2,5, kernel {os.uname().release}, UCG 0.2.0 (API 0.2), UCX 1.13.1, "
            "mpirun mpirun (Open MPI) 4.1.4, /opt/mpirun.mpich 4.0.2",
            "# tuned: mpirun --mca coll '^ucg'", "# mpich: /opt/mpirun.mpich -np 2",
            "# own: ./launcher"])

    def test_the_commit_is_that_of_the_source_tree(self):
        with unittest.mock.patch.object(provenance, "said_by", lambda words, cwd=None: "/tmp\n"):
            self.assertEqual(measure.commit(), "")


class Options(unittest.TestCase):
    def test_wrong_wishes(self):
        good = {"np": 2, "pairs": 1, "preset": None, "config": [], "plot": None}
        measure.check_options(argparse.Namespace(**good))
        with self.assertRaises(measure.Wrong):
            measure.check_options(
                argparse.Namespace(**{**good, "preset": "ucx", "config": ["a=b"]}))
        for command in ("no-such-program", "", "'"):
            with self.assertRaises(measure.Wrong):
                measure.split_command("a", command)
        with self.assertRaises(measure.Wrong):
            measure.split_pairs(["name"], "--config")


if __name__ == "__main__":
    unittest.main()
