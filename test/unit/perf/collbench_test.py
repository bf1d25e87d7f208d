#!/usr/bin/env python3
"""Tests what collbench checks, leaves out and needs in memory: collbench_test.py BUILD MPICC."""

import os
import resource
import subprocess
import sys
import tempfile
import unittest

SECONDS = 100
STOCK = ["--mca", "coll", "^ucg"]
# Every second allreduce of 128 doubles does nothing.
LAZY = """
#include <mpi.h>
int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm c) {
    static int calls;
    return count == 128 && calls++ % 2 ? MPI_SUCCESS
                                       : PMPI_Allreduce(in, out, count, type, op, c);
}
"""
BUILD, MPICC = sys.argv[1:3]
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def collbench(ranks, *options, mca=()):
    return subprocess.run(
        ["mpirun", "--oversubscribe", "-np", str(ranks), *STOCK, *mca,
         f"{BUILD}/perf/collbench/collbench", "--csv", "--repetitions", "2", "--time", "0.001",
         *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
        check=False, env=ENVIRONMENT)


class Checks(unittest.TestCase):
    def test_a_call_that_does_nothing_from_time_to_time_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            source, library = os.path.join(folder, "lazy.c"), os.path.join(folder, "lazy.so")
            with open(source, "w", encoding="ascii") as file:
                file.write(LAZY)
            subprocess.run([MPICC, "-shared", "-fPIC", source, "-o", library], check=True)
            done = collbench(2, "-c", "allreduce", "-s", "1k,2k",
                             mca=["-x", f"LD_PRELOAD={library}"])
        results = [line.rsplit(",", 1)[1] for line in done.stdout.splitlines()[1:]]
        self.assertEqual(results, ["WRONG", "ok"], done.stderr)

    def test_roots_and_buffers_in_place(self):
        forms = "blocking,nonblocking,persistent,others"
        # There are 22 calls in three forms, 15 of which may be in place, and 6 have a root, which
        # stays where they are persistent.
        for ranks, options, rows in ((2, [], 66), (3, ["--in-place"], 45),
                                     (3, ["--root", "rotate"], 60), (3, ["--root", "2"], 66),
                                     (1, ["--in-place", "--root", "rotate"], 40)):
            with self.subTest(f"{ranks} {options}"):
                done = collbench(ranks, "-c", forms, "-s", "64", *options)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                lines = done.stdout.splitlines()[1:]
                self.assertEqual(len(lines), rows)
                self.assertTrue(all(line.endswith(",ok") for line in lines))


class Memory(unittest.TestCase):
    def test_what_does_not_fit_is_left_out(self):
        for ranks, options, reason in (
                (9, ["-c", "gatherv", "-s", "256M", "--memory", "1T"], "above what int holds"),
                (2, ["-c", "alltoall", "-s", "1M", "--memory", "1M"], "more than --memory")):
            done = collbench(ranks, *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(done.stdout.splitlines()), 1)
            self.assertIn(f"{options[1]} of {int(options[3][:-1]) << 20} bytes is left out: ",
                          done.stderr)
            self.assertIn(reason, done.stderr)

    def test_memory_is_what_the_collectives_need(self):
        done = collbench(8, "-c", "bcast", "-s", "16M")
        self.assertEqual(done.returncode, 0, done.stderr)
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.assertLess(most, 96 << 10)  # KiB


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
