#!/usr/bin/env python3
"""How the Python programs and the scripts end when something is wrong: with one line and the
status that a shell expects, never with a traceback, and with no process left running."""

import argparse
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), *3 * [os.pardir])
sys.path.insert(0, os.path.join(ROOT, "tools"))

import command_line  # noqa: E402 (the lines above must come first)

VCLUSTER, COMPARE, MODEL = "tools/vcluster", "perf/compare", "perf/model"
APPS, MULTIPLYING = "perf/apps/run", "perf/recursive_multiplying/run"
REAL, AAPC = "perf/apps/programs", "perf/aapc/run"
INSTRUCTIONS, AGREEMENT = "perf/instructions", "perf/perftest/agreement"
SUMMARY = "perf/summary"
PROGRAMS = [VCLUSTER, COMPARE, MODEL, APPS, REAL, MULTIPLYING, AAPC, INSTRUCTIONS, AGREEMENT]
COUNTS = {COMPARE: ["--np", "--pairs", "--retries", "--hosts"], MODEL: ["--np", "--pairs"],
          APPS: ["--np", "--pairs"], REAL: ["--np", "--threads", "--runs"],
          MULTIPLYING: ["--ranks", "--bytes", "--blocks", "--calls", "--rounds"],
          AAPC: ["--calls", "--rounds", "--variable"], INSTRUCTIONS: ["--np", "--calls"],
          AGREEMENT: ["--rounds"]}
REALS = {COMPARE: ["--time", "--far", "--timeout"], MODEL: ["--time", "--timeout"],
         APPS: ["--timeout"], REAL: ["--timeout"], MULTIPLYING: ["--tune-time"],
         INSTRUCTIONS: ["--timeout"], AGREEMENT: ["--within", "--timeout"]}
FILES = {COMPARE: ["--json", "--plot"], MODEL: ["--json", "--plot"], APPS: ["--json", "--plot"],
         REAL: ["--json", "--plot"], MULTIPLYING: ["--json"],
         AAPC: ["--data"]}
PREFIXES = {MULTIPLYING: "--plot", AAPC: "--plot"}  # The names of the files begin with this.
SECONDS = 60


def path(program):
    return os.path.join(ROOT, program)


