"""The tree of switches and hosts, which ucg_topo reads from a file, and the properties of its
links."""

import json
import re
import subprocess
from dataclasses import dataclass, field

from .errors import VclusterError

# A longer list of hosts is a typing error, not a cluster for one machine.
MAX_HOSTS = 65536

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kmgt]?)(bit|bps)", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?)(s|ms|us|ns)", re.IGNORECASE)
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_LOSS = re.compile(r"(\d+(?:\.\d+)?)%")
_PREFIX = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def parse_rate(text):
    """"100mbit" -> bits per second; units as tc(8) names them (bps is bytes per second)."""
    match = _RATE.fullmatch(text)
    if not match:
        raise VclusterError(f"rate '{text[:40]}': want a number and a unit, such as 100mbit")
    factor = _PREFIX[match[2].lower()] * (8 if match[3].lower() == "bps" else 1)
    rate = float(match[1]) * factor
    if rate < 8000:
        raise VclusterError(f"rate '{text}': less than 8kbit moves nothing")
    if rate > 1e15:
        raise VclusterError(f"rate '{text}': more than 1000tbit is no limit; leave it out")
    return int(rate)


def parse_latency(text):
    """"1.5ms" -> nanoseconds."""
    match = _TIME.fullmatch(text)
    if not match:
        raise VclusterError(f"latency '{text}': want a number and a unit, such as 500us or 1ms")
    latency = float(match[1]) * _NANOSECONDS[match[2].lower()]
    if latency > 3600 * 10**9:
        raise VclusterError(f"latency '{text}': more than an hour is an outage")
    return round(latency)


def parse_loss(text):
    """"0.5%" -> 0.005."""
    match = _LOSS.fullmatch(text)
    if not match or float(match[1]) > 100:
        raise VclusterError(f"loss '{text}': want a percentage up to 100, such as 0.1%")
    return float(match[1]) / 100


@dataclass(frozen=True)
class Link:
    """What each direction of a link does to the frames that it carries."""

    rate: int | None = None  # bits per second; None: unlimited
    latency_ns: int = 0
    loss: float = 0.0  # the part of the frames that never arrives

    @property
    def is_forwarded(self):
        """Does a forwarder carry the link? The kernel limits rates, but adds neither latency nor
        loss."""
        return self.latency_ns > 0 or self.loss > 0


def parse_link(text):
    """"1gbit,2ms,0.1%" -> {"rate": 10**9, "latency_ns": 2000000, "loss": 0.001}.

    Units tell what is what, so each may be left out and their order does not matter.
    """
    values = {}
    for word in text.split(","):
        if word.endswith("%"):
            key, value = "loss", parse_loss(word)
        elif _TIME.fullmatch(word):
            key, value = "latency_ns", parse_latency(word)
        else:
            key, value = "rate", parse_rate(word)
        if key in values:
            raise VclusterError(f"link '{text}': the {key.removesuffix('_ns')} is given twice")
        values[key] = value
    return values


@dataclass
class Switch:
    name: str
    nodes: list = field(default_factory=list)
    switches: list = field(default_factory=list)


@dataclass
class Topology:
    """A tree: every host and every switch but the root hangs below exactly one switch."""

    switches: list  # in the order of the file, the root first
    rates: dict = field(default_factory=dict)  # {host or switch: bits per second of the link above}

    @property
    def root(self):
        return self.switches[0].name

    @property
    def hosts(self):
        return [host for switch in self.switches for host in switch.nodes]

    def parents(self):
        """{host or switch: the Switch above it}, without the root."""
        return {child: switch for switch in self.switches
                for child in switch.nodes + switch.switches}


def one_switch(count):
    """`count` hosts n0, n1, ... on one switch s0."""
    if count < 1:
        raise VclusterError(f"--hosts {count}: a cluster has at least one host")
    return Topology([Switch("s0", nodes=[f"n{index}" for index in range(count)])])


def read(path, ucg_topo, unit=None):
    """Topology of a file that the program `ucg_topo` reads: Slurm's topology.conf, or its JSON.
    Slurm gives LinkSpeed no unit: a bare number counts only with the one that a comment of the file
    names, else `unit` ("mbit")."""
    command = [ucg_topo, "cluster", "--format", "json",
               *(["--link-speed-unit", unit] if unit else []), "--", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().removeprefix("ucg_topo: ")
        raise VclusterError(said or f"{ucg_topo} ended with status {done.returncode}")
    return tree_of(json.loads(done.stdout)["nodes"], path)


def tree_of(nodes, source):
    """Topology of ucg_topo's nodes, of which each but the root follows the one above it, if all
    have usable names."""
    switches, rates = {}, {}
    for node in nodes:
        name = node["name"]
        if not _NAME.fullmatch(name):
            raise VclusterError(f"{source}: '{name[:60]}' cannot be the name of a host (letters, "
                                "digits, - and _, at most 63, beginning and ending with a letter "
                                "or digit)")
        is_switch = node["kind"] == "switch"
        if "parent" in node:
            above = switches[node["parent"]]
            (above.switches if is_switch else above.nodes).append(name)
        if is_switch:
            switches[name] = Switch(name)
        if "bytes_per_second" in node:
            rates[name] = 8 * node["bytes_per_second"]
    return Topology(list(switches.values()), rates)


def links(topology, *, rate=None, latency=None, loss=None, overrides=None):
    """{host or switch: the Link above it}.

    The nearest word wins: `overrides` ({name: "1gbit,2ms,0.1%"}, of which any may be left out),
    then the rate that the topology has, then `rate`, `latency` and `loss`, which are for all links.
    """
    overrides = overrides or {}
    parents = topology.parents()
    for name in overrides:
        if name not in parents:
            raise VclusterError(f"--link {name}: no host or switch of this name has a link above")
    common = {"rate": parse_rate(rate) if rate else None,
              "latency_ns": parse_latency(latency) if latency else 0,
              "loss": parse_loss(loss) if loss else 0.0}
    made = {}
    for name in parents:
        file = {"rate": topology.rates[name]} if name in topology.rates else {}
        own = parse_link(overrides[name]) if name in overrides else {}
        made[name] = Link(**{**common, **file, **own})
    return made
