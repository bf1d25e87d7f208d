#!/usr/bin/env python3
"""Runs the program of requests: see requests.c.

usage: requests.py COMPONENT-FOLDER PROGRAM RANKS...
"""

import re
import sys

import mpirun

PARTS = ["many", "messages", "freed", "persistent", "persistent_many", "persistent_loop",
         "persistent_threads", "forgotten", "idup", "freed_early", "threads",
         "neighbors_many", "neighbors_freed", "neighbors_persistent", "repeated",
         "repeated_threads", "vectors",
         "first", "first_of_all", "first_of_all_crossed", "first_of_all_blocking", "first_threads"]
# The most calls that may be passed on: Open MPI's own calls while it makes a communicator.
OWN_CALLS = {"freed": 3 * 50, "idup": 3 * 100,
             "neighbors_many": 3, "neighbors_freed": 3 * 10, "neighbors_persistent": 3,
             "repeated": 3 * 10, "repeated_threads": 3 * 10, "persistent_many": 3,
             "vectors": 3 * 4 * 9 + 3 * 2,
             "first": 3 * 22 + 3 * 8 + 8 * 8 + 3 * 7 * 20 + 3 * 30 + 2 * 3 * 20 + 2 * 3 * 20,
             "first_of_all": 3, "first_of_all_crossed": 3, "first_of_all_blocking": 3,
             "first_threads": 3 * 24 * 3 + 3 * 30}
# The most groups that may be made: one for each communicator; one for each live persistent request,
# and for each freed one as long as some process has not freed its own; and eight that are not in
# use.
GROUPS = {"persistent_loop": 1 + 8, "persistent_many": 2 + 240 + 120 + 8}


def check(checks, launcher, program, part, ranks, tls):
    mca = {"coll_ucg_tls": tls, "coll_ucg_verbose": "1"}
    environment = {"UCG_LOG_LEVEL": "info"} if part in GROUPS else None
    what = f"{part} on {ranks} ranks over {tls}"
    job = checks.run_part(launcher, [program, part], part, ranks, what, mca,
                          environment=environment)
    groups = len(re.findall(rf": rank 0 of {ranks} on 1 hosts, ", job.output))
    checks.expect(groups <= GROUPS.get(part, groups), f"{what}: {groups} groups")
    counted = mpirun.counters(job.output)
    passed = {name: calls for name, (_, calls) in counted.items() if calls > 0}
    own = passed.pop("iallreduce", 0)
    checks.expect(own <= OWN_CALLS.get(part, 0) and not passed, f"{what}: passed on: {counted}")


# The last rank has no context. (mpirun with two programs would do as well, but that of Debian 13
# ends with a segmentation fault.)
WITHOUT_CONTEXT = """
[ "$OMPI_COMM_WORLD_RANK" != 2 ] || export UCG_TLS=none
exec "$0" "$@"
"""


def check_without_context(checks, launcher, program, part):
    """All calls that waited for a group go to the previous modules."""
    job = launcher.run(3, ["sh", "-c", WITHOUT_CONTEXT, program, part], timeout=120)
    checks.expect(job.status == 0 and f"{part} ok" in job.output and "UCG_TLS" in job.output,
                  f"{part}, one process without a context: status {job.status}\n"
                  f"{job.output[-3000:]}")


def main():
    folder, program, *ranks = sys.argv[1:]
    checks = mpirun.Checks()
    launcher = mpirun.Launcher(folder)
    for count in map(int, ranks):
        for part in PARTS:
            check(checks, launcher, program, part, count, "shm,ucx")
    for part in PARTS:
        check(checks, launcher, program, part, 2, "ucx")
    for part in ["first", "first_threads"]:
        check_without_context(checks, launcher, program, part)
    checks.end()


main()
