"""Configurations to measure: a name, a command that starts ranks, and the program for them. They
are stock libraries, the component of a build directory, or what --config names.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.append(os.path.join(ROOT, "tools"))

import presets  # noqa: E402
from command_line import did_you_mean  # noqa: E402


class Wrong(Exception):
    """The request cannot be fulfilled: the message says why, and what helps."""


@dataclass
class Configuration:
    name: str
    launch: list  # The command that starts ranks.
    program: str
    stock: bool = True  # Whether it is a reference to compare with.
    # Whether runs count only if UCG's component tells that it served them.
    expects_ucg: bool = False


def split_pairs(items, what):
    pairs = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise Wrong(f"{what} '{item}': expected NAME=VALUE")
        if name in pairs:
            raise Wrong(f"{what}: '{name}' twice")
        pairs[name] = value
    return pairs


def split_command(name, command):
    """The words of a command of --config, the first of which must be a program."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Wrong(f"--config {name}: {error}") from error
    if not words or not shutil.which(words[0]):
        raise Wrong(f"--config {name}: there is no program '{words[0] if words else ''}'")
    return words


def fits(np):
    """Does every rank have a processor of its own?"""
    return np <= len(os.sched_getaffinity(0))


def openmpi_mpirun():
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if not mpirun:
        raise Wrong("no mpirun (Debian: openmpi-bin)")
    return os.path.basename(mpirun)


def openmpi(np):
    binding = ["--bind-to", "core"] if fits(np) else ["--bind-to", "none"]
    return [openmpi_mpirun(), "--oversubscribe", "-np", str(np), *binding]


def with_component(build):
    """Words for mpirun that put the component of the build directory in its path."""
    found = subprocess.run([os.path.join(ROOT, "tools", "component_path"), build],
                           capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise Wrong(found.stderr.strip())
    words = ["--mca", "mca_base_component_path", found.stdout.strip()]
    # From 5.0 on PMIx gets the path as well, and reports that it cannot use the component.
    version = subprocess.run(["ompi_info", "--version"], capture_output=True, text=True,
                             check=False).stdout
    takes_words = not version.startswith("Open MPI v4.")
    return words + (["--pmixmca", "mca_base_component_path", ""] if takes_words else [])


def with_ucg(arguments):
    """Words for mpirun that make UCG serve, whatever files and the environment say of it, and tell
    at the end how many calls it has served. HCOLL, where it is built, would take them before."""
    return (openmpi(arguments.np) + with_component(arguments.build)
            + ["--mca", "coll", "^hcoll", "--mca", "coll_ucg_priority", "45",
               "--mca", "coll_ucg_verbose", "1"])


def build_command(build, program):
    """(the sources, the words of the compiler) of a program, as the build directory has them."""
    # The path of the build directory may differ from the one that it was configured with.
    name = os.path.relpath(os.path.realpath(program), os.path.realpath(build))
    with open(os.path.join(build, "meson-info", "intro-targets.json"), encoding="utf-8") as file:
        target = next(target for target in json.load(file)
                      if any(path.endswith(os.sep + name) for path in target["filename"]))
    sources = target["target_sources"][0]["sources"]
    return sources, target["target_sources"][0]["compiler"][1:]


def installed_command():
    """The same of collbench where it is installed: its sources are there, and no others."""
    folder = os.path.join(HERE, "collbench")
    sources = sorted(os.path.join(folder, name) for name in os.listdir(folder)
                     if name.endswith(".c"))
    return sources, ["-O2", "-std=gnu11", "-D_GNU_SOURCE", f"-I{folder}", f"-I{ROOT}", "@INPUT@",
                     "-o", "@OUTPUT@"]


def cache():
    """The folder for what is compiled by this user."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(base, "ucg")
    os.makedirs(folder, exist_ok=True)
    return folder


def build_for_mpich(build, program):
    """Compiles the program with MPICH's wrapper, but else as the build directory does it."""
    if os.path.exists(os.path.join(build, "meson-info")):
        output = program + ".mpich"
        sources, words = build_command(build, program)
    else:
        output = os.path.join(cache(), os.path.basename(program) + ".mpich")
        sources, words = installed_command()
    if os.path.exists(output) and os.path.getmtime(output) > max(map(os.path.getmtime, sources)):
        return output
    made = f"{output}.{os.getpid()}"
    command = ["mpicc.mpich"]
    for word in words:
        command += sources if word == "@INPUT@" else [made if word == "@OUTPUT@" else word]
    if subprocess.run(command, check=False).returncode != 0:
        raise Wrong(f"cannot build for MPICH: {shlex.join(command)}")
    os.replace(made, output)
    return output


def mpich(arguments, program):
    """The configuration for MPICH; None, with a message, where that is not installed or the program
    cannot be compiled for it."""
    missing = [tool for tool in ("mpirun.mpich", "mpicc.mpich") if not shutil.which(tool)]
    reason = f"no {' and no '.join(missing)}; Debian has them in mpich and libmpich-dev"
    if not missing:
        binding = ["-bind-to", "core"] if fits(arguments.np) else []
        try:
            return Configuration("mpich", ["mpirun.mpich", "-np", str(arguments.np), *binding],
                                 build_for_mpich(arguments.build, program))
        except (OSError, Wrong) as error:
            reason = f"{error}; --config and --benchmark-for take a program of your own"
    print(f"# preset mpich LEFT OUT: {reason}")
    return None


def preset_configurations(arguments, program):
    result = []
    for name in arguments.preset:
        if name == "mpich":
            result += filter(None, [mpich(arguments, program)])
        elif presets.is_there(name):
            # A component that the environment adds must not count as stock.
            launch = openmpi(arguments.np) + ["--mca", "coll", "^ucg"] + presets.OPENMPI[name]
            result.append(Configuration(name, launch, program))
    if not result:
        raise Wrong("no preset is left to compare with")
    return result


def find_configurations(arguments, program):
    """The list that the options ask for; `program` is a path below the build directory."""
    arguments.build = os.path.abspath(arguments.build)
    program = os.path.join(arguments.build, program)
    others = split_pairs(arguments.program_for, "--program-for")
    own = split_pairs(arguments.config, "--config")
    result = [Configuration(name, split_command(name, command), program, i == 0)
              for i, (name, command) in enumerate(own.items())]
    if not result:
        if arguments.preset:
            result = preset_configurations(arguments, program)
        else:
            stock = openmpi(arguments.np) + ["--mca", "coll", "^ucg"]
            result = [Configuration("stock", stock, program)]
        result.append(Configuration("ucg", with_ucg(arguments), program, stock=False,
                                    expects_ucg=True))
    known = [configuration.name for configuration in result]
    for name in others:
        if name not in known:
            raise Wrong(f"--program-for '{name}': there are {', '.join(known)}"
                        + did_you_mean(name, known))
    for configuration in result:
        configuration.program = others.get(configuration.name, configuration.program)
        if not os.path.exists(configuration.program):
            raise Wrong(f"no {configuration.program}: build first, or name --build")
    return result
