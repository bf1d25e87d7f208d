#!/usr/bin/env python3
"""Runs real programs from the distribution with UCG taking their collectives: HPC Challenge, the
melt of LAMMPS, and OpenCoarrays' own tests, which are Fortran's coarrays over MPI. Their own checks
must hold, LAMMPS must compute what it computes with Open MPI's own collectives, UCG's counters must
show that it served them, and nothing may be left behind.

usage: programs.py COMPONENT-FOLDER RANKS...
       programs.py COMPONENT-FOLDER --hosts HOSTS RANKS     on virtual hosts (tools/vcluster)
"""

import glob
import os
import re
import shutil
import sys
import tempfile
import uuid

import mpirun

HERE = os.path.dirname(os.path.abspath(__file__))
VCLUSTER = os.path.join(HERE, "..", "..", "tools", "vcluster")
# These reduce by Fortran's own functions and derived types, inside windows, and by teams.
COARRAYS = ["co_sum_test", "co_broadcast_derived_type_test", "co_reduce_res_im",
            "co_reduce_string", "sync_team"]
MELT = """
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 6 0 6 0 6
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 10
run 100
"""


class Runner:
    """Runs a program on ranks of one host, or of several virtual ones."""

    def __init__(self, folder, hosts):
        self.launcher = mpirun.Launcher(folder)
        self.hosts = hosts

    def run(self, ranks, program, folder, with_ucg, **parameters):
        mca = {"coll_ucg_verbose": "1", **parameters} if with_ucg else {"coll": "^ucg"}
        command = self.launcher.command("--wdir", folder, "-n", str(ranks))
        for name, value in mca.items():
            command += ["--mca", name, value]
        command += program
        if self.hosts > 1:
            slots = str(-(-ranks // self.hosts))
            command = [VCLUSTER, "--name", f"programs{os.getpid()}", "run", "--hosts",
                       str(self.hosts), "--slots", slots, "--share", folder, "--"] + command
        return self.launcher.execute(command, timeout=600)


def thermodynamics(output):
    """LAMMPS's table: {step: [temperature, energies ...]}."""
    rows = re.findall(r"^\s*(\d+)((?:\s+-?\d+\.?\d*(?:e[+-]?\d+)?){5})\s*$", output, re.MULTILINE)
    return {int(step): [float(x) for x in values.split()] for step, values in rows}


def same_physics(ours, stock):
    """Equal up to the rounding of sums taken in another order."""
    return ours.keys() == stock.keys() and len(ours) > 5 and all(
        abs(a - b) <= 1e-6 * max(1.0, abs(b))
        for step in stock for a, b in zip(ours[step], stock[step]))


def check_served(checks, job, what, collectives):
    counted = mpirun.counters(job.output)
    for name in collectives:
        served, passed = counted.get(name, (0, 0))
        checks.expect(served > 0 and passed == 0,
                      f"{what}: {name}: {served} served, {passed} passed on")


def check_lammps(checks, runner, ranks, folder):
    with open(os.path.join(folder, "melt.in"), "w", encoding="ascii") as stream:
        stream.write(MELT)
    program = [shutil.which("lmp"), "-in", "melt.in", "-log", "none"]
    stock = runner.run(ranks, program, folder, with_ucg=False)
    ours = runner.run(ranks, program, folder, with_ucg=True)
    what = f"lammps, {ranks} ranks, {runner.hosts} hosts"
    checks.expect(stock.status == 0, f"{what}, stock: {stock.output}")
    if checks.expect(ours.status == 0, f"{what}: {ours.output}"):
        checks.expect(same_physics(thermodynamics(ours.output), thermodynamics(stock.output)),
                      f"{what}: other physics than with Open MPI's collectives:\n{ours.output}")
        check_served(checks, ours, what, ["allreduce", "bcast"])


def write_hpcc_input(ranks, folder):
    rows = max(p for p in range(1, ranks + 1) if ranks % p == 0 and p * p <= ranks)
    with open(os.path.join(HERE, "hpccinf.txt.in"), encoding="ascii") as stream:
        text = stream.read()
    for name, value in {"@N@": 200, "@P@": rows, "@Q@": ranks // rows}.items():
        text = text.replace(name, str(value))
    with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="ascii") as stream:
        stream.write(text)


def check_hpcc_report(checks, report, what):
    """The program's own verdicts, except that of RandomAccess: it drops updates that come late,
    with any library, and more of them on a busy machine. There it only counts that the program
    ran to its end."""
    passed = re.findall(r"(\d+) tests completed and passed residual checks", report)
    failed = re.findall(r"(\d+) tests completed and failed residual checks", report)
    checks.expect(passed == ["5", "1"] and set(failed) == {"0"},
                  f"{what}: PTRANS and HPL: {passed} passed, {failed} failed")
    error = re.search(r"^MPIFFT_maxErr=(\S+)", report, re.MULTILINE)
    checks.expect(error and 0 <= float(error.group(1)) < 1e-12, f"{what}: FFT: {error}")
    checks.expect(len(re.findall(r"Found \d+ errors in", report)) == 4
                  and "End of HPC Challenge tests" in report, f"{what}: it did not finish")


def check_hpcc(checks, runner, ranks, folder):
    write_hpcc_input(ranks, folder)
    result = os.path.join(folder, "hpccoutf.txt")
    if os.path.exists(result):
        os.unlink(result)
    job = runner.run(ranks, [shutil.which("hpcc")], folder, with_ucg=True)
    what = f"hpcc, {ranks} ranks, {runner.hosts} hosts"
    if not checks.expect(job.status == 0 and os.path.exists(result), f"{what}: {job.output}"):
        return
    with open(result, encoding="ascii", errors="replace") as stream:
        report = stream.read()
    check_hpcc_report(checks, report, what)
    check_served(checks, job, what, ["allreduce", "bcast", "barrier", "alltoall"])


def check_coarrays(checks, runner, ranks, folder):
    """Each program says itself whether it has passed. They need four images, sync_team eight. Over
    TCP they cannot run: Open MPI 4.1 has no windows there at MPI_THREAD_MULTIPLE."""
    for name in COARRAYS:
        found = glob.glob(f"/usr/lib/*/open-coarrays/openmpi/bin/OpenCoarrays-*-tests/{name}")
        if runner.hosts > 1 or ranks < (8 if name == "sync_team" else 4) or not found:
            continue
        job = runner.run(ranks, [found[0]], folder, with_ucg=True, coll_ucg_setup_after="0")
        what = f"coarrays: {name}, {ranks} ranks"
        if checks.expect(job.status == 0 and "Test passed." in job.output,
                         f"{what}: {job.output}"):
            check_served(checks, job, what, ["allreduce", "barrier", "bcast"])


def main():
    folder, arguments = sys.argv[1], sys.argv[2:]
    hosts = 1
    if arguments[0] == "--hosts":
        hosts, arguments = int(arguments[1]), arguments[2:]
    if shutil.which("hpcc") is None or shutil.which("lmp") is None:
        print("hpcc or lmp is not installed")
        sys.exit(mpirun.SKIPPED)
    if hosts > 1 and os.geteuid() != 0:
        print("virtual hosts need root")
        sys.exit(mpirun.SKIPPED)
    checks = mpirun.Checks()
    runner = Runner(folder, hosts)
    marker = f"ucg-programs-{uuid.uuid4()}"
    runner.launcher.environment["UCG_TEST_MARKER"] = marker
    before = mpirun.shared_memory()
    for ranks in map(int, arguments):
        with tempfile.TemporaryDirectory(prefix="ucg-programs-") as scratch:
            check_lammps(checks, runner, ranks, scratch)
            check_hpcc(checks, runner, ranks, scratch)
            check_coarrays(checks, runner, ranks, scratch)
    left = mpirun.left_in_shared_memory(before)
    checks.expect(not left, f"left in /dev/shm: {sorted(left)}")
    alive = mpirun.processes(marker) - {os.getpid()}
    checks.expect(not alive, f"processes left: {sorted(alive)}")
    checks.end()


if __name__ == "__main__":
    main()
