"""How each command of a page is treated. A command that fits no rule fails the test: whoever
writes the command says here how it is run."""

import re
from dataclasses import dataclass

# Blocks that are pictures or examples of a format, by the beginning of their first line.
NOT_COMMANDS = [
    ("README.md", "topo ──"),
    ("ucg_coll/ARCHITECTURE.md", "topo ──"),
    ("ucg_coll/graph/README.md", "schedule bcast"),
    ("ucg_coll/graph/README.md", "0: post"),
    ("tools/doc/algorithms.md", "ring "),
]

# Replaces what the page cannot know and a reader fills in.
PLACEHOLDERS = [
    # These are files of an installation, which the test `installed` covers.
    ("$(pkg-config --variable=component_path ucg)", "$(tools/component_path)"),
    ("$(ucg_component_path --heap)", "$(tools/component_path --heap)"),
]


@dataclass(frozen=True)
class Rule:
    """`pattern` fits a whole command. The command is run after the changes (pattern,
    replacement), in `folder`, and must print a line that fits `prints`; with `shown`, all that
    it prints is also on the page. With `unless`, which is the reason, it is not run: its options
    must be those of the program's --help, and its files must exist."""

    pattern: str
    changes: tuple = ()
    prints: str = ""
    folder: str = "."
    unless: str = ""
    hosts: bool = False  # Whether it needs tools/vcluster, and so namespaces.
    shown: bool = False


def end(words):
    """A change that appends these words."""
    return (r"$", f" {words}")


