#!/usr/bin/env python3
"""Files with contents that would control a terminal: whatever a tool prints of them, on either
stream, has no control characters. Control sequences are put at seeded random places of files of
each kind that the tools read, and into the names of files.

Arguments: ucg_plan, ucg_sim, ucg_topo, ucg_info, ucg_aapc.
"""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile

SEED = 20261122
PLACES = 12  # In each file, for each sequence.
SEQUENCES = [b"\x1b[2J", b"\x1b]0;title\x07", b"\xc2\x9b2J", b"\x9b2J", b"\r", b"\x7f", b"\x00",
             b"\xff\xfe"]
# Line breaks and tabs are the tools' own; C1 controls are C2 80 to C2 9F in UTF-8.
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")

TOPOLOGY = "package:1 l3:1 core:2 pu:1"
PLATFORM = b"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="world" routing="Full">
    <host id="n0" speed="1Gf"/>
    <host id="n1" speed="1Gf"/>
    <link id="wire" bandwidth="1GBps" latency="1us"/>
    <route src="n0" dst="n1"><link_ctn id="wire"/></route>
  </zone>
</platform>
"""
SWITCHES = b"""SwitchName=top Switches=left,right LinkSpeed=1gbit
SwitchName=left Nodes="n0,n1"
SwitchName=right Nodes=n[2-3]
"""
PROFILE = b"""[reduction]
per_byte_ns = 0.1
[levels.host]
latency_ns = 100
overhead_ns = 10
gap_ns = 10
gap_per_byte_ns = 0.1
"""


def run(words, environment=None, given=b""):
    return subprocess.run(words, input=given, capture_output=True, timeout=60,
                          env={**os.environ, **(environment or {})}, check=False)


def output(*words, given=b""):
    done = run(words, given=given)
    if done.returncode != 0:
        raise RuntimeError(f"{words}: {done.stderr.decode()}")
    return done.stdout


def sources(plan, sim, topo, aapc):
    """[(contents, command that reads it from {})]; the contents are correct."""
    allreduce = ["--collective", "allreduce", "--ranks", "2", "--bytes", "8"]
    alltoall = ["--collective", "alltoall", "--ranks", "2", "--hosts", "2"]
    return [
        (output(plan, "show", *allreduce), [plan, "verify", "--file", "{}"]),
        (output(plan, "show", *allreduce, "--format", "json"), [plan, "verify", "--file", "{}"]),
        (PROFILE, [plan, "explain", *allreduce, "--profile", "{}"]),
        (output(topo, "placement", "--ranks-per-host", "2", "--synthetic", TOPOLOGY),
         [topo, "placement", "--file", "{}", "--format", "outline"]),
        (output(topo, "convert", "--synthetic", TOPOLOGY),
         [topo, "show", "--machine-file", "{}"]),
        (PLATFORM, [sim, "run", "--collective", "bcast", "--ranks", "2", "--hosts", "2",
                    "--pricing", "simgrid", "--platform", "{}"]),
        (SWITCHES, [aapc, "--topology", "{}"]),
        (SWITCHES, [aapc, "--topology", "{}", "--format", "schedule"]),
        (SWITCHES, [topo, "cluster", "{}"]),
        (SWITCHES, [plan, "explain", *alltoall, "--topology", "{}"]),
        (output(topo, "cluster", "-", "--format", "json", given=SWITCHES),
         [aapc, "--topology", "{}", "--format", "json"]),
        (output(topo, "cluster", "-", "--format", "json", given=SWITCHES),
         [aapc, "--topology", "{}", "--format", "dot"]),
        (SWITCHES, [sim, "run", *alltoall, "--topology", "{}"]),
    ]


def disturbed(contents, chance):
    """The contents with each sequence put in at some places."""
    for sequence in SEQUENCES:
        for _ in range(PLACES):
            at = chance.randrange(len(contents) + 1)
            yield contents[:at] + sequence + contents[at:]


def check(words, problems, environment=None):
    done = run(words, environment)
    found = CONTROL.search(done.stdout + b"\n" + done.stderr)
    if found:
        shown = (done.stdout + done.stderr)
        problems.append(f"{words}: {found[0]!r} in {shown[-600:]!r}")
    # SimGrid itself ends the process if a platform file is wrong.
    if done.returncode not in ((0, 1, 2, -signal.SIGABRT) if "simgrid" in words else (0, 1, 2)):
        problems.append(f"{words}: status {done.returncode}: {done.stderr[-600:]!r}")


def main():
    plan, sim, topo, info, aapc = sys.argv[1:]
    chance = random.Random(SEED)
    problems, checked = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for contents, command in sources(plan, sim, topo, aapc):
            path = os.path.join(folder, "input")
            for text in disturbed(contents, chance):
                with open(path, "wb") as file:
                    file.write(text)
                check([word.replace("{}", path) for word in command], problems)
                checked += 1
        named = os.path.join(folder, "x\x1b[2J\x9b")
        for command in ([plan, "verify", "--file", named], [topo, "show", "--xml", named],
                        [plan, "list", "--format", named], [plan, named],
                        [plan, "explain", "--collective", "bcast", "--algorithm", named],
                        [aapc, "--topology", named], [aapc, "--format", named], [aapc, named]):
            check(command, problems)
        check([info, "--config"], problems, {"UCG_PROFILE": named, "UCG_\x1b[2J": "1"})
    print(f"{checked} files")
    print("\n".join(problems[:20]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
