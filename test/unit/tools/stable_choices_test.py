#!/usr/bin/env python3
"""Processes that start on one machine choose the same lengths from which on the kernel copies
messages, even while others start: otherwise the bits of a sum would differ from run to run.

usage: stable_choices_test.py UCG_INFO
"""

import collections
import concurrent.futures
import os
import re
import subprocess
import sys

STARTS, AT_ONCE = 50, 5
SKIPPED = 77  # Meson expects this status.
LENGTHS = re.compile(r"from (\d+ \w+) on|(never)")


def lengths(info):
    """The lengths that `ucg_info -c` prints, without what it measured of the kernel's copies."""
    environment = {**os.environ, "UCG_PROFILE": "builtin"}
    environment.pop("UCG_CMA", None)
    told = subprocess.run([info, "-c"], capture_output=True, text=True, check=True,
                          env=environment).stdout
    if "the kernel's copies took" not in told:
        print(f"nothing is looked at when a process starts:\n{told}")
        os._exit(SKIPPED)
    return tuple(match.group() for match in LENGTHS.finditer(told))


def main():
    info = sys.argv[1]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as starts:
        seen = collections.Counter(starts.map(lengths, [info] * STARTS))
    for told, times in seen.most_common():
        print(f"{times} of {STARTS} starts: {'; '.join(told) or 'nothing'}")
    if len(seen) != 1 or not all(seen):
        sys.exit("starts differ, or ucg_info -c tells no lengths")


main()
