#!/usr/bin/env python3
"""Tests mutate.py on a tree with one function that is tested and one that is not, and the
changes that sites.py makes to small texts."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import sites  # noqa: E402 (the line above comes first)

TREE = {
    "meson.build": """project('small', 'cpp')
program = executable('levels', 'test.cpp', 'ucg_coll/graph/level.cpp')
test('levels', program, suite: 'unit')
test('slow', program, args: 'slow', suite: 'unit')
test('apart', executable('apart', 'apart.cpp'), suite: 'unit')
test('levels', find_program('false'), suite: 'other')
executable('unused', 'test.cpp', 'ucg_coll/graph/level.cpp')
""",
    "apart.cpp": "int main() {}\n",
    "test.cpp": """#include <unistd.h>
int level(int depth);
int main(int argc, char**) {
    if (argc == 2) {
        if (fork() == 0) {
            setsid();
        }
        sleep(60);
    }
    return level(0) == 0 && level(4) == 5 && level(9) == 10 ? 0 : 1;
}
""",
    "ucg_coll/graph/level.cpp": """// Comments with if (a < b) stay.
int level(int depth) {
    return depth == 0 ? 0 : depth + 1;
}
bool is_high(int depth) {
    return depth > 7;
}
#if 0
bool is_low(int depth) {
    return depth < 7;
}
#endif
""",
}


def changes(text, path="a.cpp"):
    """{change: the text after it}."""
    return {(mutant.what, mutant.apply(text)) for mutant in sites.mutants("graph", path, text)}


class Sites(unittest.TestCase):
    """Which places are changed, and into what."""

    def check(self, text, *expected, path="a.cpp"):
        """Checks all mutants of the text."""
        self.assertEqual(changes(text, path), set(expected))

    def test_operators(self):
        """Operators that have blanks around them."""
        self.check("x(a < b);", ("< to <=", "x(a <= b);"), ("statement removed", ";"))
        self.check("auto x = std::min(a, b) + 1;", ("min to max", "auto x = std::max(a, b) + 1;"),
                   ("+ 1 to nothing", "auto x = std::min(a, b);"))
        self.check("auto x = a - 16;", ("- to +", "auto x = a + 16;"))
        self.check("std::vector<int> f(T&& t);")

    def test_what_is_no_code(self):
        """Comments, literals, directives and assertions are not changed."""
        self.check("// a < b\n/* x(a && b); */\n#if A < B && \\\n  C == D\n")
        self.check("UCG_ASSERT(a < b);\nstatic_assert(a == b);")
        self.check('x("a < b");', ("statement removed", ";"))

    def test_statements(self):
        """Calls and assignments are removed, also those of several lines; declarations are not."""
        self.check("int x = 0;\nint f(int);\ndelete x;")
        self.check("{\n    a.b(c,\n        d);\n    e[0] = f;\n}",
                   ("statement removed", "{\n    ;\n    e[0] = f;\n}"),
                   ("statement removed", "{\n    a.b(c,\n        d);\n    ;\n}"))

    def test_branches(self):
        """Conditions are replaced; literals and declarations in them are kept."""
        self.check('if (is("x")) {', ("branch never taken", 'if ((is("x")) && false) {'),
                   ("branch always taken", 'if ((is("x")) || true) {'))
        self.check("if (auto a = f(); a) {",
                   ("branch never taken", "if (auto a = f();(a) && false) {"),
                   ("branch always taken", "if (auto a = f();(a) || true) {"))
        self.check("if (auto* a = f()) {")

    def test_returns(self):
        """A returned value becomes that of an empty initializer, in C 0, unless it is that
        already."""
        self.check("return true;", ("return false", "return false;"))
        self.check("return f();", ("return {}", "return {};"))
        self.check("return f();", ("return 0", "return 0;"), path="a.c")
        self.check("return Status(); return 0; return; return OMPI_SUCCESS;")


class Program(unittest.TestCase):
    """The whole program."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in TREE.items():
            path = self.folder / "tree" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def run_it(self, *options):
        """The finished program."""
        return subprocess.run(
            [sys.executable, str(HERE / "mutate.py"), "--root", str(self.folder / "tree"),
             "--work", str(self.folder / "work"), "--longest", "2", "--areas", "graph", *options],
            capture_output=True, text=True, check=False, timeout=300)

    def left_running(self):
        """The processes that still run a program of the copy."""
        found = []
        for program in pathlib.Path("/proc").glob("[0-9]*/exe"):
            try:
                found += [str(program)] if self.folder in program.readlink().parents else []
            except OSError:  # The process has ended, or belongs to another user.
                continue
        return found

    def test_fates(self):
        """A change that is tested is killed; one that is not tested survives and can be tried
        again. The tree itself is not changed."""
        survivors = self.folder / "survivors.diff"
        done = self.run_it("--keep-survivors", str(survivors))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("slow", done.stdout)
        self.assertNotIn("apart", done.stdout)  # This test is not built from the changed sources.
        self.assertIn("left out: it does not pass within the limit", done.stdout)
        self.assertRegex(done.stdout, r"level.cpp:3 \+ 1 to nothing: killed by levels \(")
        self.assertRegex(done.stdout, r"level.cpp:6 > to >=: survived 1 tests \(")
        self.assertRegex(done.stdout, r"graph +3 +2 +2 +0\n2 of 5 survived \(40.0 %\)\n")
        self.assertRegex(done.stdout, r"level.cpp:10 < to <=: same code \(")
        self.assertIn("-    return depth > 7;\n+    return depth >= 7;\n", done.stdout)
        for name, text in TREE.items():
            self.assertEqual((self.folder / "tree" / name).read_text(encoding="utf-8"), text)
            self.assertEqual((self.folder / "work/tree" / name).read_text(encoding="utf-8"), text)
        self.assertEqual(self.left_running(), [])
        again = self.run_it("--again", str(survivors), "--seed", "2")
        self.assertRegex(again.stdout, r"graph +0 +2 +0 +0\n2 of 2 survived")
        self.assertEqual(again.returncode, 0)

    def test_seed(self):
        """The same seed gives the same mutants; the time limit ends the run and says so."""
        first, second = (self.run_it("--seed", "3", "--count", "1") for _ in range(2))
        self.assertRegex(first.stdout, r"(?m)^\[1/1\] ")
        self.assertEqual(first.stdout.split("[1/1]")[1].split(" (")[0],
                         second.stdout.split("[1/1]")[1].split(" (")[0])

    def test_broken(self):
        """A tree that does not build."""
        (self.folder / "tree/test.cpp").write_text("int main() {", encoding="utf-8")
        done = self.run_it("--count", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the copy does not build", done.stderr)

    def test_no_tests(self):
        """A tree with no test in the suite."""
        done = self.run_it("--count", "1", "--suites", "ranks")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there are no tests of these suites", done.stderr)

    def test_usage(self):
        """A wrong option, an unknown area, a file that cannot be written."""
        for options, message in ((["--sed", "1"], "--sed"), (["--areas", "grph"], "found 'grph'"),
                                 (["--suites", "unit,all"], "found 'all'"),
                                 (["--keep-survivors", "/nowhere/x"], "no folder /nowhere"),
                                 (["--again", "/dev/null"], "no mutant in /dev/null"),
                                 (["--again", "/nowhere/x"], "cannot read /nowhere/x"),
                                 (["--root", str(self.folder)], "is no source tree"),
                                 (["--count", "0"], "from 1 to")):
            done = self.run_it(*options)
            self.assertEqual(done.returncode, 2, options)
            self.assertIn(message, done.stderr)
            self.assertFalse((self.folder / "work").exists(), options)

    def test_all_mutants_gone(self):
        """Diffs of text that the sources no longer have."""
        old = self.folder / "old.diff"
        old.write_text("--- a/ucg_coll/graph/level.cpp\n+++ b\n-x\n+y\n", encoding="utf-8")
        done = self.run_it("--again", str(old))
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 of 1 cannot be made any more", done.stdout)
        self.assertIn("there is no mutant left to try", done.stderr)


if __name__ == "__main__":
    unittest.main()
