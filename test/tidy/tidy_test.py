#!/usr/bin/env python3
"""tidy.py finds each fault and nothing else: each case is a small tree with one fault."""

import contextlib
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import tidy  # noqa: E402

GOOD = {
    "README.md": "# A tree\n",
    "topo/README.md": "x\n",
    "topo/topo.hpp": '#pragma once\n#include "ucg_coll/base/base.hpp"\n',
    "topo/discover_hwloc.cpp": "#include <hwloc.h>\n",
    "ucg_coll/base/README.md": "x\n",
    "ucg_coll/base/base.hpp": "#pragma once\n#include <vector>\n",
    "ucg_coll/include/ucg/ucg.h": "#include <stddef.h>\n",
    "ucg_coll/ompi/README.md": "x\n",
    "ucg_coll/ompi/coll_ucg.h": "#include <ucg/ucg.h>\n",
    "ucg_coll/ompi/coll_ucg.c": '#include "coll_ucg.h"\n#include "ompi/mca/coll/coll.h"\n',
    "ucg_coll/plan/README.md": "x\n",
    "ucg_coll/plan/plan.hpp": '#pragma once\n#include "topo/topo.hpp"\n',
    "ucg_coll/plan/plan.cpp": '#include "ucg_coll/plan/plan.hpp"\n',
    "ucg_coll/transport/README.md": "x\n",
    "ucg_coll/transport/transport.hpp": "#pragma once\n",
    "ucg_coll/engine/README.md": "x\n",
    "ucg_coll/engine/engine.cpp": '#include "ucg_coll/transport/transport.hpp"\n',
    "perf/README.md": "x\n",
    "perf/collbench/README.md": "x\n",
    "perf/collbench/main.c": "#include <mpi.h>\n",
}


@contextlib.contextmanager
def tree(**changes):
    """A directory with the good tree and `changes`, {path: text}, on top."""
    with tempfile.TemporaryDirectory(prefix="tidy-test-") as place:
        root = pathlib.Path(place)
        for name, text in {**GOOD, **changes}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        yield root


