#!/usr/bin/env python3
"""How vcluster reads topology.conf and host lists; the test needs no rights and no network."""

import json
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPOLOGIES = ROOT / "test/topologies"
sys.path.insert(0, str(ROOT / "tools"))

from vcluster_parts import topology  # noqa: E402
from vcluster_parts.errors import VclusterError  # noqa: E402
from vcluster_parts.hostlist import expand  # noqa: E402

TWO_LEVELS = """\
# Two racks.
SwitchName=s0 Nodes=n[0-1] LinkSpeed=100mbit
switchname=s1 NODES=n[2-3]   # keys in any case

SwitchName=top \\
    Switches=s[0-1]
"""


class HostList(unittest.TestCase):
    def test_expands_in_the_order_written(self):
        cases = {
            "n0": ["n0"],
            "n[0-2]": ["n0", "n1", "n2"],
            "n[0-1,5],login": ["n0", "n1", "n5", "login"],
            "n[08-10]": ["n08", "n09", "n10"],
            "r[0-1]n[0-1]": ["r0n0", "r0n1", "r1n0", "r1n1"],
            "rack[2]x": ["rack2x"],
        }
        for text, names in cases.items():
            with self.subTest(text):
                self.assertEqual(expand(text), names)


class Parse(unittest.TestCase):
    def test_reads_a_tree(self):
        tree = topology.parse(TWO_LEVELS, "file")
        self.assertEqual(tree.root, "top")
        self.assertEqual(tree.hosts, ["n0", "n1", "n2", "n3"])
        self.assertEqual({name: switch.name for name, switch in tree.parents().items()},
                         {"n0": "s0", "n1": "s0", "n2": "s1", "n3": "s1", "s0": "top",
                          "s1": "top"})

    def test_one_switch_is_the_tree_of_a_plain_count(self):
        self.assertEqual(topology.one_switch(3).hosts, ["n0", "n1", "n2"])
        with self.assertRaises(VclusterError):
            topology.one_switch(0)

    def test_names_are_those_that_a_host_of_this_kind_can_have(self):
        for name in ("n0.example", "n_", "n" * 64):
            with self.subTest(name), self.assertRaisesRegex(VclusterError, "file:1: .*cannot be"):
                topology.parse(f"SwitchName=s0 Nodes={name}", "file")


class SharedCases(unittest.TestCase):
    """The files in test/topologies, which the test of the library's reader reads as well."""

    def test_good_files_are_read_as_the_json_beside_them_says(self):
        files = sorted(TOPOLOGIES.glob("good/*.conf"))
        self.assertGreaterEqual(len(files), 8)
        for file in files:
            with self.subTest(file.name):
                tree = topology.read(file)
                above = {name: switch.name for name, switch in tree.parents().items()}
                rates = {name: link.rate for name, link in topology.links(tree).items()}
                nodes = json.loads(file.with_suffix(".json").read_text("utf-8"))["nodes"]
                self.assertEqual({node["name"]: node.get("parent") for node in nodes},
                                 {tree.root: None, **above})
                for switch in tree.switches:
                    below = [node for node in nodes if node.get("parent") == switch.name]
                    self.assertEqual(switch.nodes + switch.switches,
                                     [node["name"] for node in below])
                for node in nodes[1:]:
                    self.assertEqual(rates[node["name"]], node.get("bytes_per_second", 0) * 8
                                     or None)

    def test_bad_files_are_refused_with_line_and_reason(self):
        rows = (TOPOLOGIES / "bad/refused.tsv").read_text("utf-8").splitlines()
        cases = [row.split("\t") for row in rows if ".conf\t" in row]
        self.assertEqual({file for file, *_ in cases},
                         {path.name for path in TOPOLOGIES.glob("bad/*.conf")})
        for file, line, *words in cases:
            with self.subTest(file):
                path = TOPOLOGIES / "bad" / file
                with self.assertRaises(VclusterError) as caught:
                    topology.read(path)
                self.assertTrue(str(caught.exception).startswith(f"{path}:{line}: "),
                                caught.exception)
                self.assertIn("".join(words), str(caught.exception))


