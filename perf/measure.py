"""What compare, apps/run and apps/programs share: configurations, rounds, medians and spreads.

A configuration is a name, a command that starts ranks, and the program for them. Programs print CSV
with a kind and a size in the first two columns, then a time in microseconds, and "ok" or "WRONG" as
`result`. Configurations take turns, in another order each time (A B, B A, ...), so that the
machine's drift affects all of them alike, and each is the first one equally often. Every run has a
session of its own: the scheduler groups processes by session, and a run in ours would share its
part of the processors with this program.
"""

import csv
import io
import json
import math
import os
import re
import select
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.append(os.path.join(ROOT, "tools"))

import presets  # noqa: E402
from command_line import names, printable, real, whole, writable  # noqa: E402
# Users of this module find these here.
from configurations import (  # noqa: E402, F401
    Configuration, Wrong, find_configurations, fits, openmpi_mpirun, split_command, split_pairs,
    with_component, with_ucg)
from provenance import commit, origin, processor_name, versions  # noqa: E402, F401

RANKS_MAX, ROUNDS_MAX = 4096, 10000
SIZES_MAX = 256 << 20  # This is collbench's limit.

# The time in which a job that is asked to end must end: mpirun needs some seconds to end its ranks.
SECONDS_TO_END = 20


@dataclass
class Sample:
    """One cell of one run."""

    us: float
    # The cache-line ping-pong before and after, in nanoseconds, where it was measured.
    pings: tuple = ()
    bare_us: float | None = None  # collbench's barrier without the operation (cycles) ...
    alone_us: float | None = None  # ... and the operation without that barrier.

    def is_of_cycle(self):
        return self.bare_us is not None and self.alone_us is not None

    def operation_us(self):
        """The time without the barrier of a cycle; below zero where the barrier alone happened to
        take longer."""
        return self.alone_us if self.is_of_cycle() else self.us


@dataclass
class Samples:
    """{configuration: {cell: {round: Sample}}}; a cell is (kind, bytes)."""

    by_name: dict
    problems: list = field(default_factory=list)

    def add(self, name, cell, number, sample):
        self.by_name[name].setdefault(cell, {})[number] = sample

    def cells(self):
        """All cells, in the order of the first configuration that has them."""
        return list(dict.fromkeys(cell for cells in self.by_name.values() for cell in cells))


def add_options(parser):
    parser.add_argument("-n", "--np", type=whole(1, RANKS_MAX), default=2, help="ranks (2)")
    parser.add_argument("--pairs", type=whole(1, ROUNDS_MAX), default=7,
                        help="rounds of each configuration (7)")
    parser.add_argument("--preset", type=names(presets.ALL), metavar="LIST",
                        help=presets.HELP)
    parser.add_argument("--config", action="append", default=[], metavar="NAME=COMMAND",
                        help="a configuration of one's own; the first is the reference")
    parser.add_argument("--program-for", "--benchmark-for", action="append", default=[],
                        metavar="NAME=PROGRAM", help="another build for that configuration")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"),
                        help="build directory (build)")
    parser.add_argument("--timeout", type=real(1, 86400), default=300,
                        help="seconds for one run (300)")
    parser.add_argument("--json", type=writable, metavar="FILE",
                        help="write every measurement there")
    parser.add_argument("--plot", type=writable, metavar="FILE.svg",
                        help="draw the comparison there; needs gnuplot")


def check_options(arguments):
    if arguments.preset and arguments.config:
        raise Wrong("--preset and --config exclude each other")
    check_plot(arguments.plot)


def check_plot(path):
    if path and not shutil.which("gnuplot"):
        raise Wrong("--plot needs gnuplot (Debian: gnuplot-nox)")


# ---- running

