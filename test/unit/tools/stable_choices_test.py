#!/usr/bin/env python3
"""Processes that start on one machine come to the same lengths from which the kernel copies
messages, however busy it is: else a sum's bits would differ from run to run.

usage: stable_choices_test.py UCG_INFO
"""

import collections
import os
import re
import subprocess
import sys

STARTS = 50
LENGTHS = re.compile(r"from (\d+ \w+) on|(never)")


def lengths(info):
    """As `ucg_info -c` tells them, without what was seen of the kernel's copies."""
    environment = {**os.environ, "UCG_PROFILE": "builtin"}
    told = subprocess.run([info, "-c"], capture_output=True, text=True, check=True,
                          env=environment).stdout
    return tuple(match.group() for match in LENGTHS.finditer(told))


def main():
    info = sys.argv[1]
    seen = collections.Counter(lengths(info) for _ in range(STARTS))
    for told, times in seen.most_common():
        print(f"{times} of {STARTS} starts: {'; '.join(told) or 'nothing'}")
    if len(seen) != 1 or not all(seen):
        sys.exit("starts differ, or ucg_info -c tells no lengths")


main()
