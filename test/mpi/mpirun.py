"""Runs programs under mpirun, with UCG's component or without, and finds what they leave behind."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time

SKIPPED = 77

# The folder of the tool by which mpirun says where processes are, and the time that it may take.
STACKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stacks")
SECONDS_FOR_STACKS = 60

# What UCG, UCX, Open MPI and PMIx call their files in /dev/shm.
JOBS_NAME = re.compile(r".*ucg|ucx|vader_segment|sm_segment|ompi|opal|osc_|pmix")


class Job:
    """The result of a run: its exit status and its output, which includes standard error."""

    def __init__(self, status, output):
        self.status = status
        self.output = output


class Launcher:
    """Starts jobs with the component in `folder`."""

    def __init__(self, folder):
        self.environment = dict(os.environ)
        self.environment.update(
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            # The vector operators of Open MPI 4.1 saturate sums of 8-bit integers.
            OMPI_MCA_op="^avx",
            # These transports look for devices that are not here, which takes longer than most
            # programs do.
            OMPI_MCA_btl="^openib,ofi,uct",
            OMPI_MCA_mtl="^ofi,psm,psm2",
            # Tests make few calls on each communicator, and they are meant for libucg.
            OMPI_MCA_coll_ucg_setup_after="0",
            # A profile that somebody has measured on this machine must not count.
            UCG_PROFILE="builtin",
        )
        self.environment["OMPI_MCA_mca_base_component_path"] = f"{folder}:{default_path()}"
        self.environment["PATH"] = f"{STACKS}:{os.environ['PATH']}"
        self.environment["OMPI_MCA_orte_launch_agent"] = f"env PATH={STACKS}:$PATH orted"
        # From 5.0 on, Open MPI hands the above to PMIx unless PMIx has a path: empty means its own.
        self.environment["PMIX_MCA_mca_base_component_path"] = ""
        # The libraries that all ranks preload; mpirun does not need them.
        self.preload = os.environ.get("UCG_TEST_PRELOAD")
        if self.preload:
            self.environment.update(without_leaks(self.environment))
            # A sanitizer calls dlopen for libucg, and then the path to UCX's part is not searched.
            network = os.path.join(folder, os.pardir, "transport", "ucx")
            self.environment["LD_LIBRARY_PATH"] = ":".join(
                filter(None, (os.environ.get("LD_LIBRARY_PATH"), network)))

    def preloaded(self, library=""):
        """LD_PRELOAD of the ranks if they also preload `library`."""
        return ":".join(filter(None, (self.preload, library)))

    def command(self, *words, preload=""):
        """The command of mpirun with these words, for ranks that preload what they must, and
        `preload`."""
        libraries = self.preloaded(preload)
        preloading = ["-x", f"LD_PRELOAD={libraries}"] if libraries else []
        return ["mpirun", "--oversubscribe", *preloading, *words]

    def run(self, ranks, program, mca=None, timeout=300, environment=None):
        """Runs `program` (a list) on `ranks` ranks; `mca` is a dictionary of parameters. If a
        job does not end in time, prints where its processes are."""
        variables = dict(environment or {})
        command = self.command("-n", str(ranks), "--timeout", str(timeout), "--get-stack-traces",
                               preload=variables.pop("LD_PRELOAD", ""))
        for name, value in (mca or {}).items():
            command += ["--mca", name, value]
        for name in variables:
            command += ["-x", name]
        job = self.execute(command + program, timeout + SECONDS_FOR_STACKS, variables)
        stacks = job.output.find("Waiting for stack traces")
        if stacks >= 0:
            print(f"no end within {timeout} s: {' '.join(command + program)}\n"
                  + job.output[stacks:], flush=True)
        return job

    def execute(self, command, timeout=60, environment=None):
        """Runs a command in a process group of its own, which a timeout ends as a whole."""
        process = subprocess.Popen(
            command,
            env={**self.environment, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                output, _ = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
            return Job(-1, f"{output}\nno end within {timeout} s: {' '.join(command)}")
        return Job(process.returncode, output)


def without_leaks(environment):
    """Variables for ranks under AddressSanitizer: Open MPI and UCX do not free all memory when
    they end, and each of them would patch the functions that the sanitizer patches."""
    options = environment.get("ASAN_OPTIONS", "")
    return {"ASAN_OPTIONS": f"{options}:detect_leaks=0".lstrip(":"), "UCX_MEM_EVENTS": "no",
            "OMPI_MCA_memory": "^patcher"}


class Reference:
    """The files that a program writes under Open MPI's own collectives. They are the same in all
    tests that run the program on so many ranks of one host. Where such tests name a folder, one
    of them runs the program, and its files are kept there until the program or Open MPI changes."""

    def __init__(self, launcher, program, folder):
        self.launcher, self.program, self.folder = launcher, program, folder
        os.makedirs(folder, exist_ok=True)
        self.identity = f"{os.stat(program).st_mtime_ns} {version()}"

    def prefix(self, ranks):
        """The prefix of its files, of which each rank has one."""
        return os.path.join(self.folder, f"{os.path.basename(self.program)}-{ranks}")

    def run(self, ranks, timeout):
        """The job that has written them; a job that succeeded if it was run earlier."""
        kept = f"{self.prefix(ranks)}.of"
        if os.path.exists(kept):
            with open(kept, encoding="ascii") as stream:
                if stream.read() == self.identity:
                    return Job(0, "")
            os.unlink(kept)
        job = self.launcher.run(ranks, [self.program, self.prefix(ranks)], {"coll": "^ucg"},
                                timeout=timeout)
        if job.status == 0:
            with open(kept, "w", encoding="ascii") as stream:
                stream.write(self.identity)
        return job


def version():
    """Open MPI's version, for example "4.1.4"."""
    output = subprocess.run(["ompi_info", "--version"], capture_output=True, text=True,
                            check=True).stdout
    return re.search(r"Open MPI v([\d.]+)", output)[1]


