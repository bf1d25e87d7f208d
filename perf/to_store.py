"""gdb runs this for `instructions --to-store`. It executes calls of a function one instruction at a
time and reports after how many instructions a store to shared memory has completed the line that
the call writes first, which is what a peer waits for.

The program is that of gdb's --args; the environment has the function (STEP_FUNCTION), how many
calls pass before (STEP_AFTER), how many are looked at (STEP_CALLS), and the file for the counts,
one in a line (STEP_RESULT). Other threads stand still while a call is stepped through. x86-64.
"""

import os
import re
import sys

try:
    import gdb
except ImportError:
    print("to_store.py: gdb runs this, for perf/instructions --to-store", file=sys.stderr)
    sys.exit(2)

LINE = 64
STEPS_MAX = 1_000_000

# Instructions whose last operand is memory but that only read it, or do not access it.
READS = re.compile(r"(cmp|test|call|jmp|nop|lea|prefetch|push|bt|v?u?comis|v?ptest|i?mul|i?div)")
OPERAND = re.compile(r"(%[a-z]s:)?(-?0x[0-9a-f]+|-?\d+)?\(([^)]*)\)(\s*#.*)?$")


def shared_mappings(process):
    """[(begin, end)] of mappings that are writable and shared."""
    found = []
    with open(f"/proc/{process}/maps", encoding="utf-8") as maps:
        for line in maps:
            places, access = line.split()[:2]
            if access.startswith("rw") and access[3] == "s":
                found.append(tuple(int(place, 16) for place in places.split("-")))
    return found


def register(frame, name):
    mask = (1 << 64) - 1
    return int(frame.read_register(name.strip().lstrip("%"))) & mask if name.strip() else 0


def target_of(instruction, frame):
    """The address that an instruction stores to, else None."""
    words = instruction.split(None, 1)
    while len(words) == 2 and words[0] in ("lock", "rep", "repz", "notrack", "bnd"):
        words = words[1].split(None, 1)
    operand = OPERAND.search(words[1]) if len(words) == 2 else None
    if operand is None or READS.match(words[0]) or operand[1] in ("%fs:", "%gs:"):
        return None
    base, index, scale = [*operand[3].split(","), "", ""][:3]
    if base == "%rip":
        return None  # This is the library's own data.
    address = int(operand[2] or "0", 0) + register(frame, base)
    return address + register(frame, index) * int(scale or "1") & (1 << 64) - 1


def step_through(shared):
    """Steps from a function's first instruction to its return. Returns how many instructions
    there are up to the store, or None if nothing is stored to shared memory."""
    frame = gdb.newest_frame()
    architecture, known = frame.architecture(), {}
    at_entry = register(frame, "rsp")
    returns = int(gdb.parse_and_eval("*(unsigned long *)$rsp")) & (1 << 64) - 1
    line, count = None, None
    for step in range(1, STEPS_MAX):
        frame = gdb.newest_frame()
        place = frame.pc()
        if place == returns and register(frame, "rsp") > at_entry:
            break
        if place not in known:
            known[place] = architecture.disassemble(place)[0]["asm"]
        target = target_of(known[place], frame)
        if target is not None and any(begin <= target < end for begin, end in shared):
            if line is not None and target // LINE != line:
                break
            line, count = target // LINE, step
        gdb.execute("stepi", to_string=True)
    return count


def main():
    for setting in ("pagination off", "confirm off", "debuginfod enabled off", "auto-solib-add off",
                    "disassembly-flavor att", "print thread-events off"):
        gdb.execute(f"set {setting}")
    for signal in ("SIGUSR1", "SIGUSR2", "SIGPIPE", "SIGCHLD"):
        gdb.execute(f"handle {signal} nostop noprint pass", to_string=True)
    gdb.execute("tbreak main")
    gdb.execute("run")
    gdb.execute("set scheduler-locking step")
    gdb.execute("sharedlibrary libmpi")
    entry = gdb.Breakpoint("*" + os.environ["STEP_FUNCTION"])
    entry.ignore_count = int(os.environ["STEP_AFTER"])
    counts = []
    for _ in range(int(os.environ["STEP_CALLS"])):
        gdb.execute("continue")
        if not gdb.selected_thread():
            break
        counts.append(step_through(shared_mappings(gdb.selected_inferior().pid)))
    with open(os.environ["STEP_RESULT"], "w", encoding="utf-8") as result:
        result.writelines(f"{count}\n" for count in counts if count is not None)
    entry.delete()
    gdb.execute("continue")


main()
