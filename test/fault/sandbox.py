"""Runs a test in namespaces of its own, so that exactly what jobs leave behind can be seen.

Inside, the test is process 1: when it ends, the kernel ends whatever it started. /dev/shm and /tmp
are empty, and the network, which abstract sockets belong to as well, is a loopback of its own.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))

import mpirun  # noqa: E402 (found by the line above)

ENTERED = "UCG_TEST_SANDBOX"
NAMESPACES = ["--mount", "--pid", "--ipc", "--net", "--fork", "--kill-child", "--mount-proc"]
SHM_SIZE = "4g"

OTHERS_WITHIN = 10  # Seconds that another program's files may stay in a /tmp that it can reach.

# Names of files that Open MPI and PMIx make in /dev/shm, and may leave when they are killed.
HOST_NAMES = ("vader_segment.", "ompi.", "pmix", "sm_segment.")

# The names in /tmp from before the test, where it has none of its own.
KNOWN_NAMES = set()


def mount_empty(folder, options):
    """Mounts an empty folder. An earlier one is hidden, not gone."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True, timeout=20)


def mount_shm(size=SHM_SIZE):
    mount_empty("/dev/shm", f"size={size}")


def mount_temporary():
    """Hides /tmp, where other programs make and remove files at any time, unless this test or
    what it starts lies in it."""
    needed = [".", __file__, sys.executable, shutil.which("mpirun") or ".", *sys.argv[1:3]]
    if any(pathlib.Path(path).resolve().is_relative_to("/tmp") for path in needed):
        KNOWN_NAMES.update(names_in_tmp())
    else:
        mount_empty("/tmp", "mode=1777")


@contextlib.contextmanager
def small_shm(size):
    """/dev/shm is small within this context."""
    mount_shm(size)
    try:
        yield
    finally:
        subprocess.run(["umount", "/dev/shm"], check=True, timeout=20)


def make_memory_group(limit):
    """Makes a control group below our own with so many bytes of memory. Returns None where this
    process may not make one, or where there is no memory controller."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        mount = "/sys/fs/cgroup/memory" if controllers else "/sys/fs/cgroup"
        group = pathlib.Path(f"{mount}{path}/ucg-test-{os.getpid()}-{time.monotonic_ns()}")
        with contextlib.suppress(OSError):
            group.mkdir()
            try:
                file = group / ("memory.limit_in_bytes" if controllers else "memory.max")
                file.write_text(str(limit), encoding="ascii")
                return group
            except OSError:
                group.rmdir()
    return None


@contextlib.contextmanager
def memory_group(limit):
    """A command that runs another one in a control group with so many bytes of memory; None
    where the system allows no such group."""
    group = make_memory_group(limit)
    try:
        yield group and ["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', str(group)]
    finally:
        if group:
            end_all()
            group.rmdir()


def enter():
    """Moves this process into the sandbox; skips the test where the kernel or the container
    allows none."""
    if ENTERED not in os.environ:
        unshare = ["unshare"] + ([] if os.geteuid() == 0 else ["--map-root-user"]) + NAMESPACES
        if subprocess.run(unshare + ["true"], capture_output=True, timeout=60).returncode != 0:
            print("skipped: this system allows no namespaces")
            sys.exit(mpirun.SKIPPED)
        os.execvpe("unshare", unshare + [sys.executable] + sys.argv, {**os.environ, ENTERED: "1"})
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=20)
    mount_shm()
    mount_temporary()


@contextlib.contextmanager
def temporary():
    """A folder for the jobs' temporary files, in place of /tmp; short, for sockets' names."""
    with tempfile.TemporaryDirectory(prefix="f", dir="/tmp") as folder:
        os.environ["TMPDIR"] = folder
        yield pathlib.Path(folder)


# ---------------------------------------------------------------- leftovers


def has_ended(pid):
    """Has the process ended? A zombie has nothing left but its exit status, which process 1
    never asks of orphans. A process holds its memory until its last thread has become one."""
    try:
        states = [stat.read_text().rsplit(")", 1)[1].split()[0]
                  for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # The process, or one of its threads, has just ended.
        return not pathlib.Path(f"/proc/{pid}").exists()
    return all(state in "ZX" for state in states)


def processes():
    """Ids of all processes but this one that have not ended."""
    pids = {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}
    return {pid for pid in pids if not has_ended(pid)}


def running(program):
    """Ids of the processes that execute `program`, in the order of their birth."""
    found = []
    for pid in sorted(processes()):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/exe") == str(program):
                found.append(pid)
    return found


def await_none(found, seconds):
    """Waits until found() finds nothing; returns what it still finds."""
    end = time.monotonic() + seconds
    while found() and time.monotonic() < end:
        time.sleep(0.05)
    return found()


def await_quiet(seconds):
    """Waits until no process but this one is left; returns those that are."""
    return await_none(processes, seconds)


def end_all():
    """Ends every process of the sandbox."""
    for pid in processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await_quiet(10)


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return "(gone)"


def our_sockets():
    """Names of the library's sockets that are bound."""
    lines = pathlib.Path("/proc/net/unix").read_text(encoding="ascii").splitlines()
    return [line.split()[-1] for line in lines if "@ucg" in line]


