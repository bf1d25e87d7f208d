#!/usr/bin/env python3
"""Collectives of more than 2^31 bytes in every form: see big.c. They take some 5 GiB of memory over
shared memory, 9 over UCX, and some minutes. So they run only if UCG_TEST_BIG=1 is set and there is
that much memory.

usage: big.py COMPONENT-FOLDER PROGRAM
"""

import os
import re
import sys

import mpirun

WANTED_KIB = 10 << 20


def available_kib():
    with open("/proc/meminfo", encoding="ascii") as stream:
        return int(re.search(r"MemAvailable:\s+(\d+)", stream.read()).group(1))


def main():
    folder, program = sys.argv[1:]
    if os.environ.get("UCG_TEST_BIG") != "1":
        print("skipped: calls of more than 2 GiB run where UCG_TEST_BIG=1 asks for them")
        sys.exit(mpirun.SKIPPED)
    if available_kib() < WANTED_KIB:
        print(f"skipped: calls of more than 2 GiB want {WANTED_KIB >> 20} GiB of memory, "
              f"{available_kib() >> 20} are available")
        sys.exit(mpirun.SKIPPED)
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    # Where shared memory is not allowed, UCX carries everything between two ranks of a host.
    for form, tls in (("blocking", "shm"), ("nonblocking", "shm"), ("persistent", "shm"),
                      ("blocking", "ucx")):
        job = launcher.run(2, [program, form],
                           {"coll_ucg_verbose": "1", "coll_ucg_tls": tls}, timeout=240)
        checks.expect(job.status == 0 and "big ok" in job.output,
                      f"{form} over {tls}: status {job.status}\n{job.output[-3000:]}")
        # Open MPI makes communicators with some calls of MPI_Iallreduce, which are its own.
        passed_on = {name: count for name, count in mpirun.counters(job.output).items()
                     if count[1] and name != "iallreduce"}
        checks.expect(not passed_on, f"{form} over {tls}: passed on: {passed_on}")
    checks.end()


main()
