#!/usr/bin/env python3
"""Checks Spack's recipe against Meson's options and Debian's list of packages.

The test does not need Spack. A module in its place records what the recipe says, as Spack would
read it. So the names of options, their values and the dependencies are checked, and that the file
is Python.
"""

import itertools
import pathlib
import re
import runpy
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = "tools/packaging/spack/packages/ucg/package.py"
# Debian's packages of the group "build" and Spack's packages for them; None: a build by Spack needs
# none.
NAMES = {
    "g++": "cxx", "git": None, "libcli11-dev": "cli11", "libevent-dev": None,
    "libfmt-dev": "fmt", "libhwloc-dev": "hwloc", "libhwy-dev": "highway",
    "libjemalloc-dev": "jemalloc", "libopenmpi-dev": "openmpi", "libpmix-dev": "pmix",
    "libtomlplusplus-dev": "tomlplusplus", "libucx-dev": "ucx", "meson": "meson",
    "ninja-build": "ninja", "nlohmann-json3-dev": "nlohmann-json", "pkg-config": "pkgconfig",
}
MORE = {"c", "catch2", "python", "simgrid"}  # The C compiler, and packages that only options need.
DIRECTIVES = ("version", "variant", "depends_on", "conflicts", "license")


class Spec:
    """A choice of variants, as Spack passes it."""

    def __init__(self, chosen):
        self.chosen = chosen

    def satisfies(self, text):
        return text.removeprefix("+") in self.chosen


def read_recipe():
    """({directive: [(arguments, options), ...]}, the class)"""
    said = {name: [] for name in DIRECTIVES}
    module = types.ModuleType("spack.package")
    for name in DIRECTIVES:
        setattr(module, name, lambda *words, _name=name, **options:
                said[_name].append((words, options)))
    module.MesonPackage = type("MesonPackage", (), {})
    sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), module
    return said, runpy.run_path(str(ROOT / RECIPE))["Ucg"]


def meson_options():
    """{name: type}"""
    text = (ROOT / "meson_options.txt").read_text("utf-8")
    return dict(re.findall(r"^option\('(\w+)', type: '(\w+)'", text, re.MULTILINE))


class Recipe(unittest.TestCase):
    def setUp(self):
        self.said, self.recipe = read_recipe()
        self.variants = [words[0] for words, _ in self.said["variant"]]

    def arguments(self, chosen):
        package = self.recipe()
        package.spec = Spec(chosen)
        return dict(re.fullmatch(r"-D(\w+)=(\w+)", word).groups()
                    for word in package.meson_args())

    def test_every_choice_is_one_of_mesons(self):
        types_of = meson_options()
        values = {"feature": ("disabled", "enabled"), "boolean": ("false", "true")}
        for flags in itertools.product((False, True), repeat=len(self.variants)):
            chosen = {name for name, flag in zip(self.variants, flags) if flag}
            given = self.arguments(chosen)
            self.assertEqual(set(given), set(types_of) - {"ompi_component_dir"})
            for name, value in given.items():
                self.assertEqual(value, values[types_of[name]][name in chosen], name)

    def test_dependencies_are_those_of_a_build(self):
        lines = (ROOT / "tools/packages.txt").read_text("utf-8").splitlines()
        build = {line.split()[1] for line in lines if line.startswith("build ")}
        self.assertEqual(build, set(NAMES), "say here what Spack calls it")
        named = {re.split("[@+ ]", words[0])[0] for words, _ in self.said["depends_on"]}
        self.assertEqual(named, {name for name in NAMES.values() if name} | MORE)

    def test_meson_is_as_new_as_it_must_be(self):
        project = (ROOT / "meson.build").read_text("utf-8")
        wanted = re.search(r"meson_version: '>= ([\d.]+)'", project)
        self.assertIn(f"meson@{wanted[1]}:", [words[0] for words, _ in self.said["depends_on"]])

    def test_conditions_name_variants(self):
        for words, options in itertools.chain(*self.said.values()):
            for name in re.findall(r"\+(\w+)", options.get("when", "")):
                self.assertIn(name, self.variants, words)

    def test_open_mpi_is_told_where_the_component_is(self):
        path = "/spack/ucg/lib/ucg/openmpi5:/usr/lib/openmpi/lib/openmpi3"
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.environment(folder, {"ompi"}), {})  # It is not installed yet.
            file = pathlib.Path(folder, "pkgconfig", "ucg.pc")
            file.parent.mkdir()
            file.write_text(f"prefix=/spack/ucg\ncomponent_path={path}\n\nName: ucg\n", "utf-8")
            told = {"OMPI_MCA_mca_base_component_path": path}
            self.assertEqual(self.environment(folder, {"ompi"}), told)
            self.assertEqual(self.environment(folder, {"ompi", "^openmpi@5:"}),
                             {**told, "PMIX_MCA_mca_base_component_path": ""})
            self.assertEqual(self.environment(folder, {"^openmpi@5:"}), {})

    def environment(self, libraries, chosen):
        package = self.recipe()
        package.spec, package.prefix = Spec(chosen), types.SimpleNamespace(lib=libraries)
        told = {}
        package.setup_run_environment(types.SimpleNamespace(set=told.__setitem__))
        return told

    def test_the_clone_is_the_source(self):
        self.assertEqual(self.recipe.git, f"file://{ROOT}")


if __name__ == "__main__":
    unittest.main()
