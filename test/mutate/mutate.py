#!/usr/bin/env python3
"""Changes the sources in small ways, one at a time, and tells which changes no test notices.

Everything happens in a copy of the tree with a build folder of its own; the tree itself is only
read. A mutant is built as far as the next test needs it, and it is killed by the first test that
fails; tests that do not depend on the changed file are not run, nor those that fail without a
change.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "tools"))

import command_line  # noqa: E402 (the line above comes first)
from sites import mutants  # noqa: E402
from tree import MutateError, Tree  # noqa: E402

EPILOG = """examples:
  test/mutate/mutate.py --count 20 --areas graph
  test/mutate/mutate.py --seed 7 --count 200 --keep-survivors survivors.diff
  after tests were written for them, those again:
    test/mutate/mutate.py --again survivors.diff

what is changed: comparisons, + and -, the 1 in "+ 1", && and ||, min and max; a statement is
removed; a branch is never taken, or always; a constant is returned. Assertions stay. What the
compiler makes the same code of is no change, and counts neither as killed nor as a survivor.

exit status: 0 when all mutants were tried, whatever survived; 1 where the tree does not build, has
no tests of these suites, or nothing is left to try again, or the system refuses something; 2 for
wrong usage.
"""

# The folders of each area, and the Meson suites that test it, quick ones first.
AREAS = {
    "graph": (("ucg_coll/graph",), ("unit",)),
    "engine": (("ucg_coll/engine",), ("unit",)),
    "shm": (("shm", "ucg_coll/transport/shm"), ("unit", "ranks", "mpi")),
    "ompi": (("ucg_coll/ompi",), ("unit", "ranks", "mpi", "fault", "cluster")),
}
SUITES = ("unit", "ranks", "mpi", "fault", "cluster")
FILE_OF_DIFF = "--- a/"  # The name of the file follows.
KILLED, SURVIVED, SAME_CODE, NOT_COMPILED = "killed", "survived", "same code", "did not compile"
FATES = (KILLED, SURVIVED, SAME_CODE, NOT_COMPILED)


def some_of(known):
    """For argparse: names, separated by commas."""
    def parse(text):
        names = text.split(",")
        wrong = [name for name in names if name not in known]
        if wrong:
            raise argparse.ArgumentTypeError(
                f"expected some of {','.join(known)}; found '{command_line.printable(wrong[0])}'")
        return names

    return parse


def diffs(text):
    """For argparse: a file that --keep-survivors has written."""
    try:
        found = pathlib.Path(text).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(
            f"cannot read {command_line.printable(text)}: "
            f"{getattr(error, 'strerror', None) or 'it is no text'}") from error
    if FILE_OF_DIFF not in found:
        raise argparse.ArgumentTypeError(
            f"there is no mutant in {command_line.printable(text)}; expected diffs, as "
            "--keep-survivors writes them")
    return found


def source_tree(text):
    """For argparse: a folder with this project's sources."""
    folder = pathlib.Path(text)
    places = [place for places, _ in AREAS.values() for place in places]
    if not (folder / "meson.build").is_file() or \
            not any((folder / place).is_dir() for place in places):
        raise argparse.ArgumentTypeError(
            f"{command_line.printable(text)} is no source tree of this project: expected "
            f"meson.build in it, and one of {', '.join(places)}")
    return folder


