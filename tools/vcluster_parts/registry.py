"""Which clusters are up: one small file for each, holding its init process.

All else about a cluster lives in its own mount namespace and goes with it. A file whose process
is gone (killed, machine restarted) is stale and is removed by whoever meets it.
"""

import contextlib
import fcntl
import functools
import json
import os
import re
import signal
import socket
import time

from . import linux
from .errors import VclusterError
from .program import NAME

# These paths are below the root of a cluster's init.
STATE_PATH = "run/vcluster/state.json"
LINKS_PATH = "run/vcluster/links"


@functools.lru_cache(maxsize=None)
def directory():
    """The machine's folder for root, the user's for others; the environment may name another.

    It is determined once: in a user namespace every user looks like root.
    """
    chosen = os.environ.get("VCLUSTER_DIR")
    if chosen:
        return chosen
    if os.geteuid() == 0:
        return "/run/vcluster"
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return f"{runtime}/vcluster" if runtime else f"/tmp/vcluster-{os.geteuid()}"


@contextlib.contextmanager
def locked():
    """Holds the registry's lock: the directory itself, so that no lock file is left behind."""
    path = directory()
    while True:
        os.makedirs(path, mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(fd).st_uid != os.geteuid():
                raise VclusterError(f"{path} belongs to another user")
            fcntl.flock(fd, fcntl.LOCK_EX)
            if _is_same_directory(fd, path):
                yield
                return
        finally:
            with contextlib.suppress(OSError):
                os.rmdir(path)
            os.close(fd)


def _is_same_directory(fd, path):
    """Is the locked directory still the one of that name? The last user removes it, and a lock
    on a removed one protects nothing."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _path(name):
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", name):
        raise VclusterError(f"cluster name '{name}': letters, digits, - and _, at most 32")
    return f"{directory()}/{name}.json"


def _load(path):
    """The init process of the cluster that `path` stands for; None when it is stale."""
    try:
        with open(path, encoding="ascii") as file:
            entry = json.load(file)
        pid, start, boot = int(entry["pid"]), int(entry["start"]), entry["boot"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        pid, start, boot = 0, 0, ""
    if boot == linux.boot_id() and linux.process_start(pid) == start:
        return pid
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return None


def find(name):
    """Process number of the cluster's init, None when no such cluster is up."""
    return _load(_path(name))


def need(name):
    pid = find(name)
    if pid is None:
        raise VclusterError(f"no cluster '{name}' is up; bring it up with: {NAME} up"
                            + ("" if name == "default" else f" --name {name}"))
    return pid


def names():
    """Names of the clusters that are up."""
    try:
        files = sorted(os.listdir(directory()))
    except FileNotFoundError:
        return []
    stems = [file[:-5] for file in files if file.endswith(".json")]
    return [stem for stem in stems if find(stem) is not None]


def add(name, pid):
    """Writes the entry in one step; the caller holds the lock and has asked find()."""
    entry = {"pid": pid, "start": linux.process_start(pid), "boot": linux.boot_id()}
    path = _path(name)
    with open(path + ".new", "w", encoding="ascii") as file:
        json.dump(entry, file)
    os.rename(path + ".new", path)


def remove(name):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_path(name))


def state(pid):
    """What the cluster's init has written about the cluster, read through the init's own root."""
    try:
        with open(f"/proc/{pid}/root/{STATE_PATH}", encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise VclusterError(f"the cluster's state cannot be read: {error}") from error


def link_counters(pid):
    """The counters of the links that the cluster's forwarder prints; none where there is no
    forwarder."""
    path = f"/proc/{pid}/root/{LINKS_PATH}"
    if not os.path.exists(path):
        return {"realtime": True, "links": {}}
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(10)
            client.connect(path)
            with client.makefile() as file:
                return json.load(file)
    except (OSError, ValueError) as error:
        raise VclusterError(f"the cluster's links do not answer: {error}") from error


def kill(pid, timeout=30.0):
    """Kills a cluster's init, and with it the kernel kills all that lives in the cluster.

    The init becomes a zombie only after every process of its namespaces is gone.
    """
    start = linux.process_start(pid)
    if start is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + timeout
    while linux.process_start(pid) == start:
        if time.monotonic() > deadline:
            raise VclusterError(f"process {pid} does not die")
        time.sleep(0.005)
