"""A copy of the tree with a build folder of its own, in which mutants are built and tested."""

import ctypes
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tidy"))

from tidy import tree_files  # noqa: E402 (the line above comes first)

# The limit for a mutant that allocates without end. Tests reserve address space by terabytes, so
# only memory that is written can be limited.
DATA_MAX = 12 << 30
OUTPUT_MAX = 1 << 30
PR_SET_CHILD_SUBREAPER = 36


class MutateError(Exception):
    """An error that stops the whole run; its text is for people."""


@dataclass
class Test:
    """One of meson's tests."""

    name: str
    suite: str
    files: frozenset  # The files of the build that it needs, relative to the build folder.
    timeout: float
    objects: frozenset = frozenset()  # The objects that those are made of.
    sources: frozenset = frozenset()  # The sources that those are compiled from.
    seconds: float | None = None  # Known once it has passed, or has failed without a change.
    usable: bool = True
    killed: list = field(default_factory=list)  # The paths of the mutants that it has killed.


def limits():
    """Limits everything that a mutant starts."""
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_MAX, DATA_MAX))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_MAX, OUTPUT_MAX))


def adopt():
    """Makes this process the parent of orphans among its descendants."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise MutateError(f"prctl: {os.strerror(ctypes.get_errno())}")


def end_children():
    """Ends all children, and their children once they have become this process's: mpirun makes a
    session of its own."""
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
    while found := children.read_text(encoding="ascii").split():
        for child in map(int, found):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def run(command, folder, limit):
    """(status, output); the status is None where the limit in seconds was reached. Everything that
    the command started is ended with it."""
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=environment, start_new_session=True,
                          preexec_fn=limits) as process:
        try:
            output = process.communicate(timeout=limit)[0]
            return process.returncode, output.decode(errors="replace")
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            end_children()


class Tree:
    """The copy of the tree `root` in the folder `work`."""

    def __init__(self, root, work, jobs):
        self.root, self.folder, self.jobs = root, work / "tree", jobs
        self.build = self.folder / "build"
        self.tests = []
        self.compiled = {}  # The sources of each object.
        adopt()

    def synchronise(self):
        """Brings the copy up to date with the tree; files that are the same keep their times and
        are not built again."""
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        names = {str(path) for path in tree_files(self.root)}
        for name in names:
            source, target = self.root / name, self.folder / name
            if not target.exists() or target.read_bytes() != source.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
            shutil.copymode(source, target)
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder).as_posix()
            if path.is_file() and name not in names and not name.startswith(("build/", "tmp/")):
                path.unlink()

    def text(self, path):
        """The text of a file."""
        return (self.folder / path).read_text(encoding="utf-8")

    def write(self, path, text):
        """Changes a file of the copy."""
        (self.folder / path).write_text(text, encoding="utf-8")

    def set_up(self, options):
        """Configures the build folder, once."""
        if not (self.build / "build.ninja").exists():
            status, output = run(["meson", "setup", *options, str(self.build)], self.folder, 600)
            if status != 0:
                raise MutateError(f"the copy cannot be configured:\n{output[-2000:]}")

    def find_tests(self, suites):
        """The tests of the suites, in their order, with the parts of the build that each needs."""
        targets = {target["id"]: target["filename"] for target in self.introspect("--targets")}
        built = {name for names in targets.values() for name in names}
        for entry in self.introspect("--tests"):
            found = [name.split(":")[-1] for name in entry["suite"]]
            suite = next((name for name in suites if name in found), None)
            if suite is None:
                continue
            words = [word for word in entry["cmd"] if word in built]
            words += [name for key in entry["depends"] for name in targets.get(key, [])]
            files = frozenset(os.path.relpath(word, self.build) for word in words)
            self.tests.append(Test(entry["name"], suite, files, entry["timeout"]))
        self.tests.sort(key=lambda test: suites.index(test.suite))

    def introspect(self, what):
        """One of the lists that Meson prints about a build folder."""
        status, output = run(["meson", "introspect", what, str(self.build)], self.folder, 60)
        if status != 0:
            raise MutateError(f"meson introspect {what} failed:\n{output[-2000:]}")
        return json.loads(output)

    def ninja(self, names, limit=1800):
        """Builds the targets; (built?, output)."""
        status, output = run(["ninja", "-C", str(self.build), f"-j{self.jobs}", *names],
                             self.folder, limit)
        return status == 0, output

    def find_needs(self):
        """Finds the files that each test needs. They are known once all is built, and are the
        same for each mutant."""
        output = self.ask_ninja("deps")
        for made, sources in re.findall(r"^(\S+): #deps.*\n((?: +\S+\n)*)", output, re.MULTILINE):
            self.compiled[made] = {
                os.path.relpath(os.path.normpath(self.build / name), self.folder)
                for name in sources.split()}
        for test in self.tests:
            inputs = self.ask_ninja("inputs", *sorted(test.files)).split() if test.files else []
            test.objects = frozenset(inputs) & self.compiled.keys()
            test.sources = frozenset().union(*(self.compiled[name] for name in test.objects))

    def code(self, path):
        """The code that the compiler makes of a source, in the objects that tests need."""
        needed = sorted(name for name in set().union(*(test.objects for test in self.tests))
                        if path in self.compiled[name])
        self.ninja(needed)
        stripped = self.folder / "tmp/stripped.o"
        code = []
        for name in needed:
            status, output = run(["objcopy", "--strip-debug", str(self.build / name),
                                  str(stripped)], self.folder, 60)
            if status != 0:
                raise MutateError(f"objcopy: {name}: {output}")
            code.append(stripped.read_bytes())
        return code

    def ask_ninja(self, *what):
        """One of the lists that ninja prints."""
        status, output = run(["ninja", "-C", str(self.build), "-t", *what], self.folder, 60)
        if status != 0:
            raise MutateError(f"ninja -t {what[0]} failed:\n{output[-2000:]}")
        return output

    def passes(self, test, limit):
        """Runs one test, which is built already, for so many seconds at most."""
        start = time.monotonic()
        status = run(["meson", "test", "-C", str(self.build), "--no-rebuild", "--suite", test.suite,
                      "-t", f"{limit / test.timeout:.4f}", test.name], self.folder, limit + 60)[0]
        return status == 0, time.monotonic() - start
