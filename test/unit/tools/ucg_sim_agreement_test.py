#!/usr/bin/env python3
"""Holds what `ucg_sim agreement` finds against bounds: how close the planner's prices of algorithms
come to the simulation of their schedules, and how good the planner's choices are.

usage: ucg_sim_agreement_test.py UCG_SIM BOUNDS

BOUNDS is ucg_sim_agreement_bounds.txt, which explains itself.
"""

import collections
import json
import re
import subprocess
import sys

AT_LEAST = ("within_10", "within_25", "good_choices")
AT_MOST = ("worst_regret", "mean_regret", "rival")


def bounds_of(path):
    """({placement: {figure: bound}}, {(placement, collective, algorithm): bound of rivals})"""
    placements, rows, columns = {}, {}, None
    with open(path, encoding="ascii") as stream:
        for line in stream:
            first, *others = re.split(r"\s{2,}", line.strip())
            if not first or first.startswith("#"):
                continue
            if first == "placement":
                columns = others
            elif columns == ["algorithm", "rival"]:
                rows[(first, *others[0].split())] = float(others[1])
            else:
                placements[first] = dict(zip(columns, map(float, others), strict=True))
    return placements, rows


def agreement(tool, placements):
    """The summaries and the cells of these placements, in per cent."""
    found = collections.defaultdict(list)
    for begin in sorted({" ".join(name.split()[:2]) for name in placements}):
        told = subprocess.run([tool, "agreement", "--placement", begin, "--format", "json"],
                              capture_output=True, text=True, check=True).stdout
        for key, values in json.loads(told).items():
            found[key] += values
    return found["placements"], found["cells"]


def text(cell):
    return (f"{cell['placement']}, {cell['collective']} {cell['algorithm']} of {cell['bytes']} "
            f"bytes: price {cell['planned_ns']:.0f} ns, simulated {cell['simulated_ns']:.0f} ns")


def worst_cells(cells, figure):
    """The cells that make a figure bad, for whoever looks for the reason."""
    key = "deviation" if figure.startswith("within") else "regret"
    worst = sorted(cells, key=lambda cell: -cell[key])[:5]
    return "".join(f"\n    {text(cell)}, {key} {100 * cell[key]:.1f} %, best {cell['best'] or '?'}"
                   for cell in worst)


def check_summary(summary, bounds, cells):
    """What a placement's figures are wrong in."""
    for figure in (*AT_LEAST, *AT_MOST[:2]):
        value = 100 * summary[figure]
        if (value < bounds[figure]) if figure in AT_LEAST else (value > bounds[figure]):
            yield (f"{summary['placement']}: {figure} is {value:.2f} %, the bound "
                   f"{bounds[figure]:g} %{worst_cells(cells, figure)}")


def check_rivals(cells, bounds, rows):
    """The rivals whose prices are further off than they may be."""
    for cell in cells:
        bound = rows.get((cell["placement"], cell["collective"], cell["algorithm"]),
                         bounds["rival"])
        if cell["rival"] and 100 * cell["deviation"] > bound:
            yield f"{text(cell)}: off by {100 * cell['deviation']:.0f} %, the bound is {bound:g} %"


def main():
    tool, path = sys.argv[1:]
    placements, rows = bounds_of(path)
    summaries, cells = agreement(tool, placements)
    unknown = ({name for name, *_ in rows} | set(placements)) ^ {
        summary["placement"] for summary in summaries}
    wrong = [f"bounds and placements differ: {unknown}"] if unknown else []
    for summary in summaries:
        name = summary["placement"]
        own = [cell for cell in cells if cell["placement"] == name]
        if name in placements:
            wrong += check_summary(summary, placements[name], own)
            wrong += check_rivals(own, placements[name], rows)
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
