#!/usr/bin/env python3
"""Runs every command of every page of the repository, in a copy of it, as a reader would.

usage: commands.py ROOT BUILD

The copy lies below BUILD, since virtual hosts have a /tmp of their own; "build" and "build-check"
in it are BUILD. rules.py says what is run shorter, or not at all and why.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import documents
import rules

SECONDS = 120  # For one command, which takes seconds on an idle machine.

APP = """#include <stdio.h>
#include <mpi.h>
int main(int argc, char** argv) {
    int one = 1, sum = 0, ranks = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    puts(sum == ranks ? "ok" : "wrong");
    return MPI_Finalize();
}
"""
TOPOLOGY = """SwitchName=s0 Nodes=n[0-1]
SwitchName=s1 Nodes=n[2-3]
SwitchName=top Switches=s[0-1]
"""
# Files that are in the copy besides the repository, some of them written by commands.
OWN = "/app\n/build-app.c\n/by-hand.ini\n/clusters\n/pkgconfig\n/topology.conf\n/*.svg\n/*.json\n"
# What the packages of the group "test" add to those of "build" is hidden.
TESTS_ONLY = re.compile(r"(catch2|benchmark|simgrid).*")


class Copy:
    """A copy of the repository without build folders, and the environment of a reader in it."""

    def __init__(self, root, build):
        self.build = os.path.realpath(build)
        self.path = tempfile.mkdtemp(prefix="readme-", dir=self.build)
        for name in os.listdir(root):
            source, target = os.path.join(root, name), os.path.join(self.path, name)
            if documents.SKIPPED.fullmatch(name):
                continue
            if os.path.isdir(source):
                shutil.copytree(source, target, symlinks=True,
                                ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, target)
        for name in ("build", "build-check"):
            os.symlink(self.build, self.file(name))
        self.write("topology.conf", TOPOLOGY)
        self.write("by-hand.ini", "[binaries]\ncmake = 'no-cmake-here'\n")
        self.environment = self.make_environment()
        self.write("build-app.c", APP)
        for words in (["git", "init", "-q"], ["mpicc", "build-app.c", "-o", "app"]):
            done = self.run_bare(words, self.environment)
            if done.returncode != 0:
                raise RuntimeError(f"{words}: {done.stderr}")
        self.write(".git/info/exclude", OWN)
        self.exported = {}  # These come from commands of the current page.

    def file(self, name):
        return os.path.join(self.path, name)

    def write(self, name, text):
        with open(self.file(name), "w", encoding="utf-8") as file:
            file.write(text)

    def make_environment(self):
        """Makes the environment. Open MPI's own variables let it run as root and with more ranks
        than processors."""
        own = {name: value for name, value in os.environ.items()
               if not name.startswith(("OMPI_MCA_", "UCG_"))}
        return {
            **own,
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "PKG_CONFIG_PATH": os.path.join(self.build, "meson-uninstalled"),
            "VCLUSTER_DIR": self.file("clusters"), "VCLUSTER_NAME": f"readme{os.getpid()}",
            "UCG_PROFILE": "builtin", "UCG_NO_PACKAGES": "1",
        }

    def hide_tests(self):
        """For configuring by hand: hides everything except what is needed for that."""
        folder = self.file("pkgconfig")
        os.makedirs(folder, exist_ok=True)
        places = self.run_bare(["pkg-config", "--variable", "pc_path", "pkg-config"],
                               dict(os.environ)).stdout.strip()
        for place in places.split(":"):
            for name in os.listdir(place) if os.path.isdir(place) else []:
                if not TESTS_ONLY.fullmatch(name) and not os.path.lexists(f"{folder}/{name}"):
                    os.symlink(os.path.join(place, name), os.path.join(folder, name))
        return {"PKG_CONFIG_LIBDIR": folder, "PKG_CONFIG_PATH": ""}

    def run_bare(self, words, environment):
        return subprocess.run(words, cwd=self.path, env=environment, stdin=subprocess.DEVNULL,
                              text=True, capture_output=True, timeout=SECONDS, check=False)

    def run(self, text, folder=".", environment=None):
        """(exit status, output) of one line of a shell; all its processes end with it."""
        with tempfile.TemporaryFile("w+", errors="replace") as out:
            process = subprocess.Popen(
                ["bash", "-o", "pipefail", "-c", text], cwd=self.file(folder),
                env={**self.environment, **self.exported, **(environment or {})},
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True)
            try:
                status = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                status = f"no end within {SECONDS} s"
                self.ask_to_end(process)
            except BaseException:
                self.end(process)
                raise
            self.end(process)
            out.seek(0)
            return status, out.read()

    def export(self, text):
        """Adds what the line exports to the environment of the page's later commands; returns
        what is wrong with it."""
        name = text.split("=")[0].removeprefix("export ")
        status, value = self.run(f'{text} && printf %s "${name}"')
        self.exported[name] = value
        return [] if status == 0 and value else [f"status {status}, value '{value}'"]

    @staticmethod
    def ask_to_end(process):
        """Asks mpirun to end, so that it removes the shared memory of its ranks, which SIGKILL
        would leave."""
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            pass

    @staticmethod
    def end(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def remove(self):
        self.run_bare(["tools/vcluster", "down", "--all"], self.environment)
        shutil.rmtree(self.path)


def known_options(copy, text):
    """What is wrong with the options and file names of a command that is not run."""
    words = [word for word in shlex.split(text) if not re.match(r"\w+=", word)]
    program = words[0]
    if program.startswith(("ucg_", "vcluster")):
        program = ("build/tools/" if program.startswith("ucg_") else "tools/") + program
    if program in ("python3", "meson", "salloc", "spack", "srun"):
        return [f"there is no {word}" for word in words[1:]
                if "/" in word and not os.path.exists(copy.file(word))]
    if not os.path.exists(copy.file(program)):
        return [f"there is no {program}"]
    command = [program] + [word for word in words[1:2] if re.fullmatch(r"[a-z]+", word)]
    status, said = copy.run(shlex.join([*command, "--help"]))
    if status != 0:
        return [f"{shlex.join(command)} --help: status {status}: {said[-500:]}"]
    options = [word.split("=")[0] for word in words if re.match(r"--?\w", word)]
    return [f"{shlex.join(command)} --help does not know {option}" for option in options
            if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", said)]


def check(copy, page, text, has_hosts):
    """(how it was treated, what is wrong) for one simple command of a page."""
    rule = rules.rule_of(text)
    if rule is None:
        return "", ["no rule of test/readme/rules.py fits: say there how it is run"]
    if rule.unless:
        return f"not run: {rule.unless}", known_options(copy, text)
    if rule.hosts and not has_hosts:
        return "NOT RUN: no virtual hosts can be made here", []
    run = rules.changed(text, rule)
    environment = copy.hide_tests() if "build-by-hand" in run else None
    if run.startswith("export "):
        return "", copy.export(run)
    status, said = copy.run(run, rule.folder, environment)
    how = "" if run == text else f"as: {run}"
    if status != 0:
        return how, [f"status {status}: {said[-3000:]}"]
    if rule.prints and not re.search(rule.prints, said):
        return how, [f"printed nothing like '{rule.prints}': {said[-3000:]}"]
    if rule.shown:
        lines = copy.run(f"cat {page}")[1].splitlines()
        return how, [f"the page does not show: {line}" for line in said.splitlines()
                     if line not in lines]
    return how, []


def check_examples(copy):
    """What is wrong with the examples in our tools' --help: options that the tools lack."""
    problems, count = [], 0
    for tool in ("info", "plan", "sim", "topo", "tune"):
        program = f"build/tools/ucg_{tool}"
        said = copy.run(f"{program} --help")[1]
        listed = re.search(r"^Subcommands:\n((?:  .*\n)+)", said, re.MULTILINE)
        for name in re.findall(r"^  (\w+)", listed[1], re.MULTILINE) if listed else []:
            said += copy.run(f"{program} {name} --help")[1]
        for text in documents.examples(said):
            count += 1
            problems += [f"ucg_{tool} --help: {text}: {wrong}" for wrong in
                         known_options(copy, text)]
    return problems + ([] if count > 30 else [f"--help showed no more than {count} examples"])


def main():
    root, build = sys.argv[1:]
    commands, stale = documents.commands(root, rules.NOT_COMMANDS)
    problems = [f"rules.py: {page} has no block '{text}' any more" for page, text in stale]
    copy = Copy(root, build)
    try:
        has_hosts = copy.run("tools/vcluster run --hosts 1 -- true")[0] == 0
        done, page = set(), None
        for command in commands:
            if command.page != page:
                page, copy.exported = command.page, {}
            for part in rules.parts(command.text):
                # In the same folder a command may do something else each time.
                # What a page exports is for that page alone.
                if (part in done and not (page.startswith("shm/model") or copy.exported)
                        and not part.startswith("export ")):
                    continue
                done.add(part)
                begin = time.monotonic()
                how, wrong = check(copy, command.page, part, has_hosts)
                print(f"{time.monotonic() - begin:5.1f} s  {command.page}:{command.line}: {part}"
                      + (f"\n         {how}" if how else ""), flush=True)
                problems += [f"{command.page}:{command.line}: {part}: {text}" for text in wrong]
        problems += check_examples(copy)
    finally:
        copy.remove()
    print(f"{len(commands)} commands of {len(documents.pages(root))} pages, "
          f"{len(problems)} problems")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
