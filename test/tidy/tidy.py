#!/usr/bin/env python3
"""Checks the style guide: include arrows, lengths, banned calls, and what every folder must have.

usage: tidy.py [ROOT]      (default: the repository that this file lies in)

Prints one line for each finding, file:line: reason, and exits with 1 when there are any.
"""

import fnmatch
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass

MAX_COLUMNS = 100
MAX_PAGE_COLUMNS = 120
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70

CXX = {".cpp", ".hpp"}
C = {".c", ".h"}
SOURCE = CXX | C
TEXT = SOURCE | {".py", ".sh", ".build", ".txt", ".map", ""}

TOP_LEVEL = {
    "meson.build", "meson_options.txt", "gcovr.cfg", "README.md", "LICENSE", "NOTICE",
    "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", ".clang-format", ".clang-tidy",
    ".editorconfig", ".gitignore", ".ci", "ucg_coll",
    "shm", "topo", "perf", "test", "tools",
    "debian",  # dpkg's tools look for it in this place only.
}


@dataclass(frozen=True)
class Area:
    """What the files below a folder may include; the longest matching folder counts.

    `ours` are folders or files of this repository (its own folder is always allowed), None for
    all but the Open MPI component. `outside` are families of foreign headers; those without a
    family (standard library, fmt, ...) are free everywhere.
    """

    ours: tuple | None
    outside: frozenset = frozenset()


BASE, TOPO, SHM = "ucg_coll/base", "topo", "shm"
COST, GRAPH, PLAN = "ucg_coll/cost", "ucg_coll/graph", "ucg_coll/plan"
PRICE = "ucg_coll/price"
AAPC = "ucg_coll/aapc"
PLAN_SEES = (BASE, TOPO, COST, PRICE, GRAPH, PLAN + "/algorithm.hpp")
PARTS, MESSAGES, MULTIPLYING, SWITCHES, FLAG_SLOTS, PEERS = (
    PLAN + "/" + name for name in ("parts", "messages", "multiplying", "network", "flag_slots",
                              "peer_memory"))
TRANSPORT = "ucg_coll/transport/transport.hpp"
COMPONENT = "ucg_coll/ompi"

# The table of which area may include which; ucg_coll/ARCHITECTURE.md gives the reasons.
AREAS = {
    BASE: Area((BASE,)),
    TOPO: Area((BASE, TOPO), frozenset({"hwloc"})),
    COST: Area((BASE, TOPO)),
    PRICE: Area((BASE, TOPO, COST, GRAPH)),
    SHM: Area((BASE, TOPO)),
    GRAPH: Area((BASE,)),
    AAPC: Area((BASE,)),
    PLAN: Area((*PLAN_SEES, AAPC)),
    PARTS: Area(PLAN_SEES),
    MULTIPLYING: Area((*PLAN_SEES, PARTS)),
    SWITCHES: Area((*PLAN_SEES, AAPC, PARTS, MESSAGES)),
    MESSAGES: Area((*PLAN_SEES, PARTS, MULTIPLYING, SWITCHES)),
    PLAN + "/levels": Area((*PLAN_SEES, PARTS, MULTIPLYING, MESSAGES, SWITCHES, FLAG_SLOTS, PEERS)),
    PEERS: Area((*PLAN_SEES, PARTS, MESSAGES)),
    FLAG_SLOTS: Area((*PLAN_SEES, PARTS, MESSAGES)),
    "ucg_coll/sim": Area((BASE, TOPO, COST, PRICE, GRAPH)),
    "ucg_coll/engine": Area((BASE, GRAPH, TRANSPORT)),
    "ucg_coll/transport": Area((BASE, GRAPH, TRANSPORT)),
    "ucg_coll/transport/shm": Area((BASE, GRAPH, TRANSPORT, SHM)),
    "ucg_coll/transport/ucx": Area((BASE, GRAPH, TRANSPORT), frozenset({"ucx"})),
    "ucg_coll/capi": Area((TOPO, SHM, "ucg_coll")),
    "ucg_coll/include": Area(()),
    COMPONENT: Area(("ucg_coll/include",), frozenset({"mpi", "openmpi"})),
    "perf": Area(None, frozenset({"ucx"})),
    "perf/collbench": Area(("perf/option_value.h",), frozenset({"mpi"})),
    "perf/apps": Area(("perf/option_value.h",), frozenset({"mpi"})),
    "perf/perftest/mpi": Area(("perf/perftest/timer.hpp", "perf/option_value.h"),
                              frozenset({"mpi"})),
    "perf/aapc": Area(("perf/option_value.h",), frozenset({"mpi"})),
    "perf/recursive_multiplying": Area(("perf/option_value.h",), frozenset({"mpi"})),
    "test": Area(None, frozenset({"ucx", "catch"})),
    "test/mpi": Area((), frozenset({"mpi"})),
    "test/fault": Area((), frozenset({"mpi"})),
    "test/cluster": Area(("ucg_coll/include",), frozenset({"mpi"})),
    "tools": Area(None),
}

