#!/usr/bin/env python3
"""Programs that know nothing of UCG, run with libucg_heap.so preloaded: they compute correctly and
print nothing more, except for one line where the system gives too little.

usage: programs.py LIBRARY ALLOCATIONS FORKS HOOKS OWN_MALLOC STACKS, the programs of this folder
"""

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

LIBRARY, ALLOCATIONS, FORKS, HOOKS, OWN_MALLOC, STACKS = sys.argv[1:7]
STEP_DOWN = "serves this program from ordinary memory"
OTHER_MALLOC = "the program brings its own malloc (or a tool such as valgrind replaces it)"
SOME = "serves only some of this program's large blocks"
FULL = "the node heap is full"
NO_COPY = "a forked child gets no copy"
AT_ONCE = {"MALLOC_CONF": "dirty_decay_ms:0"}  # This is how long jemalloc keeps freed memory.
REFUSED = "fork() fails, since the program has closed the descriptor of the node heap"
NO_MEMORY = "a forked child gets no memory of its own and ends"
ON_HEAP_STACK = "on a stack in a large block"
IN_HEAP_THREAD = "fork() fails in a thread whose stack lies in a large block"
SKIPPED = 77
failures = 0


def run(command, limits=None, environment=None, preload=LIBRARY, **options):
    """Runs a program with the library; `limits` are the resource limits of its process."""
    def set_limits():
        for kind, value in (limits or {}).items():
            resource.setrlimit(kind, (value, value))
    variables = {**os.environ, "LD_PRELOAD": preload, **(environment or {})}
    return subprocess.run(command, env=variables, preexec_fn=set_limits, capture_output=True,
                          text=True, timeout=60, check=False, **options)


def expect(condition, what, job):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED: {what}: status {job.returncode}\n{job.stdout[-2000:]}\n"
              f"{job.stderr[-2000:]}", flush=True)


def expect_quiet(what, job):
    expect(job.returncode == 0 and job.stderr == "", what, job)


def expect_one_line(what, job, line):
    told = job.stderr.count("ucg warning") == 1 and line in job.stderr
    expect(job.returncode == 0 and told, what, job)


def ordinary_programs():
    for command in [["/bin/ls", "-l", "/"], ["/bin/true"], ["sh", "-c", "ls / | sort | wc -l"],
                    ["env", "LC_ALL=C", "tar", "-cf", "/dev/null", os.path.dirname(ALLOCATIONS)]]:
        expect_quiet(" ".join(command), run(command))


def sorting():
    """A program with threads, large blocks and a file."""
    rng = random.Random(7)
    lines = [f"{rng.getrandbits(64):020d}" for _ in range(150000)]
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        job = run(["sort", "--parallel=2", "-S", "8M", file.name], environment={"LC_ALL": "C"})
        expect(job.stdout.split() == sorted(lines) and job.stderr == "", "sort", job)


def python():
    """An interpreter that forks, starts programs and uses large blocks."""
    program = """
import multiprocessing, os, subprocess
data = bytearray(b'p') * (30 << 20)
def change(value):
    assert data[:1] == data[-1:] == b'p'
    data[:] = bytes([value]) * len(data)
    return sum(data[:100])
with multiprocessing.get_context('fork').Pool(3) as pool:
    assert pool.map(change, [1], 1) == [100]
assert data == b'p' * len(data)
assert subprocess.run(['/bin/echo', 'hello'], capture_output=True).stdout == b'hello\\n'
assert os.popen('echo x').read() == 'x\\n'
if os.fork() == 0:
    os.execv('/bin/true', ['true'])
os.wait()
print('done')
"""
    job = run([sys.executable, "-c", program])
    expect(job.stdout == "done\n" and job.stderr == "", "python", job)


def exec_starts_afresh():
    """exec() closes the heap of the earlier program; the new program has its own."""
    script = "ls -l /proc/self/fd; exec ls -l /proc/self/fd"
    job = run(["bash", "-c", script])
    expect(job.returncode == 0 and job.stdout.count("memfd:ucg") == 2, "exec", job)


