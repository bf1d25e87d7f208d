#!/usr/bin/env python3
"""If a job does not end in time, mpirun.py says where each of its processes is.

usage: mpirun_test.py COMPONENT-FOLDER RANKS

Skipped where no debugger may look at other processes, and with Open MPI 5.0, whose mpirun has the
same options, but with which nobody has tried this.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import time

import mpirun

SLEEP = ["sleep", "600"]
WHERE = "#0 .*nanosleep"  # It must come once for each process.


def can_look():
    """Can gdb tell where a process is, once it sleeps?"""
    with subprocess.Popen(SLEEP) as process:
        try:
            for _ in range(20):
                told = subprocess.run([os.path.join(mpirun.STACKS, "gstack"), str(process.pid)],
                                      capture_output=True, text=True, check=False)
                if re.search(WHERE, told.stdout):
                    return True
                time.sleep(0.1)
        finally:
            process.kill()
    return False


def told_about(component, ranks, timeout):
    """What is told about a job that does not end in time, and how often it says where."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        job = mpirun.Launcher(component).run(ranks, SLEEP, timeout=timeout)
    return job, told.getvalue(), len(re.findall(WHERE, told.getvalue()))


def main():
    component, ranks = sys.argv[1], int(sys.argv[2])
    if mpirun.series() != (4, 1) or not can_look():
        sys.exit(mpirun.SKIPPED)
    checks = mpirun.Checks()
    # On a busy machine ranks take longer to start than they have here at first.
    for timeout in (5, 60):
        job, told, found = told_about(component, ranks, timeout)
        if found == ranks:
            break
    checks.expect(job.status != 0, f"status {job.status}")
    checks.expect(found == ranks, f"told:\n{told}")
    checks.end()


if __name__ == "__main__":
    main()
