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

import mpirun

SLEEP = ["sleep", "600"]
WHERE = "#0 .*nanosleep"  # It must come once for each process.


def can_look():
    """Can gdb tell where a process is?"""
    with subprocess.Popen(SLEEP) as process:
        try:
            told = subprocess.run([os.path.join(mpirun.STACKS, "gstack"), str(process.pid)],
                                  capture_output=True, text=True, check=False)
        finally:
            process.kill()
    return re.search(WHERE, told.stdout) is not None


def main():
    component, ranks = sys.argv[1], int(sys.argv[2])
    if mpirun.series() != (4, 1) or not can_look():
        sys.exit(mpirun.SKIPPED)
    checks = mpirun.Checks()
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        job = mpirun.Launcher(component).run(ranks, SLEEP, timeout=5)
    checks.expect(job.status != 0, f"status {job.status}")
    checks.expect(len(re.findall(WHERE, told.getvalue())) == ranks, f"told:\n{told.getvalue()}")
    checks.end()


if __name__ == "__main__":
    main()
