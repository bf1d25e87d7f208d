#!/usr/bin/env python3
"""Every numeric option of every ucg_* tool refuses a value that is no number in its range. For
every option with one letter missing the tool names the right option, whatever else is missing. Each
message begins with the command, and ends with where there is help, behind every proposal. The
options are those that --help shows, so a new one cannot be forgotten: its type must be known here.
Arguments: the tools.
"""

import os
import re
import subprocess
import sys

# Wrong values, by the type that --help shows. More are wrong for some ranges; these always are.
WRONG_COUNTS = ["-8", "18446744073709551616", "nan", "8x", "0x10", " 8", "1.5", ""]
WRONG_SIZES = ["-8", "18446744073709551616", "16777216T", "nan", "8x", "+8", "1.5k", "k", ""]
WRONG_REALS = ["-8", "1e999", "nan", "-inf", "inf", "8x", " 8", "0x10", ""]
WRONG_RATES = ["-8", "-8mbit", "1", "nan", "nanmbit", "1e999gbit", "8x", ""]
WRONG_TIMES = ["-8ns", "1", "nan", "nanns", "infns", "1e999s", "8x", ""]
WRONG_PAIRS = ["-8=1us", "nan=1us", "0x1=1us", "1us", ""]
WRONG_LISTS = ["-1..2", "0", "1..2147483648", "x", "2..nan", "4..2", "1.5", ""]
NUMERIC = {
    "N": WRONG_COUNTS, "RANK": WRONG_COUNTS, "COUNT": WRONG_COUNTS, "BASE": WRONG_COUNTS,
    "SIZE": WRONG_SIZES, "BYTES,...": WRONG_SIZES,
    "NUMBER": WRONG_REALS, "SECONDS": WRONG_REALS, "US": WRONG_REALS, "RATE": WRONG_RATES,
    "TIME": WRONG_TIMES, "TIME,...": WRONG_TIMES, "DELAY": WRONG_TIMES,
    "RANGES": WRONG_LISTS, "RANK=TIME,...": WRONG_PAIRS,
}
TEXTUAL = {"NAME", "FILE", "FILE.svg", "TEXT", "LIST", "HOST:PORT", "PATH",
           "NAME,DEVICE,DEVICE,LATENCY,LOSS"}
# A seed is any whole number.
WHOLE = {"--seed"}


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False)


def commands_of(tool):
    """The tool with each of its subcommands; the tool alone if it has none."""
    text = run(tool, "--help").stdout
    found = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    names = re.findall(r"^  ([\w-]+)", found[1], re.MULTILINE) if found else []
    return [[tool, name] for name in names] or [[tool]]


def options_of(command):
    """{option: its type} of all options that take a value."""
    text = run(*command, "--help").stdout
    return {max(names.split(","), key=len): kind for names, kind in
            re.findall(r"^ +((?:-\w,)?--[\w-]+) ([A-Z]\S*)(?<!:)(?=\s)", text, re.MULTILINE)}


def is_framed(command, said):
    """Whether the message begins with the command's name and ends with where there is help."""
    lines = said.splitlines()
    name = " ".join([os.path.basename(command[0]), *command[1:]])
    return len(lines) > 1 and lines[0].startswith(f"{name}: ") and lines[-1].startswith("Run with")


def check(command, option, text, problems):
    """One wrong value: status 2, and a line that names option and value."""
    done = run(*command, f"{option}={text}")
    shown = f"{' '.join(command)} {option}={text!r}"
    if done.returncode != 2:
        problems.append(f"{shown}: expected status 2, found {done.returncode}: "
                        f"{(done.stderr or done.stdout).strip()[:200]}")
    elif option not in done.stderr or not (text in done.stderr or ".." in text):
        problems.append(f"{shown}: the message does not name both: {done.stderr.strip()}")
    elif not re.search("expected|ends before|required|not in", done.stderr):
        problems.append(f"{shown}: it does not say what was expected: {done.stderr.strip()}")
    elif not is_framed(command, done.stderr):
        problems.append(f"{shown}: no name of the command, or no help: {done.stderr.strip()}")


def check_typos(command, problems):
    """Tries each option without its last letter but one: the message must propose the option."""
    count = 0
    names = set(re.findall(r"^ +(?:-\w,)?(--[a-z][\w-]*)", run(*command, "--help").stdout,
                           re.MULTILINE))
    for option in names:
        typed = option[:-2] + option[-1]
        if len(typed) < 6 or typed in names:
            continue
        done = run(*command, typed)
        count += 1
        if (done.returncode != 2 or f"'{typed}'; did you mean --" not in done.stderr
                or not is_framed(command, done.stderr)):
            problems.append(f"{' '.join(command)} {typed}: status {done.returncode}, no proposal: "
                            f"{done.stderr.strip()[:200]}")
    return count


def main():
    problems, checked = [], 0
    for tool in sys.argv[1:]:
        for command in commands_of(tool):
            checked += check_typos(command, problems)
            for option, kind in options_of(command).items():
                if kind in TEXTUAL:
                    continue
                if kind.startswith(("NAME:{", "UNIT:{")):
                    check(command, option, "no_such_name", problems)
                    checked += 1
                    continue
                if kind not in NUMERIC:
                    problems.append(f"{' '.join(command)} {option}: this test does not know the "
                                    f"type {kind}")
                    continue
                for text in WRONG_COUNTS if option in WHOLE else NUMERIC[kind]:
                    check(command, option, text, problems)
                    checked += 1
    print(f"{checked} wrong values")
    print("\n".join(problems))
    # If there were far fewer, --help would not be read correctly.
    return 1 if problems or checked < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
