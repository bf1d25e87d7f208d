#!/usr/bin/env python3
"""Feeds each fuzz target of a build for some seconds, beginning with its kept corpus.

usage: run.py [options] BUILD [TARGET...]

  --seconds N   for each target (10)
  --jobs N      targets at a time (processors)
  --seed N      the same variants again; 0: others each time (0)

TARGET is a name of test/fuzz/corpus; without one all are run. What a target fails on stays in
BUILD/fuzz/TARGET, for TARGET_fuzz to read it again. Exit status: 0 all survived, 1 not, 2 wrong
usage.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "tools"))

import command_line  # noqa: E402

# hwloc does not free what it has allocated for a wrong description.
LEAKS = {"machine"}
# A target that starts slowly, under sanitizers and beside others, must not be taken for one that
# hangs.
SECONDS_MORE = 120


def parse_arguments():
    known = sorted(os.listdir(os.path.join(HERE, "corpus")))
    parser = command_line.Parser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("targets", metavar="TARGET", nargs="*")
    parser.add_argument("--seconds", type=command_line.whole(1, 86400), default=10)
    parser.add_argument("--jobs", type=command_line.whole(1, 9999), default=os.cpu_count())
    parser.add_argument("--seed", type=command_line.whole(0, 2**31 - 1), default=0)
    arguments = parser.parse_args()
    for name in arguments.targets:
        if name not in known:
            parser.error(f"no target '{name}'; there are: {', '.join(known)}"
                         + command_line.did_you_mean(name, known))
    arguments.targets = arguments.targets or known
    return arguments


def fuzz(arguments, name):
    """Returns whether the target survived, and a line about it."""
    program = os.path.join(arguments.build, "test", "fuzz", name + "_fuzz")
    finds = os.path.join(arguments.build, "fuzz", name)
    os.makedirs(finds, exist_ok=True)
    with tempfile.TemporaryDirectory() as grown:  # New inputs go to the first folder.
        command = [program, f"-max_total_time={arguments.seconds}", "-timeout=10",
                   f"-artifact_prefix={finds}/", f"-seed={arguments.seed}", grown,
                   os.path.join(HERE, "corpus", name)]
        leaks = {"ASAN_OPTIONS": "detect_leaks=0"} if name in LEAKS else {}
        try:
            done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace",
                                  check=False, env={**os.environ, **leaks},
                                  timeout=arguments.seconds + SECONDS_MORE)
        except OSError as error:
            return False, f"{name}: {error.strerror}: {program}; build the target fuzzers by clang"
        except subprocess.TimeoutExpired:
            return False, f"{name}: no end after {arguments.seconds + SECONDS_MORE} s"
    if done.returncode != 0:
        return False, f"{name}: FAILED, see {finds}\n{done.stderr[-4000:]}"
    runs = re.search(r"Done (\d+) runs", done.stderr)
    return True, f"{name}: {int(runs[1]):,} inputs" if runs else f"{name}: survived"


def main():
    arguments = parse_arguments()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for survived, line in pool.map(lambda name: fuzz(arguments, name), arguments.targets):
            failed += not survived
            print(command_line.printable(line) if survived else line, flush=True)
    print(f"{len(arguments.targets) - failed} survived, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(command_line.run("run.py", main, OSError))
