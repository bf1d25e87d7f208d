#!/usr/bin/env python3
"""Checks the models of shm/model with spin: each holds, and each of its broken variants fails.

usage: model_test.py [--thorough] [--anew] MODEL...
exit status: 0 all as it must be, 1 not, 77 spin is not installed

A search that ended is not repeated while the program that spin generates for it, the compiler and
the options stay the same: what it found lies below $XDG_CACHE_HOME or ~/.cache. With --anew it is.
"""

import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# For one step of one case. Most take one or two seconds, but the machine may be busy.
SECONDS = 600

PAIR = ["-DMESSAGES=3"]
DEEP = ["-DMESSAGES=5", "-DSLOTS=2"]
THREADS = ["-DTHREADS", "-DMESSAGES=1"]

SHARERS_LAG = ["-DSHARERS=3", "-DWINDOW=2"]
ALL_SHARE = ["-DSHARERS=7", "-DDEPTH=2", "-DBATCH=1", "-DWINDOW=2"]

# For each model: definitions, whether the model must hold, and whether "all processes finish" is
# checked in addition to "no process is stuck".
DOORBELL = [
    (PAIR, True, True),
    (DEEP, True, False),
    (THREADS, True, False),
    (PAIR + ["-DSLOW_STORES"], False, False),
    (PAIR + ["-DNO_SECOND_LOOK"], True, False),
    (PAIR + ["-DNO_ROOM_RING"], False, False),
    (PAIR + ["-DLOOK_FIRST"], False, False),
    (PAIR + ["-DLONG_FIRST"], False, False),
    (PAIR + ["-DSTOOD_ONCE"], False, False),
    (PAIR + ["-DCOUNTED"], True, True),
    (THREADS + ["-DCOUNTED"], True, False),
    (PAIR + ["-DCOUNTED", "-DCOUNT_LATE"], True, False),
    (PAIR + ["-DCOUNTED", "-DSLOW_STORES"], False, False),
    (THREADS + ["-DSLOW_STORES"], False, False),
    (THREADS + ["-DWAKE_ONE"], False, False),
]
FLAG_SLOT_SEQUENTIAL = [
    ([], True, False),
    (SHARERS_LAG, True, False),
    (ALL_SHARE, True, False),
    (["-DWINDOW=2", "-DBATCH=4"], True, False),
    (["-DRANKS=2", "-DSHARERS=3", "-DWINDOW=2", "-DBATCH=4"], True, False),
    (["-DLATE=1"], True, False),
    (["-DLATE=1"] + SHARERS_LAG, True, False),
    (["-DLATE=1"] + ALL_SHARE, True, False),
    (["-DLATE=1", "-DWINDOW=2", "-DBATCH=3"], True, False),
    (["-DLATE=1", "-DWINDOW=2", "-DBATCH=4"], False, False),
    (["-DROOM_TOO_MUCH"], False, False),
    (ALL_SHARE + ["-DROOM_TOO_MUCH"], False, False),
    (["-DONE_PEER"], False, False),
    (["-DDONE_EARLY"], False, False),
    (["-DBATCH=5"], False, False),
]
TWO_RANKS = ["-DRANKS=2", "-DSEQUENCES=6"]
BOTH_SHARE = ["-DRANKS=2", "-DSHARERS=3", "-DDEPTH=2", "-DBATCH=1", "-DSEQUENCES=3"]
FLAG_SLOT = [(["-DSEQUENTIAL"] + case, holds, ends)
             for case, holds, ends in FLAG_SLOT_SEQUENTIAL] + [
    (TWO_RANKS, True, False),
    (BOTH_SHARE, True, False),
    (["-DRANKS=2", "-DSEQUENCES=8", "-DWINDOW=2", "-DBATCH=4"], True, False),
    (TWO_RANKS + ["-DSEQUENCE_STORED=RELAXED"], False, False),
    (TWO_RANKS + ["-DSEQUENCE_LOADED=RELAXED"], False, False),
    (TWO_RANKS + ["-DDONE_STORED=RELAXED"], False, False),
    (TWO_RANKS + ["-DDONE_LOADED=RELAXED"], False, False),
]
COOPERATIVE_ORDERS = [
    ([], True, False),
    (["-DUNITS=3"], True, False),
    (["-DCLAIMS_STORED=RELAXED"], False, False),
    (["-DSENDER_SWAPS=RELEASE"], False, False),
    (["-DPUSHED_STORED=RELAXED"], False, False),
    (["-DPUSHED_LOADED=RELAXED"], False, False),
    # cooperative_orders.pml covers the other ones.
    (["-DNAME_STORED=RELAXED", "-DNAME_LOADED=RELAXED", "-DCLAIMS_LOADED=RELAXED",
      "-DSENDER_SWAPS=ACQUIRE", "-DRECEIVER_SWAPS=RELAXED", "-DCLOSE_SWAPS=RELAXED"], True, False),
]
COOPERATIVE = [
    ([], True, False),
    (["-DMESSAGES=3"], True, True),
    (["-DDEPTH=1", "-DNUMBERS=2"], True, False),
    (["-DNUMBERS=2"], False, False),
    (["-DNO_NAME"], False, False),
    (["-DNO_CLOSE"], False, False),
    (["-DNAME_BEFORE_CLOSE"], False, False),
    (["-DTARGET_FIRST"], False, False),
    (["-DCLAIMS_FIRST"], False, False),
    (["-DPUSHED_FIRST"], False, False),
    (["-DSILENT"], False, False),
    (["-DNO_WAIT"], False, False),
    (["-DSTALE_CLAIMS"], False, False),
    (["-DLEFT_OPEN"], False, False),
    (["-DNO_AHEAD", "-DNO_NAME"], True, False),
    (["-DNO_AHEAD", "-DNO_NAME", "-DLEFT_OPEN"], False, False),
]
ONE_UNIT = ["-DPARTS=1", "-DUNITS=1", "-DCOLLECTIVES=1"]
TWO_UNITS = ["-DPARTS=1", "-DUNITS=2", "-DCOLLECTIVES=1"]
THREE_RANKS = ["-DRANKS=3", "-DUNITS=1", "-DPARTS=1"]
UNITS = [(["-DSEQUENTIAL"] + case, holds, False) for case, holds in (
    ([], True),
    (["-DCOLLECTIVES=3"], True),
    (THREE_RANKS, True),
    (["-DNO_NAME"], False),
    (["-DSEQUENCE_FIRST"], False),
    (["-DDONE_FIRST"], False),
    (["-DNO_BEGUN"], False),
    (["-DNO_CLOSE"], False),
    (["-DNO_WAIT"], False),
    (["-DNO_SEQUENCE"], False),
    (["-DNOT_AGAIN"], False),
    (["-DSWAP_BLIND"], False),
    (THREE_RANKS + ["-DNOT_OF_GIVEN_UP"], False))] + [
    (ONE_UNIT, True, False),
    (ONE_UNIT + ["-DBEGUN_STORED=RELEASE"], False, False),
    (ONE_UNIT + ["-DGIVEN_UP_STORED=RELEASE", "-DLOOKS=1"], False, False),
    (ONE_UNIT + ["-DSEQUENCE_LOADED=ACQUIRE", "-DLOOKS=1"], False, False),
    (ONE_UNIT + ["-DWORD_LOADED=RELAXED"], False, False),
    (ONE_UNIT + ["-DDONE_ADDED=ACQUIRE"], False, False),
    (ONE_UNIT + ["-DGIVING_UP_LOADED=ACQUIRE"], False, False),
    (["-DPARTS=1", "-DUNITS=1", "-DWORD_OPENED=RELAXED"], False, False),
    # units.pml covers the other ones.
    (ONE_UNIT + ["-DWORD_OPENED=RELAXED"], True, False),
    (ONE_UNIT + ["-DTAKEN_SWAPPED=RELAXED"], True, False),
    (ONE_UNIT + ["-DDONE_ADDED=RELEASE"], True, False),
    (TWO_UNITS + ["-DCLOSE_SWAPPED=RELAXED"], True, False),
]
AWAY = [
    ([], True, False),
    (["-DRETURNS=3"], True, False),
    (["-DNO_SAYING"], False, False),
    (["-DNO_LOOK"], False, False),
    (["-DNOT_BACK"], False, False),
    (["-DNOT_BACK_TO_TAKE"], False, False),
    (["-DSAY_FIRST"], False, False),
    (["-DLOOK_FIRST"], False, False),
    (["-DSAID=RELAXED"], False, False),
    (["-DTAKEN_BACK=RELEASE"], False, False),
    (["-DSAYING_LOADED=ACQUIRE"], False, False),
    (["-DWORD_LOADED=ACQUIRE"], False, False),
    (["-DCLOSE_SWAPPED=BOTH"], False, False),
    (["-DDONE_ADDED=RELAXED"], False, False),
    (["-DDONE_LOADED=RELAXED"], False, False),
    # away.pml covers the other ones.
    (["-DSAID=RELEASE"], True, False),
    (["-DTAKEN_SWAPPED=RELAXED"], True, False),
]
RUNS = ["-DREUSE", "-DRUN=2", "-DDEPTH=4", "-DMESSAGES=6"]
BY_RING = ["-DMARKS=0"]
MORE_BUFFERS = ["-DMESSAGES=6", "-DFIRST_ROUNDS=2"] + BY_RING
RING = [
    ([], True, False),
    (["-DMESSAGES=5", "-DMARKS=1"], True, False),
    (["-DDEPTH=3", "-DMARKS=1"], True, False),
    (["-DBATCH=2"], True, False),
    (["-DREUSE", "-DMARKS=1"], True, False),
    (RUNS + BY_RING, True, False),
    (MORE_BUFFERS + ["-DREUSE", "-DBUFFERS=4"], True, False),
    (["-DSEQUENCE_FIRST"], False, False),
    (["-DROOM_TOO_MUCH"], False, False),
    (["-DRELEASE_FIRST"], False, False),
    (["-DTAKEN_FIRST"], False, False),
    (["-DBIT_FIRST"], False, False),
    (["-DCLEAR_FIRST"], False, False),
    (["-DMARK_EARLY"], False, False),
    (["-DBATCH=3"], False, False),
    (BY_RING + ["-DREUSE", "-DREUSE_EARLY"], False, False),
    (RUNS + BY_RING + ["-DREUSE_ANYWHERE"], False, False),
    (MORE_BUFFERS + ["-DBUFFERS=3"], False, False),
    (["-DSEQUENCE_STORED=RELAXED"], False, False),
    (["-DSEQUENCE_LOADED=RELAXED"], False, False),
    (["-DCREDIT_STORED=RELAXED"], False, False),
    (["-DCREDIT_LOADED=RELAXED"], False, False),
    (BY_RING + ["-DREUSE", "-DEMPTY_LOADED=RELAXED"], False, False),
    (["-DTAKEN_STORED=RELAXED"], False, False),
    (["-DTAKEN_LATER=RELAXED"], False, False),
    (["-DTAKEN_LOADED=RELAXED"], False, False),
    (["-DMARK_SET=RELAXED"], False, False),
    (["-DMARK_CLEARED=RELAXED"], False, False),
    (["-DMARK_LOADED=RELAXED"], False, False),
]
ONE_WAY = ["-DONE_WAY"]
FOUR = ONE_WAY + ["-DCOLLECTIVES=4"]
FAR_AHEAD = ONE_WAY + ["-DCOLLECTIVES=5", "-DWINDOW=3"]
DECLINES = ["-DDECLINES"]
EARLY = [
    ([], True, False),
    (["-DCOLLECTIVES=2", "-DDEPTH=2", "-DPIECES=3"] + DECLINES, True, False),
    (FAR_AHEAD, True, False),
    (FAR_AHEAD + ["-DDEPTH=2", "-DPIECES=3"] + DECLINES, True, False),
    (FAR_AHEAD + ["-DBOUND=3"], False, False),
    (FOUR + ["-DNO_WINDOW"], False, False),
    (FOUR + ["-DWINDOW_COUNTS"], False, False),
    (["-DCOLLECTIVES=2", "-DSEND_INSIDE"], False, False),
] + [(ONE_WAY + [f"-D{variant}"], False, False) for variant in (
    "NO_MOVING", "MOVE_ALWAYS", "NO_LOOK", "NOT_HALVES", "HALF_AS_WHOLE", "HALF_ANEW", "HALF_STAYS",
    "IN_ORDER", "FIN_EARLY", "RING_FIRST")] + [
    (ONE_WAY + DECLINES + [f"-D{variant}"], False, False) for variant in (
    "NOT_BACK", "EARLY_STAYS", "NOT_ANEW", "DECLINED_FIRST")]
