#!/usr/bin/env python3
"""Tests ucg_perftest from outside: launchers, options, batch files, the effects of wrong use and of
lost processes, and that nothing is left behind.

Arguments: ucg_perftest, "pmix" where it was built with PMIx and mpirun is there.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = ""
HAS_PMIX = False
SECONDS = 60
ENVIRONMENT = {**os.environ, "UCG_PROFILE": "builtin", "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SHORT = ["-n", "20", "-w", "2"]
ENDLESS = ["-t", "allreduce", "-n", "1000000000000", "-w", "1"]


def run(*arguments, launcher=()):
    return subprocess.run([*launcher, TOOL, *arguments], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=SECONDS, check=False,
                          env=ENVIRONMENT)


def start(*arguments):
    return subprocess.Popen([TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL, text=True, env=ENVIRONMENT)


def end(process):
    """(status, standard output, standard error) of a program that has ended by itself."""
    try:
        output, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    return process.returncode, output, errors


def children(process):
    path = f"/proc/{process.pid}/task/{process.pid}/children"
    with open(path, encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def wait_for(condition):
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.01)
    raise TimeoutError("what the test waits for did not come")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def in_shared_memory():
    return {name for name in os.listdir("/dev/shm") if re.match("ucx|ucg", name)}


def free_port():
    try:
        probe = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    except (OSError, ValueError):  # There is no IPv6.
        probe = socket.create_server(("", 0))
    with probe:
        return str(probe.getsockname()[1])


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def rows(output):
    """The numbers of each line that is a row of the table of collectives."""
    return [line.split() for line in output.splitlines()
            if re.match(r" +[\d,]+ +[\d,]+ +\d+\.\d+", line)]


@contextlib.contextmanager
def files(**contents):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, text in contents.items():
            paths.append(os.path.join(folder, name))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(text)
        yield paths


class Clean(unittest.TestCase):
    def setUp(self):
        self.before = in_shared_memory()

    def tearDown(self):
        # Programs that run beside this test have some files for a moment.
        wait_for(lambda: in_shared_memory() <= self.before)

    def fails(self, done, status, *texts):
        self.assertEqual(done.returncode, status, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("terminate called"), 0)


class Local(Clean):
    def test_any_number_of_processes(self):
        for count in [1, 2, 3, 5, 8, 16]:
            done = run("--np", str(count), "-t", "allreduce", "--check", *SHORT)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(rows(done.stdout)[0][:2], ["8", "20"])
            self.assertIn(f"| Ranks:        {count} ", done.stdout)

    def test_every_collective_in_every_form(self):
        names = re.search(r"prepared once\):\n((?:  [a-z_ ]+\n)+)", run("--help").stdout)[1]
        self.assertEqual(len(names.split()), 17)
        for name in names.split():
            for form in ["", "_nonblocking", "_persistent"]:
                done = run("--np", "3", "-t", name + form, "-s", "8k", "--check", *SHORT)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name + form)
                self.assertEqual(len(rows(done.stdout)), 1, name + form)

    def test_operators_and_datatypes(self):
        for words in ["--op max --datatype int8", "--op bxor --datatype uint16",
                      "--op prod --datatype float32", "--op land --datatype int64",
                      "--mode b2b --buffers heap"]:
            done = run("--np", "2", "-t", "reduce", "--root", "1", "--check", *words.split(),
                       *SHORT)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        for name in ("float16", "bfloat16", "complex64", "complex128"):
            for operator in ("sum", "prod"):
                done = run("--np", "3", "-t", "allreduce", "-s", "1k", "--check", "--datatype",
                           name, "--op", operator, *SHORT)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)

    def test_in_place(self):
        for name in ("allreduce", "allgather", "allgatherv", "alltoall", "alltoallv",
                     "reduce_scatter", "reduce_scatter_block", "scan", "exscan"):
            for form in ("", "_persistent"):
                done = run("--np", "3", "-t", name + form, "-s", "1k", "--check", "--in-place",
                           *SHORT)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name + form)

    def test_algorithm_is_forced_or_refused(self):
        words = ["--np", "2", "-t", "allreduce", "-s", "4k", "-I", *SHORT]
        done = run(*words, "--collective-algorithm", "ring")
        self.assertIn("algorithm ring\n", done.stdout)
        done = run(*words, launcher=["env", "UCG_ALLREDUCE=ring"])
        self.assertIn("algorithm ring\n", done.stdout)
        self.fails(run(*words, "--collective-algorithm", "two_level"), 1,
                   "two_level: it cannot serve this call here; those that can: ", "ring")
        self.fails(run(*words, "--collective-algorithm", "no_such"), 1, "no_such")

    def test_a_killed_process_is_named_and_ends_the_run(self):
        for victim in [0, 2]:
            process = start("--np", "3", *ENDLESS)
            pids = wait_for(lambda p=process: len(children(p)) == 3 and children(p))
            wait_for(lambda p=process: "Size" in p.stdout.readline())
            # Rank 0 is started last.
            os.kill(sorted(pids, reverse=True)[victim], signal.SIGKILL)
            status, _, errors = end(process)
            self.assertEqual(status, 1)
            self.assertIn(f"rank {victim}: killed by signal 9 (Killed)", errors)
            self.assertEqual([pid for pid in pids if is_alive(pid)], [])

    def test_ctrl_c_ends_all(self):
        for number in [signal.SIGINT, signal.SIGTERM]:
            process = start("--np", "2", *ENDLESS)
            pids = wait_for(lambda p=process: len(children(p)) == 2 and children(p))
            wait_for(lambda p=process: "Size" in p.stdout.readline())
            process.send_signal(number)
            self.assertEqual(end(process)[0], 128 + number)
            self.assertEqual([pid for pid in pids if is_alive(pid)], [])

    def test_processes_die_with_their_launcher(self):
        process = start("--np", "2", *ENDLESS)
        pids = wait_for(lambda: len(children(process)) == 2 and children(process))
        process.kill()
        end(process)
        wait_for(lambda: not any(is_alive(pid) for pid in pids))

    def test_primitives_are_of_two_processes(self):
        done = run("--np", "2", "-t", "tag_lat", "-n", "1000", "-f")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout.splitlines()[-1], r"^   tag_lat +1000 +\d+\.\d{3} ")
        self.fails(run("--np", "3", "-t", "tag_lat"), 1,
                   "ucg_perftest: tag_lat runs on 2 processes, here are 3")

    def test_cpus(self):
        cpu = str(min(os.sched_getaffinity(0)))
        self.assertEqual(run("--np", "2", "-t", "barrier", "-c", cpu, *SHORT).returncode, 0)
        self.fails(run("--np", "2", "-t", "barrier", "-c", "1023"), 2, "-c", "1023")


class Output(Clean):
    def test_csv(self):
        done = run("--np", "2", "-t", "bcast", "--sizes", "8:32,1k", "-v", *SHORT)
        head, *lines = [line.split(",") for line in done.stdout.splitlines()]
        self.assertEqual(head[:5], ["test", "size", "iterations", "min_lat", "50.0_percentile_lat"])
        self.assertEqual([line[1] for line in lines], ["8", "16", "32", "1024"])
        self.assertEqual({len(line) for line in lines}, {len(head)})
        times = [[float(text) for text in line[3:8]] for line in lines]
        self.assertEqual(times, [sorted(row) for row in times])

    def test_json(self):
        with files(out="") as [path]:
            done = run("--np", "2", "-t", "allgather_persistent", "--sizes", "8,64k", "--json",
                       path, *SHORT)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        self.assertEqual((document["ranks"], document["launcher"]), (2, "local"))
        self.assertTrue({"host", "processor", "kernel"} <= document["machine"].keys())
        self.assertEqual([result["size"] for result in document["results"]], [[8], [65536]])
        for result in document["results"]:
            self.assertEqual(result["iterations"], 20)
            self.assertEqual(result["limit"]["least_bytes"], 4 * result["size"][0])
            self.assertGreater(result["limit"]["round_trips"], 0)
            self.assertGreater(result["latency_us"]["max"], 0)

    def test_json_has_standard_output_to_itself(self):
        done = run("--np", "2", "-t", "barrier", "--json", "-", *SHORT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["results"]), 1)
        self.assertIn("barrier", done.stderr)

    def test_a_file_that_cannot_be_written(self):
        self.fails(run("--np", "2", "-t", "barrier", "--json", "/no/such/folder", *SHORT), 1,
                   "/no/such/folder")

    def test_a_standard_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            for words in (["--np", "2", "-t", "barrier", "-n", "10"], ["--help"]):
                done = subprocess.run([TOOL, *words], stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=SECONDS, check=False)
                self.assertEqual(done.returncode, 1, words)
                self.assertIn("standard output: cannot write", done.stderr)

    def test_thousands(self):
        done = run("--np", "2", "-t", "bcast", "-s", "64k", "-N", "-n", "2000", "-w", "1")
        self.assertEqual(rows(done.stdout)[0][:2], ["65,536", "2,000"])


class Batch(Clean):
    def test_nested_files(self):
        tests = "# a comment\n\nsum -t allreduce\n  share   -t bcast_persistent\n"
        sizes = "short -s 8\nlong  -s 4k -n 10\n"
        with files(tests=tests, sizes=sizes) as [first, second]:
            done = run("--np", "2", "-b", first, "-b", second, *SHORT)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(re.findall(r"^\+([a-z]+/[a-z]+)-", done.stdout, re.MULTILINE),
                             ["sum/short", "sum/long", "share/short", "share/long"])
            self.assertEqual([row[:2] for row in rows(done.stdout)],
                             [["8", "20"], ["4096", "10"]] * 2)
            done = run("--np", "2", "-b", first, "-b", second, "-v", *SHORT)
            self.assertEqual([line.split(",")[:4] for line in done.stdout.splitlines()[:2]],
                             [["tests", "sizes", "test", "size"],
                              ["sum", "short", "allreduce", "8"]])

    def test_bad_files(self):
        for line, text in [("x -t no_such", "no_such"), ("x -t bcast -n many", "many"),
                           ("x -t bcast -f", "-f"), ("x -s 8", "missing test name"),
                           ("x -t bcast -m cuda", "cuda")]:
            with files(batch=f"# first\nok -t barrier\n{line}\n") as [path]:
                self.fails(run("--np", "2", "-b", path), 1, f"in batch file '{path}' line 3: ",
                           text)
        with files(batch="# nothing\n") as [path]:
            self.fails(run("--np", "2", "-b", path), 1, path, "no test")
        self.fails(run("--np", "2", "-b", "/no/such"), 1, "/no/such", "No such file")

    def test_what_cannot_run_is_told_and_the_next_follows(self):
        batch = "bad -t allreduce --op band\ngood -t allreduce -s 16\n"
        with files(batch=batch) as [path]:
            done = run("--np", "2", "-b", path, *SHORT)
            self.fails(done, 1, "bad: --op band does not apply to float64")
            self.assertEqual([row[0] for row in rows(done.stdout)], ["16"])


class WrongUse(Clean):
    def test_status_2_and_a_sentence(self):
        for words, text in [("-t no_such", "there is no test no_such"),
                            ("-t bcast -n 1e3", "1e3"), ("-t bcast -s 8x", "8x"),
                            ("-t bcast --sizes 64:8", "64:8"), ("-t bcast -R 101", "101"),
                            ("-t bcast -m cuda", "cuda is not offered"),
                            ("-t tag_lat -T 2", "one thread"), ("-t tag_lat -M multi", "multi"),
                            ("-t am_lat -D xcopy", "xcopy"), ("-t bcast --np 0", "--np"),
                            ("-t bcast --np 1025", "1025"), ("-Q", "-Q"),
                            ("-l -t tag_lat host", "not allowed in loopback"),
                            ("--np 2 -t bcast host", "--np is the server's"),
                            ("--launcher local", "missing test name")]:
            if "--np" not in words and "--launcher" not in words and "host" not in words:
                words += " --np 2"
            self.fails(run(*words.split()), 2, text)

    def test_what_an_option_does_not_mean_is_told(self):
        done = run("--np", "2", "-t", "tag_lat", "-n", "10", "-d", "memory", "-x", "posix")
        self.assertEqual(done.returncode, 0)
        self.assertIn("-d is ignored by tag_lat, a UCP test", done.stderr)

    def test_what_collectives_cannot_do(self):
        for words, text in [("-t allreduce -s 12", "whole number of float64"),
                            ("-t allreduce -s 8,8", "--sizes"),
                            ("-t bcast --root 2", "--root 2: there are 2 ranks"),
                            ("-t reduce --op bor", "does not apply to float64"),
                            ("-t reduce --op max --datatype complex64", "does not apply to"),
                            ("-t bcast --in-place", "--in-place is for collectives without a root"),
                            ("-t bcast -s 1024G", "memory")]:
            self.fails(run("--np", "2", *words.split()), 1, text)


class Sockets(Clean):
    def pair(self, server, client):
        """The ends of the server and of the client."""
        port = free_port()
        served = start("-p", port, *server)
        try:
            done = run(*client, "-p", port)
            return end(served), done
        finally:
            served.kill()

    def test_a_client_brings_the_test(self):
        (status, output, errors), done = self.pair(
            [], ["localhost", "-t", "allreduce", "--check", *SHORT])
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("Waiting for connection...\nAccepted connection from 127.0.0.1:", output)
        self.assertIn("| Test:         allreduce ", output)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(rows(done.stdout)), 1)

    def test_batch_files_and_ipv6(self):
        if not has_ipv6():
            self.skipTest("this system has no address ::1")
        with files(batch="one -t tag_lat -n 100\ntwo -t barrier\n") as [path]:
            (status, _, errors), done = self.pair(["-6"], ["::1", "-6", "-b", path, *SHORT])
        self.assertEqual((status, errors, done.returncode, done.stderr), (0, "", 0, ""))
        self.assertIn("+one-", done.stdout)
        self.assertIn("+two-", done.stdout)

    def test_several_clients(self):
        port = free_port()
        server = start("--launcher", "socket", "--np", "3", "-p", port)
        clients = [start("localhost", "-p", port, "-t", "bcast", *SHORT) for _ in range(2)]
        ends = [end(process) for process in [server, *clients]]
        self.assertEqual([status for status, _, _ in ends], [0, 0, 0], ends)
        self.assertEqual(sorted(len(rows(output)) for _, output, _ in ends), [0, 0, 1])

    def test_nobody_there(self):
        self.fails(run("no.such.host.invalid", "-t", "tag_lat"), 1, "no.such.host.invalid",
                   "cannot find the server's host")
        self.fails(run("localhost", "-p", free_port(), "-t", "tag_lat"), 1, "cannot connect to "
                   "localhost port ", "Connection refused")

    def test_port_in_use(self):
        with socket.socket() as other:
            other.bind(("", 0))
            other.listen()
            port = str(other.getsockname()[1])
            self.fails(run("-p", port), 1, f"cannot listen at port {port}", "in use")

    def test_partners_that_are_none(self):
        port = free_port()
        server = start("-p", port)
        self.assertIn("Waiting", server.stdout.readline())
        for said in [b"GET / HTTP/1.1\r\n" + 200 * b"x",
                     b"ucg_perftest 99.0".ljust(128, b"\0")]:
            with socket.create_connection(("127.0.0.1", int(port))) as other:
                other.sendall(said)
                self.assertTrue(other.recv(128).startswith(b"ucg_perftest "))
        done = run("localhost", "-p", port, "-t", "barrier", *SHORT)
        self.assertEqual(done.returncode, 0, done.stderr)
        status, _, errors = end(server)
        self.assertEqual(status, 0)
        self.assertIn("it is not ucg_perftest, this is ucg_perftest ", errors)
        self.assertIn("it is of version 'ucg_perftest 99.0'", errors)

    def test_a_server_of_another_version(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            client = start("127.0.0.1", "-p", str(other.getsockname()[1]), "-t", "barrier")
            line, _ = other.accept()
            with line:
                line.sendall(b"ucg_perftest 99.0".ljust(128, b"\0"))
                status, _, errors = end(client)
        self.assertEqual(status, 1)
        self.assertIn("is ucg_perftest 99.0, this client ucg_perftest ", errors)

    def test_a_lost_peer_ends_the_other(self):
        for killed in ["client", "server"]:
            port = free_port()
            server = start("-p", port)
            client = start("localhost", "-p", port, *ENDLESS)
            wait_for(lambda p=client: "Size" in p.stdout.readline())
            victim, other = (client, server) if killed == "client" else (server, client)
            victim.kill()
            status, _, errors = end(other)
            end(victim)
            self.assertEqual(status, 1)
            lost = 1 if killed == "client" else 0
            # It is noticed by the line between the two, or by shared memory, whichever is looked at
            # first.
            self.assertRegex(errors, f"rank {lost} is lost|has ended, rank {lost},")


class Pmix(Clean):
    def setUp(self):
        if not HAS_PMIX:
            self.skipTest("no PMIx in this build, or no mpirun")
        super().setUp()

    def mpirun(self, count, *words):
        return run(*words, launcher=["mpirun", "-np", str(count), "--oversubscribe"])

    def test_under_mpirun(self):
        done = self.mpirun(4, "-t", "allreduce", "--sizes", "8,4k", "--check", *SHORT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row[0] for row in rows(done.stdout)], ["8", "4096"])
        done = self.mpirun(2, "-t", "tag_lat", "-n", "100", "-f")
        self.assertIn("tag_lat", done.stdout.splitlines()[-1])

    def test_a_failure_of_all_is_told_once(self):
        done = self.mpirun(3, "-t", "tag_lat")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count("tag_lat runs on 2 processes, here are 3"), 1)


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    if sys.argv[1:2] == ["pmix"]:
        HAS_PMIX = True
        sys.argv.pop(1)
    unittest.main()
