"""A cluster of tools/vcluster that exists during a with statement."""

import argparse
import os
import subprocess
import sys

from measure import ROOT, Wrong

sys.path.append(os.path.join(ROOT, "tools"))

from vcluster_parts import topology  # noqa: E402 (the line above must come first)
from vcluster_parts.errors import VclusterError  # noqa: E402


def link_value(kind):
    """For argparse: the "rate" or "latency" of links in vcluster's form; it is kept as it is
    written."""
    def parse(text):
        try:
            {"rate": topology.parse_rate, "latency": topology.parse_latency}[kind](text)
        except VclusterError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return text

    return parse


def output_of(argv, environment=None, timeout=120):
    """Standard output of a command that must succeed."""
    try:
        done = subprocess.run(argv, env={**os.environ, **(environment or {})}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout,
                              check=False)
    except subprocess.TimeoutExpired as error:
        raise Wrong(f"{' '.join(argv)}: no end after {timeout} seconds") from error
    if done.returncode != 0:
        raise Wrong(f"{' '.join(argv)}: exit status {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def built(build, path):
    """The full path of a built file."""
    full = os.path.realpath(os.path.join(build, path))
    if not os.path.exists(full):
        raise Wrong(f"{full} is not there; build it: ninja -C {build}")
    return full


def component(build, settings):
    """The options of mpirun for that build's UCG component over UCX's TCP, with `settings`, and
    otherwise the caller's variables UCG_*: daemons start with a clean environment."""
    path = output_of([os.path.join(ROOT, "tools", "component_path"), build])
    words = ["--mca", "mca_base_component_path", path.strip(), "-x", "UCX_TLS=tcp"]
    for name in sorted(name for name in os.environ if name.startswith("UCG_")):
        words += [] if name in settings else ["-x", name]
    return words + [word for name, value in settings.items() for word in ("-x", f"{name}={value}")]


class VirtualCluster:
    """`shape` has vcluster's options for the hosts and their links."""

    def __init__(self, name, build, shape, environment=None):
        self.name, self.shape, self.environment = f"{name}{os.getpid()}", shape, environment
        self.tool = os.path.join(ROOT, "tools", "vcluster")
        # Built files keep their paths; hosts have folders of their own under these names.
        places = {os.path.realpath(path) for path in (build, ROOT)}
        self.share = [word for path in sorted(places) if path.startswith(("/tmp/", "/run/"))
                      for word in ("--share", path)]

    def __enter__(self):
        try:
            output_of([self.tool, "up", "--name", self.name, "--slots", "1", *self.shape,
                       *self.share], self.environment)
        except BaseException:  # The signal may have come when the cluster was already up.
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # It has a session of its own, so that a second Ctrl-C does not reach it.
        subprocess.run([self.tool, "down", "--name", self.name], stdout=subprocess.DEVNULL,
                       start_new_session=True, check=False)

    def mpirun(self, ranks, *words, timeout=120):
        return output_of([self.tool, "--name", self.name, "mpirun", "-np", str(ranks), *words],
                         timeout=timeout)