def names_of_ours():
    return {name for folder in ("/dev/shm", "/tmp") for name in os.listdir(folder) if "ucg" in name}


def nothing_left_after_kill():
    """The memory is anonymous, so no file stays, however the process ends."""
    before = names_of_ours()
    job = run([sys.executable, "-c",
               "import os; x = bytearray(8 << 20); os.kill(os.getpid(), 9)"])
    expect(job.returncode == -signal.SIGKILL, "a killed program", job)
    end = time.monotonic() + 30  # Tests that run beside this one have such files for a while.
    while (left := names_of_ours() - before) and time.monotonic() < end:
        time.sleep(0.1)
    expect(not left, f"left behind: {left}", job)


def small_limits():
    mebi = 1 << 20
    expect_one_line("RLIMIT_AS 64 MiB", run(["/bin/ls", "/"], {resource.RLIMIT_AS: 64 * mebi}),
                    STEP_DOWN)
    job = run([ALLOCATIONS, "limited"], {resource.RLIMIT_AS: 600 * mebi})
    expect(job.returncode == 0, "RLIMIT_AS 600 MiB", job)
    for bytes_max in [0, 4096]:
        job = run([ALLOCATIONS, "shadow", "5"], {resource.RLIMIT_FSIZE: bytes_max})
        expect_one_line(f"RLIMIT_FSIZE {bytes_max}", job, STEP_DOWN)
    for command in [["bash", "-c", "( exit 3 ); test $? = 3"], [FORKS, "apart"], [FORKS, "waited"]]:
        job = run(command, {resource.RLIMIT_DATA: 2048 * mebi})
        expect_quiet(f"RLIMIT_DATA 2 GiB, {command}", job)
    expect_quiet("RLIMIT_DATA 256 MiB, fork",
                 run([FORKS, "apart"], {resource.RLIMIT_DATA: 256 * mebi}))
    expect_one_line("RLIMIT_DATA 30 MiB", run(["/bin/ls", "/"], {resource.RLIMIT_DATA: 30 * mebi}),
                    STEP_DOWN)
    expect_quiet("RLIMIT_MEMLOCK 0", run([ALLOCATIONS, "place"], {resource.RLIMIT_MEMLOCK: 0}))
    expect_quiet("few descriptors", run(["/bin/true"], {resource.RLIMIT_NOFILE: 4}))


def full_heap():
    """When the heap is full, a program goes on with ordinary memory."""
    job = run([ALLOCATIONS, "shadow", "5"], {resource.RLIMIT_FSIZE: 32 << 20})
    expect_one_line("a heap of 32 MiB", job, FULL)
    job = run([FORKS, "apart"], {resource.RLIMIT_FSIZE: 17 << 20})
    expect(job.returncode == 0, "forks with a heap of 17 MiB", job)


def run_with_file(path, text, command, environment=None, limits=None):
    """Runs with a file of another machine mounted over this one's, in a mount namespace. Returns
    None where there are no such namespaces, or no such file."""
    with tempfile.NamedTemporaryFile("w", prefix="other_machine") as file:
        file.write(text)
        file.flush()
        script = 'mount --bind "$0" "$1" && LD_PRELOAD="$2" && shift 2 && ' \
                 'export LD_PRELOAD && exec "$@"'
        unshare = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
        if not os.path.exists(path) or run([*unshare, "true"], preload="").returncode != 0:
            return None
        return run([*unshare, "sh", "-c", script, file.name, path, LIBRARY, *command], limits,
                   environment, preload="")


def run_with_memory(available_kb, command, environment=None, limits=None):
    text = f"MemTotal: 8192000 kB\nMemFree: {available_kb} kB\nMemAvailable: {available_kb} kB\n"
    return run_with_file("/proc/meminfo", text, command, environment, limits)


