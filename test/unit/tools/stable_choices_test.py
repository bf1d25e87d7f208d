#!/usr/bin/env python3
"""Processes that start on one machine choose the same lengths from which on the kernel copies
messages, even while others start: otherwise the bits of a sum would differ from run to run.

What a start finds by itself is one of few lengths.

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
CHOICE = re.compile(r"single copies +(.+?) \((built in|found)")
LISTED = ("from 16 KiB on", "from 64 KiB on", "from 4 MiB on", "from 1 GiB on")


def choices(info):
    """What `ucg_info -c` says of single copies: their length, whether it is built in or found, and
    all lengths; without what it measured of the kernel's copies."""
    environment = {**os.environ, "UCG_PROFILE": "builtin"}
    environment.pop("UCG_CMA", None)
    told = subprocess.run([info, "-c"], capture_output=True, text=True, check=True,
                          env=environment).stdout
    if "the kernel's copies took" not in told:
        print(f"nothing is looked at when a process starts:\n{told}")
        os._exit(SKIPPED)
    length, origin = CHOICE.search(told).groups()
    return length, origin, tuple(match.group() for match in LENGTHS.finditer(told))


def start_all(info):
    """Counts what the starts chose, and prints it."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as starts:
        seen = collections.Counter(starts.map(choices, [info] * STARTS))
    for (_, origin, told), times in seen.most_common():
        print(f"{times} of {STARTS} starts, {origin}: {'; '.join(told)}", flush=True)
    unknown = [length for length, origin, _ in seen if origin == "found" and length not in LISTED]
    built_in = {length for length, origin, _ in seen if origin == "built in"}
    if unknown:
        sys.exit(f"found, but none of those that are looked at: {unknown}")
    if len(built_in) > 1:
        sys.exit(f"built in, but not the same: {built_in}")
    return seen


def main():
    info = sys.argv[1]
    if len(start_all(info)) != 1:
        sys.exit("starts differ")


main()
