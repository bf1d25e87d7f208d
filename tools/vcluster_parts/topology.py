"""Reads Slurm's topology.conf into a checked tree of switches and hosts, and the properties of
its links."""

import re
from dataclasses import dataclass, field

from .errors import VclusterError
from .hostlist import expand

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")
# Key=value, with or without blanks around '=', the value maybe in quotes.
_ASSIGNMENT = re.compile(r'\s*([^\s=]*)\s*=\s*(?:"([^"]*)"(?=\s|$)|([^\s"]\S*)|(?=$))', re.ASCII)
# The unit of bare numbers, as ucg_topo writes it into files that Slurm itself has to accept.
_UNIT = re.compile(r"^# UCG: LinkSpeed is in ([kMG]bit)/s[ \t\r\f\v]*$", re.MULTILINE)
_BLANKS = " \t\r\f\v"
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
    link_speed: str = ""
    line: int = 0


@dataclass
class Topology:
    """A tree: every host and every switch but the root hangs below exactly one switch."""

    switches: list  # in the order of the file
    root: str
    unit: str = ""  # of bare numbers, if the file names one

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
    return check([Switch("s0", nodes=[f"n{index}" for index in range(count)])], "--hosts")


def read(path):
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            return parse(file.read(), path)
    except (OSError, UnicodeDecodeError) as error:
        raise VclusterError(f"{path}: {error}") from error


def parse(text, source):
    """Topology from the text of a topology.conf; messages begin with `source`:line."""
    named = _UNIT.search(text)
    unit = named[1].lower() if named else ""
    tree = check([_parse_line(line, f"{source}:{number}", number, unit)
                  for number, line in _logical_lines(text)], source)
    tree.unit = unit
    return tree


def _logical_lines(text):
    """(number of the first line, text) with comments taken off and continuations joined."""
    pending, first = "", 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.split("#", 1)[0].rstrip(_BLANKS)
        first = first or number
        if line.endswith("\\"):
            pending += line[:-1]
            continue
        if (pending + line).strip():
            yield first, (pending + line).strip()
        pending, first = "", 0
    if pending.strip():
        yield first, pending.strip()


def _parse_line(line, where, number, unit):
    values, position = {}, 0
    while position < len(line):
        match = _ASSIGNMENT.match(line, position)
        if not match:
            word = line[position:].split()[0]
            if word.lower() == "include":
                raise VclusterError(f"{where}: Slurm's 'Include' is not followed: put the lines of "
                                    "that file here")
            raise VclusterError(f"{where}: '{word[:60]}' is not of the form Key=value")
        key, value = match[1].lower(), match[2] if match[2] is not None else match[3]
        if key in ("blockname", "blocksizes"):
            raise VclusterError(f"{where}: '{match[1]}' is of Slurm's plugin topology/block, whose "
                                "files tell of no switches")
        if key not in ("switchname", "nodes", "switches", "linkspeed"):
            raise VclusterError(f"{where}: unknown key '{match[1]}' (SwitchName, Nodes, Switches "
                                "and LinkSpeed are known)")
        if key in values:
            raise VclusterError(f"{where}: '{match[1]}' appears twice")
        if not value:
            raise VclusterError(f"{where}: '{match[1]}' has no value")
        values[key] = value
        position = match.end()
    if "switchname" not in values:
        raise VclusterError(f"{where}: SwitchName is missing")
    try:
        _rate_of(values.get("linkspeed", ""), unit)
        return Switch(values["switchname"],
                      nodes=expand(values["nodes"]) if "nodes" in values else [],
                      switches=expand(values["switches"]) if "switches" in values else [],
                      link_speed=values.get("linkspeed", ""), line=number)
    except VclusterError as error:
        raise VclusterError(f"{where}: {error}") from error


