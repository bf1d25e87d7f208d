#!/usr/bin/env python3
"""The page of the manual of a script: manual.py NAME VERSION SUMMARY PROGRAM, which knows --help.

The page has the lines of --help as they are. The program is called by the name that it has once it
is installed, so that it speaks of itself by that.
"""

import os
import re
import subprocess
import sys
import tempfile


def roff(text):
    """Escapes a text for roff: a backslash and a dash stand for themselves, and no line is a
    request."""
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"),
                  flags=re.MULTILINE)


def help_of(name, program):
    with tempfile.TemporaryDirectory() as folder:
        link = os.path.join(folder, name)
        os.symlink(os.path.abspath(program), link)
        # argparse breaks lines at the width of the terminal, and no manual page is wider than this.
        said = subprocess.run([link, "--help"], env={**os.environ, "COLUMNS": "80"}, text=True,
                              capture_output=True, check=True).stdout
    # The names of programs in the source tree, in examples.
    return re.sub(r"(?<![\w/-])(perf|tools)/(compare|component_path|vcluster)\b", r"ucg_\2", said)


def main():
    name, version, summary, program = sys.argv[1:]
    print(f'.TH "{name}" 1 "" "UCG {version}" "UCG"\n.SH NAME\n{roff(name)} \\- {roff(summary)}\n'
          f".SH DESCRIPTION\n.nf\n{roff(help_of(name, program).rstrip())}\n.fi")


if __name__ == "__main__":
    main()
