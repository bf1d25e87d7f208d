#!/usr/bin/env python3
"""Compares the tables on the front page with what the programs print: settings and measurements.

usage: tables.py ROOT BUILD
"""

import itertools
import json
import os
import re
import subprocess
import sys


def output(words, **environment):
    return subprocess.run(words, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=True).stdout


def rows(text, head):
    """The first names in the rows of the table that has this head."""
    lines = text[text.index(f"| {head} |"):].split("\n\n")[0].splitlines()[2:]
    return [re.match(r"\| `([\w<>]+)", line)[1] for line in lines]


def expand(name, values):
    """All names that a row stands for: <collective>, <variable> and <function> are replaced, in
    either case."""
    found = re.search(r"<(\w+)>", name)
    if not found:
        return {name}
    case = str.upper if found[1].isupper() else str.lower
    return {name.replace(found[0], case(value)) for value in values[found[1].lower()]}


def differences(what, page, program):
    return ([f"{what} {name} is not on the front page" for name in sorted(program - page)]
            + [f"{what} {name} is on the front page alone" for name in sorted(page - program)])


def measured(root, page):
    """Where the front page's table of measurements is not what perf/summary --brief prints. The
    page of perf/measured has the command."""
    with open(os.path.join(root, "perf/measured/README.md"), encoding="utf-8") as file:
        command = re.search(r"^    (perf/summary .+)$", file.read(), re.MULTILINE)[1]
    printed = output(["bash", "-c", f"cd '{root}' && {command} --brief"]).splitlines()
    table = page[page.index(printed[0]):].split("\n\n")[0].splitlines()
    return [f"measured: expected '{want}', found '{got}'"
            for want, got in itertools.zip_longest(printed, table) if want != got]


def main():
    root, build = sys.argv[1:]
    with open(os.path.join(root, "README.md"), encoding="utf-8") as file:
        page = file.read()
    config = json.loads(output([f"{build}/tools/ucg_info", "--config", "--format", "json"]))
    listed = json.loads(output([f"{build}/tools/ucg_plan", "list", "--format", "json"]))
    collectives = {row["collective"] for row in listed}
    variables = set(config["config"])
    # Collectives without algorithms of their own run as alltoallv and neighbor_alltoallv.
    neighbors = {"neighbor_" + name
                 for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")}
    functions = collectives | neighbors | {"alltoallw"}
    values = {"collective": collectives,
              "function": {form.format(name) for form in ("{}", "i{}", "{}_init")
                           for name in functions},
              "variable": {name.removeprefix("UCG_") for name in variables}
              - {name.upper() for name in collectives}}
    told = set().union(*(expand(name, values) for name in rows(page, "variable")))
    problems = differences("variable", told, variables)

    path = output([f"{root}/tools/component_path", build]).strip()
    said = output(["ompi_info", "--param", "coll", "ucg", "--level", "9", "--parsable"],
                  OMPI_MCA_mca_base_component_path=path)
    parameters = set(re.findall(r":param:(coll_ucg_\w+):value:", said))
    told = set().union(*(expand(name, values) for name in rows(page, "MCA parameter")))
    problems += differences("MCA parameter", told, parameters)
    print(f"{len(variables)} variables, {len(parameters)} MCA parameters")
    problems += measured(root, page)
    print("\n".join(problems))
    return 1 if problems or not parameters else 0


if __name__ == "__main__":
    sys.exit(main())