def run(program, *arguments, **options):
    return subprocess.run([path(program), *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=SECONDS,
                          check=False, **options)


class Case(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        os.environ["VCLUSTER_DIR"] = self.file("clusters")

    def file(self, name, text=None, mode=0o644):
        full = os.path.join(self.place.name, name)
        if text is not None:
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(full, mode)
        return full

    def is_told(self, done, status, *words):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse([letter for letter in done.stderr
                          if letter != "\n" and not letter.isprintable()], repr(done.stderr))


class Options(Case):
    def test_wrong_counts(self):
        for program, options in [*COUNTS.items(), (VCLUSTER, ["--hosts", "--slots", "--seed"])]:
            before = ["up"] if program == VCLUSTER else []
            for option in options:
                with self.subTest(f"{program} {option}"):
                    done = run(program, *before, option, "-8")
                    self.is_told(done, 2, option, "expected a whole number from", "'-8'")

    def test_options_that_there_are_not(self):
        for program in PROGRAMS:
            with self.subTest(program):
                before = {VCLUSTER: ["up"], APPS: ["matvec"]}.get(program, [])
                meant = {VCLUSTER: "--rate", AAPC: "--sizes", INSTRUCTIONS: "--stock",
                         AGREEMENT: "--only"}.get(program, "--json")
                typed = meant[:-2] + meant[-1]
                self.is_told(run(program, *before, typed), 2, typed, f"did you mean {meant}?")
                self.is_told(run(program, *before, meant[:-1], "x"), 2, meant[:-1])

    def test_scripts(self):
        unknown = "unknown option '--foo'; see --help"
        for program, arguments, word in (
                ("tools/check", ["--foo"], unknown), ("tools/quickstart", ["--foo"], unknown),
                ("test/cluster/new_user.sh", ["--foo"], unknown),
                ("test/cluster/new_user.sh", ["--part", "nope"], "no part 'nope'; there are:"),
                ("test/cluster/new_user.sh", ["--suite"], "expected the name of a release"),
                ("test/cluster/container.sh", ["--foo"], unknown),
                ("test/cluster/container.sh", ["--suite"], "expected the name of a release"),
                ("test/cluster/other_debian.sh", ["trixie", "--foo"], unknown),
                ("test/cluster/other_debian.sh", ["--directory"], "--directory: expected a folder"),
                ("test/cluster/other_debian.sh", ["a", "b"], "unexpected argument 'b'"),
                ("test/cluster/other_debian.sh", [], "expected the name of a release")):
            with self.subTest(f"{program} {arguments}"):
                done = run(program, *arguments)
                self.is_told(done, 2, word)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_what_gdb_runs(self):
        done = subprocess.run([sys.executable, path("perf/to_store.py")], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        self.is_told(done, 2, "to_store.py: gdb runs this")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_wrong_numbers(self):
        for program, options in REALS.items():
            for option in options:
                with self.subTest(f"{program} {option}"):
                    done = run(program, option, "nan")
                    self.is_told(done, 2, option, "expected a number from", "'nan'")

    def test_wrong_sizes(self):
        for program in (COMPARE, MODEL, AAPC):
            with self.subTest(program):
                self.is_told(run(program, "--sizes", "8,-8"), 2, "--sizes", "expected sizes", "-8")

    def test_files_that_cannot_be_written(self):
        for program, options in FILES.items():
            for option in options:
                for name, why in ((self.file("no/such/folder/x"), "there is no folder"),
                                  (self.place.name, "is a folder")):
                    with self.subTest(f"{program} {option} {name}"):
                        self.is_told(run(program, option, name), 2, option, why)
        for program, option in PREFIXES.items():
            with self.subTest(f"{program} {option}"):
                self.is_told(run(program, option, self.file("no/such/folder/x")), 2, option,
                             "there is no folder")

    def test_summary(self):
        lines = ["# Some CPU, 2026-01-02, commit abc1234, profile of UCG: no file",
                 "# before: load 0 0 0; 3 turns of tuned, ucx, ucg; 2 ranks, b2b",
                 "collective bytes state tuned us ucx us ucg us best ucg/best pairs",
                 "barrier 0 near 3 1.0 2.0 0.5 tuned 0.500 0.500 +- 4%",
                 "bcast 16384 near 3 1.0 2.0 2.0 tuned 2.000 2.000 +- 4%",
                 "bcast 16384 far 1 1.0 2.0 9.0 tuned 9.000 9.000 +- 4%",
                 "scan 8 near 1 1.0 2.0 - tuned - -",
                 "geometric mean ucg/best over 2 cells (b2b): 1.000"]
        done = run(SUMMARY, self.file("good.dat", "\n".join(lines)))
        self.assertEqual(done.stdout.splitlines()[2:],
                         ["| Some CPU, 2026-01-02, abc1234 | 2, back to back | tuned, ucx | "
                          "1.00 (1.25) | 0.50 (0.50) |  | bcast of 16 KiB 2.00, barrier 0.50 | "
                          "1 of 2, 1 without a result |"],
                         done.stderr)
        for wanted, left_out in (("processor, date", 0), ("configurations", 1), ("cell", 2)):
            text = "\n".join(lines[:left_out] + lines[left_out + 1:])
            self.is_told(run(SUMMARY, self.file("bad.dat", text)), 2, "bad.dat: no", wanted)
        for number, bad, wanted in (
                (2, lines[2].replace("ucg/best ", ""), "bad.dat: no column ucg/best"),
                (3, lines[3].replace("0.500", "fast"), "bad.dat: line 4: expected a ratio"),
                (3, lines[3].replace("near 3", "near x"), "line 4: expected a number of rounds"),
                (3, lines[3][:20], "bad.dat: line 4: the line ends before ucg/best")):
            text = "\n".join([*lines[:number], bad, *lines[number + 1:]])
            self.is_told(run(SUMMARY, self.file("bad.dat", text)), 2, wanted)
        with open(self.file("binary.dat"), "wb") as file:
            file.write(b"\xff\x00")
        self.is_told(run(SUMMARY, self.file("binary.dat")), 2, "binary.dat: this is no text")
        self.is_told(run(SUMMARY, self.file("none.dat")), 1, "none.dat", "No such file")
        self.is_told(run(SUMMARY), 2, "FILE")
        self.is_told(run(SUMMARY, "--foo", "x"), 2, "--foo")

    def test_brief_summary(self):
        def table(name, processor, ranks, ratios):
            return self.file(name, "\n".join([
                f"# Some CPU ({processor}), 2026-01-02, commit abc1234",
                f"# before: load 0 0 0; 3 turns of tuned, ucg; {ranks} ranks, b2b",
                "collective bytes state tuned us ucg us best ucg/best pairs",
                *(f"bcast {size} near {rounds} 1.0 1.0 tuned {ratio} {ratio} +- 4%"
                  for size, rounds, ratio in ratios)]))

        done = run(SUMMARY, "--brief", table("a.dat", "One", 2, [(8, 3, 0.5), (16, 2, 9.0)]),
                   table("b.dat", "One; cores far", 2, [(8, 3, 0.5), (16, 3, 2.0)]),
                   table("c.dat", "One", 4, [(8, 3, 0.25)]), table("d.dat", "Two", 2, [(8, 3, 1)]))
        # The second table has the mean of 0.5 and 2, the first also counts its cell of few rounds.
        self.assertEqual(done.stdout.splitlines()[2:],
                         ["| Some CPU (One) | 2, 4, back to back | 0.25 to 2.12 | "
                          "bcast of 16 B 2.00 | 1 of 4 |",
                          "| Some CPU (Two) | 2, back to back | 1.00 | bcast of 8 B 1.00 | "
                          "0 of 1 |"], done.stderr)

    def test_summary_of_runs_that_failed(self):
        lines = ["# Some CPU, 2026-01-02, commit abc1234",
                 "# before: load 0 0 0; 3 turns of tuned, ucg; 2 ranks, b2b",
                 "collective bytes state tuned us ucg us ucg/tuned ucg/best pairs",
                 "barrier 0 near 3 1.0 0.5 0.500 0.500 0.500 +- 4%", "# after: load 0 0 0"]
        for problem in ("# turn 3, ucg: status 139",
                        "# turn 2, ucg: bcast of 8 bytes: wrong result",
                        "# turn 1, tuned: no end within 300 s"):
            with self.subTest(problem):
                table = self.file("bad.dat", "\n".join([*lines, problem]))
                done = run(SUMMARY, table)
                self.is_told(done, 1, f"bad.dat: {problem[2:]}", "--with-problems")
                self.assertEqual(done.stdout, "")
                done = run(SUMMARY, "--with-problems", table)
                self.is_told(done, 0, f"bad.dat: {problem[2:]}")
                self.assertIn("| 0.50 (0.50) |", done.stdout)

    def test_summary_of_whole_cycles(self):
        head = ["# Some CPU, 2026-01-02, commit abc1234",
                "# before: load 0 0 0; 3 turns of tuned, ucx, ucg; 4 ranks, cyc",
                "collective bytes state tuned us ucx us ucg us best ucg/best pairs bare us "
                "ucg cycle"]
        cells = ["barrier 0 near 3 1.0 2.0 0.5 tuned 0.500 0.500 +- 4% 3.0 1.336",
                 "bcast 16384 near 3 1.0 2.0 2.0 tuned 1.200 1.200 +- 4% 3.0 0.500",
                 "bcast 16384 far 1 1.0 2.0 9.0 tuned 9.000 9.000 +- 4% 3.0 8.000",
                 "scan 8 near 3 1.0 2.0 2.0 tuned - - 3.0 0.250",
                 "exscan 8 near 3 1.0 2.0 0.8 tuned 0.800 0.800 +- 4% 3.0 nan",
                 "gather 8 near 2 1.0 2.0 3.0 tuned 3.000 3.000 +- 4% 3.0 1.000",
                 "gather 16 near 1 1.0 2.0 1.0 tuned 1.000 1.000 +- 4% 3.0 1.000"]

        def last_fields(lines):
            done = run(SUMMARY, self.file("cycles.dat", "\n".join(lines)))
            self.assertEqual(done.returncode, 0, done.stderr)
            return [field.strip() for field in done.stdout.splitlines()[2].split("|")[4:-1]]

        # The worse of both ratios counts; cells of one or two rounds count apart.
        self.assertEqual(last_fields(head + cells),
                         ["1.08 (1.00)", "0.50 (0.50)", "0.70 (1.00)",
                          "barrier 1.34 (cycle), bcast of 16 KiB 1.20, exscan of 8 B 0.80",
                          "2 of 4 (1 of 2)"])
        # Without a state all cells rest on all rounds.
        head[2] = head[2].replace(" state", "")
        cells = [cells[0].replace("near 3 ", ""), cells[5].replace("near 2 ", "")]
        self.assertEqual(last_fields(head + cells)[3:],
                         ["gather of 8 B 3.00, barrier 1.34 (cycle)", "2 of 2"])
        head[1] = head[1].replace("3 turns", "2 turns")
        self.assertEqual(last_fields(head + cells)[3:], ["", "0 of 0 (2 of 2)"])

    def test_how_ranks_that_share_processors_are_compared(self):
        launcher = self.file("launcher", f"#!/bin/sh\necho \"$*\" >>{self.file('log')}\nexit 3\n",
                             0o755)
        few, many = "1", str(len(os.sched_getaffinity(0)) + 1)
        for ranks, words, mode, warns in ((few, [], "b2b", False), (many, [], "cyc", False),
                                          (many, ["--mode", "b2b"], "b2b", True)):
            with self.subTest(f"{ranks} {words}"):
                done = run(COMPARE, "--np", ranks, "--pairs", "1", "--retries", "0", "--config",
                           f"a={launcher}", "--program-for", f"a={launcher}", *words)
                self.is_told(done, 1)
                self.assertIn(f"{ranks} ranks, {mode}\n", done.stdout)
                self.assertEqual("see --mode cyc" in done.stdout, warns)
                with open(self.file("log"), encoding="ascii") as file:
                    self.assertIn(f"--mode {mode}", file.read().splitlines()[-1])

    def test_a_standard_output_that_is_closed_or_full(self):
        for program, *words in ((VCLUSTER, "status"), (REAL, "--list")):
            done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", path(program), *words],
                                  capture_output=True, text=True, timeout=SECONDS, check=False)
            self.is_told(done, 1, "standard output: Bad file descriptor")
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([path("tools/quickstart"), "--help"], stdout=full,
                                  stderr=subprocess.PIPE, timeout=SECONDS, check=False)
            self.assertEqual(done.returncode, 1, "quickstart")

    def test_names_that_nothing_has(self):
        cases = [(COMPARE, 2, ["--preset", "nope"], "there are tuned"),
                 (COMPARE, 2, ["--link", "fast"], "want a number and a unit"),
                 (COMPARE, 2, ["--link", "1gbit"], "belong together"),
                 (COMPARE, 2, ["--link", "1gbit", "--hosts", "4"], "no equal shares"),
                 (COMPARE, 2, ["--preset", ""], "there are tuned"),
                 (COMPARE, 2, ["--preset", "tunde"], "did you mean tuned?"),
                 (COMPARE, 2, ["--config", "a=sh", "--config", "a=sh"], "'a' twice"),
                 (COMPARE, 2, ["--config", "a=sh", "--program-for", "b=/bin/sh"], "'b': there are"),
                 (COMPARE, 2, ["--config", "a=no-such-program -np 2"], "no-such-program"),
                 (COMPARE, 2, ["--config", "a='"], "No closing quotation"),
                 (COMPARE, 2, ["--build", "/nonexistent"], "/nonexistent"),
                 (MODEL, 2, ["--build", "/nonexistent"], "/nonexistent"),
                 (APPS, 2, ["--build", "/nonexistent", "matvec"], "/nonexistent"),
                 (APPS, 2, ["matvek"], "did you mean matvec?"),
                 (APPS, 2, ["matvec", "--size", "3"], "matvec itself come behind --"),
                 (REAL, 2, ["--only", "nwchen"], "did you mean nwchem?"),
                 (REAL, 2, ["-x", ""], "expected NAME or NAME=VALUE"),
                 (AAPC, 2, ["--topologies", "d"], "'d' is neither a, b nor c"),
                 (AAPC, 2, ["--rate", "quick"], "rate 'quick'"),
                 (AAPC, 2, ["--routines", "stok"], "did you mean stock?"),
                 (AAPC, 2, ["--routines", "ucg:"], "no routine 'ucg:'"),
                 (INSTRUCTIONS, 2, ["-c", "barier"], "did you mean barrier?"),
                 (INSTRUCTIONS, 2, ["--size", "8,64"], "expected one size"),
                 (INSTRUCTIONS, 2, ["--most", "bcast=5"], "none of --collectives"),
                 (INSTRUCTIONS, 2, ["--most", "barrier"], "expected NAME=VALUE"),
                 (AGREEMENT, 2, ["--only", ""], "tests are am_lat"),
                 (AGREEMENT, 2, ["--only", "am_lt"], "did you mean am_lat?"),
                 (AGREEMENT, 2, ["--cpus", "0,0"], "expected two of the processors"),
                 (MULTIPLYING, 2, ["--bytes", "12"], "expected multiples of 8"),
                 (MULTIPLYING, 2, ["--latency", "quick"], "latency 'quick'"),
                 (MULTIPLYING, 1, ["--build", "/nonexistent"], "/nonexistent"),
                 (VCLUSTER, 2, ["statsu"], "did you mean status?"),
                 (VCLUSTER, 2, ["down", "--all", "--name", "a"], "exclude each other"),
                 (VCLUSTER, 1, ["exec", "--name", "a/b", "n0"], "cluster name 'a/b'"),
                 (VCLUSTER, 1, ["up", "--topology", "/nonexistent"], "/nonexistent"),
                 (VCLUSTER, 2, ["up", "--rate", "9" * 400 + "mbit"], "leave it out"),
                 (VCLUSTER, 2, ["up", "--rate", "quick"], "rate 'quick'"),
                 (VCLUSTER, 2, ["up", "--link", "n0"], "expected NAME=RATE"),
                 (VCLUSTER, 2, ["up", "--link", "n0=quick"], "rate 'quick'"),
                 (VCLUSTER, 2, ["up", "--subnet", "::/64"], "expected an IPv4 network"),
                 (VCLUSTER, 2, ["up", "--subnet", "10.0.0.1/8"], "expected an IPv4 network"),
                 (VCLUSTER, 2, ["up", "--latency", "9" * 400 + "s"], "more than an hour"),
                 (VCLUSTER, 2, ["up", "--loss", "101%"], "a percentage up to 100"),
                 (VCLUSTER, 2, ["up", "--head", "a/b"], "expected a host name"),
                 (VCLUSTER, 2, ["up", "--head="], "expected a host name"),
                 (VCLUSTER, 2, ["up", "--shm-size", "0"], "expected a size such as 64m"),
                 (VCLUSTER, 2, ["run", "--hosts", "2"], "no command given")]
        for program, status, arguments, word in cases:
            with self.subTest(f"{program} {' '.join(arguments)[:60]}"):
                done = run(program, *arguments)
                self.is_told(done, status, word)
                self.assertEqual(len(done.stderr.strip().splitlines()),
                                 1 if "usage" not in done.stderr else done.stderr.count("\n"))

    def test_what_a_file_says_does_not_command_the_terminal(self):
        for text in ("SwitchName=s0 Nodes=\x1b[2Jn[0-1]\n", "SwitchName=\x9b2J Nodes=n0\n",
                     "\x1b]0;title\x07\n", "SwitchName=s0 Nodes=n[0-\x7f]\n"):
            with self.subTest(repr(text)):
                done = run(VCLUSTER, "up", "--topology", self.file("topology.conf", text))
                self.is_told(done, 1, "topology.conf: line 1", "\\u")

    def test_what_is_installed_calls_itself_by_its_own_name(self):
        installed = self.file("ucg_vcluster")
        os.symlink(path(VCLUSTER), installed)
        said = run(installed, "--help").stdout
        self.assertIn("usage: ucg_vcluster ", said)
        self.assertIn("  ucg_vcluster up --topology topology.conf", said)
        self.assertIn("'ucg_vcluster COMMAND --help'", said)
        self.assertNotRegex(said, r"(?<![\w$/])vcluster(?!\w)")
        for name in ("vcluster_links", "/run/vcluster"):
            self.assertIn(f" {name} ", said)
        self.is_told(run(installed, "mpirun"), 1, "ucg_vcluster: no cluster", ": ucg_vcluster up")
        self.is_told(run(VCLUSTER, "mpirun"), 1, "vcluster: no cluster", ": vcluster up")

    def test_a_tree_of_which_git_lists_no_source(self):
        os.mkdir(self.file("tools"))
        for name in ("check", "packages", "packages.txt"):
            shutil.copy(path(f"tools/{name}"), self.file("tools"))
        done = subprocess.run([self.file("tools/check"), "--only", "format"],
                              env={**os.environ, "UCG_NO_PACKAGES": "1"}, capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("not a git repository", done.stdout)
        self.assertIn("safe.directory", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 1 failed")

    def test_a_registry_that_is_no_folder(self):
        os.environ["VCLUSTER_DIR"] = self.file("registry", "")
        self.is_told(run(VCLUSTER, "down"), 1, "vcluster: ", "registry")


class Quickstart(Case):
    """tools/quickstart with programs that only say what they are asked."""

    STUBS = {
        "meson": "", "ninja": "", "ompi_info":
            "echo 'mca:mca:base:param:mca_base_component_path:value:/usr/lib'",
        "mpirun": """case $OMPI_MCA_coll in ^ucg) kind=stock;; *) kind=ucg;; esac
case " $* " in *" lmp "*) what=lmp;; *) what=bench;; esac
echo "$what $kind" >>"$LOG"
seconds=$(wc -l <"$LOG")
echo "[vm:1] coll/ucg: rank 0 called allreduce: 7 by libucg, 0 passed on"
if [ $what = lmp ]; then
    echo "1500 1.5 -2.5 -2.25 0.1"
    echo "Loop time of $seconds on 2 procs"
else
    for name in allreduce bcast alltoall; do
        echo "[vm:1] coll/ucg: rank 0 called $name: 7 by libucg, 0 passed on"
        for bytes in 8 1024 65536 1048576; do echo "$name,$bytes,2,b2b,$seconds,1"; done
    done
fi"""}
    BUILT = {"tools/ucg_tune": "", "perf/collbench/collbench": "",
             "ucg_coll/ompi/mca_coll_ucg.so": "",
             "tools/ucg_info": """case "$*" in
"--costs --format json") echo '{"costs": {"advice": "costs are built in"}}' ;;
esac"""}

    def setUp(self):
        super().setUp()
        for folder in ("bin", "build/tools", "build/perf/collbench", "build/ucg_coll/ompi"):
            os.makedirs(self.file(folder))
        for name, text in self.STUBS.items():
            self.file(f"bin/{name}", f"#!/bin/sh\n{text}\n", 0o755)
        for name, text in self.BUILT.items():
            self.file(f"build/{name}", f"#!/bin/sh\n{text}\n", 0o755)

    def start(self):
        return run("tools/quickstart", "--ranks", "2", "--build", self.file("build"), env={
            **os.environ, "PATH": f"{self.file('bin')}:{os.environ['PATH']}",
            "UCG_NO_PACKAGES": "1", "LOG": self.file("log")})

    def test_both_kinds_are_first_in_turns(self):
        done = self.start()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(self.file("log"), encoding="ascii") as file:
            lines = file.read().split("\n")[:-1]
        kinds = ["stock", "ucg", "ucg", "stock", "stock", "ucg"]
        self.assertEqual(lines, [f"{what} {kind}" for what in ("lmp", "bench") for kind in kinds])
        self.assertRegex(done.stdout, r"loop time, s: .* +4 \(1-5\) +3 \(2-6\)")
        self.assertRegex(done.stdout, r"bcast 65536 +10 \(7-11\) +9 \(8-12\)")
        self.assertIn("Your programs, as it is: costs are built in.\n", done.stdout)

    def test_every_run_has_to_have_the_same_physics(self):
        self.file("bin/mpirun", "#!/bin/sh\n" + self.STUBS["mpirun"].replace(
            "-2.25", "-2.$((seconds == 3))") + "\n", 0o755)
        self.is_told(self.start(), 1, "the energies differ")


class Endings(Case):
    def test_a_reader_that_is_gone(self):
        for program in PROGRAMS:
            for arguments in [["--help"]] + ([["status"]] if program == VCLUSTER else []):
                read, write = os.pipe()
                os.close(read)
                with self.subTest(f"{program} {arguments}"):
                    done = subprocess.run([path(program), *arguments], stdout=write,
                                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                          timeout=SECONDS, check=False)
                    os.close(write)
                    # Some versions of argparse ignore a failure to write their own help.
                    quiet = (0, 141) if arguments == ["--help"] else (141,)
                    self.assertIn(done.returncode, quiet)
                    self.assertEqual(done.stderr, b"")

    def start_and_signal(self, number):
        """Starts compare with a run that never ends, and sends it a signal once that run has
        begun."""
        pid_file = self.file("pid")
        launcher = self.file("launcher", f"#!/bin/sh\necho $$ >{pid_file}.new\n"
                             f"mv {pid_file}.new {pid_file}\nexec sleep 1000\n", 0o755)
        process = subprocess.Popen(
            [path(COMPARE), "--config", f"a={launcher}", "--program-for", f"a={launcher}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            # The process that starts the tests may ignore a signal, as nohup does, and children
            # inherit that.
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
        for _ in range(SECONDS * 100):
            if os.path.exists(pid_file):
                break
            time.sleep(0.01)
        with open(pid_file, encoding="ascii") as file:
            job = int(file.read())
        process.send_signal(number)
        _, said = process.communicate(timeout=SECONDS)
        self.assertTrue(self.ends(job), "the run went on")
        return process.returncode, said

    @staticmethod
    def ends(process):
        """Whether that process ends. One whose parent has ended stays in the list of processes
        until the system has collected it."""
        for _ in range(SECONDS * 100):
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.01)
        return False

    def test_signals_end_what_was_started(self):
        for number, word in ((signal.SIGINT, "interrupted"), (signal.SIGTERM, "SIGTERM"),
                             (signal.SIGHUP, "SIGHUP")):
            with self.subTest(number):
                status, said = self.start_and_signal(number)
                self.assertEqual(status, 128 + number, said)
                self.assertIn(f"compare: {'' if word == 'interrupted' else 'ended by '}{word}\n",
                              said)
                self.assertEqual(len(said.splitlines()), 1, said)
                os.unlink(self.file("pid"))


class Shared(unittest.TestCase):
    def test_printable(self):
        for text, shown in (("plain \u00e4\u20ac\n\t", "plain \u00e4\u20ac\n\t"),
                            ("\x1b[2J", "\\u001b[2J"), ("\x7f\x9b\r", "\\u007f\\u009b\\u000d"),
                            (b"\xff".decode("utf-8", "surrogateescape"), "\\u00ff"),
                            ("\ud800", "\\ud800")):
            self.assertEqual(command_line.printable(text), shown)

    def refuses(self, parse, texts):
        for text in texts:
            with self.subTest(text[:30]), self.assertRaises(argparse.ArgumentTypeError):
                parse(text)

    def test_numbers(self):
        self.assertEqual(command_line.whole(0, 9)("08"), 8)
        self.refuses(command_line.whole(0, 1 << 62),
                     ("-8", "nan", "inf", "1.5", "1e3", "8x", "0x8", " 8", "8 ", "1_0", "", "+8",
                      "99999999999999999999999", "9" * 5000, "\u0663"))
        self.refuses(command_line.whole(2, 4), ("1", "5"))
        self.assertEqual(command_line.real(0, 9)("1.5e-1"), 0.15)
        self.refuses(command_line.real(0, 1e300),
                     ("-8", "nan", "inf", "1e999", "1e", "8x", "0x8", " 8", "1_0", "", "+8", "."))
        self.refuses(command_line.real(2, 4), ("1.9", "4.1"))
        self.assertEqual(command_line.sizes(1, 1 << 30)("8,64k,1M"), "8,64k,1M")
        self.refuses(command_line.sizes(1, 1 << 30),
                     ("x", "", "8,", "-8", "8,99999999999999999999", "1.5k", "8q", "0", "2G"))

        self.assertEqual(command_line.size(1, 1 << 30)("64k"), "64k")
        self.refuses(command_line.size(1, 1 << 30), ("8,64", "", "2G"))

    def test_names(self):
        self.assertEqual(command_line.names(["a", "b"])("b,a,b"), ["b", "a"])
        self.refuses(command_line.names(["a", "b"]), ("", "c", "a,", "a,,b"))

    def test_sizes(self):
        self.assertEqual([command_line.bytes_of(text) for text in
                          ("8", "64k", "64K", "1M", "2G", "1T", "k", "8m", "8kk")],
                         [8, 65536, 65536, 1 << 20, 2 << 30, 1 << 40, None, None, None])

    def test_a_file_that_was_there_stays_as_it_is(self):
        with tempfile.NamedTemporaryFile("w") as file:
            os.chmod(file.name, stat.S_IRUSR | stat.S_IWUSR)
            self.assertEqual(command_line.writable(file.name), file.name)
            self.assertEqual(os.path.getsize(file.name), 0)


if __name__ == "__main__":
    unittest.main()
