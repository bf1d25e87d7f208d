#!/usr/bin/env python3
"""The programs of perf refuse a value that is no number in its range, and name the option and the
value.

Argument: the build directory.
"""

import os
import subprocess
import sys

WRONG = ["-8", "18446744073709551616", "nan", "8x", " 8", ""]
OPTIONS = {
    "perf/collbench/collbench": ["--sizes", "--repetitions", "--time", "--memory",
                                 "--root"],
    "perf/collbench/commbench": ["--repetitions", "--cycles"],
    "perf/collbench/persistbench": ["--cycles", "--live"],
    "perf/collbench/interbench": ["--sizes", "--time"],
    "perf/collbench/overlapbench": ["--sizes", "--repetitions", "--polls", "--cpu-us"],
    "perf/apps/matvec": ["--size", "--iterations"],
    "perf/apps/barnes_hut": ["--bodies", "--seed"],
    "perf/apps/array_reduction": ["--repetitions", "--time"],
    "perf/micro/limit_bench": ["--rounds"],
    "perf/micro/reduce_bench": ["--rounds"],
    "perf/micro/shm_bench": ["--rounds"],
    "perf/micro/turn_bench": ["--rounds", "--ranks"],
    "perf/micro/ucx_bench": ["--rounds"],
    "perf/perftest/mpi/mpi_breakdown": ["SAMPLES", "ROUNDS"],
    "perf/recursive_multiplying/allreduce_blocks": ["BYTES"],
    "perf/aapc/alltoall_blocks": ["BYTES"],
}
OF_GOOGLE = [f"perf/micro/{name}_bench" for name in ("aapc", "engine", "plan", "sim")]
# The program, its arguments, and what it must say about them.
REFUSED = [
    ("perf/collbench/collbench", ["--mode", "b3b"], "found 'b3b'"),
    ("perf/collbench/collbench", ["--collectives", "allreduce,nope"], "found 'allreduce,nope'"),
    ("perf/collbench/collbench", ["--collectives", ""], "found ''"),
    ("perf/collbench/collbench", ["--collectives", "barrier,,bcast"], "found 'barrier,,bcast'"),
    ("perf/collbench/collbench", ["--sizes", "8,"], "found ''"),
    ("perf/collbench/collbench", ["--in-place", "--write-input"], "no --write-input"),
    ("perf/collbench/collbench", ["barrier"], "unexpected argument 'barrier'"),
    ("perf/collbench/commbench", ["--", "7"], "unexpected argument '7'"),
    ("perf/collbench/interbench", ["--collectives", "bcast,nope"], "found 'nope'"),
    ("perf/collbench/interbench", ["bcast"], "unexpected argument 'bcast'"),
    ("perf/collbench/interbench", [], "mpirun -np 2"),
    ("perf/collbench/overlapbench", ["--collectives", "ibcast,,ireduce"], "found ''"),
    ("perf/collbench/overlapbench", ["--collectives", ""], "found ''"),
    ("perf/collbench/overlapbench", ["--sizes", "64,"], "found ''"),
    ("perf/collbench/overlapbench", ["--sizes", "9"], "expected multiples of 8, found '9'"),
    ("perf/collbench/overlapbench", ["--sizes", ",".join(["8"] * 17)], "expected 16 at most"),
    ("perf/collbench/overlapbench", ["--compute", "none"], "expected all or first, found 'none'"),
    ("perf/collbench/overlapbench", ["ibcast"], "unexpected argument 'ibcast'"),
]


def run(build, environment, program, words):
    return subprocess.run([os.path.join(build, program), *words], env=environment, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)


def refusal(build, environment, program, words, wanted):
    """Returns what is wrong; a refusal as it should be has no problems."""
    done = run(build, environment, program, words)
    if done.returncode == 2 and wanted in done.stderr:
        return []
    return [f"{program} {words}: status {done.returncode}: {done.stderr[-400:]}"]


def command(option, text):
    before = {"BYTES": [], "SAMPLES": [], "ROUNDS": ["20"]}.get(option, [option])
    return [*before, text, *["1", "1"] * (option == "BYTES")]


def main():
    build, problems, turn = sys.argv[1], [], 0
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    for program, options in OPTIONS.items():
        for option in options:
            # Starting MPI takes time, so each option is given two of the wrong values, and all
            # options together get all of them.
            for text in (WRONG[turn % len(WRONG)], WRONG[(turn + 1) % len(WRONG)]):
                turn += 1
                words = command(option, text)
                done = run(build, environment, program, words)
                wanted = [option, "expected"] + [f"'{text}'"] * (option != "--sizes")
                if done.returncode != 2 or not all(word in done.stderr for word in wanted):
                    problems.append(f"{program} {words}: status {done.returncode}: "
                                    f"{done.stderr[-400:]}")
    for case in REFUSED:
        problems += refusal(build, environment, *case)
    for program in OF_GOOGLE:  # These are built only where Google Benchmark is installed.
        if os.path.exists(os.path.join(build, program)):
            problems += refusal(build, environment, program, ["--foo"], "--foo")
            problems += refusal(build, environment, program, ["--benchmark_filter=foo"], "foo")
    for program in (program for program in OPTIONS if program.startswith("perf/micro/")):
        problems += refusal(build, environment, program, ["--foo"], "unknown option '--foo'")
        done = run(build, environment, program, ["--help"])
        if done.returncode != 0 or "usage: " + os.path.basename(program) not in done.stdout:
            problems.append(f"{program} --help: status {done.returncode}: {done.stderr}")
    print(f"{turn} wrong values")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