TWO_MESSAGES = ["-DMESSAGES=2"]
DECLINE = [
    (["-DSEQUENTIAL"], True, False),
    (["-DSEQUENTIAL", "-DMARKS=1"], True, False),
    (["-DSEQUENTIAL", "-DMESSAGES=4"], True, False),
    (["-DSEQUENTIAL", "-DFREE_EARLY"], False, False),
    (TWO_MESSAGES, True, False),
    (TWO_MESSAGES + ["-DMARKS=1"], True, False),
    (TWO_MESSAGES + ["-DNO_BIT"], False, False),
    (TWO_MESSAGES + ["-DKEPT_STAY"], False, False),
    (TWO_MESSAGES + ["-DCLEAR_EARLY"], False, False),
    (TWO_MESSAGES + ["-DNO_CLEAR"], True, False),
    (TWO_MESSAGES + ["-DLOOK_FIRST"], False, False),
] + [(TWO_MESSAGES + [f"-D{order}=RELAXED"], False, False) for order in (
    "SEQUENCE_STORED", "SEQUENCE_LOADED", "TAKEN_STORED", "TAKEN_LATER", "TAKEN_LOADED",
    "MARK_CLEARED", "MARK_LOADED", "DECLINED_STORED", "DECLINED_LOADED")]
ASKS = [
    ([], True, False),
    (["-DSEQUENTIAL", "-DASKS=4"], True, False),
    (["-DWORD_FIRST"], False, False),
    (["-DWORD_EARLY"], False, False),
    (["-DCOUNT_FIRST"], False, False),
    (["-DANSWER_EARLY"], False, False),
    (["-DNO_ANSWER_SEEN"], False, False),
] + [([f"-D{order}=RELAXED"], False, False) for order in (
    "WORD_STORED", "WORD_LOADED", "COUNT_ADDED", "COUNT_LOADED", "ANSWER_STORED", "ANSWER_LOADED",
    "EARLIER_LOADED")]