def arguments(argv):
    """The command line."""
    parser = command_line.Parser(
        prog="mutate.py", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--seed", type=command_line.whole(0, 2**63 - 1), default=1, metavar="N",
        help="which mutants are chosen (default: %(default)s)")
    add("--count", type=command_line.whole(1, 1000000), default=200, metavar="N",
        help="how many, shared out evenly to the areas (default: %(default)s)")
    add("--areas", type=some_of(AREAS), default=list(AREAS), metavar="NAME,...",
        help=f"some of {','.join(AREAS)} (default: all)")
    add("--suites", type=some_of(SUITES), default=SUITES, metavar="NAME,...",
        help=f"no other tests than of these: {','.join(SUITES)} (default: those of the area)")
    add("--jobs", type=command_line.whole(1, 4096), default=os.cpu_count(), metavar="N",
        help="compilers at a time (default: all processors)")
    add("--build", type=pathlib.Path, metavar="FOLDER",
        help="build folder whose options the copy takes over (default: meson's own)")
    add("--work", type=pathlib.Path, metavar="FOLDER",
        help="where the copy lies; it is kept, and the next run starts sooner (default: a "
             "temporary folder)")
    add("--keep-survivors", type=command_line.writable, metavar="FILE",
        help="write their diffs there too")
    add("--again", type=diffs, metavar="FILE",
        help="instead of new ones, try those that --keep-survivors has written")
    add("--time-limit", type=command_line.real(1, 1e6), default=1e6, metavar="SECONDS",
        help="begin no further mutant after this time")
    add("--longest", type=command_line.real(1, 1e6), default=60, metavar="SECONDS",
        help="leave out tests that take longer without a change (default: %(default)s)")
    add("--root", type=source_tree, default=HERE.parents[1], metavar="FOLDER",
        help="the tree (default: this one)")
    return parser.parse_args(argv)


