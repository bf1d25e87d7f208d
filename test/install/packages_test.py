#!/usr/bin/env python3
"""debian/ agrees with the rest of the tree: packages_test.py BUILD. The test builds no package.

test/cluster/new_user.sh builds, installs and purges them.
"""

import fnmatch
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import exports

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = ROOT / "debian"
BUILD = pathlib.Path(sys.argv[1])


def text(*path):
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


@functools.lru_cache(maxsize=None)
def introspect(what):
    return json.loads(subprocess.run(["meson", "introspect", what, str(BUILD)], check=True,
                                     capture_output=True, text=True).stdout)


def installed():
    """The files of an installation, at the places where a package would have them."""
    prefix = next(option["value"] for option in introspect("--buildoptions")
                  if option["name"] == "prefix")
    for path in introspect("--installed").values():
        # The component's folder is Open MPI's, which is below /usr whatever the prefix is.
        below = path.removeprefix(prefix) if path.startswith(prefix + "/") else path[len("/usr"):]
        yield "usr" + below


def patterns():
    """(package's file, pattern) of all lines that say which file goes where."""
    for path in sorted(DEBIAN.iterdir()):
        if path.suffix in (".install", ".docs", ".examples") or path.name == "not-installed":
            for line in path.read_text(encoding="utf-8").splitlines():
                yield path.name, line.split()[0]


def fits(path, pattern):
    """Does dh_install take `path` by `pattern`, which may name a folder above?"""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) >= len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def fields(name):
    """The packages that a field of debian/control's first paragraph names."""
    found = re.search(rf"^{name}:((?:.*\n)(?: .*\n)*)", text("debian", "control"), re.MULTILINE)
    return {re.match(r"[^\s:(<]+", part.strip())[0] for part in found[1].split(",") if part.strip()}


class Packages(unittest.TestCase):

    def test_versions_agree(self):
        version = re.search(r"^ *version: '([^']*)'", text("meson.build"), re.MULTILINE)[1]
        self.assertEqual(re.match(r"ucg \(([^)]*)\)", text("debian", "changelog"))[1], version)
        self.assertEqual(re.search(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)[1], version)

    def test_each_file_is_in_one_package(self):
        known = list(patterns())
        files = list(installed())
        self.assertGreater(len(files), 20)
        for path in files:
            takers = [name for name, pattern in known if fits(path, pattern)]
            self.assertEqual(len(takers), 1, f"{path} is in {takers}")

    def test_each_pattern_takes_a_file(self):
        files = list(installed())
        for name, pattern in patterns():
            self.assertTrue(any(fits(path, pattern) for path in files),
                            f"debian/{name}: nothing that is installed fits {pattern}")

    def test_each_program_has_a_page(self):
        files = list(installed())
        for path in files:
            if path.startswith("usr/bin/"):
                self.assertIn(f"usr/share/man/man1/{os.path.basename(path)}.1", files)

    def test_symbols_are_those_of_the_header(self):
        listed = set(re.findall(r"^ (ucg_\w+)@UCG_0 ", text("debian", "libucg0.symbols"),
                                re.MULTILINE))
        header = ROOT / "ucg_coll" / "include" / "ucg" / "ucg.h"
        self.assertEqual(listed, exports.library_names(header))

    def test_notices_are_those_of_what_binaries_contain(self):
        notice = " ".join(text("NOTICE").split())
        told = re.search(r"^Comment:\n((?: .*\n)*)", text("debian", "copyright"), re.MULTILINE)[1]
        self.assertEqual(" ".join(told.replace("\n .\n", "\n\n").split()), notice)
        for work in ("jemalloc", "CLI11", "toml++", "JSON for Modern C++", "Highway"):
            self.assertIn(f"{work} (", notice)

    def test_security_updates_reach_what_is_linked_statically(self):
        packages = text("debian", "control").split("\n\n")[1:]
        heap = next(name for name, pattern in patterns() if pattern.endswith("libucg_heap.so"))
        for package in packages:
            name = re.match(r"Package: (\S+)", package)[1]
            self.assertEqual("\nStatic-Built-Using: ${ucg:Static}\n" in package,
                             heap == f"{name}.install", name)
        self.assertIn("libjemalloc-dev", text("debian", "rules"))

    def test_build_needs_are_those_of_packages_txt(self):
        needs = fields("Build-Depends")
        groups = {}
        for line in text("tools", "packages.txt").splitlines():
            if line and not line.startswith("#"):
                group, package = line.split()
                groups.setdefault(group, set()).add(package)
        # A checkout needs git, a source package does not; debhelper is required by virtual
        # packages.
        self.assertLessEqual(groups["build"] - {"git"}, needs)
        virtual = {"debhelper-compat": "debhelper", "dh-sequence-python3": "dh-python"}
        self.assertLessEqual({virtual.get(name, name) for name in needs},
                             groups["build"] | groups["package"])

    def test_tests_of_the_build_exist(self):
        named = re.search(r"^tests = (.*)$", text("debian", "rules"), re.MULTILINE)[1].split()
        self.assertLessEqual(set(named), {test["name"] for test in introspect("--tests")})

    def test_tests_of_the_packages_exist(self):
        for name in re.findall(r"^Tests: (\w+)$", text("debian", "tests", "control"), re.MULTILINE):
            self.assertTrue(os.access(DEBIAN / "tests" / name, os.X_OK), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
