#!/usr/bin/env python3
"""Runs clang-tidy on sources, but not on those that were clean before with the same contents.

usage: clang_tidy.py [--seconds N] BUILD-DIRECTORY JOBS SOURCE...

With --seconds it begins no source after so long, and its last line names how many it left out.

What a source is judged by: its text, that of the project's headers which it includes, as the build
has recorded them, its definitions, .clang-tidy and the version of clang-tidy. A stamp for each
clean judgement lies below $XDG_CACHE_HOME or ~/.cache; a finding leaves none. Run it in the root of
the project, after a build.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time

TOOL = "clang-tidy"


def stamps():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(base, "ucg", "clang-tidy")
    os.makedirs(folder, exist_ok=True)
    return folder


def recorded_headers(build):
    """{object: files of the project that it was made from}, from ninja's log of dependencies."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True,
                          check=True).stdout
    headers, current = {}, None
    for line in text.splitlines():
        if line and not line.startswith(" "):
            current = headers.setdefault(line.split(": #deps")[0], [])
        elif line.strip():
            path = os.path.normpath(os.path.join(build, line.strip()))
            if not os.path.isabs(line.strip()) and not path.startswith(".."):
                current.append(path)
    return headers


def commands(build):
    """{source: (object, definitions)} of everything that is compiled, and a folder with a
    database in which each source has an entry of its own: for a source without an entry
    clang-tidy guesses the options and lacks the definitions."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    found, listed = {}, []
    for entry in entries:
        file = os.path.join(entry["directory"], entry["file"])
        words = [word for word in shlex.split(entry["command"]) if word.startswith(("-D", "-std"))]
        for source in parts_of(file):
            found.setdefault(os.path.relpath(source), (entry["output"], words))
            command = entry["command"].replace(shlex.quote(entry["file"]), shlex.quote(source))
            listed.append({**entry, "file": source, "command": command})
    folder = os.path.join(build, "clang-tidy")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as file:
        json.dump(listed, file, indent=1)
    return found, folder


def parts_of(file):
    """The sources that Meson compiles together as one file of its own, or else the file."""
    if not re.search(r"-unity\d+\.cpp$", file):
        return [file]
    with open(file, encoding="utf-8") as text:
        return re.findall(r"^#include *[<\"](.*)[>\"]", text.read(), re.MULTILINE)


def key_of(source, command, headers, common):
    """A key of everything that a judgement depends on. None for a source that the build does not
    know: it is judged every time."""
    output, words = command
    if output not in headers:
        return None
    digest = hashlib.sha256(common)
    digest.update(" ".join(words).encode())
    for path in [source, *sorted(set(headers[output]))]:
        if os.path.exists(path):
            with open(path, "rb") as file:
                digest.update(path.replace(os.sep, "/").encode() + b"\0" + file.read())
    return digest.hexdigest()


def judge(database, source, stamp):
    """Returns clang-tidy's findings; writes a stamp if there are none."""
    done = subprocess.run([TOOL, "-quiet", "-p", database, source], capture_output=True, text=True,
                          check=False)
    if done.returncode == 0 and not done.stdout.strip():
        if stamp:
            with open(stamp, "w", encoding="utf-8"):
                pass
        return ""
    return done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("build")
    parser.add_argument("jobs", type=int)
    parser.add_argument("sources", nargs="*")
    given = parser.parse_args()
    build, sources, end = given.build, given.sources, time.monotonic() + given.seconds
    with open(".clang-tidy", "rb") as file:
        common = file.read()
    common += subprocess.run([TOOL, "--version"], capture_output=True, check=True).stdout
    (known, database), headers, folder = commands(build), recorded_headers(build), stamps()
    due = []
    for source in sources:
        if source in known:  # Only compiled sources can be checked.
            key = key_of(source, known[source], headers, common)
            stamp = key and os.path.join(folder, key)
            if not stamp or not os.path.exists(stamp):
                due.append((source, stamp))
    print(f"{len(due)} of {len(sources)} sources to look at", flush=True)
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        findings = list(pool.map(
            lambda item: judge(database, *item) if time.monotonic() < end else None, due))
    for text in filter(None, findings):
        print(text)
    if None in findings:
        print(f"{findings.count(None)} of {len(sources)} sources NOT LOOKED AT: no time")
    return 1 if any(findings) else 0


if __name__ == "__main__":
    sys.exit(main())
