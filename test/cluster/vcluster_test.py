#!/usr/bin/env python3
"""vcluster builds hosts that Open MPI runs on, and leaves nothing behind however it ends.

Exits with 77 (skipped, for Meson) where the kernel or the container allows no namespaces.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

VCLUSTER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "vcluster"
NAMESPACES = ("net", "uts", "ipc", "pid", "mnt")
# It makes the mounts of the first private, and mounts over the others.
MOUNTED = ("/", "/dev/shm", "/etc/hosts", "/proc", "/run", "/sys", "/sys/fs/cgroup", "/tmp")
# Open MPI reports a race between its own parent and child process, which means nothing.
MPIRUN_NOISE = "plm:rsh: Warning: setpgid"

TWO_LEVELS = """\
SwitchName=s0 Nodes=n[0-1] LinkSpeed=200mbit
SwitchName=s1 Nodes=n[2-3]
SwitchName=top Switches=s[0-1]
"""


def vcluster(*arguments, check=True, timeout=120):
    done = subprocess.run([VCLUSTER, *arguments], text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=timeout, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"vcluster {arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def namespaces_of(pid):
    return {(kind, os.readlink(f"/proc/{pid}/ns/{kind}")) for kind in NAMESPACES}


def children_of(pid):
    """Children of all threads of a process; none where it, or the thread, has ended meanwhile."""
    children = []
    with contextlib.suppress(OSError):
        for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            children += [int(word) for word in path.read_text(encoding="ascii").split()]
    return children


def descendants(pid):
    found, pending = [], [pid]
    while pending:
        children = children_of(pending.pop())
        found += children
        pending += children
    return found


def holders(namespaces):
    """Processes and mounts that keep one of `namespaces` alive."""
    alive = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if namespaces_of(entry.name) & namespaces:
                    alive.append(entry.name)
            except OSError:
                pass  # The process has ended meanwhile.
    return alive + [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                    if any(name in line for _, name in namespaces)]


def builders():
    """The processes of clusters whose names no other test here uses."""
    names = []
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            names.append(path.read_text(encoding="utf-8"))
        except OSError:
            pass  # The process has ended meanwhile.
    return [name for name in names if name.startswith("vc:ctrl-c")]


def interfaces():
    """The devices that have names which vcluster gives. Other programs' come and go."""
    return {name for name in os.listdir("/sys/class/net")
            if re.fullmatch(r"(switch|port|far)\d+", name)}


def mounts():
    """The lines of mountinfo for places over which vcluster mounts."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line.split()[4] in MOUNTED}


class Case(unittest.TestCase):
    """Each case has a registry and clusters of its own, and checks that nothing is left."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory(prefix="vcluster-test-")
        self.registry = os.path.join(self.place.name, "registry")
        os.environ["VCLUSTER_DIR"] = self.registry
        self.seen = set()
        self.interfaces = interfaces()
        self.mounts = mounts()

    def tearDown(self):
        vcluster("down", "--all")
        self.assert_nothing_left()
        self.place.cleanup()

    def look_at(self, pids):
        """Remembers the namespaces of `pids` that are not this process's own."""
        for pid in pids:
            with contextlib.suppress(OSError):  # A shell's child may have ended meanwhile.
                self.seen |= namespaces_of(pid) - namespaces_of("self")

    def up(self, *arguments, name="default"):
        vcluster("up", "--name", name, *arguments)
        state = json.loads(vcluster("status", "--json", "--name", name).stdout)[name]
        self.look_at([state["init"]] + [host["outer"] for host in state["hosts"].values()])
        return state

    def file(self, text):
        path = os.path.join(self.place.name, "topology.conf")
        pathlib.Path(path).write_text(text, encoding="utf-8")
        return path

    def assert_nothing_left(self):
        deadline = time.monotonic() + 10
        while holders(self.seen) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(holders(self.seen), [])
        self.assertEqual(interfaces(), self.interfaces)
        self.assertEqual(mounts(), self.mounts)
        self.assertFalse(os.path.exists(self.registry))