FAMILIES = {
    "ucx": re.compile(r"(ucp|uct|ucs|ucm)/"),
    "openmpi": re.compile(r"(ompi|opal|orte|mca|pmix)[/_]"),
    "mpi": re.compile(r"mpi\.h$"),
    "hwloc": re.compile(r"hwloc"),
    "catch": re.compile(r"catch2?/"),
}

# Functions that depend on their arguments alone: they may use neither a clock nor the environment.
PURE = (COST, PRICE, AAPC, PLAN, GRAPH, "ucg_coll/sim")
IMPURE = re.compile(r"<(chrono|ctime|time\.h|sys/time\.h|thread|random)>"
                    r"|\b(getenv|clock_gettime)\b")

LIBRARIES = ("ucg_coll/", "shm/", "topo/")
BANNED = {
    r"(?:strcpy|strcat|sprintf|vsprintf|gets)": "no bounds; use fmt or std::string",
    r"(?:system|popen)": "starts a shell; use posix_spawn",
    r"(?:rand|srand)": "not the same everywhere; use a seeded std::mt19937_64",
    r"(?:atoi|atol|atof)": "errors are lost; use std::from_chars or strtol",
}
BANNED_IN_LIBRARIES = {
    r"(?:exit|_exit|quick_exit)": "a library does not end its host's process; return a Status",
}

# Folders that need a page. Those below test/ mirror the sources or hold data; the page of
# ucg_coll is ARCHITECTURE.md, and the public header is its own.
PAGE_NEEDED = (".", "topo", "shm", "perf", "perf/*", "test", "test/*", "tools", "ucg_coll/*",
               "ucg_coll/plan/*", "ucg_coll/transport/*")
PAGE_ELSEWHERE = ("ucg_coll/include",)


def tree_files(root):
    """Paths, relative to `root`, of all files that belong to the tree, ignored ones left out."""
    if (root / ".git").exists():
        out = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
                              "--exclude-standard"], capture_output=True, check=True).stdout
        names = {name for name in out.decode().split("\0") if name}
        return sorted(pathlib.PurePosixPath(name) for name in names if (root / name).is_file())
    return sorted(pathlib.PurePosixPath(path.relative_to(root).as_posix())
                  for path in root.rglob("*") if path.is_file()
                  and not path.relative_to(root).parts[0].startswith("build"))


def without_comments_and_strings(text):
    """The code with the insides of comments and literals blanked; line numbers stay."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^()\s\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'", re.DOTALL)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def area_of(path):
    """(folder, Area) of the table's row with the longest folder that holds `path`."""
    for folder in [str(parent) for parent in path.parents]:
        if folder in AREAS:
            return folder, AREAS[folder]
    return None, None


def includes(text):
    """(line number, "<" or '"', path) of each #include."""
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match[1], match[2]


def within(path, folders):
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def check_include(path, mark, target, ours):
    """What is wrong with one #include of `path`, None when nothing is."""
    folder, area = area_of(path)
    if folder is None:
        return None
    if mark == '"' and "/" not in target and path.suffix in CXX:
        return f'"{target}": paths begin at the root of the repository'
    name = "ucg_coll/include/" + target if target.startswith("ucg/") else target
    if mark == '"' and str(path.parent / name) in ours:
        name = str(path.parent / name)  # C files name files of their own folder without a path.
    if name in ours:
        if within(name, (COMPONENT,)) and folder != COMPONENT:
            return f'"{target}": the Open MPI component is for Open MPI alone'
        if area.ours is not None and not within(name, area.ours + (folder,)):
            return f'"{target}": {folder} may not include this folder'
        return None
    for family, pattern in FAMILIES.items():
        if pattern.match(target) and family not in area.outside:
            return f"<{target}>: {folder} may not see {family}"
    return None


def check_includes(path, text, ours):
    listed = list(includes(text))
    for number, mark, target in listed:
        reason = check_include(path, mark, target, ours)
        if reason:
            yield number, reason
    own = str(path.with_suffix(".hpp"))
    if path.suffix == ".cpp" and own in ours and listed and listed[0][2] != own:
        yield listed[0][0], f'the own header "{own}" comes first'


