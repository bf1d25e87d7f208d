"""Makes running hosts from a Topology, and the init processes that keep them alive.

One process, the cluster's init, is process 1 of a PID namespace. Its network namespace is the
fabric: it holds one bridge per switch, and nothing of it is seen outside. Its UTS, IPC and mount
namespaces are those of the head, the machine on which mpirun is started. Each host is a child
with namespaces of its own (network, UTS, IPC, PID, mount) and its own init.

Nothing is named in the file system or in the machine's own network, so nothing can be left
behind: when the cluster's init dies, by whatever signal, the kernel kills every process in it and
with the last one the bridges, links, mounts and shared memory go.
"""

import contextlib
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field

from . import linux
from .errors import VclusterError
from .program import NAME
from .registry import LINKS_PATH, STATE_PATH
from .topology import Link, Topology

HOST_DEVICE = "eth0"
# No route leads out of the fabric, so this cannot clash with any network of the machine.
DEFAULT_SUBNET = "10.77.0.0/16"
# How many frames the kernel keeps for the forwarder. While the forwarder waits for a processor, a
# TCP connection may send as much as its largest window (tcp_rmem, 6 MiB) allows: 4345 segments of
# 1448 bytes.
TAP_QUEUE = 4500
_OWN = linux.CLONE_NEWNET | linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC
ENDING_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}

_keep_for_life = []  # If a Popen were collected, its pipes would be closed.
_PRIVATE_DIRS = ("/dev/shm", "/run", "/tmp")


def parse_subnet(text):
    """The network of a cluster's hosts."""
    try:
        return ipaddress.IPv4Network(text)
    except ValueError as error:
        raise VclusterError(f"expected an IPv4 network, found '{text}': {error}") from error


@dataclass
class Spec:
    """All that is needed to build a cluster; a plain value."""

    name: str
    topology: Topology
    links: dict  # {host or switch: the topology.Link above it}
    slots: int
    head: str = "head"
    subnet: str = DEFAULT_SUBNET
    share: list = field(default_factory=list)
    shm_size: str = "50%"
    program: str = ""  # tools/vcluster, for the remote shell of mpirun
    forwarder: str = ""  # vcluster_links; needed where a link is forwarded
    seed: int = 1  # It determines which frames are lost.

    def addresses(self):
        """{host: address}, the head among them."""
        network = parse_subnet(self.subnet)
        names = [self.head] + self.topology.hosts
        if network.num_addresses < len(names) + 2:
            raise VclusterError(f"--subnet {self.subnet}: no network with room for "
                                f"{len(names)} hosts")
        if self.head in names[1:] or self.head in [s.name for s in self.topology.switches]:
            raise VclusterError(f"the name '{self.head}' of the head is taken by the topology; "
                                "choose another with --head")
        return {name: str(network[index + 1]) for index, name in enumerate(names)}


def create(spec):
    """Builds the cluster and returns (process number of its init, socket to the init).

    The cluster dies with this process until detach() is called. Changes this process: its
    children are born inside the cluster from here on.
    """
    spec.addresses()
    if os.geteuid() != 0:
        _become_root_of_own_users()
    try:
        linux.unshare(linux.CLONE_NEWPID)
    except OSError as error:
        raise VclusterError(f"the kernel or the container refuses PID namespaces: {error}") \
            from error
    mine, theirs = socket.socketpair()
    sys.stdout.flush()
    # A signal that comes while Python sets up the child would end in a traceback, so signals are
    # blocked until each of the two processes can handle them.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    pid = os.fork()
    if pid == 0:
        def body():
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            _cluster_main(spec, theirs)

        mine.close()
        _child_main(theirs, body, keep={theirs.fileno()})
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    theirs.close()
    answer = _receive(mine)
    if "error" in answer:
        os.waitpid(pid, 0)
        raise VclusterError(answer["error"])
    return pid, mine


def detach(channel):
    """Lets the cluster live on after this process."""
    _send(channel, {"detach": True})
    _receive(channel)
    channel.close()


def _become_root_of_own_users():
    """Without root: a user namespace in which this user is root and everything below works."""
    uid, gid = os.geteuid(), os.getegid()
    try:
        linux.unshare(linux.CLONE_NEWUSER)
        for file, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"),
                           ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{file}", "w", encoding="ascii") as out:
                out.write(text)
    except OSError as error:
        raise VclusterError(f"you are not root and the kernel refuses user namespaces ({error}); "
                            f"run {NAME} as root") from error


