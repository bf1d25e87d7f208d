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

# What a mutant may allocate that does so without end; tests reserve address space by terabytes, so
# that only written memory can be limited.
DATA_MAX = 12 << 30
OUTPUT_MAX = 1 << 30
PR_SET_CHILD_SUBREAPER = 36


class MutateError(Exception):
    """What stops the whole run: text for people."""


@dataclass
class Test:
    """One of meson's tests."""

    name: str
    suite: str
    files: frozenset  # Of the build, relative to it.
    timeout: float
    objects: frozenset = frozenset()  # That those are made of.
    sources: frozenset = frozenset()  # That they are compiled from.
    seconds: float | None = None  # Once it has passed, or has failed without a change.
    usable: bool = True
    killed: list = field(default_factory=list)  # Paths of the mutants that it has killed.


def limits():
    """Of whatever a mutant starts."""
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_MAX, DATA_MAX))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_MAX, OUTPUT_MAX))


def adopt():
    """Makes this process the parent of what its descendants leave behind."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise MutateError(f"prctl: {os.strerror(ctypes.get_errno())}")


def end_children():
    """Ends all children, and theirs, once they have come here: mpirun has a session of its own."""
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
    """The copy in the folder `work`, of the tree `root`."""

    def __init__(self, root, work, jobs):
        self.root, self.folder, self.jobs = root, work / "tree", jobs
        self.build = self.folder / "build"
        self.tests = []
        self.compiled = {}  # Sources of each object.
        adopt()

    def synchronise(self):
        """Makes the copy what the tree is now; what is alike keeps its time, and is not
        built again."""
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
        """Of a file."""
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
        """Those of the suites, in their order, with what each needs of the build."""
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
        """One of meson's lists."""
        status, output = run(["meson", "introspect", what, str(self.build)], self.folder, 60)
        if status != 0:
            raise MutateError(f"meson introspect {what} failed:\n{output[-2000:]}")
        return json.loads(output)

    def ninja(self, names, limit=1800):
        """Builds; (built?, output)."""
        status, output = run(["ninja", "-C", str(self.build), f"-j{self.jobs}", *names],
                             self.folder, limit)
        return status == 0, output

    def find_needs(self):
        """What each test needs: known once all is built, and the same in each mutant."""
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
        """What the compiler makes of a source, in the objects that tests need."""
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
        """One of ninja's lists."""
        status, output = run(["ninja", "-C", str(self.build), "-t", *what], self.folder, 60)
        if status != 0:
            raise MutateError(f"ninja -t {what[0]} failed:\n{output[-2000:]}")
        return output

    def passes(self, test, limit):
        """Runs one test, built before, for so many seconds at most."""
        start = time.monotonic()
        status = run(["meson", "test", "-C", str(self.build), "--no-rebuild", "--suite", test.suite,
                      "-t", f"{limit / test.timeout:.4f}", test.name], self.folder, limit + 60)[0]
        return status == 0, time.monotonic() - start
