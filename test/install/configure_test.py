#!/usr/bin/env python3
"""Configures the tree in ways that the build at hand is not: configure_test.py BUILD. Compiles
nothing. It needs the Open MPI that the build at hand has."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.path.abspath(sys.argv[1])


def pkg_config(*words):
    return subprocess.run(["pkg-config", *words, "ompi"], check=True, capture_output=True,
                          text=True).stdout.strip()


class Configure(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="configure-", dir=BUILD)
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, path, text, mode=0o644):
        path = pathlib.Path(self.folder, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        path.chmod(mode)

    def configure(self, *options, **environment):
        """(exit status, output) of Meson."""
        done = subprocess.run(["meson", "setup", f"{self.folder}/build", str(ROOT), *options],
                              env={**os.environ, **environment}, text=True, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout

    def other_open_mpi(self, **programs):
        """What Meson says where pkg-config finds an Open MPI in a folder of its own, with these
        programs: {name: what it prints}."""
        self.file("pkgconfig/ompi.pc", "\n".join([
            f"prefix={self.folder}",
            *(f"{name}={pkg_config(f'--variable={name}')}" for name in ("includedir", "libdir")),
            "Name: Open MPI", "Description: Another one", f"Version: {pkg_config('--modversion')}",
            f"Cflags: {pkg_config('--cflags')}", f"Libs: {pkg_config('--libs')}", ""]))
        for name, said in programs.items():
            self.file(f"bin/{name}", f"#!/bin/sh\necho '{said}'\n", 0o755)
        status, said = self.configure("-Dompi=enabled", "-Dtests=disabled",
                                      PKG_CONFIG_PATH=f"{self.folder}/pkgconfig")
        self.assertNotEqual(status, 0, said)
        return said

    def refusal(self, program):
        return (f"{self.folder}/bin/{program} is not of Open MPI {pkg_config('--modversion')}, "
                "which pkg-config finds.")

    def test_programs_of_another_open_mpi_are_refused(self):
        said = self.other_open_mpi(ompi_info="Open MPI v9.9.9")
        self.assertIn(self.refusal("ompi_info"), said)

    def test_a_compiler_wrapper_of_another_open_mpi_is_refused(self):
        said = self.other_open_mpi(ompi_info=f"Open MPI v{pkg_config('--modversion')}",
                                   mpicc="mpicc: Open MPI 9.9.9 (Language: C)")
        self.assertIn(self.refusal("mpicc"), said)

    def test_tools_can_be_left_out(self):
        status, said = self.configure("-Dtools=false")
        self.assertEqual(status, 0, said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
