#!/usr/bin/env python3
"""What makes progress while collectives run: messages, and passive targets of windows.

usage: progress.py COMPONENT-FOLDER PROGRESS-PROGRAM [RUNS]
"""

import sys

import mpirun

# Messages are copied in and out of the host's own rings, so that the receiver has work to do; and
# windows use messages, so that the target has work to do.
MCA = ({"btl_vader_single_copy_mechanism": "none", "osc": "pt2pt"} if mpirun.series() < (5, 0)
       else {"smsc": "^cma,knem,xpmem", "osc": "rdma"})


def main():
    folder, program = sys.argv[1:3]
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for part in ["receive", "window"]:
        for ranks in [2, 4, 8]:
            for run in range(runs):
                job = launcher.run(ranks, [program, part], MCA, timeout=120)
                checks.expect(job.status == 0 and f"{part} ok" in job.output,
                              f"{part} on {ranks} ranks, run {run}: status {job.status}\n"
                              f"{job.output[-3000:]}")
            print(f"{part} on {ranks} ranks: {runs} runs", flush=True)
    checks.end()


main()