class Rates(unittest.TestCase):
    def test_units_are_those_of_tc(self):
        self.assertEqual(topology.parse_rate("100mbit"), 100_000_000)
        self.assertEqual(topology.parse_rate("1Gbit"), 1_000_000_000)
        self.assertEqual(topology.parse_rate("1.5mbit"), 1_500_000)
        self.assertEqual(topology.parse_rate("125mbps"), 1_000_000_000)
        for text in ("100", "fast", "1gbit/s", "-1mbit", "0gbit", "1bit"):
            with self.subTest(text), self.assertRaises(VclusterError):
                topology.parse_rate(text)


class Links(unittest.TestCase):
    def rates(self, tree, **options):
        return {name: link.rate for name, link in topology.links(tree, **options).items()}

    def test_the_nearest_word_wins(self):
        tree = topology.parse(TWO_LEVELS, "file")
        rates = self.rates(tree, rate="1gbit", overrides={"n1": "10mbit"})
        self.assertEqual(rates, {"n0": 100_000_000, "n1": 10_000_000, "n2": 1_000_000_000,
                                 "n3": 1_000_000_000, "s0": 1_000_000_000, "s1": 1_000_000_000})

    def test_a_bare_link_speed_counts_only_with_a_unit(self):
        tree = topology.parse("SwitchName=s0 Nodes=n0 LinkSpeed=40", "file")
        self.assertEqual(self.rates(tree), {"n0": None})
        self.assertEqual(self.rates(tree, unit="mbit"), {"n0": 40_000_000})
        none = topology.parse("SwitchName=s0 Nodes=n0 LinkSpeed=0", "file")
        self.assertEqual(self.rates(none, unit="mbit", rate="1gbit"), {"n0": 10**9})

    def test_the_unit_that_a_file_names_counts_before_the_one_given(self):
        for blanks in ("", " \r"):
            tree = topology.parse(f"# UCG: LinkSpeed is in kbit/s{blanks}\n"
                                  "SwitchName=s0 Nodes=n0 LinkSpeed=40", "file")
            for unit in (None, "mbit"):
                self.assertEqual(self.rates(tree, unit=unit), {"n0": 40_000})
        tree = topology.parse("SwitchName=s0 Nodes=n0 LinkSpeed=40 "
                              "# UCG: LinkSpeed is in kbit/s", "file")
        self.assertEqual(self.rates(tree), {"n0": None})

    def test_an_override_must_name_a_link(self):
        tree = topology.parse(TWO_LEVELS, "file")
        for name in ("n9", "top"):
            with self.subTest(name), self.assertRaises(VclusterError):
                topology.links(tree, overrides={name: "1gbit"})

    def test_an_override_changes_what_it_names_alone(self):
        tree = topology.one_switch(3)
        links = topology.links(tree, rate="1gbit", latency="1ms", loss="0.5%",
                               overrides={"n1": "2us", "n2": "0%,5mbit,0s"})
        self.assertEqual(links, {"n0": topology.Link(10**9, 10**6, 0.005),
                                 "n1": topology.Link(10**9, 2000, 0.005),
                                 "n2": topology.Link(5 * 10**6, 0, 0.0)})
        self.assertTrue(links["n0"].is_forwarded)
        self.assertFalse(links["n2"].is_forwarded)

    def test_units_tell_what_a_word_means(self):
        self.assertEqual(topology.parse_link("0.1%,1.5ms,1gbit"),
                         {"loss": 0.001, "latency_ns": 1_500_000, "rate": 10**9})
        self.assertEqual(topology.parse_latency("250NS"), 250)
        for text in ("", "1ms,2ms", "1%,1%", "101%", "-1%", "1m", "2h", "3601s", "1gbit,"):
            with self.subTest(text), self.assertRaises(VclusterError):
                topology.parse_link(text)


if __name__ == "__main__":
    unittest.main()