def series():
    """Open MPI's series, for example (4, 1)."""
    major, minor = version().split(".")[:2]
    return int(major), int(minor)


def on_ranks(ranks, variables, program):
    """The command of a job whose ranks run `program`, some of them with other variables. There
    is only one program, since mpirun of Debian 13's Open MPI 5.0.7 crashes with several."""
    some = "|".join(map(str, ranks))
    given = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    script = f'case $OMPI_COMM_WORLD_RANK in {some}) export {given};; esac; exec "$0" "$@"'
    return ["sh", "-c", script, *program]


def default_path():
    """Where Open MPI looks for components. A path that is set must include this, or all of them
    would be hidden."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OMPI_MCA_mca_base")}
    output = subprocess.run(
        ["ompi_info", "--parsable", "--param", "mca", "base", "--level", "9"],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout
    return re.search(r"mca_base_component_path:value:(.*)", output).group(1).strip('"\n')


def shared_memory():
    """Names in /dev/shm that a job of this user could have made. Other programs may run beside the
    test."""
    found = set()
    with os.scandir("/dev/shm") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # It has gone meanwhile.
                if JOBS_NAME.match(entry.name) and entry.stat().st_uid == os.getuid():
                    found.add(entry.name)
    return found


def left_in_shared_memory(before, seconds=10):
    """What is there in addition to what was there `before`, for as long as other jobs may need."""
    end = time.monotonic() + seconds
    while (left := shared_memory() - before) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def processes(marker):
    """Ids of processes whose environment holds the marker."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as stream:
                if marker.encode() in stream.read():
                    found.add(int(pid))
        except OSError:
            continue
    return found


def counters(output):
    """The counters that the component prints at the end of a run: {collective: (served, passed
    on)}."""
    pattern = r"coll/ucg: rank 0 called (\w+): (\d+) by libucg, (\d+) passed on"
    return {name: (int(taken), int(passed)) for name, taken, passed in re.findall(pattern, output)}


class Checks:
    """Counts and prints what went wrong."""

    def __init__(self):
        self.failures = 0

    def expect(self, condition, message):
        if not condition:
            self.failures += 1
            print(f"FAILED: {message}", flush=True)
        return condition

    def run_part(self, launcher, program, part, ranks, what, mca, **options):
        """Runs a program that prints "PART ok" at its end, where all is well. `what` names the run
        in the message if it is not. Returns the Job; `options`: of Launcher.run()."""
        job = launcher.run(ranks, program, mca, timeout=120, **options)
        self.expect(job.status == 0 and f"{part} ok" in job.output,
                    f"{what}: status {job.status}\n{job.output[-3000:]}")
        return job

    def end(self):
        print("all as expected" if self.failures == 0 else f"{self.failures} failures")
        sys.exit(0 if self.failures == 0 else 1)