def check(switches, source):
    """Topology of `switches` when they form one tree with usable names, else VclusterError."""
    if not switches:
        raise VclusterError(f"{source}:1: there is no switch")
    by_name = {}
    for switch in switches:
        if switch.name in by_name:
            raise VclusterError(f"{source}:{switch.line}: '{switch.name}' is a switch of line "
                                f"{by_name[switch.name].line} already")
        by_name[switch.name] = switch
    parent = _find_parents(switches, by_name, source)
    if not any(switch.nodes for switch in switches):
        raise VclusterError(f"{source}:{switches[-1].line}: there is no machine")
    roots = [switch for switch in switches if switch.name not in parent]
    if len(roots) > 1:
        raise VclusterError(f"{source}:{roots[1].line}: '{roots[1].name}' and '{roots[0].name}' "
                            f"(line {roots[0].line}) have no switch above them: machines below "
                            "them could not reach one another")
    _check_reach(roots, by_name, parent, source)
    return Topology(switches, roots[0].name)


def _find_parents(switches, by_name, source):
    parent = {}
    for switch in switches:
        where = f"{source}:{switch.line}"
        for name in [switch.name] + switch.nodes:
            if not _NAME.fullmatch(name):
                raise VclusterError(f"{where}: '{name[:60]}' cannot be the name of a host "
                                    "(letters, digits, - and _, at most 63, beginning and ending "
                                    "with a letter or digit)")
        for child in switch.switches:
            if child not in by_name:
                raise VclusterError(f"{where}: switch '{child[:60]}' is not defined")
        for child in switch.nodes + switch.switches:
            if child in parent:
                raise VclusterError(f"{where}: '{child}' hangs below '{parent[child].name}' (line "
                                    f"{parent[child].line}) already")
            parent[child] = switch
        for child in switch.nodes:
            if child in by_name:
                raise VclusterError(f"{where}: '{child}' is a switch of line "
                                    f"{by_name[child].line} already")
    return parent


def _check_reach(roots, by_name, parent, source):
    """Checks that the root reaches everything. Each node has one parent, so a node that it does
    not reach is on a ring or below one."""
    reached, pending = set(), [root.name for root in roots]
    while pending:
        name = pending.pop()
        reached.add(name)
        pending += by_name[name].switches
    lost = [name for name in by_name if name not in reached]
    if not lost:
        return
    seen, name = set(), lost[0]
    while name not in seen:
        seen.add(name)
        name = parent[name].name
    ring = [name]
    while parent[ring[-1]].name != name:
        ring.append(parent[ring[-1]].name)
    line = min(by_name[member].line for member in ring)
    raise VclusterError(f"{source}:{line}: the switches form a ring: " + ", ".join(ring[:10])
                        + (", ..." if len(ring) > 10 else ""))


def links(topology, *, rate=None, latency=None, loss=None, overrides=None, unit=None):
    """{host or switch: the Link above it}.

    The nearest word wins: `overrides` ({name: "1gbit,2ms,0.1%"}, of which any may be left out),
    then LinkSpeed of the switch above, then `rate`, `latency` and `loss`, which are for all links.
    Slurm gives LinkSpeed no unit: a bare number counts only with the one that a comment of the file
    names, else `unit` ("mbit").
    """
    overrides = overrides or {}
    parents = topology.parents()
    for name in overrides:
        if name not in parents:
            raise VclusterError(f"--link {name}: no host or switch of this name has a link above")
    common = {"latency_ns": parse_latency(latency) if latency else 0,
              "loss": parse_loss(loss) if loss else 0.0}
    made = {}
    for name, switch in parents.items():
        speed = _rate_of(switch.link_speed, topology.unit or unit)
        if speed is None and rate:
            speed = parse_rate(rate)
        own = parse_link(overrides[name]) if name in overrides else {}
        made[name] = Link(**{"rate": speed, **common, **own})
    return made


def _rate_of(speed, unit):
    """What LinkSpeed says, in bits per second; None where it says nothing: it is missing or 0, or
    a number without a unit."""
    if re.fullmatch(r"[0-9]+", speed):
        return parse_rate(speed + unit) if unit and int(speed) > 0 else None
    return parse_rate(speed) if speed else None
