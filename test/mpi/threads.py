#!/usr/bin/env python3
"""Runs the program of several threads in each process: see threads.c and small_stack.c.

usage: threads.py COMPONENT-FOLDER THREADS SMALL-STACK RANKS...
"""

import sys

import mpirun

SHARED_MEMORY = ["mutex", "callers", "late", "stress", "forms"]
# Here all groups of a process share one worker, whichever thread drives it.
UCX = ["mutex", "callers", "stress", "forms"]


def check(checks, launcher, program, part, ranks, tls):
    checks.run_part(launcher, program, part, ranks, f"{part} on {ranks} ranks over {tls}",
                    {"coll_ucg_tls": tls})


def main():
    folder, threads, small_stack, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for count in map(int, ranks):
        # With eight ranks only the parts run that used to hang: the machine is oversubscribed as it
        # is.
        for part in SHARED_MEMORY if count < 8 else ["mutex"]:
            check(checks, launcher, [threads, part], part, count, "shm,ucx")
    for part in UCX:
        check(checks, launcher, [threads, part], part, 2, "ucx")
    # UCX 1.18 itself takes more than 24 KiB of stack to make an endpoint.
    for tls, kib in [("shm,ucx", 24), ("ucx", 64)] if small_stack else []:
        check(checks, launcher, [small_stack, str(kib)], "small stack", 2, tls)
    checks.end()


main()