LEASE = [
    ([], True, False),
    (["-DNO_WAIT"], False, False),
    (["-DONE_LEFT"], False, False),
    (["-DLEAVE_EARLY"], False, False),
    (["-DNO_ZEROS"], False, False),
    (["-DZEROS_LATE"], False, False),
] + [([f"-D{order}=RELAXED"], False, False) for order in (
    "LEFT_STORED", "LEFT_LOADED", "EXCHANGED", "SHARE_STORED", "SHARE_LOADED")]
EXCHANGE = [
    ([], True, False),
    (["-DPROCESSES=2", "-DREFUSALS=3"], True, False),
    (["-DFIRST_CALLS"], True, False),
    (["-DAT_A_TIME"], True, False),
    (["-DGIVES_UP"], True, False),
    (["-DGIVES_UP", "-DAT_A_TIME"], True, False),
    (["-DGIVES_UP", "-DDOOR_OPEN"], False, False),
    (["-DGIVES_UP", "-DAT_A_TIME", "-DLEAVES"], False, False),
    (["-DMAP_FIRST"], False, False),
    (["-DONLY_OWN"], False, False),
    (["-DANSWER_LATER"], False, False),
]
RELAXED = ["-DWRITES=RELAXED", "-DREADS=RELAXED"]
LITMUS = [
    (["-DMESSAGE_PASSING"], True, False),
    (["-DMESSAGE_PASSING", "-DWRITES=RELAXED"], False, False),
    (["-DMESSAGE_PASSING", "-DREADS=RELAXED"], False, False),
    (["-DPLACE_PASSING"], True, False),
    (["-DPLACE_PASSING", "-DWRITES=RELAXED"], False, False),
    (["-DPLACE_PASSING", "-DREADS=RELAXED"], False, False),
    (["-DPLACE_RETURNING"], True, False),
    (["-DPLACE_RETURNING", "-DWRITES=RELAXED"], False, False),
    (["-DPLACE_RETURNING", "-DREADS=RELAXED"], False, False),
    (["-DSTORE_BUFFERING"], False, False),
    (["-DSTORE_BUFFERING", "-DWRITES=TOTAL"], False, False),
    (["-DSTORE_BUFFERING", "-DREADS=TOTAL"], False, False),
    (["-DSTORE_BUFFERING", "-DWRITES=TOTAL", "-DREADS=TOTAL"], True, False),
    (["-DTWO_READERS", "-DWRITES=TOTAL", "-DREADS=TOTAL"], True, False),
    (["-DLOAD_BUFFERING"] + RELAXED, True, False),
    (["-DTWO_READERS"], False, False),
    (["-DCAUSALITY"], True, False),
    (["-DCAUSALITY", "-DREADS=RELAXED"], False, False),
    (["-DCOHERENCE"] + RELAXED, True, False),
    (["-DOWN_STORE"] + RELAXED, True, False),
    (["-DONE_ORDER"] + RELAXED, True, False),
    (["-DUPDATES_ADD"] + RELAXED, True, False),
    (["-DSEQUENCE"], True, False),
    (["-DSEQUENCE", "-DWRITES=RELAXED"], False, False),
    (["-DSEQUENCE", "-DREADS=RELAXED"], False, False),
    (["-DNO_SEQUENCE"], False, False),
]
CASES = {"doorbell": DOORBELL, "flag_slot": FLAG_SLOT,
         "cooperative": COOPERATIVE,
         "cooperative_orders": COOPERATIVE_ORDERS,
         "units": UNITS, "ring": RING, "early": EARLY, "decline": DECLINE, "asks": ASKS,
         "away": AWAY, "lease": LEASE, "exchange": EXCHANGE, "litmus": LITMUS}