def scarce_memory():
    """Where there is no memory for a copy of the large blocks, a child has none of them, and one
    line says so."""
    forks = [["waited"], ["zeros"], ["returned"], ["scattered", "40000", "1"]]
    for kb, command in [(1200, [FORKS, *what]) for what in forks] + \
                       [(1200, [STACKS, "coroutine"]), (1200, [STACKS, "handler"]), (1200, [HOOKS]),
                        (200000, [FORKS, "scattered", "12000", "3", "write"])]:
        job = run_with_memory(kb, command, AT_ONCE if "returned" in command else {})
        if job is None:
            print("skipped: memory that is scarce (no mount namespaces)")
            return
        expect_one_line(f"scarce memory, {command[1:]}", job, NO_COPY)
    job = run_with_memory(1200, [FORKS, "waited"], limits={resource.RLIMIT_DATA: 1 << 30})
    expect_one_line("scarce memory and RLIMIT_DATA 1 GiB", job, NO_COPY)


def huge_pages():
    """Large blocks ask for huge pages where ordinary memory has them without asking."""
    for choice in ["[always] madvise never", "always [madvise] never", "always madvise [never]"]:
        job = run_with_file("/sys/kernel/mm/transparent_hugepage/enabled", choice + "\n",
                            [ALLOCATIONS, "huge"])
        if job is None:
            print("skipped: huge pages (no mount namespaces, or no such pages)")
            return
        expect_quiet(f"huge pages, {choice}", job)


def locked_memory():
    """mlockall() does not fill the holes of the segment with pages, neither in the process nor
    in a child."""
    limits = {resource.RLIMIT_FSIZE: 256 << 20}
    job = run([ALLOCATIONS, "locked"], limits)
    if job.returncode == SKIPPED:
        print("skipped: locked memory (mlockall is refused)")
        return
    expect_quiet("locked memory", job)


def no_room_for_a_copy():
    """Where a child could only share its parent's memory, fork() fails. Where the C library forks
    by itself the child ends, and the parent goes on."""
    expect_one_line("no room for a copy", run([FORKS, "no_room"]), REFUSED)
    expect_one_line("no room for a copy, within", run([FORKS, "within"]), NO_MEMORY)
    job = run_with_memory(1200, [FORKS, "refused"])
    if job is not None:
        expect_one_line("no memory for a copy", job, REFUSED)


def stacks_that_malloc_gave():
    """A fork() that could not work correctly fails, and one line says so."""
    expect_one_line("a thread's stack", run([STACKS, "thread"]), IN_HEAP_THREAD)
    job = run([STACKS, "daemon"])
    expect(job.returncode == -signal.SIGABRT and job.stderr.count("\n") == 1
           and ON_HEAP_STACK in job.stderr, "daemon() on a coroutine's stack", job)


def settings():
    job = run(["/bin/true"], environment={"MALLOC_CONF": "oversize_threshold:0"})
    expect_one_line("no arena for large blocks", job, STEP_DOWN)
    expect_one_line("a malloc of the program's own", run([OWN_MALLOC]), OTHER_MALLOC)
    for conf in ["tcache_max:65536", "oversize_threshold:1048576"]:
        job = run([FORKS, "freed"], environment={"MALLOC_CONF": conf})
        expect_one_line(f"some large blocks, {conf}", job, SOME)
    for conf in ["narenas:1", "percpu_arena:percpu", "tcache:false"]:
        expect_quiet(conf, run([ALLOCATIONS, "place"], environment={"MALLOC_CONF": conf}))
    job = run(["/bin/true"], {resource.RLIMIT_FSIZE: 0}, {"UCG_LOG_LEVEL": "error"})
    expect_quiet("UCG_LOG_LEVEL=error", job)


for test in [ordinary_programs, sorting, python, exec_starts_afresh, nothing_left_after_kill,
             small_limits, full_heap, scarce_memory, huge_pages, locked_memory, no_room_for_a_copy,
             stacks_that_malloc_gave, settings]:
    test()
print("all as expected" if failures == 0 else f"{failures} failures")
sys.exit(0 if failures == 0 else 1)
