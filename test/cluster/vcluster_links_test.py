#!/usr/bin/env python3
"""Links with latency and loss: frames come late, in order, or not at all, and nothing stays behind.

Nothing here asserts that something was fast. Exits with 77 (skipped, for Meson) where the kernel or
the container allows no namespaces or has no TAP devices.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

import vcluster_test
from vcluster_test import VCLUSTER, Case, descendants, vcluster

PORT = 7000
# Answers each datagram; when "end" comes, says how many datagrams came and in which order.
ECHO = f"""\
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', {PORT}))
print('ready', flush=True)
seen = []
while True:
    data, peer = s.recvfrom(2048)
    if data == b'end':
        s.sendto(data, peer)
        break
    seen.append(int(data))
    s.sendto(data, peer)
print(seen == sorted(seen), len(seen))
"""
# Prints the shortest of ten round trips in nanoseconds.
PING = """\
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
best = None
for i in range(10):
    begin = time.monotonic_ns()
    s.sendto(b'%d' % i, (sys.argv[1], int(sys.argv[2])))
    s.recv(64)
    took = time.monotonic_ns() - begin
    best = took if best is None else min(best, took)
s.sendto(b'end', (sys.argv[1], int(sys.argv[2])))
print(best)
"""
# Sends numbered datagrams, a few at a time because a receiver's buffer is small, and then their end
# again and again until the receiver has answered: buffers and links may lose it, and the answer.
# The kernel itself changes the order of datagrams that wait for the receiver's address, and of
# those whose sender moves to another processor.
STREAM = """\
import os, socket, sys, time
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.2)
for _ in range(100):
    s.sendto(b'-1', (sys.argv[1], int(sys.argv[2])))
    try:
        s.recv(64)
        break
    except TimeoutError:
        pass
for i in range(int(sys.argv[3])):
    s.sendto(b'%d' % i, (sys.argv[1], int(sys.argv[2])))
    if i % 32 == 31:
        time.sleep(0.002)
s.settimeout(0.01)
for _ in range(200):
    s.sendto(b'end', (sys.argv[1], int(sys.argv[2])))
    try:
        while s.recv(64) != b'end':
            pass
        break
    except TimeoutError:
        pass