def build_options(folder):
    """The options of a build folder that decide what is built, for `meson setup`."""
    if folder is None:
        return []
    done = subprocess.run(["meson", "introspect", "--buildoptions", str(folder)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MutateError(f"{folder}: no build folder of meson's: {done.stdout[-500:]}")
    kept = ("optimization", "debug", "b_sanitize", "b_ndebug")
    return [f"-D{option['name']}={str(option['value']).lower()}"
            for option in json.loads(done.stdout)
            if option["section"] == "user" or option["name"] in kept]


def sources_of(tree, area):
    """The area's sources, sorted."""
    folders = AREAS[area][0]
    return sorted(path.relative_to(tree.folder).as_posix() for folder in folders
                  for path in (tree.folder / folder).rglob("*")
                  if path.suffix in (".c", ".h", ".cpp", ".hpp"))


def chosen(tree, names, seed, count):
    """The mutants to try, of each area in turn, so that a run that is cut short has covered all
    areas."""
    drawn = []
    for area in names:
        found = [mutant for path in sources_of(tree, area)
                 for mutant in mutants(area, path, tree.text(path))]
        random.Random(f"{seed} {area}").shuffle(found)
        drawn.append(found)
    rounds = [mutant for number in range(max(map(len, drawn), default=0))
              for found in drawn for mutant in found[number:number + 1]]
    return rounds[:count]


def recalled(tree, text):
    """The mutants in a file of diffs."""
    known = {mutant.diff(tree.text(path)): mutant for area in AREAS
             for path in sources_of(tree, area) for mutant in mutants(area, path, tree.text(path))
             if f"{FILE_OF_DIFF}{path}\n" in text}
    parts = [FILE_OF_DIFF + part for part in text.split(FILE_OF_DIFF)[1:]]
    gone = sum(part not in known for part in parts)
    if gone:
        print(f"{gone} of {len(parts)} cannot be made any more: the sources have changed",
              flush=True)
    if gone == len(parts):
        raise MutateError("there is no mutant left to try")
    return [known[part] for part in parts if part in known]


def build(tree):
    """Builds the copy without a change, as far as tests need it."""
    print(f"building the copy: {tree.build}", flush=True)
    files = sorted(set().union(*(test.files for test in tree.tests)))
    if not files:
        raise MutateError("there are no tests of these suites")
    built, output = tree.ninja(files)
    if not built:
        raise MutateError(f"the copy does not build:\n{output[-3000:]}")
    tree.find_needs()


def order(mutant, test):
    """A sorting key for tests: by the area's suites, and within a suite tests named after it
    first, then those that killed mutants of the same file, then those that killed others; short
    tests before long ones."""
    suites = AREAS[mutant.area][1]
    return (suites.index(test.suite), not test.name.startswith(mutant.area),
            -test.killed.count(mutant.path), -len(test.killed), test.seconds or 0)


def fate(tree, mutant, passed, longest):
    """Returns what became of the mutant, and the test that decided. `passed` grows by the tests
    that passed."""
    wanted = [test for test in tree.tests if test.usable and test not in passed
              and test.suite in AREAS[mutant.area][1] and mutant.path in test.sources]
    for test in sorted(wanted, key=lambda test: order(mutant, test)):
        if not tree.ninja(sorted(test.files))[0]:
            return NOT_COMPILED, None
        # A mutant that loops for ever is noticed; a slow test on a busy machine is not one.
        limit = longest if test.seconds is None else max(30.0, 10 * test.seconds)
        done, seconds = tree.passes(test, limit)
        if not done:
            return KILLED, test
        test.seconds = test.seconds or seconds
        passed.append(test)
    return SURVIVED, None


def holds(tree, test, longest):
    """Does the test pass without a change? It is tried once."""
    if test.seconds is None:
        tree.ninja(sorted(test.files))
        test.usable, test.seconds = tree.passes(test, min(longest, test.timeout))
        if not test.usable:
            print(f"  {test.name} is left out: it does not pass within the limit", flush=True)
    return test.usable


def try_one(tree, mutant, longest):
    """Returns what became of the mutant, and a remark; afterwards the file is as it was."""
    text, passed = tree.text(mutant.path), []
    while True:
        tree.write(mutant.path, mutant.apply(text))
        try:
            what, test = fate(tree, mutant, passed, longest)
            code = tree.code(mutant.path) if what == SURVIVED else None
        finally:
            tree.write(mutant.path, text)
        if what == SURVIVED and code == tree.code(mutant.path):
            return SAME_CODE, ""
        if what != KILLED:
            return what, f" {len(passed)} tests" if what == SURVIVED else ""
        if holds(tree, test, longest):
            test.killed.append(mutant.path)
            return what, f" by {test.name}"


def report(fates, survivors):
    """Prints the table, and each survivor."""
    print(f"\n{'area':10}", *(f"{kind:>16}" for kind in FATES))
    for area in AREAS:
        counts = [sum(pair == (area, kind) for pair in fates) for kind in FATES]
        if any(counts):
            print(f"{area:10}", *(f"{count:16}" for count in counts))
    tried = sum(kind in (KILLED, SURVIVED) for _, kind in fates)
    if tried:
        print(f"{len(survivors)} of {tried} survived ({100 * len(survivors) / tried:.1f} %)")
    print("".join(f"\n{diff}" for diff in survivors), end="")


def mutate(args, work):
    """Does the whole run and returns the exit status."""
    tree = Tree(args.root.resolve(), work.resolve(), args.jobs)
    tree.synchronise()
    tree.set_up(build_options(args.build))
    drawn = recalled(tree, args.again) if args.again else \
        chosen(tree, args.areas, args.seed, args.count)
    used = {mutant.area for mutant in drawn}
    tree.find_tests([suite for suite in args.suites
                     if any(suite in AREAS[area][1] for area in used)])
    build(tree)
    begin, fates, survivors = time.monotonic(), [], []
    for number, mutant in enumerate(drawn, 1):
        if time.monotonic() - begin > args.time_limit:
            print(f"the time is over: {len(drawn) - number + 1} were not tried")
            break
        start, text = time.monotonic(), tree.text(mutant.path)
        what, by = try_one(tree, mutant, args.longest)
        fates.append((mutant.area, what))
        print(f"[{number}/{len(drawn)}] {mutant.path}:{mutant.line(text)} {mutant.what}: {what}{by}"
              f" ({time.monotonic() - start:.0f} s)", flush=True)
        if what == SURVIVED:
            survivors.append(mutant.diff(text))
            if args.keep_survivors:
                pathlib.Path(args.keep_survivors).write_text("".join(survivors), encoding="utf-8")
    report(fates, survivors)
    return 0


def main():
    """Runs with the copy in a temporary folder, unless one was named."""
    args = arguments(sys.argv[1:])
    # What runs ends together with this program: a compiler that went on would see the sources
    # change.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if args.work:
        return mutate(args, args.work)
    with tempfile.TemporaryDirectory(prefix="mutate-") as work:
        return mutate(args, pathlib.Path(work))


if __name__ == "__main__":
    sys.exit(command_line.run("mutate.py", main, MutateError, status=1))