# Code that distinguishes ops says what each kind means to it, so that an added kind is an error
# (-Werror=switch).
CLOSED = re.compile(r"\s*case\s+(?:\w+::)*(OpKind|BufferKind|Stride)::\w+\s*:")


def check_switches(code):
    """A default in a switch over the kinds of ops, buffers and strides."""
    open_kinds = []  # For each open brace: the kind that its cases name, if any.
    for number, line in enumerate(code.splitlines(), 1):
        match = CLOSED.match(line)
        if match and open_kinds:
            open_kinds[-1] = match[1]
        elif re.match(r"\s*default\s*:", line) and open_kinds and open_kinds[-1]:
            yield number, f"a switch over {open_kinds[-1]} has no default"
        for brace in re.findall(r"[{}]", line):
            if brace == "{":
                open_kinds.append(None)
            elif open_kinds:
                open_kinds.pop()


def check_code(path, text):
    """Findings in C and C++ other than includes."""
    code = without_comments_and_strings(text)
    if path.suffix == ".hpp" and "#pragma once" not in code:
        yield 1, "a header begins with #pragma once"
    yield from check_switches(code)
    banned = dict(BANNED)
    if str(path).startswith(LIBRARIES) and "example" not in path.parts:
        banned.update(BANNED_IN_LIBRARIES)
    for number, line in enumerate(code.splitlines(), 1):
        for pattern, reason in banned.items():
            match = re.search(rf"(?<![\w.>:])(?:std::|::)?({pattern})\s*\(", line)
            if match:
                yield number, f"{match[1]}(): {reason}"
        if path.suffix == ".hpp" and re.match(r"\s*using namespace\b", line):
            yield number, "using namespace in a header"
        if within(str(path), PURE) and IMPURE.search(line):
            yield number, "a pure function of its arguments sees no clock and no environment"


TYPE = re.compile(r"\b(?:class|struct|union|enum(?:\s+class)?)\s+(?:alignas\([^)]*\)\s*)?(\w+)"
                  r"(?:\s+final)?(?:\s*:(?!:)[^;{}]*)?\s*\{")
NAMESPACE = re.compile(r"\b(?:namespace\b[^;{}=]*|extern\s+[^;{}()]*)\{")


def types_of(text):
    """(line number, name) of each type that a header defines. Those within a type, or within a
    function, are left out: who reads their name reads the outer one with it."""
    code = without_comments_and_strings(text)
    types = {match.end(): match for match in TYPE.finditer(code)}
    spaces = {match.end() for match in NAMESPACE.finditer(code)}
    within_spaces = []  # For each open brace: whether it is a namespace's.
    for brace in re.finditer(r"[{}]", code):
        if brace[0] == "{":
            if brace.end() in types and all(within_spaces):
                match = types[brace.end()]
                yield code.count("\n", 0, match.start()) + 1, match[1]
            within_spaces.append(brace.end() in spaces)
        elif within_spaces:
            within_spaces.pop()


def check_type_names(root, files):
    """(path, line, reason) of types in headers that have the name of another one, whatever the
    namespaces: a name stands for one thing."""
    first = {}
    for path in files:
        if path.suffix not in {".h", ".hpp"}:
            continue
        for number, name in types_of((root / path).read_text(encoding="utf-8")):
            other = first.setdefault(name, f"{path}:{number}")
            if other != f"{path}:{number}":
                yield path, number, f"a type of the name {name} is in {other} already"


# The words are put together here so that this file does not find itself.
FOREIGN_PATH = re.compile(r"(?<![\w.$}\]-])/(?:" + "|".join(("ro" + "ot", "ho" + "me", "wo" + "rk"))
                          + r")/")
OPEN_END = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!\((?:perf|port)\))")


# Rows of tables and commands cannot be broken.
WIDE_LINE = re.compile(r" *\||    ")


def check_text(path, text):
    """Findings in any text file that people write."""
    lines = text.splitlines()
    if len(lines) > MAX_FILE_LINES and path.suffix != ".md":
        yield len(lines), f"{len(lines)} lines; a file has at most {MAX_FILE_LINES}"
    for number, line in enumerate(lines, 1):
        if path.suffix != ".md" and len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns; a line has at most {MAX_COLUMNS}"
        if path.suffix == ".md" and len(line) > MAX_PAGE_COLUMNS and not WIDE_LINE.match(line):
            yield number, f"{len(line)} columns; a page's line has at most {MAX_PAGE_COLUMNS}"
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
        if OPEN_END.search(line):
            yield number, "open ends are marked (perf) or (port), or belong to the issue list"
        if FOREIGN_PATH.search(line):
            yield number, "a path of one machine"
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end of the file"