"""


def on(host, program, *arguments):
    return vcluster("exec", host, "--", sys.executable, "-c", program, *arguments).stdout


def counters():
    return json.loads(vcluster("links", "--json").stdout)["links"]


class Latency(Case):
    def listen(self, host, program=ECHO):
        listener = subprocess.Popen([VCLUSTER, "exec", host, "--", sys.executable, "-c", program],
                                    stdout=subprocess.PIPE, text=True)
        self.addCleanup(listener.stdout.close)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        self.assertEqual(listener.stdout.readline(), "ready\n")
        return listener

    def test_a_round_trip_takes_the_latency_of_all_links_twice(self):
        self.up("--hosts", "3", "--latency", "5ms", "--link", "n2=20ms")
        for source, target, least_ms in (("n0", "n1", 20), ("head", "n1", 10), ("n0", "n2", 50)):
            with self.subTest(source + target):
                listener = self.listen(target)
                self.assertGreaterEqual(int(on(source, PING, target, str(PORT))), least_ms * 10**6)
                listener.wait(timeout=60)

    def test_trunks_have_latency_too(self):
        self.up("--topology", self.file(vcluster_test.TWO_LEVELS), "--link", "s0=10ms", "--link",
                "s1=15ms,400mbit")
        listener = self.listen("n2")
        self.assertGreaterEqual(int(on("n0", PING, "n2", str(PORT))), 50 * 10**6)
        listener.wait(timeout=60)
        self.assertEqual(set(counters()), {"s0", "s1"})
        shaped = vcluster("exec", "head", "--", "tc", "qdisc", "show").stdout
        self.assertEqual(shaped.count("rate 400Mbit"), 2)

    def test_frames_keep_their_order(self):
        self.up("--hosts", "2", "--latency", "3ms")
        listener = self.listen("n1")
        on("n0", STREAM, "n1", str(PORT), "2000")
        ordered, count = listener.communicate(timeout=60)[0].split()
        self.assertEqual(ordered, "True")
        self.assertGreater(int(count), 0)

    def test_status_and_counters_tell(self):
        self.up("--hosts", "2", "--link", "n0=1gbit,1.5ms,0.25%")
        status = vcluster("status").stdout
        for word in ("1gbit", "1.5ms", "0.25%"):
            self.assertIn(word, status)
        listener = self.listen("n1")
        on("n0", STREAM, "n1", str(PORT), "100")
        listener.wait(timeout=60)
        found = counters()
        self.assertEqual(list(found), ["n0"])
        self.assertEqual(found["n0"]["latency_ns"], 1_500_000)
        self.assertGreater(found["n0"]["up"]["frames"], 90)
        self.assertGreater(found["n0"]["down"]["frames"], 0)
        self.assertIn("n0", vcluster("links").stdout)

    def test_without_latency_and_loss_there_is_nobody_in_between(self):
        self.up("--hosts", "2", "--rate", "1gbit")
        self.assertEqual(counters(), {})
        self.assertIn("no links with latency", vcluster("links").stdout)

    def test_a_host_that_crashes_takes_its_link_along_and_no_other(self):
        state = self.up("--hosts", "3", "--latency", "1ms")
        os.kill(state["hosts"]["n2"]["outer"], signal.SIGKILL)
        deadline = time.monotonic() + 10
        while not counters()["n2"]["gone"] and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertTrue(counters()["n2"]["gone"])
        listener = self.listen("n1")
        self.assertGreater(int(on("n0", PING, "n1", str(PORT))), 0)
        listener.wait(timeout=60)


class Loss(Latency):
    # Only listen() is inherited from Latency.
    for name in [name for name in vars(Latency) if name.startswith("test_")]:
        vars()[name] = None

    def test_a_link_that_loses_everything_delivers_nothing(self):
        self.up("--hosts", "2", "--link", "n1=100%")
        # No host answers when n0 asks for n1's address, so not even one datagram leaves.
        on("n0", "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
           f"s.sendto(b'lost', ('n1', {PORT}))")
        deadline = time.monotonic() + 10
        while counters()["n1"]["down"]["lost"] == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        link = counters()["n1"]
        self.assertEqual(link["down"]["frames"] + link["up"]["frames"], 0)
        self.assertGreater(link["down"]["lost"], 0)

    def test_loss_is_near_what_was_asked_for(self):
        self.up("--hosts", "2", "--link", "n1=25%", "--seed", "5")
        listener = self.listen("n1")
        on("n0", STREAM, "n1", str(PORT), "2000")
        count = listener.communicate(timeout=60)[0].split()[1]
        self.assertLess(int(count), 2000)
        down = counters()["n1"]["down"]
        # For about 2000 frames the standard deviation is 1 %; a deviation of almost five times that
        # is no accident.
        self.assertLess(abs(down["lost"] / (down["lost"] + down["frames"]) - 0.25), 0.046)

    def test_tcp_comes_through_a_link_that_loses(self):
        self.up("--hosts", "2", "--link", "n1=2%,100us")
        server = f"import socket; s = socket.create_server(('', {PORT})); " \
            "print('ready', flush=True); c = s.accept()[0]; n = 0\n" \
            "while (d := c.recv(65536)): n += len(d)\nc.sendall(b'%d' % n)"
        self.listen("n1", server)
        client = "import socket, sys; c = socket.create_connection((sys.argv[1], " \
            f"{PORT}), 60); c.settimeout(60); c.sendall(bytes(1 << 20)); " \
            "c.shutdown(socket.SHUT_WR); print(c.recv(64).decode())"
        self.assertEqual(on("n0", client, "n1"), f"{1 << 20}\n")
        self.assertGreater(counters()["n1"]["down"]["lost"], 0)


class Errors(Case):
    def test_a_missing_program_is_told(self):
        os.environ["VCLUSTER_FORWARDER"], kept = "/nonexistent", os.environ["VCLUSTER_FORWARDER"]
        try:
            done = vcluster("up", "--latency", "1ms", check=False)
        finally:
            os.environ["VCLUSTER_FORWARDER"] = kept
        self.assertEqual(done.returncode, 1)
        self.assertIn("vcluster_links, which is not at /nonexistent", done.stderr)

    def test_wrong_values_are_told(self):
        cases = {("--latency", "1"): "latency '1'", ("--loss", "1"): "loss '1'",
                 ("--loss", "120%"): "up to 100", ("--link", "n0=1ms,2ms"): "given twice",
                 ("--latency", "9" * 400 + "ms"): "more than an hour",
                 ("--rate", "9" * 400 + "mbit"): "leave it out"}
        for arguments, message in cases.items():
            with self.subTest(arguments):
                done = vcluster("up", *arguments, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertIn(message, done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "not root")
    def test_a_machine_without_tap_devices_is_told(self):
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /dev/net && exec \"$@\"", "sh",
             VCLUSTER, "up", "--hosts", "2", "--latency", "1ms"], text=True, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/dev/net/tun: No such file or directory", done.stderr)
        self.assertIn("modprobe tun", done.stderr)

    def test_links_of_a_forwarder_that_died_are_told(self):
        state = self.up("--hosts", "2", "--latency", "1ms")
        for pid in descendants(state["init"]):
            if comm(pid) == "vcluster_links":
                os.kill(pid, signal.SIGKILL)
        self.assertIn("links do not answer", vcluster("links", check=False).stderr)


def comm(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()


class Endings(Case):
    def start(self):
        runner = subprocess.Popen([VCLUSTER, "run", "--hosts", "2", "--latency", "2ms", "--", "sh",
                                   "-c", "echo ready; exec sleep 1000"],
                                  stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.assertEqual(runner.stdout.readline(), "ready\n")
        below = descendants(runner.pid)
        self.look_at(below)
        forwarder = [pid for pid in below if comm(pid) == "vcluster_links"]
        self.assertEqual(len(forwarder), 1)
        return runner, forwarder[0]

    def assert_gone(self, pid):
        """A killed process loses its namespaces before it loses its number."""
        deadline = time.monotonic() + 10
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_killed_with_its_parent(self):
        runner, forwarder = self.start()
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait(timeout=60)
        runner.stdout.close()
        self.assert_nothing_left()
        self.assert_gone(forwarder)

    def test_at_terminate(self):
        runner, forwarder = self.start()
        os.kill(runner.pid, signal.SIGTERM)
        self.assertEqual(runner.wait(timeout=60), 128 + signal.SIGTERM)
        runner.stdout.close()
        self.assert_nothing_left()
        self.assert_gone(forwarder)


class WithoutRoot(vcluster_test.WithoutRoot):
    def test_a_user_has_clusters_too(self):
        # A user who may start vcluster but may not read this build cannot run this test.
        probe = self.as_nobody("up", "--hosts", "2", "--latency", "1ms")
        if probe.returncode != 0:
            self.skipTest(probe.stderr.strip())
        try:
            state = json.loads(self.as_nobody("status", "--json").stdout)["default"]
            self.look_at([host["outer"] for host in state["hosts"].values()])
            self.assertIn("n1", self.as_nobody("links").stdout)
        finally:
            self.assertEqual(self.as_nobody("down").returncode, 0)


@unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
class OpenMpi(Case):
    def test_ranks_meet_over_links_with_latency(self):
        done = vcluster("run", "--hosts", "3", "--latency", "1ms", "--loss", "0.1%", "--slots", "1",
                        "--", "mpirun", "-np", "3", "hostname")
        lines = [line for line in done.stdout.splitlines()
                 if vcluster_test.MPIRUN_NOISE not in line]
        self.assertEqual(sorted(lines), ["n0", "n1", "n2"])

    def test_a_network_of_known_latency_is_measured_over_ucx(self):
        tune = pathlib.Path(os.environ["VCLUSTER_FORWARDER"]).with_name("ucg_tune")
        if not tune.exists():
            self.skipTest(f"{tune} is not built")
        done = vcluster("run", "--hosts", "3", "--latency", "2ms", "--slots", "1", "--", "mpirun",
                        "-N", "1", "-x", "UCX_TLS=tcp", str(tune), "network",
                        "--bootstrap", "n0:7177",
                        "-k", "2", "--bytes", "8,512", "--time", "0.3", "-q", "-o", "/dev/null",
                        "--format", "json")
        report = json.loads(done.stdout[done.stdout.index("{"):])
        self.assertEqual(sorted(report["hosts"]), ["n0", "n1", "n2"])
        for cast in report["multicasts"]:
            if (cast["messages"], cast["bytes"]) == (1, 8):
                # This is half of the best round trip over two links.
                self.assertGreaterEqual(cast["minimum_ns"], 4e6)


def reason_to_skip():
    probe = subprocess.run([VCLUSTER, "run", "--hosts", "1", "--latency", "1us", "--", "true"],
                           text=True, capture_output=True, check=False)
    return probe.stderr if probe.returncode != 0 else ""


if __name__ == "__main__":
    os.environ.setdefault("VCLUSTER_FORWARDER",
                          str(VCLUSTER.parents[1] / "build/tools/vcluster_links"))
    if reason := reason_to_skip():
        # Only a lack of the machine's skips the test; a missing program is a failure.
        print(f"skipped: {reason}", file=sys.stderr)
        sys.exit(1 if "VCLUSTER_FORWARDER" in reason else 77)
    unittest.main()
