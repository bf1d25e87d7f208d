"""What a report says of itself: the processor, the versions of what was compared, and commands."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time

from command_line import printable
from configurations import HERE, ROOT

# Programs that start ranks and tell their version; of others nothing is known.
LAUNCHERS = re.compile(r"(mpirun|mpiexec|prun|srun)([.-]\w+)?")


def said_by(command, cwd=None):
    """What a program prints; nothing where it is not there or fails."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def processor_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        first = file.read().split("\n\n", maxsplit=1)[0]
    fields = {key.strip(): value.strip()
              for key, _, value in (line.partition(":") for line in first.splitlines())}
    name = fields.get("model name", os.uname().machine)
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields['model']})"
    return name


def processors():
    """The processors that ranks may have, as a list such as 0-3,8."""
    ranges = []
    for cpu in sorted(os.sched_getaffinity(0)):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in ranges)


def commit():
    """The commit of this source tree, with "-dirty" where files differ; empty outside of git. An
    installation may lie in another project's tree."""
    top = said_by(["git", "rev-parse", "--show-toplevel"], HERE).strip()
    if not top or not os.path.samefile(top, ROOT):
        return ""
    return said_by(["git", "describe", "--always", "--dirty"], HERE).strip()


def ucg_info(build):
    """The program of the build directory, or the installed one."""
    built = os.path.join(build, "tools", "ucg_info")
    return built if os.access(built, os.X_OK) else shutil.which("ucg_info")


def version_in(text):
    """The first line that has a version."""
    line = next((line for line in text.splitlines() if re.search(r"\d+\.\d+", line)), "")
    return line.replace("Version:", "").strip()


def versions(build, configurations=()):
    """{what: version} of the kernel, of UCG, of UCX, and of what starts the ranks."""
    info = ucg_info(build) or ""
    ucx = re.search(r"^ *UCX .*running (\S+)", said_by([info]), re.MULTILINE)
    found = {"kernel": os.uname().release,
             "UCG": version_in(said_by([info, "-v"])).removeprefix("UCG "),
             "UCX": ucx[1] if ucx else ""}
    for launcher in dict.fromkeys(c.launch[0] for c in configurations if c.launch):
        if LAUNCHERS.fullmatch(os.path.basename(launcher)):
            found[launcher] = version_in(said_by([launcher, "--version"]))
    return {what: version or "not known" for what, version in found.items()}


def profile(build):
    said = said_by([ucg_info(build) or "", "--costs"])
    return next((line.split(None, 1)[1] for line in said.splitlines()
                 if line.split()[:1] == ["profile"]), "not known")


def origin(build, configurations=()):
    """The first lines of a report: where and when, from which sources, with which costs, by which
    command, with which versions, and how the ranks of each configuration are started."""
    told = [f"{what} {version}" for what, version in versions(build, configurations).items()]
    lines = [f"{processor_name()}, {time.strftime('%Y-%m-%d')}, commit {commit() or 'not known'}, "
             f"profile of UCG: {profile(build)}", shlex.join(sys.argv),
             f"processors {processors()}, {', '.join(told)}",
             *(f"{c.name}: {shlex.join(c.launch)}" for c in configurations if c.launch)]
    return "\n".join(f"# {printable(line)}" for line in lines)
