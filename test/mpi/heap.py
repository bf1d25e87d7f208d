#!/usr/bin/env python3
"""Real programs with libucg_heap.so preloaded into every rank: their results stay the same, also
when the host's messages go over UCX, whose memory hooks see what the heap does.

usage: heap.py COMPONENT-FOLDER LIBRARY FAULTS-PROGRAM
"""

import os
import subprocess
import sys
import tempfile

import mpirun
import programs

FOLDER = sys.argv[1]
LIBRARY, FAULTS = map(os.path.abspath, sys.argv[2:4])  # Ranks start in another folder.
RANKS = 2
SYSTEM_PYTHON = "/usr/bin/python3"  # The distribution's mpi4py belongs to this one.

# Large arrays in collectives and in messages, which are freed and allocated again, with children in
# between.
MPI4PY = """
import os, subprocess
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
def in_heap(array):
    address = array.ctypes.data
    with open('/proc/self/maps', encoding='ascii') as maps:
        spans = [line.split()[0].split('-') for line in maps if 'memfd:ucg' in line]
    return any(int(first, 16) <= address < int(end, 16) for first, end in spans)
for step in range(10):
    count = 1000 << step
    mine = np.full(count, float(rank + step))
    total = np.empty(count)
    comm.Allreduce(mine, total)
    assert (total == sum(r + step for r in range(size))).all()
    assert mine.nbytes < 16384 or (in_heap(mine) and in_heap(total))
    other = np.zeros(count)
    comm.Sendrecv(mine, (rank + 1) % size, 0, other, (rank - 1) % size, 0)
    assert (other == (rank - 1) % size + step).all()
    every = comm.allgather({'rank': rank, 'data': b'x' * count})
    assert [part['rank'] for part in every] == list(range(size))
    child = os.fork()
    if child == 0:
        mine[:] = -1.0
        total[:] = -1.0
        os._exit(0 if step % 2 else os.execv('/bin/true', ['true']))
    assert os.waitpid(child, 0)[1] == 0
    assert subprocess.run(['/bin/echo', 'x'], capture_output=True).stdout == b'x\\n'
    assert (mine == rank + step).all() and (total > -1.0).all()
    comm.Bcast(total, root=step % size)
    del mine, total, other
print(f'rank {rank} of {size}: right', flush=True)
"""


class PreloadedRunner(programs.Runner):
    """Under UCG the ranks get the library, and mpirun does not; runs without UCG stay as they
    are."""

    def run(self, ranks, program, folder, with_ucg):
        environment = self.launcher.environment
        if with_ucg:
            environment["OMPI_MCA_mca_base_env_list"] = f"LD_PRELOAD={LIBRARY}"
        try:
            return super().run(ranks, program, folder, with_ucg)
        finally:
            environment.pop("OMPI_MCA_mca_base_env_list", None)


def check_quiet(checks, job, what):
    checks.expect(job.status == 0, f"{what}: {job.status}\n{job.output[-3000:]}")
    checks.expect("ordinary memory" not in job.output,
                  f"{what}: without the heap:\n{job.output[-3000:]}")


def check_python(checks, runner, folder):
    if subprocess.run([SYSTEM_PYTHON, "-c", "import mpi4py, numpy"], capture_output=True,
                      check=False).returncode != 0:
        print("mpi4py is not installed")
        return
    # UCX carries the messages of a single host only if it is told that any transport will do.
    with_pml = {"ucx": {"pml_ucx_tls": "any", "pml_ucx_devices": "any"}, "ob1": {}}
    for pml, parameters in with_pml.items():
        settings = {f"OMPI_MCA_{name}": value for name, value in {**parameters, "pml": pml}.items()}
        runner.launcher.environment.update(settings)
        job = runner.run(RANKS, [SYSTEM_PYTHON, "-c", MPI4PY], folder, with_ucg=True)
        what = f"mpi4py, pml {pml}"
        check_quiet(checks, job, what)
        checks.expect(job.output.count(": right") == RANKS, f"{what}:\n{job.output[-3000:]}")
        for name in settings:
            del runner.launcher.environment[name]


def check_faults(checks, runner, folder):
    for mode in ["check", "children"]:
        job = runner.run(RANKS, [FAULTS, mode], folder, with_ucg=True)
        check_quiet(checks, job, f"faults {mode}")


def main():
    checks = mpirun.Checks()
    runner = PreloadedRunner(FOLDER, 1)
    with tempfile.TemporaryDirectory(prefix="ucg-heap-") as scratch:
        check_python(checks, runner, scratch)
        check_faults(checks, runner, scratch)
        if programs.shutil.which("lmp") and programs.shutil.which("hpcc"):
            programs.check_lammps(checks, runner, RANKS, scratch)
            programs.check_hpcc(checks, runner, RANKS, scratch)
        else:
            print("hpcc or lmp is not installed")
    checks.end()


if __name__ == "__main__":
    main()
