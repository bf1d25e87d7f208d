#!/usr/bin/env python3
"""What the built libraries show to others: exports.py HEADER LIBUCG LIBUCG_UCX [COMPONENT].

The libraries of a program share one space of names, and Open MPI opens its components in that
space. Any other name that they exported could take the place of another library's function, or
become part of the interface by use.
"""

import re
import subprocess
import sys


def shown(library):
    """The names that a library defines and exports, without versions."""
    output = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                            check=True).stdout
    names = [line.split()[-1] for line in output.splitlines()]
    # The name of a version is a symbol, too, with an address of its own.
    return {name.split("@")[0] for name in names} - {"UCG_0"}


def declared(header):
    """The functions and the data that <ucg/ucg.h> declares and does not define."""
    with open(header, encoding="utf-8") as stream:
        text = re.sub(r"/\*.*?\*/", "", stream.read(), flags=re.DOTALL)
    text = re.sub(r"^ *#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^static inline [^;{]*\{.*?^\}", "", text, flags=re.DOTALL | re.MULTILINE)
    # Parameters have no parentheses of their own.
    return set(re.findall(r"\b(ucg_\w+)\([^()]*\);", text))


def library_names(header):
    """The names that libucg should export."""
    return declared(header) | {"ucg_in_place"}  # An address that ucg_calls.h declares.


def main():
    header, libucg, libucg_ucx, *component = sys.argv[1:]
    functions = declared(header)
    wanted = [(libucg, library_names(header)), (libucg_ucx, {"ucg_ucx_open"})]
    wanted += [(path, {"mca_coll_ucg_component"}) for path in component]
    wrong = 0
    if len(functions) < 20:
        print(f"{header}: only {len(functions)} functions found")
        wrong = 1
    for path, names in wanted:
        found = shown(path)
        print(f"{path}: {len(found)} names")
        if found != names:
            print(f"  more than it should: {sorted(found - names)}")
            print(f"  missing: {sorted(names - found)}")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
