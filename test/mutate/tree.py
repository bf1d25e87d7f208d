"""A copy of the tree with a build folder of its own, in which mutants are built and tested."""

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
from dataclasses import dataclass

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tidy"))

from tidy import tree_files  # noqa: E402 (the line above comes first)

# What a mutant may allocate that does so without end; tests reserve address space by terabytes, so
# that only written memory can be limited.
DATA_MAX = 12 << 30
OUTPUT_MAX = 1 << 30


class MutateError(Exception):
    """What stops the whole run: text for people."""


@dataclass
class Test:
    """One of meson's tests."""

    name: str
    suite: str
    files: frozenset  # Of the build, relative to it: stale if the test is to be run again.
    timeout: float
    seconds: float = 0.0  # Of the tree as it is.


def limits():
    """Of whatever a mutant starts."""
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_MAX, DATA_MAX))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_MAX, OUTPUT_MAX))


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
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Tree:
    """The copy in the folder `work`, of the tree `root`."""

    def __init__(self, root, work, jobs):
        self.root, self.folder, self.jobs = root, work / "tree", jobs
        self.build = self.folder / "build"
        self.tests = []

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

    def stale(self):
        """The files of the build that are not up to date, relative to it."""
        output = run(["ninja", "-C", str(self.build), "-n", "-v", "-d", "explain"], self.folder,
                     60)[1]
        return set(re.findall(r"^ninja explain: (\S+) is dirty$", output, re.MULTILINE))

    def dependents(self, paths):
        """The files of the build that a change of these sources would make stale."""
        times = {path: (self.folder / path).stat() for path in paths}
        for path in paths:
            os.utime(self.folder / path)
        try:
            return self.stale()
        finally:
            for path, time_of in times.items():
                os.utime(self.folder / path, ns=(time_of.st_atime_ns, time_of.st_mtime_ns))

    def passes(self, test, limit):
        """Runs one test, built before, for so many seconds at most."""
        start = time.monotonic()
        status = run(["meson", "test", "-C", str(self.build), "--no-rebuild", "--suite", test.suite,
                      "-t", f"{limit / test.timeout:.4f}", test.name], self.folder, limit + 60)[0]
        return status == 0, time.monotonic() - start