class Tidy(unittest.TestCase):
    def assert_found(self, reason, name, text):
        with self.subTest(f"{name}: {reason}"), tree(**{name: text}) as root:
            findings, _ = tidy.check(root)
            self.assertEqual(len(findings), 1, findings)
            self.assertEqual(str(findings[0][0]), name)
            self.assertIn(reason, findings[0][2])

    def assert_clean(self, name, text):
        with self.subTest(name), tree(**{name: text}) as root:
            self.assertEqual(tidy.check(root)[0], [])

    def test_the_good_tree_is_clean(self):
        with tree() as root:
            self.assertEqual(tidy.check(root)[0], [])

    def test_arrows_that_point_the_wrong_way(self):
        plan = "ucg_coll/plan/row.cpp"
        engine = "ucg_coll/engine/ring.cpp"
        for name, line, reason in (
                ("ucg_coll/base/log.cpp", '#include "topo/topo.hpp"', "may not include"),
                ("topo/text.cpp", '#include "ucg_coll/plan/plan.hpp"', "may not include"),
                ("topo/text.cpp", "#include <ucp/api/ucp.h>", "may not see ucx"),
                (plan, '#include "ucg_coll/transport/transport.hpp"', "may not include"),
                (plan, "#include <mpi.h>", "may not see mpi"),
                (engine, '#include "ucg_coll/plan/plan.hpp"', "may not include"),
                (engine, "  #  include <uct/api/uct.h>", "may not see ucx"),
                ("ucg_coll/capi/ucg.cpp", "#include <mpi.h>", "may not see mpi"),
                ("ucg_coll/capi/ucg.cpp", '#include "ucg_coll/ompi/coll_ucg.h"', "component"),
                ("ucg_coll/ompi/x.c", '#include "topo/topo.hpp"', "may not include"),
                ("perf/collbench/x.c", "#include <ucg/ucg.h>", "may not include"),
                ("tools/x.cpp", "#include <ompi/mca/coll/coll.h>", "may not see openmpi"),
                (plan, '#include "pieces.hpp"', "paths begin at the root")):
            page = {str(pathlib.PurePosixPath(name).parent / "README.md"): "x\n"}
            with self.subTest(name=name, line=line), tree(**page, **{name: line + "\n"}) as root:
                findings, _ = tidy.check(root)
                self.assertEqual([(str(path), text) for path, _, text in findings
                                  if reason in text], [(name, findings[0][2])])
                self.assertEqual(len(findings), 1)

    def test_hwloc_is_seen_by_one_file(self):
        self.assert_found("one file of topo", "topo/other.cpp", "#include <hwloc.h>\n")

    def test_the_own_header_comes_first(self):
        self.assert_found("comes first", "ucg_coll/plan/plan.cpp",
                          '#include <vector>\n#include "ucg_coll/plan/plan.hpp"\n')

    def test_pure_folders_see_no_clock(self):
        name = "ucg_coll/plan/clock.cpp"
        self.assert_found("no clock", name, "#include <chrono>\n")
        self.assert_found("no clock", name, 'auto x = std::getenv("X");\n')
        self.assert_clean(name, "// As getenv() would.\nint x;\n")

    def test_banned_calls(self):
        for call in ("strcpy(a, b)", "std::sprintf(a, b)", "system(a)", "::rand()", "exit(1)"):
            self.assert_found("():", "topo/call.cpp", f"void f() {{ {call}; }}\n")
        self.assert_clean("topo/call.cpp", 'void f() { g("system(x)"); // rand()\n'
                          "  a.exit(1); b->rand(); my_exit(2); x::exit(3); operand(3);\n"
                          "  at_exit(4); }\n")

    def test_switches_over_ops(self):
        body = ("void f() {{\n  switch (a) {{\n  case {0}: {{ g(); break; }}\n"
                "  {1}: break;\n  }}\n}}\n")
        self.assert_found("over OpKind", "topo/x.cpp",
                          body.format("graph::OpKind::send", "default"))
        self.assert_found("over BufferKind", "topo/x.cpp",
                          body.format("BufferKind::input", "default"))
        self.assert_clean("topo/x.cpp", body.format("OpKind::send", "case OpKind::recv"))
        self.assert_clean("topo/x.cpp", body.format("Kind::a", "default"))

    def test_open_ends(self):
        word = "TO" + "DO"
        self.assert_found("open ends", "topo/x.cpp", f"// {word}: later\n")
        self.assert_clean("topo/x.cpp", f"// {word}(perf): later\n")

    def test_paths_of_one_machine(self):
        for place in ("/ro" + "ot/x", "/ho" + "me/me/x", "/wo" + "rk/x"):
            self.assert_found("a path of one machine", "topo/x.cpp", f"// see {place}\n")
        self.assert_clean("topo/x.cpp", "// a/home/b, $HOME/root/x and net/work/y\n")

    def test_lengths(self):
        self.assert_found("columns", "topo/x.cpp", "//" + "x" * 99 + "\n")
        self.assert_clean("topo/x.cpp", "//" + "ä" * 98 + "\n")
        self.assert_found("a file has at most", "topo/x.cpp", "int x;\n" * 601)
        self.assert_found("no newline", "topo/x.cpp", "int x;")
        self.assert_found("blanks at the end", "topo/x.cpp", "int x; \n")

    @unittest.skipUnless(shutil.which("ctags"), "no ctags")
    def test_long_functions(self):
        for name in ("topo/x.cpp", "ucg_coll/ompi/x.c"):
            self.assert_found("a function has at most", name,
                              "int f(int a)\n{\n" + "    a++;\n" * 68 + "    return a;\n}\n")
            self.assert_clean(name,
                              "int f(int a)\n{\n" + "    a++;\n" * 66 + "    return a;\n}\n")

    def test_headers(self):
        self.assert_found("#pragma once", "topo/x.hpp", "int x;\n")
        self.assert_found("using namespace", "topo/x.hpp", "#pragma once\nusing namespace a;\n")

    def test_names_of_types(self):
        first = "#pragma once\nnamespace a::b {\nclass Link final : public Base {\n};\n}\n"
        for text in ("namespace c {\nstruct Link {\n};\n}\n",
                     'extern "C" {\nunion Link { int x; };\n}\n',
                     "enum class Link : int { a };\n", "struct alignas(64) Link {};\n"):
            with self.subTest(text), tree(**{"topo/a.hpp": first,
                                             "topo/b.hpp": "#pragma once\n" + text}) as root:
                self.assertEqual([(str(path), reason) for path, _, reason in tidy.check(root)[0]],
                                 [("topo/b.hpp",
                                   "a type of the name Link is in topo/a.hpp:3 already")])
        for text in ("class Link;\nvoid f(struct Link* x);\n", "// class Link {};\n",
                     "struct Other {\n    struct Link {\n    };\n};\n",
                     "inline void f() {\n    struct Link {\n    };\n}\n",
                     "struct LinkOther {\n};\n"):
            with self.subTest(text), tree(**{"topo/a.hpp": first,
                                             "topo/b.hpp": "#pragma once\n" + text}) as root:
                self.assertEqual(tidy.check(root)[0], [])

    def test_time_limits(self):
        name = "topo/meson.build"
        self.assert_found("without a timeout", name, "test('a', b(c('timeout: 1')), suite: 'd')\n")
        self.assert_found("without a timeout", name,
                          "if a\n  test('b', # (\n    c)\n  test('d', e, timeout: 60)\nendif\n")
        self.assert_clean(name, "test('a', b(c),\n  # (\n  timeout: 60,\n)\nbenchmark('a', b)\n")

    def test_layout(self):
        self.assert_found("C11 only", "ucg_coll/ompi/x.cpp", "int x;\n")
        with tree(**{"extra/x.txt": "x\n"}) as root:
            self.assertEqual([str(path) for path, *_ in tidy.check(root)[0]], ["extra"])
        with tree() as root:
            (root / "topo/README.md").unlink()
            self.assertEqual([(str(path), reason) for path, _, reason in tidy.check(root)[0]],
                             [("topo", "the folder has no README.md")])


if __name__ == "__main__":
    unittest.main()
