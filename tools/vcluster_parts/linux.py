"""Namespaces, mounts and process facts, straight from the C library.

Python gained os.unshare and os.setns in 3.12 only, so ctypes fills the gap. All functions raise
OSError with the system's own reason.
"""

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong,
                        ctypes.c_char_p]


def _check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags):
    """Leaves the namespaces named by `flags`; CLONE_NEWPID counts for children only."""
    _check(_libc.unshare(flags), "unshare")


def setns(fd, flags):
    """Joins the namespace behind `fd`; CLONE_NEWPID counts for children only."""
    _check(_libc.setns(fd, flags), "setns")


def mount(source, target, fstype=None, flags=0, data=None):
    def encode(text):
        return None if text is None else os.fsencode(text)

    _check(_libc.mount(encode(source), encode(target), encode(fstype), flags, encode(data)),
           f"mount on {target}")


def set_parent_death_signal(number):
    """The kernel sends `number` when the parent dies, whatever kills it; 0 undoes this.

    It is lost at a change of credentials, so it is set after joining a user namespace.
    """
    _check(_libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0), "prctl")


def set_process_name(name):
    _check(_libc.prctl(PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]), 0, 0, 0), "prctl")


def process_start(pid):
    """Start time of a live process in clock ticks since boot; None when it is gone or a zombie.

    Process numbers are used again, a number with its start time is not.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            # The second field is the name in parentheses, which may itself hold parentheses.
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def boot_id():
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
