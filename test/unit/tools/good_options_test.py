#!/usr/bin/env python3
"""Every option that --help shows, of every subcommand of every ucg_* tool, is given a good value at
least once. The tool must end as documented, and the effect of the option must be visible. The
values are in good_options.py: an option that is missing there is a failure, so that a new one
cannot be forgotten, and so is one that --help no longer shows. Where --help lists the values, all
are tried.
Arguments: the tools.
"""

import concurrent.futures
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
import good_options  # noqa: E402 (the line above must come first)

ENDINGS = {"--help", "--version"}  # All tools have these options, which end them.
WORKERS = 2
# These start two processes that poll: another such pair beside them would take their processors.
ALONE = {"ucg_perftest", "ucg_tune"}


class Failed(Exception):
    pass


def run(command):
    # The environment has none of the caller's settings, and folders for files that a tool writes
    # unasked or for all users.
    settings = {name: value for name, value in os.environ.items()
                if not name.startswith(("UCG_", "UCX_", "XDG_"))}
    settings["XDG_CONFIG_HOME"] = os.path.join(os.getcwd(), f"config{threading.get_ident()}")
    settings["XDG_CONFIG_DIRS"] = os.path.join(os.getcwd(), f"system{threading.get_ident()}")
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False, env=settings)


class Option:
    """An option as --help shows it."""

    def __init__(self, names, kind, about):
        self.names = names.split(",")
        self.name = max(self.names, key=len)
        self.takes_value = bool(kind)
        listed = re.search(r":\{(.*)\}", kind) or re.search(r"^[^;:]*: ((?:[\w.-]+, )+[\w.-]+)"
                                                            r"(?: \(default|;|$)", about)
        self.choices = re.split(r", ?", listed[1]) if listed and kind.startswith("NAME") else []


@functools.cache
def options_of(command):
    text = run([*command, "--help"]).stdout
    # Options begin a line, with a type or far from their text; no line of the examples does.
    found = re.findall(r"^ {1,4}((?:-\w,)?-[-\w]+)( [A-Z][^ \n]*|(?=  |\n))(.*(?:\n {8,}.*)*)",
                       text, re.MULTILINE)
    if not found:
        raise Failed(f"{' '.join(command)} --help shows no option")
    return {option.name: option for option in
            (Option(names, kind.strip(), re.sub(r"\s+", " ", about).strip())
             for names, kind, about in found)}


def commands_of(tool):
    """The tool with each of its subcommands; the tool alone if it has none."""
    text = run([tool, "--help"]).stdout
    found = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    names = re.findall(r"^  ([\w-]+)", found[1], re.MULTILINE) if found else []
    hidden = good_options.BESIDE.get(os.path.basename(tool), [])
    return [(tool, name) for name in names + hidden] + ([] if names else [(tool,)])


class Command:
    """A tool or a subcommand with the values that the table has for it."""

    def __init__(self, words, table):
        self.words = words
        self.options = options_of(words)
        self.table = table

    def name_of(self, word):
        """The long name of an option for any of its names; None if there is no such option."""
        return next((option.name for option in self.options.values()
                     if word.split("=")[0] in option.names), None)

    def line(self, *parts):
        """The words behind the command: of an option that is given twice the last one counts,
        and options that a later one excludes are left out."""
        groups = []
        for part in parts:
            begins = True
            for word in shlex.split(part):
                name = self.name_of(word)
                if name is None and not begins:
                    groups[-1][1].append(word)
                    continue
                begins = False
                left_out = {name} | good_options.EXCLUDES.get(name, set())
                groups = [group for group in groups if group[0] not in left_out]
                groups.append((name, [word]))
        return tuple(word for _, words in groups for word in words)

    @functools.cache
    def output(self, line):
        done = run([*self.words, *line])
        expected = self.table.get("status", {0})
        if done.returncode not in expected or "terminate called" in done.stderr:
            raise Failed(f"{self.shown(line)}: expected status {expected}, found "
                         f"{done.returncode}: {done.stderr.strip()[-300:]}")
        return re.sub(r" in \d+\.\d s$", "", done.stdout, flags=re.MULTILINE)

    def shown(self, line):
        return shlex.join([os.path.basename(self.words[0]), *self.words[1:], *line])

    def check(self, name, trial):
        """Checks one trial: "context | option with value => what is seen"."""
        given, _, effect = trial.partition(" => ")
        context, bar, given = given.rpartition("|")
        before = (self.table.get("base", ""), context if bar else "")
        base, line = self.line(*before), self.line(*before, given)
        if name not in {self.name_of(word) for word in line}:
            raise Failed(f"{self.shown(line)}: this test of {name} does not give it")
        said = self.output(line)
        if effect.startswith("in "):
            path, effect = effect[3:].split(" ", 1)
            with open(path, encoding="utf-8") as file:
                said = file.read()
        if effect == "as before":
            return
        if not effect and said == self.output(base):
            raise Failed(f"{self.shown(line)}: the output is that without {name}")
        if effect and not re.search(effect, said, re.MULTILINE):
            raise Failed(f"{self.shown(line)}: expected '{effect}', found {said[:300]!r}")

    def trials(self):
        """(option, trial) of all trials, and one more for each value that --help lists and no
        trial has."""
        for name, option in self.options.items():
            trials = self.table["options"].get(name, [])
            yield from ((name, trial) for trial in trials if not trial.startswith("elsewhere: "))
            tried = " ".join(trials)
            for choice in option.choices if trials else []:
                if not re.search(rf"(?<![\w.-]){re.escape(choice)}(?![\w-])", tried):
                    context, bar, _ = trials[0].partition("|")
                    yield name, f"{context if bar else ''}| {name} {choice} => as before"

    def forgotten(self):
        known = {name for name, trials in self.table["options"].items() if trials}
        shown = set(self.options) - ENDINGS
        for name in sorted(shown - known):
            yield f"{self.shown(())} {name}: good_options.py has no good value of it"
        for name in sorted(known - shown):
            yield f"{self.shown(())} {name}: good_options.py has it, --help does not show it"


def without_what_is_missing(table):
    """The table without the options that need a program which is not installed; prints their
    names."""
    options = dict(table["options"])
    for name, program in good_options.NEEDS.items():
        if name in options and not shutil.which(program):
            print(f"{program} is not installed: {name} is left out")
            options[name] = ["elsewhere: where it is installed"]
    return {**table, "options": options}


def problem_of(command, name, trial):
    try:
        command.check(name, trial)
    except (Failed, subprocess.TimeoutExpired, OSError) as failure:
        return str(failure)
    return None


def main():
    tools = [os.path.abspath(tool) for tool in sys.argv[1:]]
    problems, count = [], 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        os.chdir(folder)
        good_options.write_files()
        for tool in tools:
            has_simgrid = good_options.has_simgrid(tool)
            for words in commands_of(tool):
                key = " ".join([os.path.basename(tool), *words[1:]])
                if key not in good_options.COMMANDS:
                    problems.append(f"{key}: good_options.py does not know it")
                    continue
                command = Command(words, without_what_is_missing(good_options.COMMANDS[key]))
                problems += command.forgotten()
                trials = [trial for trial in command.trials()
                          if has_simgrid or "simgrid" not in trial[1]]
                count += len(trials)
                mapped = map if os.path.basename(tool) in ALONE else pool.map
                found = mapped(lambda trial, of=command: problem_of(of, *trial), trials)
                problems += [problem for problem in found if problem]
    print(f"{count} good values")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