class UpAndDown(Case):
    def test_hosts_have_names_addresses_and_devices_of_their_own(self):
        state = self.up("--hosts", "3")
        self.assertEqual(len(self.seen), 4 * len(NAMESPACES))
        for host, facts in state["hosts"].items():
            out = vcluster("exec", host, "--", "sh", "-c",
                           "hostname; ls /sys/class/net; ip -4 -o addr show dev eth0").stdout
            self.assertEqual(out.split()[:3], [host, "eth0", "lo"])
            self.assertIn(facts["address"] + "/", out)
        vcluster("down")
        self.assert_nothing_left()

    def test_no_host_has_to_learn_who_its_peers_are(self):
        # Learnt addresses go into one table of the kernel, which is too small for large meshes.
        state = self.up("--hosts", "3")
        peers = {host: facts["address"] for host, facts in state["hosts"].items()}
        peers[state["head"]] = state["address"]
        for host in peers:
            others = {address for peer, address in peers.items() if peer != host}
            entries = vcluster("exec", host, "--", "ip", "-4", "neigh", "show").stdout.splitlines()
            self.assertEqual({line.split()[0] for line in entries}, others)
            self.assertTrue(all("PERMANENT" in line for line in entries), entries)

    def test_hosts_share_no_memory_and_no_scratch_files(self):
        self.up("--hosts", "2", "--shm-size", "64m")
        for path in ("/dev/shm/mark", "/tmp/mark", "/run/mark"):
            vcluster("exec", "n0", "--", "touch", path)
            self.assertNotEqual(vcluster("exec", "n1", "--", "test", "-e", path,
                                         check=False).returncode, 0)
            self.assertFalse(os.path.exists(path))
        size = vcluster("exec", "n0", "--", "df", "--output=size", "-B1", "/dev/shm").stdout
        self.assertEqual(size.split()[-1], str(64 << 20))

    def test_processes_of_another_host_are_not_seen(self):
        self.up("--hosts", "2")
        numbers = vcluster("exec", "n1", "--", "sh", "-c", "echo /proc/[0-9]*").stdout.split()
        self.assertEqual(len(numbers), 2)  # its init and the shell

    def test_two_clusters_at_once(self):
        self.up("--hosts", "1", name="one")
        self.up("--hosts", "1", name="two")
        self.assertEqual(vcluster("exec", "--name", "two", "n0", "--", "hostname").stdout, "n0\n")
        vcluster("down", "--name", "one")
        self.assertIn("cluster two", vcluster("status").stdout)
        self.assertNotIn("cluster one", vcluster("status").stdout)

    def test_status_of_a_command_is_given_back(self):
        self.up("--hosts", "1")
        self.assertEqual(vcluster("exec", "n0", "--", "sh", "-c", "exit 7",
                                  check=False).returncode, 7)
        self.assertEqual(vcluster("exec", "n0", "--", "sh", "-c", "kill -9 $$",
                                  check=False).returncode, 137)
        self.assertEqual(vcluster("exec", "n0", "--", "no-such-command",
                                  check=False).returncode, 127)

    def test_a_host_that_crashes_is_reported(self):
        state = self.up("--hosts", "2")
        os.kill(state["hosts"]["n1"]["outer"], signal.SIGKILL)
        deadline = time.monotonic() + 10
        while "down" not in vcluster("status").stdout and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertIn("host 'n1' is down", vcluster("exec", "n1", "--", "true",
                                                    check=False).stderr)
        self.assertEqual(vcluster("exec", "n0", "--", "true").returncode, 0)

    def test_wrong_use_is_told_plainly(self):
        cases = {
            ("exec", "n0", "--", "true"): "no cluster 'default' is up",
            ("up", "--topology", "/nonexistent"): "No such file",
            ("up", "--topology", self.file("SwitchName=s0\n")):
                "topology.conf: line 1: there is no machine",
            ("up", "--hosts", "2", "--link", "n7=1gbit"): "--link n7",
            ("up", "--hosts", "9", "--subnet", "10.0.0.0/29"): "room for 10 hosts",
            ("up", "--hosts", "2", "--head", "n1"): "choose another with --head",
            ("up", "--hosts", "2", "--name", "a/b"): "cluster name 'a/b'",
        }
        for arguments, message in cases.items():
            with self.subTest(arguments):
                done = vcluster(*arguments, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn(message, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
        self.up("--hosts", "1")
        self.assertIn("is up already", vcluster("up", check=False).stderr)
        self.assertIn("no host 'n5'", vcluster("exec", "n5", "--", "true", check=False).stderr)


class Network(Case):
    def test_every_host_reaches_every_other_over_a_tree_of_switches(self):
        state = self.up("--topology", self.file(TWO_LEVELS))
        links = vcluster("exec", "head", "--", "ip", "-o", "link").stdout
        self.assertEqual(links.count("master"), len(state["hosts"]) + 4)  # two trunks, two ends
        for source in state["hosts"]:
            for target, facts in state["hosts"].items():
                server = f"import socket; s = socket.create_server(('{facts['address']}', 7000));" \
                    "print('ready', flush=True); s.accept()[0].sendall(b'hello')"
                client = f"import socket; print(socket.create_connection(('{target}', 7000), 10)" \
                    ".recv(9).decode())"
                with subprocess.Popen([VCLUSTER, "exec", target, "--", sys.executable, "-c",
                                       server], stdout=subprocess.PIPE, text=True) as listener:
                    self.assertEqual(listener.stdout.readline(), "ready\n")
                    self.assertEqual(vcluster("exec", source, "--", sys.executable, "-c",
                                              client).stdout, "hello\n")

    def test_links_have_the_rates_asked_for_in_both_directions(self):
        state = self.up("--topology", self.file(TWO_LEVELS), "--rate", "1gbit", "--link",
                        "s1=400mbit")
        wanted = {"n0": "200Mbit", "n1": "200Mbit", "n2": "1Gbit", "n3": "1Gbit"}
        for host, rate in wanted.items():
            up = vcluster("exec", host, "--", "tc", "qdisc", "show", "dev", "eth0").stdout
            down = vcluster("exec", "head", "--", "tc", "qdisc", "show", "dev",
                            state["hosts"][host]["port"]).stdout
            self.assertIn("tbf", up)
            self.assertIn(f" rate {rate} ", up)
            self.assertIn(f" rate {rate} ", down)
        shaped = vcluster("exec", "head", "--", "tc", "qdisc", "show").stdout
        self.assertEqual(shaped.count("rate 400Mbit"), 2)

    def test_without_a_rate_nothing_is_shaped(self):
        self.up("--hosts", "2")
        self.assertNotIn("tbf", vcluster("exec", "head", "--", "tc", "qdisc", "show").stdout)


@unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
class OpenMpi(Case):
    def assert_ranks(self, out, hosts, each):
        lines = [line for line in out.splitlines() if MPIRUN_NOISE not in line]
        self.assertEqual(sorted(lines), sorted(hosts * each))

    def test_mpirun_places_ranks_on_the_hosts(self):
        self.up("--hosts", "4", "--slots", "2")
        done = vcluster("mpirun", "-np", "8", "hostname")
        self.assert_ranks(done.stdout, ["n0", "n1", "n2", "n3"], 2)
        done = vcluster("mpirun", "-H", "n1,n3", "hostname")
        self.assert_ranks(done.stdout, ["n1", "n3"], 1)

    def test_a_plain_mpirun_in_run_uses_the_hosts(self):
        done = vcluster("run", "--topology", self.file(TWO_LEVELS), "--slots", "2", "--",
                        "mpirun", "-np", "8", "hostname")
        self.assert_ranks(done.stdout, ["n0", "n1", "n2", "n3"], 2)

    def test_daemons_get_a_clean_environment_and_mca_parameters(self):
        self.up("--hosts", "1", "--slots", "1")
        os.environ["VCLUSTER_TEST_LOCAL"] = "1"
        os.environ["OMPI_MCA_test_travels"] = "1"
        try:
            out = vcluster("mpirun", "env").stdout
        finally:
            del os.environ["VCLUSTER_TEST_LOCAL"], os.environ["OMPI_MCA_test_travels"]
        self.assertNotIn("VCLUSTER_TEST_LOCAL", out)
        self.assertIn("OMPI_MCA_test_travels=1", out)

    def test_session_files_go_with_the_cluster(self):
        before = set(os.listdir("/tmp"))
        vcluster("run", "--hosts", "2", "--", "mpirun", "-N", "1", "true")
        self.assertEqual([name for name in set(os.listdir("/tmp")) - before
                          if re.fullmatch(r"ompi\.n[01]\.\d+", name)], [])


class Endings(Case):
    """However `run` ends, the cluster ends with it."""

    def start(self, command="echo ready; exec sleep 1000"):
        runner = subprocess.Popen([VCLUSTER, "run", "--hosts", "2", "--", "sh", "-c", command],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  start_new_session=True)
        self.assertEqual(runner.stdout.readline(), "ready\n")
        self.look_at(descendants(runner.pid))
        self.assertEqual(len(self.seen), 3 * len(NAMESPACES))
        return runner

    def finish(self, runner, status):
        self.assertEqual(runner.wait(timeout=60), status)
        runner.stdin.close()
        runner.stdout.close()
        self.assert_nothing_left()

    def test_at_the_end_of_the_command(self):
        runner = self.start("echo ready; read -r line; exit 3")
        runner.stdin.close()
        self.finish(runner, 3)

    def test_at_interrupt_from_the_terminal(self):
        runner = self.start()
        os.killpg(runner.pid, signal.SIGINT)
        self.finish(runner, 128 + signal.SIGINT)

    def interrupt_while_built(self, children, *words):
        """Presses Ctrl-C once the cluster has so many processes, or when all is over."""
        builder = subprocess.Popen([VCLUSTER, *words], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        while builder.poll() is None and len(descendants(builder.pid)) < children:
            time.sleep(0.001)
        if builder.poll() is None:
            os.killpg(builder.pid, signal.SIGINT)
        _, said = builder.communicate(timeout=60)
        self.assertNotIn("Traceback", said)
        self.assertLessEqual(len(said.splitlines()), 1, said)
        self.assertIn(builder.returncode, (0, 128 + signal.SIGINT), said)

    def test_at_interrupt_while_it_is_built(self):
        for children in (1, 2, 4):
            for words in (("up", "--name", "ctrl-c", "--hosts", "3"),
                          ("run", "--name", "ctrl-c", "--hosts", "3", "--", "true")):
                with self.subTest(f"{children} {words}"):
                    self.interrupt_while_built(children, *words)
                    vcluster("down", "--name", "ctrl-c")
                    deadline = time.monotonic() + 10
                    while builders() and time.monotonic() < deadline:
                        time.sleep(0.02)
                    self.assertEqual(builders(), [])

    def test_at_terminate(self):
        runner = self.start()
        os.kill(runner.pid, signal.SIGTERM)
        self.finish(runner, 128 + signal.SIGTERM)

    def test_at_terminate_when_the_command_does_not_care(self):
        runner = self.start("trap '' TERM INT; echo ready; while :; do sleep 1; done")
        os.kill(runner.pid, signal.SIGTERM)
        self.finish(runner, 128 + signal.SIGKILL)

    def test_at_kill(self):
        runner = self.start("echo ready; sleep 1001 & exec sleep 1000")
        os.kill(runner.pid, signal.SIGKILL)
        self.finish(runner, -signal.SIGKILL)

    def test_at_kill_of_the_init(self):
        runner = self.start()
        init = next(pid for pid in descendants(runner.pid)
                    if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("vc:"))
        os.kill(init, signal.SIGKILL)
        self.finish(runner, 128 + signal.SIGKILL)

    def test_a_cluster_whose_init_was_killed_is_forgotten(self):
        state = self.up("--hosts", "2")
        os.kill(state["init"], signal.SIGKILL)
        deadline = time.monotonic() + 10
        while "cluster default" in vcluster("status").stdout and time.monotonic() < deadline:
            time.sleep(0.02)
        self.up("--hosts", "1")

    def test_a_registry_entry_of_another_process_is_stale(self):
        os.makedirs(self.registry)
        entry = {"pid": os.getpid(), "start": 1,
                 "boot": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()}
        pathlib.Path(self.registry, "default.json").write_text(json.dumps(entry))
        self.assertIn("no cluster", vcluster("down").stdout)
        self.assertEqual(os.kill(os.getpid(), 0), None)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "not root, or no setpriv")
class WithoutRoot(Case):
    """The same in a user namespace, where the kernel allows every user to make one."""

    def as_nobody(self, *arguments):
        home = os.path.join(self.place.name, "nobody")
        os.makedirs(home, exist_ok=True)
        os.chmod(self.place.name, 0o755)
        os.chown(home, 65534, 65534)
        return subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", f"HOME={home}",
             f"VCLUSTER_DIR={home}/registry", "/usr/bin/python3", VCLUSTER, *arguments], cwd="/",
            text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)

    def test_a_user_has_clusters_too(self):
        probe = self.as_nobody("up", "--hosts", "2", "--rate", "1gbit")
        if probe.returncode != 0:
            self.skipTest(probe.stderr.strip())
        try:
            state = json.loads(self.as_nobody("status", "--json").stdout)["default"]
            self.look_at([host["outer"] for host in state["hosts"].values()])
            done = self.as_nobody("exec", "n1", "--", "hostname")
            self.assertEqual((done.stdout, done.stderr), ("n1\n", ""))
        finally:
            self.assertEqual(self.as_nobody("down").returncode, 0)


def namespaces_allowed():
    probe = subprocess.run([VCLUSTER, "run", "--hosts", "1", "--", "true"], text=True,
                           capture_output=True, check=False)
    if probe.returncode != 0:
        print(f"skipped: {probe.stderr}", file=sys.stderr)
    return probe.returncode == 0


if __name__ == "__main__":
    if not namespaces_allowed():
        sys.exit(77)
    unittest.main()
