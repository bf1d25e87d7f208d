"""Run a command inside a host: join its namespaces, pass signals on, give back its status."""

import contextlib
import os
import signal
import time

from . import linux
from .errors import VclusterError
from .program import NAME

_WATCHED = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
_SI_KERNEL = 128

# The order matters: a user namespace gives the right to join the others, and joining the mount
# namespace changes what /proc shows.
_FOR_CALLER = (("user", linux.CLONE_NEWUSER), ("pid", linux.CLONE_NEWPID))
_FOR_CHILD = (("net", linux.CLONE_NEWNET), ("ipc", linux.CLONE_NEWIPC),
              ("uts", linux.CLONE_NEWUTS), ("mnt", linux.CLONE_NEWNS))


def _open_others(pid, kinds):
    """Open files of those namespaces of `pid` that this process is not in."""
    opened = []
    for kind, flag in kinds:
        mine = "pid_for_children" if kind == "pid" else kind
        if os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{mine}"):
            opened.append((os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY), flag))
    return opened


def _join(opened):
    for fd, flag in opened:
        linux.setns(fd, flag)
        os.close(fd)


def _start(pid, argv, environment, cwd):
    """Forks the command inside; it dies with this process, even when that is killed."""
    rest = _open_others(pid, _FOR_CHILD)
    child = os.fork()
    if child:
        for fd, _ in rest:
            os.close(fd)
        return child
    status = 126
    try:
        _join(rest)
        os.chdir(cwd)
        linux.set_parent_death_signal(signal.SIGKILL)
        # Ctrl-C may be pending; here it ends this process, as it will end the command.
        if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
        os.execvpe(argv[0], argv, environment)
    except FileNotFoundError as error:
        status = 127
        where = "" if os.path.isdir(cwd) else " (the hosts have their own /tmp and /run; share a " \
            f"directory with: {NAME} up --share DIR)"
        # For a program that is in no folder of PATH, the last path that was tried would not help.
        name = error.filename if isinstance(error.filename, str) else argv[0]
        os.write(2, f"{NAME}: {name}: not found{where}\n".encode())
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        os.write(2, f"{NAME}: {argv[0]}: {why}\n".encode())
    finally:
        os._exit(status)


def run(pid, argv, environment, cwd, grace=None):
    """Runs `argv` in the namespaces of `pid` and returns its exit status as a shell counts it.

    Signals from the terminal reach the command by themselves; others are passed on. After one,
    the command has `grace` seconds to end (None: as long as it likes).
    """
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    try:
        _join(_open_others(pid, _FOR_CALLER))
        child = _start(pid, argv, environment, cwd)
    except FileNotFoundError as error:
        raise VclusterError("the host is gone") from error
    except OSError as error:
        raise VclusterError(f"cannot enter the host: {error}") from error
    try:
        return _wait(child, grace)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def _wait(child, grace):
    deadline = None
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        left = 3600.0 if deadline is None else max(0.0, deadline - time.monotonic())
        if deadline is not None and left == 0.0:
            os.kill(child, signal.SIGKILL)
        info = signal.sigtimedwait(_WATCHED, max(left, 0.01))
        if info is None or info.si_signo == signal.SIGCHLD:
            continue
        if info.si_code != _SI_KERNEL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, info.si_signo)
        if grace is not None and deadline is None:
            deadline = time.monotonic() + grace
