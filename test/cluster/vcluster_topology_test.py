#!/usr/bin/env python3
"""How vcluster takes a tree of switches from ucg_topo, and what its links have; the test needs no
rights and no network.

usage: vcluster_topology_test.py UCG_TOPO
"""

import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from vcluster_parts import topology  # noqa: E402
from vcluster_parts.errors import VclusterError  # noqa: E402

TWO_LEVELS = """\
# Two racks.
SwitchName=s0 Nodes=n[0-1] LinkSpeed=100mbit
SwitchName=s1 Nodes=n[2-3]
SwitchName=top Switches=s[0-1]
"""


def read(text, unit=None):
    """Topology of that text of a file."""
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "-file"  # This is no option.
        path.write_text(text, encoding="utf-8")
        return topology.read(str(path), UCG_TOPO, unit)


class Tree(unittest.TestCase):
    def check_two_levels(self, tree):
        self.assertEqual(tree.root, "top")
        self.assertEqual(tree.hosts, ["n0", "n1", "n2", "n3"])
        self.assertEqual({name: switch.name for name, switch in tree.parents().items()},
                         {"n0": "s0", "n1": "s0", "n2": "s1", "n3": "s1", "s0": "top",
                          "s1": "top"})
        self.assertEqual(tree.rates, {"n0": 100_000_000, "n1": 100_000_000})

    def test_is_that_of_the_file(self):
        self.check_two_levels(read(TWO_LEVELS))

    def test_may_come_from_json(self):
        nodes = [{"name": "top", "kind": "switch"}]
        nodes += [{"name": f"s{i}", "kind": "switch", "parent": "top"} for i in range(2)]
        nodes += [{"name": f"n{i}", "kind": "machine", "parent": f"s{i // 2}",
                   **({"bytes_per_second": 12_500_000} if i < 2 else {})} for i in range(4)]
        self.check_two_levels(read(json.dumps({"nodes": nodes})))

    def test_of_one_switch_is_that_of_a_plain_count(self):
        self.assertEqual(topology.one_switch(3).hosts, ["n0", "n1", "n2"])
        with self.assertRaises(VclusterError):
            topology.one_switch(0)

    def test_names_are_those_that_a_host_of_this_kind_can_have(self):
        for name in ("n0.example", "n_", "n" * 64):
            with self.subTest(name), self.assertRaisesRegex(VclusterError, "-file: .*cannot be"):
                read(f"SwitchName=s0 Nodes={name}")

    def test_a_bad_file_is_refused_with_line_and_reason(self):
        for text, reason in (("SwitchName=s0\n", "-file: line 1: there is no machine"),
                             ("\nHosts=n0\n", "-file: line 2: unknown key 'Hosts'"),
                             ("{", "-file: ")):
            with self.subTest(text), self.assertRaisesRegex(VclusterError, reason) as caught:
                read(text)
            self.assertNotIn("ucg_topo: ", str(caught.exception))


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
        tree = read(TWO_LEVELS)
        rates = self.rates(tree, rate="1gbit", overrides={"n1": "10mbit"})
        self.assertEqual(rates, {"n0": 100_000_000, "n1": 10_000_000, "n2": 1_000_000_000,
                                 "n3": 1_000_000_000, "s0": 1_000_000_000, "s1": 1_000_000_000})

    def test_a_bare_link_speed_counts_only_with_a_unit(self):
        text = "SwitchName=s0 Nodes=n0 LinkSpeed=40"
        self.assertEqual(self.rates(read(text)), {"n0": None})
        self.assertEqual(self.rates(read(text, "mbit")), {"n0": 40_000_000})
        self.assertEqual(self.rates(read(f"# UCG: LinkSpeed is in kbit/s\n{text}", "mbit")),
                         {"n0": 40_000})
        none = read("SwitchName=s0 Nodes=n0 LinkSpeed=0", "mbit")
        self.assertEqual(self.rates(none, rate="1gbit"), {"n0": 10**9})

    def test_an_override_must_name_a_link(self):
        tree = read(TWO_LEVELS)
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
    UCG_TOPO = sys.argv.pop()
    unittest.main()
