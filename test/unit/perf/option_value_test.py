#!/usr/bin/env python3
"""The programs of perf refuse what is no number in its range, with the option and what was found.

Argument: the build directory.
"""

import os
import subprocess
import sys

WRONG = ["-8", "18446744073709551616", "nan", "8x", " 8", ""]
OPTIONS = {
    "perf/collbench/collbench": ["--sizes", "--repetitions", "--time"],
    "perf/collbench/commbench": ["--repetitions", "--cycles"],
    "perf/collbench/persistbench": ["--cycles", "--live"],
    "perf/collbench/interbench": ["-s", "-t"],
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


def command(build, program, option, text):
    path = os.path.join(build, program)
    before = {"BYTES": [], "SAMPLES": [], "ROUNDS": ["20"]}.get(option, [option])
    return [path, *before, text, *["1", "1"] * (option == "BYTES")]


def main():
    build, problems, turn = sys.argv[1], [], 0
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    for program, options in OPTIONS.items():
        for option in options:
            # Starting MPI takes its time: two of them for each, all of them for all.
            for text in (WRONG[turn % len(WRONG)], WRONG[(turn + 1) % len(WRONG)]):
                turn += 1
                words = command(build, program, option, text)
                done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, text=True,
                                      capture_output=True, timeout=60, check=False)
                wanted = [option, "expected"] + [f"'{text}'"] * (option != "--sizes")
                if done.returncode != 2 or not all(word in done.stderr for word in wanted):
                    problems.append(f"{words}: status {done.returncode}: {done.stderr[-400:]}")
    collbench = os.path.join(build, "perf/collbench/collbench")
    for option, text in (("--mode", "b3b"), ("--collectives", "allreduce,nope"),
                         ("--collectives", ""), ("--collectives", "barrier,,bcast"),
                         ("--sizes", "8,")):
        done = subprocess.run([collbench, "--smoke", option, text], env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False)
        wanted = "found ''" if option == "--sizes" else f"found '{text}'"
        if done.returncode != 2 or wanted not in done.stderr:
            problems.append(f"{option} '{text}': status {done.returncode}: {done.stderr[-400:]}")
    for program in (program for program in OPTIONS if program.startswith("perf/micro/")):
        for option, status, wanted in (("--foo", 2, "unknown option '--foo'"),
                                       ("--help", 0, "usage: " + os.path.basename(program))):
            done = subprocess.run([os.path.join(build, program), option], text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                                  check=False)
            if done.returncode != status or wanted not in done.stdout + done.stderr:
                problems.append(f"{program} {option}: status {done.returncode}: {done.stderr}")
    print(f"{turn} wrong values")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