# Larger cases that must hold, for --thorough; they take minutes.
THOROUGH = {
    "flag_slot": [(case, True, False) for case in (
        ["-DDEPTH=2", "-DBATCH=1", "-DSEQUENCES=3"],
        ["-DSHARERS=3", "-DDEPTH=1", "-DBATCH=1", "-DSEQUENCES=3"])],
    "ring": [(case, True, False) for case in (
        ["-DDEPTH=3"], ["-DREUSE"], ["-DREUSE", "-DBUFFERS=4"],
        ["-DREUSE", "-DMESSAGES=5", "-DMARKS=1"], RUNS + ["-DMARKS=1"])],
    "early": [(case, True, False) for case in (DECLINES, ["-DDEPTH=2"], ["-DPIECES=3"])],
    "units": [(["-DUNITS=1", "-DCOLLECTIVES=1", "-DCLOSE_SWAPPED=RELAXED"], True, False)],
}


def run(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)


def must_run(command, folder):
    done = run(command, folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


class Searches:
    """Runs searches in a folder with copies of the models; verdicts are kept below `kept`, if it
    is given."""

    def __init__(self, folder, kept):
        self.folder = folder
        self.kept = kept
        self.compiler = must_run(["cc", "--version"], folder)

    def holds(self, model, defines, compiling, searching):
        """Does the search end without an error?"""
        for left in self.folder.glob("pan*"):
            left.unlink()
        must_run(["spin", *defines, "-a", model.name], self.folder)
        stamp = self.kept and self.kept / self.key(compiling, searching)
        if stamp and stamp.exists():
            return stamp.read_text() == "holds"
        must_run(["cc", "-O1", "-w", *compiling, "pan.c", "-o", "pan"], self.folder)
        found = self.search(searching)
        if stamp:
            # The file is renamed, so that no process reads a part of it.
            part = stamp.with_suffix(f".{os.getpid()}")
            part.write_text("holds" if found else "fails")
            part.rename(stamp)
        return found

    def key(self, *options):
        """A key of everything that the search depends on."""
        digest = hashlib.sha256(repr((self.compiler, options)).encode())
        for path in sorted(self.folder.glob("pan.*")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()

    def search(self, options):
        """Runs the search, which must be complete."""
        output = run([str(self.folder / "pan"), "-m100000", *options], self.folder).stdout
        errors = re.search(r"errors: (\d+)", output)
        if errors is None or "max search depth too small" in output or "out of memory" in output:
            sys.exit(f"the search did not end: {output}")
        return errors[1] == "0"


def check(searches, model, case):
    """Does the case end as it must?"""
    defines, expected, finishes = case
    safety = ["-DSAFETY", "-DNOCLAIM", "-DNOFAIR", "-DVECTORSZ=2048"]
    right = searches.holds(model, defines, safety, []) == expected
    if finishes:
        right = right and searches.holds(model, defines, ["-DNFAIR=3"], ["-a", "-f"]) == expected
    print(f"{'ok    ' if right else 'FAILED'} {model.stem} {' '.join(defines)}: must "
          f"{'hold' if expected else 'fail'}")
    return right


def cases(model, thorough):
    return CASES[model] + (THOROUGH.get(model, []) if thorough else [])


def kept():
    """The folder of the verdicts; None if it cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = pathlib.Path(base) / "ucg" / "models"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--thorough", action="store_true")
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    given = parser.parse_args()
    if shutil.which("spin") is None or shutil.which("cc") is None:
        print("skipped: spin or cc is not installed")
        return 77
    models = [path.resolve() for path in given.models]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in {part for model in models for part in model.parent.glob("*.pml")}:
            shutil.copy(part, folder)
        searches = Searches(folder, None if given.anew else kept())
        return 0 if all([check(searches, model, case) for model in models
                         for case in cases(model.stem, given.thorough)]) else 1


if __name__ == "__main__":
    sys.exit(main())