def end(process):
    """Ends a job and all its processes, even if more signals come meanwhile: a second Ctrl-C
    must not leave ranks that no process waits for."""
    asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    old = {number: signal.signal(number, signal.SIG_IGN) for number in asked}
    try:
        end_now(process)
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def end_now(process):
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(SECONDS_TO_END)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def wait(process, timeout):
    """Like process.wait(timeout), which looks every 50 ms, but returns as soon as the process
    ends."""
    handle = os.pidfd_open(process.pid)
    try:
        if not select.select([handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(process.args, timeout)
    finally:
        os.close(handle)
    return process.wait()


def execute(command, timeout, errors=None):
    """(exit status or what was wrong, standard output) of one run. Standard error goes to the
    file `errors`, otherwise to ours."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=errors or sys.stderr, env=environment,
                                   start_new_session=True)
        try:
            status = wait(process, timeout)
        except subprocess.TimeoutExpired:
            end(process)
            status = f"no end within {timeout:g} s"
        except BaseException:
            end(process)
            raise
        out.seek(0)
        return status, out.read()


def read_rows(text, head):
    """The rows of the CSV that begins with `head`, up to the first line that is not a row."""
    start = text.find(head)
    if start < 0:
        return []
    reader = csv.DictReader(io.StringIO(text[start:]))
    return [row for row in reader if row.get("result") in ("ok", "WRONG")]


WRONG_USAGE = 2  # The exit status of our programs for wrong usage.


def ordered(items, number):
    """The order in that round. Over twice as many rounds as there are items, each item has each
    place twice; the first item has been measured some per cent slower."""
    first = number // 2 % max(1, len(items))
    rotated = [*items[first:], *items[:first]]
    return rotated[::-1] if number % 2 else rotated


# What the component says at the end of a job (coll_ucg_verbose): calls that it served, and calls
# that it passed on to other components.
COUNTERS = re.compile(r"coll/ucg: rank 0 called (\w+): (\d+) by libucg, (\d+) passed on")


def counters(said):
    """{collective: (calls served, calls passed on)} in the standard error of a job."""
    return {name: (int(taken), int(passed)) for name, taken, passed in COUNTERS.findall(said)}


def pass_on(said):
    """Writes what a job has said to our standard error."""
    sys.stderr.write(printable(said))


def run_and_hear(configuration, options, timeout, hear):
    """(exit status or what was wrong, standard output, counters) of one run. `hear` gets its
    standard error without the lines of the counters, even if the run is interrupted."""
    with tempfile.TemporaryFile("w+", errors="surrogateescape") as errors:
        try:
            status, text = execute(configuration.launch + [configuration.program] + options,
                                   timeout, errors)
        finally:
            errors.seek(0)
            said = errors.read()
            hear("".join(line for line in said.splitlines(keepends=True)
                         if not COUNTERS.search(line)))
    return status, text, counters(said)


def not_served(configuration, status, rows, kind, served):
    """The kinds in the rows that UCG should have served and did not. The rows of a program that
    measures something else than a collective count if UCG served any. A run that failed may have
    ended before it told."""
    if not configuration.expects_ucg or (status != 0 and not served):
        return set()
    kinds = {row[kind] for row in rows}
    if kind == "collective":
        return {name for name in kinds if not served.get(name, (0, 0))[0]}
    return set() if any(taken for taken, _ in served.values()) else kinds


def take_round(samples, configuration, number, options, arguments, head, hear=pass_on):
    """Runs one configuration once and keeps its rows, but for wrong results and for those that
    UCG should have served and did not. `head` begins the CSV; `hear` gets what the run says on
    standard error. Raises Wrong if the program does not know the options: no other round would."""
    if sys.stderr.isatty():
        print(f"\rround {number + 1}: {configuration.name:<12}", end="", file=sys.stderr)
    status, text, served = run_and_hear(configuration, options, arguments.timeout, hear)
    rows = read_rows(text, head)
    if status == WRONG_USAGE and not rows:
        raise Wrong(f"{configuration.name}: {configuration.program} does not accept "
                    f"{shlex.join(options)}: it says why above")
    kind, size = head.split(",")
    where = f"round {number + 1}, {configuration.name}"
    unserved = not_served(configuration, status, rows, kind, served)
    if unserved:
        what = ", ".join(sorted(unserved)) if kind == "collective" else "any collective"
        samples.problems.append(f"{where}: UCG did not serve {what}: the times are left out")
    for row in (row for row in rows if row[kind] not in unserved):
        cell = row[kind], int(row[size])
        problem = wrong_row(row, options)
        if problem:
            samples.problems.append(f"{where}: {cell[0]} of {cell[1]} bytes: {problem}")
        else:
            samples.add(configuration.name, cell, number, sample_of(row))
    if status != 0:
        samples.problems.append(f"{where}: status {status}")
    elif not rows:
        samples.problems.append(f"{where}: no rows")


def wrong_row(row, options):
    """Says why the times of a row cannot count."""
    if row["result"] != "ok":
        return "wrong result"
    if {"cyc", "mpi"} & set(options) and not row.get("alone_us"):
        return "this collbench does not tell the barrier from the operation"
    return ""


def sample_of(row):
    pings = tuple(float(row[name]) for name in ("ping_before_ns", "ping_after_ns")
                  if row.get(name, "nan") != "nan")
    bare, alone = (float(row[name]) if row.get(name) else None for name in ("bare_us", "alone_us"))
    return Sample(float(row.get("median_us") or row["mean_us"]), pings, bare, alone)


def load():
    """The load over 1, 5 and 15 minutes, and the number of other processes that want a processor
    now."""
    with open("/proc/loadavg", encoding="ascii") as file:
        words = file.read().split()
    running = int(words[3].split("/")[0]) - 1  # This process does not count.
    return (f"load {' '.join(words[:3])}, {running} others running now, "
            f"{len(os.sched_getaffinity(0))} processors")


# ---- statistics

# A limit between one way of the ping-pong inside a cache (35-60 ns) and across caches or sockets
# (100-200 ns), over the machines where this was measured.
FAR_NS = 90


def state_of(sample, far_ns):
    """"near" or "far", as the ping-pong says; None if the processors moved meanwhile.

    Without a limit, or without a ping-pong, every sample is in the same state "any".
    """
    if far_ns is None or not sample.pings:
        return "any"
    states = {"far" if ping >= far_ns else "near" for ping in sample.pings}
    return states.pop() if len(states) == 1 else None


def is_told(samples):
    """Can the operation be told beside the barrier of its cycle? All samples of a cell decide: the
    median without the shortest of them would be too long."""
    cycles = [sample for sample in samples if sample.is_of_cycle()]
    return not cycles or (statistics.median(sample.alone_us for sample in cycles)
                          >= statistics.median(sample.bare_us for sample in cycles) / 20)


def by_state(rounds, far_ns, wanted="any"):
    """{state: {round: us}} of one configuration's {round: Sample} of one cell; moved ones are left
    out, with "near" or "far" those of the other state, and all of a state in which the operation
    takes too little beside the barrier of its cycle."""
    found = {}
    for number, sample in sorted(rounds.items()):
        state = state_of(sample, far_ns)
        if state and wanted in ("any", state):
            found.setdefault(state, {})[number] = sample
    return {state: {number: sample.operation_us() for number, sample in of_state.items()}
            for state, of_state in found.items() if is_told(of_state.values())}


def not_told(samples, far_ns, wanted="any"):
    """The cells of which a configuration has samples, but none that can be told beside the
    barrier."""
    return [cell for cell in samples.cells() for cells in samples.by_name.values()
            if (rounds := cells.get(cell)) and not by_state(rounds, far_ns, wanted)
            and not is_told(rounds.values())]


def neighbours(ours, theirs):
    """Ratios of our samples, {round: us}, to those samples of theirs that are nearest in time."""
    ratios = []
    for number, us in ours.items():
        nearest = min(theirs, key=lambda other: (abs(other - number), other))
        if theirs[nearest] > 0:
            ratios.append(us / theirs[nearest])
    return ratios


def whole_cycles(samples, cell):
    """The times of a cell in modes of collbench that time cycles: the bare barrier's median time
    over all runs, and {name: median time of the cycles of barrier and operation}; (None, {}) in
    other modes."""
    bare, times = [], {}
    for name, cells in samples.by_name.items():
        known = [s for s in cells.get(cell, {}).values() if s.bare_us and s.alone_us is not None]
        if known:
            bare += [sample.bare_us for sample in known]
            times[name] = statistics.median(sample.us for sample in known)
    return statistics.median(bare) if bare else None, times


def spread(values):
    """The median and, relative to it, half the distance of the quartiles; where values are too
    few for quartiles, half the distance of the extremes, and None for a single value."""
    middle = statistics.median(values)
    if len(values) < 2 or middle == 0:
        return middle, None
    low, high = min(values), max(values)
    if len(values) >= 4:
        low, _, high = statistics.quantiles(values, n=4)
    return middle, (high - low) / 2 / middle


@dataclass(frozen=True)
class Ratio:
    """The comparison of a configuration with the reference of its cell."""

    medians: float  # The ratio of the two medians over all rounds ...
    pairs: float  # ... and the median of the ratios of rounds that are nearest in time, ...
    spread: float | None  # ... with half the distance of their quartiles, relative to it.


@dataclass
class Row:
    """A cell in one state, compared."""

    cell: tuple
    state: str | None  # None: the processors moved in every round, and there are no figures.
    rounds: int  # The number of the configuration that has the fewest.
    medians: dict  # {name: us}
    best: str = ""  # The stock configuration with the lowest median.
    ratios: dict = field(default_factory=dict)  # {name: Ratio} of the others to it.
    bare_us: float | None = None  # The bare barrier, over all rounds ...
    cycles: dict = field(default_factory=dict)  # ... {name: us of whole cycles}.

    def cycle_ratio(self, name):
        """The ratio of whole cycles to those of the best configuration; None where there were
        none."""
        if name not in self.cycles or self.best not in self.cycles:
            return None
        return self.cycles[name] / self.cycles[self.best]


def compare_cell(cell, state, series, configurations):
    """`series` is {name: {round: us}} of all samples in that state."""
    medians = {name: statistics.median(rounds.values()) for name, rounds in series.items()}
    row = Row(cell, state, min(map(len, series.values())), medians)
    stock = [c.name for c in configurations if c.stock and c.name in series]
    if stock:
        row.best = min(stock, key=medians.get)
        for name in (c.name for c in configurations if not c.stock and c.name in series):
            ratios = neighbours(series[name], series[row.best])
            if ratios:
                row.ratios[name] = Ratio(medians[name] / medians[row.best], *spread(ratios))
    return row


def compare_cells(samples, configurations, far_ns=None, wanted="any", rounds_min=1):
    """Rows for all cells. A cell has a row for the state that all configurations were in most
    often, and for other states that each was in for `rounds_min` rounds; or only for the `wanted`
    state."""
    rows = []
    for cell in samples.cells():
        series = {}
        for name, cells in samples.by_name.items():
            for state, rounds in by_state(cells.get(cell, {}), far_ns, wanted).items():
                series.setdefault(state, {})[name] = rounds
        found = [compare_cell(cell, state, of_state, configurations)
                 for state, of_state in series.items()]
        found.sort(key=lambda row: (-len(row.medians), -row.rounds))
        rows += [row for i, row in enumerate(found)
                 if i == 0 or (row.ratios and row.rounds >= rounds_min)]
        if not found:
            rows.append(Row(cell, None, 0, {}))
    for row in rows:
        row.bare_us, row.cycles = whole_cycles(samples, row.cell)
    return rows


# ---- output

def ratio_columns(ratio):
    if ratio is None:
        return f" {'-':>10} {'-':>9}      "
    around = 6 * " " if ratio.spread is None else f" +-{ratio.spread * 100:>2.0f}%"
    return f" {ratio.medians:>10.3f} {ratio.pairs:>9.3f}{around}"


def print_rows(rows, configurations, kind, width=22):
    """Prints the table; it has columns for state and best configuration where these differ, and
    for the bare barrier where it was measured."""
    stock = [c.name for c in configurations if c.stock]
    others = [c.name for c in configurations if not c.stock]
    against = stock[0] if len(stock) == 1 else "best"
    width = max([width, *(len(row.cell[0]) for row in rows)])
    gated = any(row.state != "any" for row in rows)
    line = f"{kind:<{width}} {'bytes':>9}" + (f" {'state':>8}" if gated else "")
    line += "".join(f" {c.name + ' us':>12}" for c in configurations)
    line += f" {'best':>10}" if len(stock) > 1 else ""
    line += "".join(f" {name + '/' + against:>10} {'pairs':>9}      " for name in others)
    cycles = any(row.bare_us for row in rows)
    if cycles:
        line += f" {'bare us':>10}" + "".join(f" {name + ' cycle':>14}" for name in others)
    print(line.rstrip())
    for row in rows:
        line = f"{printable(row.cell[0]):<{width}} {row.cell[1]:>9}"
        line += f" {row.state + ' ' + str(row.rounds) if row.state else '-':>8}" if gated else ""
        for c in configurations:
            us = row.medians.get(c.name)
            line += f" {'-':>12}" if us is None else f" {us:>12.3f}"
        line += f" {row.best or '-':>10}" if len(stock) > 1 else ""
        for name in others:
            line += ratio_columns(row.ratios.get(name))
        if cycles:
            line += f" {row.bare_us or math.nan:>10.3f}"
            line += "".join(f" {row.cycle_ratio(name) or math.nan:>14.3f}" for name in others)
        print(line.rstrip())


def write_json(path, samples, configurations, loads, build):
    cells = {name: [{"kind": cell[0], "bytes": cell[1], "round": number, "us": sample.us,
                     "ping_ns": list(sample.pings), "bare_us": sample.bare_us,
                     "alone_us": sample.alone_us, "operation_us": sample.operation_us()}
                    for cell, rounds in of_name.items() for number, sample in rounds.items()]
             for name, of_name in samples.by_name.items()}
    commands = {c.name: shlex.join(c.launch + [c.program]) for c in configurations}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"commands": commands, "processor": processor_name(), "commit": commit(),
                   "versions": versions(build, configurations), "load": loads,
                   "samples": cells}, file, indent=1)


def print_problems(samples):
    for problem in samples.problems:
        print(f"# {printable(problem)}")
    return 1 if samples.problems else 0
