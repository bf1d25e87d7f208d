#!/usr/bin/env python3
"""A rank stays away from a collective: the others of its host say so, once, and who it is.

usage: stall.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import os
import re
import subprocess
import sys
import tempfile
import threading

import mpirun

# A rank that gets no processor for so long is named, too.
REPORT = re.compile(r"MPI_COMM_WORLD: rank \d+: allreduce of 4 bytes .*, collective 2 of this "
                    r"group, has not gone on for 1 s: it waits for ranks? (?:0 and )?1(?: and 2)?"
                    r"\.")
TIMEOUT = 90


def run(launcher, ranks, program, how):
    """The job's exit status and output. The late rank is let go by the first report."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "go")
        command = launcher.command("-n", str(ranks), "--mca", "coll_ucg_stall_after", "1",
                                   program, path, how)
        with subprocess.Popen(command, env=launcher.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as process:
            limit = threading.Timer(TIMEOUT, process.terminate)
            limit.start()
            lines = []
            for line in process.stdout:
                lines.append(line)
                if REPORT.search(line):
                    with open(path, "w", encoding="ascii"):
                        pass
            status = process.wait()
            limit.cancel()
        return status, "".join(lines)


def check(checks, launcher, ranks, program, how):
    status, output = run(launcher, ranks, program, how)
    what = f"{ranks} ranks, {how}: status {status}\n{output}"
    checks.expect(status == 0 and output.count(": right") == ranks, what)
    # On a busy machine the ranks may wait so long in the first collective, too, or the others.
    checks.expect(len(REPORT.findall(output)) == 1, f"not one report: {what}")
    late = re.search(r"late process (\d+)", output)
    named = late and re.search(
        rf"it was not called by ranks? (?:0 \(.*\) and )?1 \(process {late[1]};", output)
    checks.expect(named, f"the late rank is not named: {what}")


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for count in map(int, ranks):
        for how in ("blocking", "nonblocking", "persistent", "slow"):
            check(checks, launcher, count, program, how)
    checks.end()


main()