def sysv_segments():
    """The System V shared memory of this namespace."""
    return pathlib.Path("/proc/sysvipc/shm").read_text(encoding="ascii").splitlines()[1:]


def names_in_tmp():
    return {name for name in os.listdir("/tmp") if "ucg" in name}


def temporary_names(folder):
    """What has UCG's name in the jobs' temporary folder, or in /tmp itself."""
    return {str(path) for path in folder.rglob("*ucg*")} | names_in_tmp()


def our_files(folder):
    """The files that are UCG's: those in /dev/shm that are not Open MPI's, and elsewhere those
    with UCG's name."""
    shared = [name for name in os.listdir("/dev/shm") if not name.startswith(HOST_NAMES)]
    return shared + sorted(temporary_names(folder) - KNOWN_NAMES)


def expect_nothing_left(checks, what, folder, seconds=30):
    """Checks that a job has left no process, no shared memory, no file and no socket."""
    left = {pid: command_of(pid) for pid in await_quiet(seconds)}
    checks.expect(not left, f"{what}: still running after {seconds} s: {left}")
    if left:
        end_all()
    checks.expect(not our_sockets(), f"{what}: sockets left: {our_sockets()}")
    checks.expect(not sysv_segments(), f"{what}: System V segments left: {sysv_segments()}")
    files = await_none(lambda: our_files(folder), OTHERS_WITHIN)
    checks.expect(not files, f"{what}: files left: {files}")


# ---------------------------------------------------------------- tests


class Bench:
    """What a test works with: the program, its launcher, a folder for temporary files."""

    def __init__(self, component_folder, program, temporary_folder):
        self.checks = mpirun.Checks()
        self.launcher = mpirun.Launcher(component_folder)
        self.program = str(pathlib.Path(program).resolve())
        self.folder = temporary_folder

    def expect_right(self, what, job, part):
        """Checks that the job ended well, with right results, and left nothing."""
        self.checks.expect(job.status == 0 and f"{part} ok" in job.output,
                           f"{what}: status {job.status}\n{job.output[-3000:]}")
        expect_nothing_left(self.checks, what, self.folder)

    def expect_lines(self, what, job, pattern, count):
        """Checks that `count` lines of the job's output match."""
        found = [line for line in job.output.splitlines() if re.search(pattern, line)]
        self.checks.expect(len(found) == count,
                           f"{what}: {len(found)} lines match '{pattern}', not {count}:\n"
                           f"{job.output[-3000:]}")


def run(tests):
    """Runs each of the tests, which are functions of a bench: the main program of a test."""
    enter()
    with temporary() as folder:
        bench = Bench(*sys.argv[1:3], folder)
        for test in tests:
            started = time.monotonic()
            test(bench)
            print(f"{test.__name__}: {time.monotonic() - started:.1f} s", flush=True)
    bench.checks.end()