def check_time_limits(text):
    """Tests of a meson.build without a time limit: Meson's 30 s are too few on a busy machine."""
    code = re.sub(r"'[^'\n]*'|#[^\n]*", "''", text)
    for call in re.finditer(r"^ *test\(", code, re.MULTILINE):
        depth, end = 1, call.end()
        while depth and end < len(code):
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        if not re.search(r"\btimeout:", code[call.end():end]):
            yield code.count("\n", 0, call.start()) + 1, "a test without a timeout"


def check_layout(root, files):
    """(path, line, reason) of findings about the tree rather than about one file's text."""
    for name in sorted({path.parts[0] for path in files} - TOP_LEVEL):
        yield name, 1, "does not belong into the top level"
    for path in files:
        if within(str(path), (COMPONENT,)) and path.suffix in {".cpp", ".hpp", ".cc", ".cxx"}:
            yield path, 1, "the Open MPI component is C11 only"
    folders = {str(parent) for path in files for parent in path.parents}
    wanted = {folder for folder in folders for pattern in PAGE_NEEDED
              if folder.count("/") == pattern.count("/")
              and fnmatch.fnmatchcase(folder, pattern)} - set(PAGE_ELSEWHERE)
    for folder in sorted(wanted):
        if pathlib.PurePosixPath(folder, "README.md") not in files:
            yield folder, 1, "the folder has no README.md"
    users = [path for path in files if path.parts[0] == TOPO and path.suffix in SOURCE and
             any(target.startswith("hwloc") for _, _, target in
                 includes((root / path).read_text(encoding="utf-8")))]
    for path in users[1:]:
        yield path, 1, f"hwloc is seen by one file of topo, which is {users[0]} already"


def function_lengths(root, files):
    """(path, line, name, lines) of every function; None when there is no Universal Ctags."""
    if not shutil.which("ctags"):
        return None
    version = subprocess.run(["ctags", "--version"], capture_output=True, text=True, check=False)
    if "Universal Ctags" not in version.stdout or "json" not in version.stdout:
        return None
    names = [str(path) for path in files if path.suffix in SOURCE]
    if not names:
        return []
    out = subprocess.run(
        ["ctags", "-L", "-", "-f", "-", "--output-format=json", "--fields=+ne", "--langmap=C++:+.h",
         "--kinds-C++=f", "--kinds-C=f"], cwd=root, input="\n".join(names), text=True,
        capture_output=True, check=True).stdout
    tags = [json.loads(line) for line in out.splitlines()]
    return [(tag["path"], tag["line"], tag["name"], tag["end"] - tag["line"] + 1)
            for tag in tags if tag.get("_type") == "tag" and "end" in tag]


def check(root):
    """(findings, remarks) for the tree at `root`; a finding is (path, line, reason)."""
    files = tree_files(root)
    ours = {str(path) for path in files}
    findings, remarks = [*check_layout(root, files), *check_type_names(root, files)], []
    for path in files:
        if "golden" in path.parts or path.suffix not in TEXT | {".md"}:
            continue
        try:
            text = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            findings.append((path, 1, "not UTF-8"))
            continue
        found = list(check_text(path, text))
        if path.suffix in SOURCE:
            found += list(check_includes(path, text, ours)) + list(check_code(path, text))
        if path.name == "meson.build":
            found += list(check_time_limits(text))
        findings += [(path, number, reason) for number, reason in found]
    lengths = function_lengths(root, files)
    if lengths is None:
        remarks.append("NOT CHECKED: function lengths, because Universal Ctags is not installed")
    elif lengths:
        findings += [(path, line, f"{name}() has {count} lines; a function has at most "
                      f"{MAX_FUNCTION_LINES}") for path, line, name, count in lengths
                     if count > MAX_FUNCTION_LINES]
        remarks.append(f"{len(lengths)} functions, median "
                       f"{statistics.median([count for *_, count in lengths]):g} lines")
    return findings, remarks


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                        pathlib.Path(__file__).parents[2]).resolve()
    findings, remarks = check(root)
    for path, line, reason in findings:
        print(f"{path}:{line}: {reason}")
    for remark in remarks:
        print(remark)
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