RULES = [
    # ---- commands that take minutes, or change the machine
    Rule(r"(\./)?tools/(quickstart|check).*", unless="installs, builds and measures: minutes"),
    Rule(r"perf/compare .*--gate off --pairs 7 .*", unless="an hour; it is run shorter elsewhere"),
    Rule(r"perf/compare .*--np (8|16).*", unless="minutes where ranks outnumber processors"),
    Rule(r"perf/apps/programs --list", (end("|| [ $? -eq 3 ]"),), prints="start_up"),
    Rule(r"perf/apps/programs.*", unless="half an hour; suite smoke runs one of the programs"),
    Rule(r"tools/packages build( run)?", ((r"packages", "packages --list"),), prints="libucx-dev"),
    Rule(r"tools/packages apps", ((r"packages", "packages --list"),), prints="nwchem"),
    Rule(r"tools/packages build package", ((r"packages", "packages --list"),), prints="debhelper"),
    Rule(r"test/cluster/new_user.sh.*", unless="makes Debians, and builds in them: an hour"),
    Rule(r"test/cluster/container.sh.*", unless="makes a Debian, and builds in it: half an hour"),
    Rule(r"podman .*", ((r".*", "grep '^FROM' tools/packaging/Containerfile"),), prints="BASE"),
    # The packages that such a command builds, checks and installs must exist.
    Rule(r"dpkg-buildpackage .*", ((r".*", "test -x debian/rules"),)),
    Rule(r"lintian .*", ((r".*", "grep '^Source: ucg$' debian/control"),)),
    Rule(r"apt install .*", ((r"apt install", "ls"),)
         + 3 * ((r"\.\./([a-z0-9-]+)_\*\.deb", r"debian/\1.install"),)),
    Rule(r"apt remove .*", ((r"apt remove", "ls"),)
         + 3 * ((r" ([a-z0-9-]+)(?= |$)", r" debian/\1.install"),)),
    Rule(r"perf/model.*", unless="runs each algorithm in turn: minutes"),
    Rule(r"build/perf/micro/(limit|turn)_bench.*", (end("--smoke"),)),
    Rule(r"perf/aapc/run.*", unless="minutes; suite cluster runs it with --smoke"),
    Rule(r"perf/recursive_multiplying/run.*", unless="minutes; suite cluster runs it with --smoke"),
    Rule(r"mpirun -N 1 ucg_tune network .*", ((r".*", "build/tools/ucg_tune network --help"),),
         prints="--bootstrap"),
    Rule(r"ucg_tune (memory|network)( .*)?", unless="measures for seconds, and writes a profile"),
    Rule(r"ucg_tune import-ucx-perftest", unless="names a command in passing"),
    Rule(r"python3 test/fault/.*", unless="suite fault runs it; all victims take minutes"),
    Rule(r"python3 test/mpi/.*", unless="suite mpi runs it"),
    Rule(r"CC=clang CXX=clang\+\+ meson setup build-fuzz", unless="is for another compiler"),
    # These are built with clang only.
    Rule(r"ninja -C build-fuzz fuzzers", ((r".+", "grep fuzzers test/fuzz/meson.build"),)),
    Rule(r"test/fuzz/run\.py build-fuzz.*", unless="suite fuzz runs it, for ten seconds a target"),

    # ---- building and testing
    Rule(r"meson setup build", ((r"build$", "build-by-hand --native-file by-hand.ini"),),
         prints=r"Tests are left out: there is no Catch2"),
    Rule(r"meson setup build-release --buildtype release",
         ((r"setup build-release", "setup build-by-hand-too --native-file by-hand.ini"),)),
    Rule(r"meson setup build-least .*",
         ((r"setup build-least", "setup build-by-hand-least --native-file by-hand.ini"),)),
    Rule(r"meson setup build-own .*",
         ((r"build-own .*", "build-by-hand-own --native-file by-hand.ini --prefix $PWD/own"),)),
    # Only administrators have its folder on their path.
    Rule(r"ldconfig", ((r"ldconfig", "PATH=$PATH:/usr/sbin:/sbin ldconfig -p"),), prints="libs"),
    Rule(r"meson install.*", unless="the test `installed` does it, in an image of the machine"),
    Rule(r"ninja -C build-release", ((r"build-release", "build -n"),)),
    Rule(r"ninja -C build-release uninstall", ((r"build-release", "build -n"),)),
    Rule(r"ompi_info --path (pkglibdir|sysconfdir)", prints="openmpi"),
    Rule(r"ninja -C build", (end("-n"),)),
    Rule(r"(UCG_TEST_ACCEPT=1 )?meson test -C .*", (end("--list --no-rebuild"),), prints=r"ucg.*/"),
    Rule(r"build/test/unit/\S+ \"\[\w+\]\"", (end("--list-tests || [ $? -lt 128 ]"),),
         prints="exhaustive"),
    Rule(r"python3 test/tidy/tidy.py"),
    Rule(r"python3 test/mutate/mutate.py --help", prints="exit status"),
    Rule(r"python3 test/mutate/mutate.py .*", unless="builds a copy; its own test is in unit"),
    Rule(r"tools/packages --list build( test)?", prints="libucx-dev"),
    Rule(r"pkg-config --cflags --libs ucg", prints="-lucg"),
    Rule(r"pkg-config --variable=component_path ucg", prints="ompi"),
    Rule(r"tools/component_path --heap", prints="libucg_heap"),

    # ---- the tools
    Rule(r"build/tools/ucg_plan verify .*", ((r"2\.\.64", "2..9"),), prints="proved"),
    Rule(r"(UCG_MACHINE=\"[^\"]*\" )?build/tools/ucg_(plan|sim|topo|info).*"),
    Rule(r"ucg_info (-d|--config)", ((r"^", "build/tools/"),), prints="shm"),
    Rule(r"ucg_info( -[cftv]| --report( > \S+)?)?", ((r"^", "build/tools/"),)),
    Rule(r"ucg_(plan|sim|topo) .*", unless="names an option in passing"),
    Rule(r"vcluster \w+", unless="names a command in passing"),
    Rule(r"tools/vcluster .* perf/compare .*", (end("--pairs 1 -c allreduce --time 0.001"),),
         hosts=True, prints="allreduce"),
    Rule(r"tools/vcluster .* perf/apps/run .*", ((r"apps/run", "apps/run --smoke"),), hosts=True,
         prints="us per call"),
    Rule(r"tools/vcluster .*", hosts=True),

    # ---- Slurm, which only suite cluster has, and Spack, which no test has
    Rule(r"(srun|salloc) .*", unless="needs Slurm's daemons; test/cluster/slurm_hosts.py has them"),
    Rule(r"spack .*", unless="needs Spack; test/install/spack_recipe.py reads the recipe"),
    Rule(r"pgrep -x app .*", ((r"pgrep -x app", "true"),)),

    # ---- Open MPI
    # These are files of an installation, which Open MPI finds by itself.
    Rule(r"mpirun -np 2 .*coll_ucg_verbose 1 .*",
         ((r"^", "OMPI_MCA_mca_base_component_path=$(tools/component_path) "),),
         prints="coll/ucg: rank 0 called"),
    Rule(r"export .*"),
    Rule(r"(OMPI_MCA_mca_base_component_path=\S+ )?ompi_info --param coll ucg .*",
         prints="coll_ucg_priority"),
    Rule(r"ompi_info --parsable .*", prints="openmpi"),
    Rule(r"mpirun .*--mca coll_ucg_verbose 1 .*", prints="coll/ucg: rank 0 called"),
    Rule(r"UCX_TLS=\S+ mpirun .*/mpi_breakdown.*", (end("20 5"),)),
    Rule(r"mpirun .*/collbench .*", (end("--time 0.01"),), prints="allreduce"),
    Rule(r"mpirun .*/commbench", (end("-n 20"),), prints="dup, barrier and free take"),
    Rule(r"mpirun .*/persistbench .*", (end("-n 20"),), prints="init and free take"),
    Rule(r"mpirun .*/interbench .*", prints="ireduce,4096"),
    # This is HDF5's own program, which is not part of this tree.
    Rule(r"mpirun .* \./testphdf5", ((r"\./testphdf5", "true"),)),
    Rule(r"mpirun .*/overlapbench .*", (end("--smoke"),), prints="iallreduce"),
    Rule(r"mpirun .*/array_reduction", (end("--smoke"),), prints="ok"),
    Rule(r"mpirun .*", prints="ok"),

    # ---- measuring
    Rule(r"perf/summary .*", prints="geometric mean", shown=True),
    Rule(r"perf/compare .*--mode late .*", (end("--time 0.001"),), prints="barrier"),
    Rule(r"perf/compare .*--state .*", (end("--pairs 1 -c allreduce -s 8 --time 0.001"),),
         prints="ping-pong"),
    # The page has exported the name of a profile that nobody has measured here.
    Rule(r"perf/compare --np 2", ((r"^", "UCG_PROFILE=builtin "),
                                  end("--pairs 1 -c allreduce -s 8 --time 0.001 --gate off"))),
    Rule(r"perf/compare .*", (end("--pairs 1 -c allreduce -s 8 --time 0.001 --gate off"),),
         prints="allreduce"),
    Rule(r"perf/perftest/agreement .*", (end("--rounds 1 --within 1000"),), prints="within"),
    Rule(r"perf/apps/run .*", ((r"apps/run", "apps/run --smoke"),), prints="us per call"),
    Rule(r"build/perf/\S+ --help", prints="Usage"),
    Rule(r"build/perf/perftest/ucg_perftest --np .* --sizes 8:64k", (end("--time 0.02"),),
         prints="64k|65536"),
    Rule(r"build/perf/perftest/ucg_perftest --np .*"),
    Rule(r"UCG_MACHINE=\"[^\"]*\" build/perf/perftest/ucg_perftest --np .* two_stage",
         prints="algorithm two_stage"),
    Rule(r"build/perf/perftest/ucg_perftest breakdown .*", (end("-n 10 --rounds 10"),),
         prints="modelled"),

    # ---- the models of shm: each prints the result of Spin
    Rule(r"(spin|cc|\./pan)( .*)?", folder="shm/model"),
]


def parts(text):
    """The simple commands of a line."""
    return re.split(r" && |; ", text)


def rule_of(text):
    """The first rule that fits; None if there is none."""
    return next((rule for rule in RULES if re.fullmatch(rule.pattern, text)), None)


def changed(text, rule):
    """The command that is run in place of this one."""
    for placeholder, value in PLACEHOLDERS:
        text = text.replace(placeholder, value)
    for pattern, replacement in rule.changes:
        text = re.sub(pattern, replacement, text, count=1)
    return text