# Messages between the processes: one JSON object a line; an end without a line is a death.

def _send(channel, message):
    channel.sendall((json.dumps(message) + "\n").encode())


def _receive(channel):
    data = b""
    while not data.endswith(b"\n"):
        piece = channel.recv(4096)
        if not piece:
            return {"error": "a process of the cluster died while it was being built"}
        data += piece
    return json.loads(data)


def _child_main(channel, body, keep):
    """Runs `body`, reports what stops it, never returns; a forked child must not unwind."""
    try:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        for fd in {int(entry) for entry in os.listdir("/proc/self/fd")} - keep - {0, 1, 2}:
            # The descriptor of the listing itself is closed by now.
            with contextlib.suppress(OSError):
                os.close(fd)
        body()
    except BaseException as error:  # pylint: disable=broad-except
        try:
            _send(channel, {"error": str(error) or repr(error)})
        except OSError:
            pass  # The process that asked is gone, so no answer is needed.
    finally:
        os._exit(1)


def _reap_forever():
    """The only task of an init process: it is given orphans and reaps them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            signal.sigwait({signal.SIGCHLD})


def _tool(argv, lines):
    """Passes a batch to ip or tc: all of it is done, or there is an error with the tool's own
    message."""
    if not lines:
        return
    try:
        done = subprocess.run(argv + ["-batch", "-"], input="\n".join(lines) + "\n", text=True,
                              capture_output=True, check=False)
    except FileNotFoundError as error:
        raise VclusterError(f"'{argv[0]}' is not installed (Debian package: iproute2)") from error
    if done.returncode != 0:
        raise VclusterError(f"{argv[0]}: {done.stderr.strip() or done.stdout.strip()}")


def _burst(rate):
    """The bytes that a link passes at once. A bucket of one millisecond keeps the long-term and
    short-term rates close to each other; it holds at least ten full frames, so that slow links
    still pass what they are given."""
    return max(rate // 8000, 16384)


def _shape(device, rate):
    """The line for tc that limits what leaves `device`; none when the link is unlimited."""
    if rate is None:
        return []
    return [f"qdisc add dev {device} root tbf rate {rate}bit burst {_burst(rate)} latency 50ms"]


def _pieces(device, rates):
    """The line for ip that makes TCP hand over no more at a time than the slowest of `rates`
    passes at once. Otherwise each queue splits larger pieces into frames, which keeps two
    processors busy at a few gigabits per second in all."""
    slowest = min((rate for rate in rates if rate is not None), default=None)
    return [] if slowest is None else [
        f"link set {device} gso_max_size {min(_burst(slowest), 65536)}"]


def _cluster_main(spec, channel):
    linux.set_process_name(f"vc:{spec.name}")
    linux.set_parent_death_signal(signal.SIGKILL)
    os.setsid()
    # /proc is still the caller's, so this number is the caller's, too.
    pid = int(os.readlink("/proc/self"))
    outer_proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    linux.unshare(_OWN)
    _own_files(spec, spec.head, spec.share)
    addresses = spec.addresses()
    _write_head_files(spec, addresses)
    if not os.path.exists("/etc/hosts"):
        raise VclusterError("this machine has no /etc/hosts, over which the hosts' own could be "
                            "mounted; create one, an empty file is enough")
    linux.mount("/run/vcluster/hosts", "/etc/hosts", flags=linux.MS_BIND)
    hosts = {name: _fork_host(spec, name, outer_proc) for name in spec.topology.hosts}
    prefix = ipaddress.ip_network(spec.subnet).prefixlen
    ports = _wire(spec, addresses, {name: host["inner"] for name, host in hosts.items()})
    for name in hosts:
        _send(hosts[name]["channel"], {"address": f"{addresses[name]}/{prefix}"})
    for name in hosts:
        answer = _receive(hosts[name]["channel"])
        if "error" in answer:
            raise VclusterError(f"{name}: {answer['error']}")
        hosts[name].pop("channel").close()
    os.close(outer_proc)
    _write_state(spec, pid, addresses, hosts, ports)
    _send(channel, {"ready": True})
    if "detach" in _receive(channel):
        linux.set_parent_death_signal(0)
        _send(channel, {"detached": True})
    channel.close()
    _reap_forever()


def _own_files(spec, hostname, share):
    """Gives a machine its own host name, /dev/shm, /run, /tmp, /sys and /proc."""
    socket.sethostname(hostname)
    linux.mount(None, "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    # They are opened here, since what is about to be covered cannot be named afterwards.
    kept = [(path, os.open(path, os.O_PATH)) for path in ["/sys/fs/cgroup"] + share
            if os.path.isdir(path)]
    safe = linux.MS_NOSUID | linux.MS_NODEV
    # A machine's own sysfs shows the devices of its own network; UCX and hwloc look there.
    linux.mount("sysfs", "/sys", "sysfs", safe | linux.MS_NOEXEC)
    for directory in _PRIVATE_DIRS:
        size = spec.shm_size if directory == "/dev/shm" else "50%"
        mode = "0755" if directory == "/run" else "1777"
        linux.mount("tmpfs", directory, "tmpfs", safe, f"mode={mode},size={size}")
    for path, fd in kept:
        os.makedirs(path, exist_ok=True)
        linux.mount(f"/proc/self/fd/{fd}", path, flags=linux.MS_BIND | linux.MS_REC)
        os.close(fd)
    linux.mount("proc", "/proc", "proc", safe | linux.MS_NOEXEC)
    os.chdir("/")


def _write_head_files(spec, addresses):
    """Writes files that mpirun needs into the head's own /run, where the hosts see them."""
    os.makedirs("/run/vcluster")
    texts = {
        "hosts": "127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n" for name, address in addresses.items()),
        "hostfile": "".join(f"{name} slots={spec.slots}\n" for name in spec.topology.hosts),
        # The path must have no blanks, since Open MPI splits the agent's command line at them.
        "rsh": f"#!/bin/sh\nexec '{sys.executable}' '{spec.program}' rsh \"$@\"\n",
    }
    for name, text in texts.items():
        with open(f"/run/vcluster/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    os.chmod("/run/vcluster/rsh", 0o755)


def _fork_host(spec, name, outer_proc):
    """Starts a host's init; its network is not wired yet."""
    mine, theirs = socket.socketpair()
    middle = os.fork()
    if middle == 0:
        def body():
            linux.unshare(linux.CLONE_NEWPID)
            if os.fork() != 0:
                os._exit(0)  # The host's init is now a child of the cluster's.
            _host_main(spec, name, theirs, outer_proc)

        _child_main(theirs, body, keep={theirs.fileno(), outer_proc})
    theirs.close()
    os.waitpid(middle, 0)
    answer = _receive(mine)
    if "error" in answer:
        raise VclusterError(f"{name}: {answer['error']}")
    return {"channel": mine, "inner": answer["inner"], "outer": answer["outer"]}


def _host_main(spec, name, channel, outer_proc):
    linux.set_process_name(f"vc:{spec.name}.{name}")
    os.setsid()
    numbers = {"inner": int(os.readlink("/proc/self")),
               "outer": int(os.readlink("self", dir_fd=outer_proc))}
    os.close(outer_proc)
    linux.unshare(_OWN)
    # Open MPI's daemons check that they have the remote shell too.
    _own_files(spec, name, spec.share + ["/run/vcluster"])
    _send(channel, numbers)
    order = _receive(channel)
    if "error" in order:
        raise VclusterError(order["error"])
    addresses = spec.addresses()
    _tool(["ip"], ["link set lo up", f"addr add {order['address']} dev {HOST_DEVICE}",
                   f"link set {HOST_DEVICE} address {_mac(addresses[name])} up",
                   *_pieces(HOST_DEVICE, [link.rate for link in spec.links.values()]),
                   *_neighbours(addresses, name, HOST_DEVICE)])
    _tool(["tc"], _shape(HOST_DEVICE, spec.links[name].rate))
    _use_common_tcp()
    _send(channel, {"ready": True})
    channel.close()
    _reap_forever()


def _use_common_tcp():
    """Makes this host's TCP use the congestion control that most clusters use, so that results
    do not depend on this machine's setting: cubic, Linux's default, or reno where namespaces may
    not choose cubic, which behaves like it over short round trips. A setting that cannot be
    changed stays as it is."""
    for name in ["cubic", "reno"]:
        try:
            with open("/proc/sys/net/ipv4/tcp_congestion_control", "w", encoding="utf-8") as file:
                file.write(name)
            return
        except OSError:
            continue


def _mac(address):
    """The hardware address that goes with an IPv4 address; locally administered."""
    return "02:00:" + ipaddress.ip_address(address).packed.hex(":")


def _neighbours(addresses, name, device):
    """The lines for ip that tell `name` once and for all which peers it has.

    The kernel keeps what hosts learn by ARP in one table for all namespaces, by default of 1,024
    entries, and a full mesh of 32 hosts overflows it: connections then fail with "no route to
    host". Permanent entries do not count (Linux 5.0 and later), and users other than the machine's
    root may make them, too. Only the machine's root may change the table's limits
    (net.ipv4.neigh.default.gc_thresh3).
    """
    return [f"neigh replace {address} lladdr {_mac(address)} dev {device} nud permanent"
            for peer, address in addresses.items() if peer != name]


def _wire(spec, addresses, host_pids):
    """Bridges, links and their rates in the fabric; {host or switch: its device in the fabric}.

    Device names are numbered, for the kernel's limit is 15 characters; aliases tell what is what.
    """
    topology = spec.topology
    bridges = {switch.name: f"switch{index}" for index, switch in enumerate(topology.switches)}
    lines = ["link set lo up"]
    for name, bridge in bridges.items():
        lines += [f"link add {bridge} type bridge stp_state 0 forward_delay 0",
                  f"link set {bridge} alias {name} up"]
    ports, shapes, forwarded = {}, [], []
    for index, (name, switch) in enumerate(topology.parents().items()):
        port, far, link = f"port{index}", f"far{index}", spec.links[name]
        if link.is_forwarded:
            forwarded.append(f"{name},{port},{far},{link.latency_ns},{link.loss!r}")
            lines += [f"link set {device} txqueuelen {TAP_QUEUE}" for device in (port, far)]
        else:
            lines.append(f"link add {port} type veth peer name {far}")
        lines.append(f"link set {port} alias to-{name} master {bridges[switch.name]} up")
        shapes += _shape(port, link.rate)
        if name in host_pids:
            ports[name] = port
            lines.append(f"link set {far} netns {host_pids[name]} name {HOST_DEVICE}")
        else:
            ports[name] = far
            lines.append(f"link set {far} alias to-{switch.name} master {bridges[name]} up")
            shapes += _shape(far, link.rate)
    prefix, root = ipaddress.ip_network(spec.subnet).prefixlen, bridges[topology.root]
    lines += [f"addr add {addresses[spec.head]}/{prefix} dev {root}",
              f"link set {root} address {_mac(addresses[spec.head])}",
              *_neighbours(addresses, spec.head, root)]
    if forwarded:
        _start_forwarder(spec, forwarded)
    _tool(["ip"], lines)
    _tool(["tc"], shapes)
    return ports


def _start_forwarder(spec, links):
    """Starts the process behind all links that have latency or loss, and waits for their devices.

    It ends with its standard input, of which the init keeps the other end as long as it lives, and
    like everything of the cluster with the init's PID namespace.
    """
    argv = [spec.forwarder, "--socket", f"/{LINKS_PATH}", "--seed", str(spec.seed)]
    for link in links:
        argv += ["--link", link]
    try:
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
    except OSError as error:
        raise VclusterError(f"{spec.forwarder}: {error.strerror}") from error
    if process.stdout.readline() != "ready\n":
        raise VclusterError(process.communicate()[1].strip() or "vcluster_links ended by itself")
    process.stdout.close()
    _keep_for_life.append(process)


def _write_state(spec, pid, addresses, hosts, ports):
    parents = spec.topology.parents()
    state = {
        "name": spec.name, "head": spec.head, "subnet": spec.subnet, "slots": spec.slots,
        "address": addresses[spec.head], "root": spec.topology.root, "init": pid,
        "hosts": {name: {"address": addresses[name], "switch": parents[name].name,
                         **vars(spec.links[name]), "port": ports[name], **numbers}
                  for name, numbers in hosts.items()},
        "switches": {switch.name: {"above": parents[switch.name].name
                                   if switch.name in parents else None,
                                   **vars(spec.links.get(switch.name, Link()))}
                     for switch in spec.topology.switches},
    }
    with open("/" + STATE_PATH, "w", encoding="utf-8") as file:
        json.dump(state, file)
