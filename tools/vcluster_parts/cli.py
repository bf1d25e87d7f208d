"""The command line of vcluster."""

import argparse
import json
import os
import pwd
import re
import shutil
import signal

from command_line import Parser, whole

from . import fabric, linux, registry, session, topology
from .errors import VclusterError
from .program import NAME, named
from .topology import MAX_HOSTS

DESCRIPTION = """\
Real hosts on one machine. Each host has its own network, host name, process tree, shared memory
(/dev/shm), /tmp, /run and /etc/hosts; one Linux bridge stands for each switch, links can be given
a rate, a latency and a loss, and unmodified Open MPI starts its daemons in the hosts over a remote
shell of vcluster's.
"""

EPILOG = """\
commands:
  up       build a cluster and keep it until 'down'
  exec     run a command on a host, or on the head, where mpirun is started
  mpirun   run mpirun on the head, across the hosts; all arguments are mpirun's own
  run      up, a command on the head, down, in one go; for scripts and tests
  status   what is up, with addresses, links and process numbers
  links    what links with latency or loss have carried, lost and dropped, and how late
  down     remove a cluster, or all of them

  'vcluster COMMAND --help' tells the options of each. Every command takes --name CLUSTER
  (default: $VCLUSTER_NAME, else "default"), so several clusters can be up at once; for mpirun it
  goes before the word mpirun.

topology files:
  Slurm's topology.conf, or JSON, as ucg_topo reads both. The switches must form one tree:

      SwitchName=s0 Nodes=n[0-3]  LinkSpeed=1gbit
      SwitchName=s1 Nodes=n[4-7]  LinkSpeed=1gbit
      SwitchName=top Switches=s[0-1]

  A switch may have both: 'SwitchName=s0 Nodes=n[0-3] Switches=s[1-2]'. LinkSpeed is the rate of
  the links from that switch down. The nearest word counts: --link, then LinkSpeed, then --rate.
  Rates are tc(8)'s: 100mbit, 1gbit, 125mbps (bytes). Each direction has the rate.

  Slurm itself refuses a unit behind the number, and a switch with both Nodes and Switches: keep
  such a file apart from Slurm's, and name it to UCG by UCG_TOPOLOGY. In a file for both,
  LinkSpeed is a number, which is ignored unless its unit is known: from a line of its own such as
  '# UCG: LinkSpeed is in Mbit/s' (kbit, Mbit or Gbit), as 'ucg_topo cluster --format slurm' writes
  it, else from --link-speed-unit.

latency and loss:
  --latency and --loss are for every link, --link NAME=... for the one above host or switch NAME:
  any of a rate, a latency (500us, 1ms) and a loss (0.1%), told apart by their units. Each
  direction of a link delays every frame by its latency, on top of what the machine itself takes,
  and drops frames with the probability of its loss; frames keep their order. Two hosts at one
  switch are two links apart: a message takes 2 x LATENCY, a round trip 4 x. A rate acts before
  the latency, as on a real wire.

  The kernel's netem is not needed: such a link is two TAP devices, and one process, vcluster_links,
  carries frames between them. It sleeps until a frame is due and has realtime priority as root, so
  it is late by some 10 microseconds on a machine with a processor to spare, and by more where
  ranks keep all processors busy: 'vcluster links' tells the mean and the worst. Each direction
  holds 16 MiB under way; beyond that frames are dropped and counted ("overflow"). It costs a
  processor about 3 microseconds a frame, so links with latency carry some Gbit/s together; others
  stay the kernel's own. What is lost depends on --seed alone, frame by frame.

  vcluster_links is built with the project, as is ucg_topo, which reads topology files. They are
  looked for as $VCLUSTER_FORWARDER and $VCLUSTER_UCG_TOPO, in build/tools and build-check/tools
  beside vcluster's folder, and in PATH.

what mpirun is told:
  By environment, so that your own options on its command line win: the remote shell, the hosts
  with their slots, the network to use, no binding and yielding while idle (the hosts share the
  same cores), and leave to run as root. A plain 'mpirun' in a script started by 'run' or by
  'exec' on the head is told the same. As with ssh, daemons start with a clean environment: use
  mpirun's -x to send variables (OMPI_MCA_* travel by themselves).

what stays behind:
  Nothing. All lives in namespaces held by one init process per cluster. 'run' takes the cluster
  down when the command ends, at Ctrl-C and SIGTERM, and when vcluster itself is killed with
  SIGKILL. A cluster whose init was killed is forgotten by the next command. Only clusters that
  are 'up' have a file, in /run/vcluster (or $VCLUSTER_DIR; without root $XDG_RUNTIME_DIR).

needs:
  Linux with bridge and veth, iproute2, and root. Without root it tries a user namespace.
  Latency and loss need /dev/net/tun as well.

exit status:
  That of the command; 1 when vcluster itself fails, 2 for a wrong command line, 126 or 127 when
  the command cannot be started.

examples:
  vcluster run --hosts 4 -- mpirun -N 2 hostname
  vcluster up --topology topology.conf --rate 1gbit
  vcluster run --hosts 4 --latency 1ms -- mpirun -N 1 ./app
  vcluster up --hosts 4 --latency 50us --link n3=100mbit,20ms,0.5% && vcluster links
  vcluster mpirun -np 8 ./app
  vcluster mpirun -np 8 --mca pml ucx --mca opal_common_ucx_tls any \\
                  --mca opal_common_ucx_devices any -x UCX_TLS=tcp,self,sm ./app
  vcluster exec n2 -- ip address
  vcluster status && vcluster down
"""

MPI_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def _told(parse):
    """For argparse: the text unchanged, if `parse` accepts it."""
    def check(text):
        try:
            parse(text)
        except VclusterError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return text
    return check


def _link(text):
    """For --link: the name of a link and the words about it."""
    name, equals, values = text.partition("=")
    if not equals or not name:
        raise VclusterError(f"expected NAME=RATE, or latency, or loss; found '{text}'")
    topology.parse_link(values)
    return name, values


def _like(pattern, wanted):
    """For argparse: a text that fits the pattern."""
    def check(text):
        if not re.fullmatch(pattern, text):
            raise argparse.ArgumentTypeError(f"expected {wanted}, found '{text}'")
        return text
    return check


def _parser():
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--name", default=argparse.SUPPRESS, metavar="CLUSTER",
                        help="which cluster")
    build = argparse.ArgumentParser(add_help=False)
    shape = build.add_mutually_exclusive_group()
    shape.add_argument("--topology", metavar="FILE",
                       help="Slurm topology.conf with the switches, or ucg_topo's JSON")
    shape.add_argument("--hosts", type=whole(1, MAX_HOSTS), default=4, metavar="N",
                       help="N hosts n0, n1, ... on one switch (default: 4)")
    build.add_argument("--rate", metavar="RATE", type=_told(topology.parse_rate),
                       help="rate of every link, such as 1gbit")
    build.add_argument("--latency", metavar="TIME", type=_told(topology.parse_latency),
                       help="latency of every link, each way, such as 500us or 1ms")
    build.add_argument("--loss", metavar="PERCENT", type=_told(topology.parse_loss),
                       help="part of the frames that every link loses, such as 0.1%%")
    build.add_argument("--link", action="append", default=[], metavar="NAME=RATE,TIME,PERCENT",
                       type=_told(_link),
                       help="rate, latency and loss, or any of them, of the link above host or "
                       "switch NAME (may be repeated)")
    build.add_argument("--seed", type=whole(0, 2**64 - 1), default=1, metavar="NUMBER",
                       help="which frames get lost is a function of it (default: 1)")
    build.add_argument("--link-speed-unit", choices=["kbit", "mbit", "gbit"],
                       help="unit of bare LinkSpeed numbers in a topology file that names none")
    build.add_argument("--slots", type=whole(1, 65536), default=os.cpu_count() or 1, metavar="N",
                       help="ranks that mpirun may place on a host (default: cores)")
    build.add_argument("--head", default="head", metavar="HOST",
                       type=_like("[A-Za-z0-9][A-Za-z0-9.-]{0,62}", "a host name of letters, "
                                  "digits, - and ."),
                       help="host name of the head (default: head)")
    build.add_argument("--subnet", default=fabric.DEFAULT_SUBNET, metavar="NET",
                       type=_told(fabric.parse_subnet),
                       help="addresses of the hosts (default: %(default)s; it cannot clash with "
                       "the machine's networks)")
    build.add_argument("--share", action="append", default=[], metavar="DIR",
                       help="show DIR, which lies in /tmp or /run, inside the hosts too (may be "
                       f"repeated; the working directory and {NAME}'s own are shared unasked)")
    build.add_argument("--shm-size", default="50%", metavar="SIZE",
                       type=_like("[1-9][0-9]{0,11}[kmgKMG]?|[1-9][0-9]?%", "a size such as 64m, "
                                  "or a part of the memory such as 50%"),
                       help="size of each host's /dev/shm, such as 64m (default: half the memory)")

    parser = Parser(
        prog=NAME, description=named(DESCRIPTION), epilog=named(EPILOG), parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    add = commands.add_parser
    add("up", parents=[common, build], help="build a cluster")
    sub = add("exec", parents=[common], help="run a command on a host")
    sub.add_argument("host", help="host name, or that of the head")
    sub.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND",
                     help="command and arguments (default: a shell)")
    sub = add("mpirun", help="run mpirun across the hosts", add_help=False, prefix_chars="\0")
    sub.add_argument("argv", nargs=argparse.REMAINDER)
    sub = add("run", parents=[common, build], help="up, a command on the head, down")
    sub.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    sub = add("status", parents=[common], help="show the clusters")
    sub.add_argument("--json", action="store_true", help="for programs: one JSON object")
    sub = add("links", parents=[common], help="what links with latency or loss have carried")
    sub.add_argument("--json", action="store_true", help="for programs: one JSON object")
    sub = add("down", parents=[common], help="remove a cluster")
    sub.add_argument("--all", action="store_true", help="all clusters of this user")
    return parser


def _spec(options, program):
    """The checked description of the cluster that the options ask for."""
    if options.topology:
        ucg_topo = _built("ucg_topo", "VCLUSTER_UCG_TOPO", "a topology file needs", program)
        tree = topology.read(options.topology, ucg_topo, options.link_speed_unit)
    else:
        tree = topology.one_switch(options.hosts)
    overrides = {}
    for item in options.link:
        name, values = _link(item)
        overrides[name] = values
    links = topology.links(tree, rate=options.rate, latency=options.latency, loss=options.loss,
                           overrides=overrides)
    _need_programs(any(link.rate for link in links.values()))
    needed = any(link.is_forwarded for link in links.values())
    forwarder = _built("vcluster_links", "VCLUSTER_FORWARDER",
                       "links with latency or loss need", program) if needed else ""
    own = [os.path.dirname(os.path.realpath(path)) for path in (program, forwarder) if path]
    spec = fabric.Spec(name=getattr(options, "name", ""), topology=tree, links=links,
                       slots=options.slots, head=options.head, subnet=options.subnet,
                       share=_shared(options.share, [*own, os.getcwd()]),
                       shm_size=options.shm_size, program=os.path.realpath(program),
                       forwarder=forwarder, seed=options.seed)
    spec.addresses()
    return spec


def _need_programs(shaped):
    # Debian has both in /usr/sbin, which is not in every user's PATH.
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    for program in ["ip"] + (["tc"] if shaped else []):
        if not shutil.which(program):
            raise VclusterError(f"'{program}' is not installed (Debian package: iproute2)")


def _built(name, variable, needed, program):
    """Where a program of the build is that something needs."""
    root = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    chosen = os.environ.get(variable)
    places = [chosen] if chosen else [
        *(f"{root}/{build}/tools/{name}" for build in ("build", "build-check")),
        shutil.which(name) or ""]
    for place in places:
        if os.access(place, os.X_OK):
            return os.path.realpath(place)
    if chosen:
        where = f"at {chosen} ({variable})"
    elif os.path.exists(f"{root}/meson.build"):
        where = (f"built; build it with: meson setup {root}/build && ninja -C {root}/build "
                 f"tools/{name}")
    else:
        where = f"at {root}/build/tools, where it is installed, nor in PATH"
    raise VclusterError(f"{needed} the program {name}, which is not {where}")


def _shared(asked, unasked):
    """The directories that the hosts' own /tmp and /run would hide, outermost first."""
    paths = set()
    for path in asked:
        if not os.path.isdir(path):
            raise VclusterError(f"--share {path}: no such directory")
        paths.add(os.path.realpath(path))
    paths |= {os.path.realpath(path) for path in unasked}
    hidden = sorted(path for path in paths if path.startswith(("/tmp/", "/run/")))
    return [path for path in hidden
            if not any(path.startswith(other + "/") for other in hidden)]


def _head_environment(state):
    """The environment with which a plain mpirun on the head uses the hosts."""
    wanted = dict(MPI_ROOT)
    wanted.update({
        "OMPI_MCA_plm_rsh_agent": "/run/vcluster/rsh",
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "OMPI_MCA_orte_default_hostfile": "/run/vcluster/hostfile",
        "OMPI_MCA_oob_tcp_if_include": state["subnet"],
        "OMPI_MCA_btl_tcp_if_include": state["subnet"],
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        # The same for Open MPI 5, where PRRTE does the launching.
        "PRTE_MCA_plm_ssh_agent": "/run/vcluster/rsh",
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        "PRTE_MCA_prte_default_hostfile": "/run/vcluster/hostfile",
        "PRTE_MCA_prte_if_include": state["subnet"],
        "PRTE_MCA_hwloc_default_binding_policy": "none",
    })
    environment = {**wanted, **os.environ}
    environment["TMPDIR"] = "/tmp"  # The caller's own may not exist inside.
    return environment


def _command(argv):
    return argv[1:] if argv[:1] == ["--"] else argv


def _host_pid(state, host, kind="outer"):
    if host == state["head"]:
        return state["init"]
    if host not in state["hosts"]:
        raise VclusterError(f"no host '{host}' in cluster '{state['name']}'; it has "
                            + ", ".join([state["head"], *state["hosts"]]))
    pid = state["hosts"][host][kind]
    if kind == "outer" and linux.process_start(pid) is None:
        raise VclusterError(f"host '{host}' is down")
    return pid


def _up(options, program):
    spec = _spec(options, program)
    with registry.locked():
        if registry.find(options.name) is not None:
            raise VclusterError(f"cluster '{options.name}' is up already; take it down with: "
                                f"{NAME} down --name {options.name}")
        pid, channel = fabric.create(spec)
        registry.add(options.name, pid)
        fabric.detach(channel)
    print(f"cluster '{options.name}' is up: hosts {', '.join(spec.topology.hosts)}; "
          f"try: {NAME} mpirun -N 1 hostname")
    return 0


def _run(options, program):
    argv = _command(options.argv)
    spec = _spec(options, program)
    # From the first moment on, a signal must lead to kill() below and not just end the program.
    signal.pthread_sigmask(signal.SIG_BLOCK, fabric.ENDING_SIGNALS)
    pid, channel = fabric.create(spec)
    try:
        state = registry.state(pid)
        return session.run(pid, argv, _head_environment(state), os.getcwd(), grace=5.0)
    finally:
        registry.kill(pid)
        os.waitpid(pid, 0)
        channel.close()


def _exec(options, _program):
    argv = _command(options.argv) or [os.environ.get("SHELL", "/bin/sh")]
    pid = registry.need(options.name)
    state = registry.state(pid)
    is_head = options.host == state["head"]
    environment = _head_environment(state) if is_head \
        else {**os.environ, **MPI_ROOT, "TMPDIR": "/tmp"}
    return session.run(_host_pid(state, options.host), argv, environment, os.getcwd())


def _mpirun(options, _program):
    pid = registry.need(options.name)
    return session.run(pid, ["mpirun"] + options.argv, _head_environment(registry.state(pid)),
                       os.getcwd())


def _rate_text(rate):
    if rate is None:
        return "-"
    for factor, unit in ((10**9, "gbit"), (10**6, "mbit"), (10**3, "kbit")):
        if rate % factor == 0:
            return f"{rate // factor}{unit}"
    return f"{rate}bit"


def _time_text(nanoseconds):
    for factor, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if nanoseconds >= factor:
            return f"{nanoseconds / factor:g}{unit}"
    return f"{nanoseconds}ns" if nanoseconds else "-"


def _link_cells(facts):
    loss = f"{100 * facts['loss']:g}%" if facts["loss"] else "-"
    return _rate_text(facts["rate"]), _time_text(facts["latency_ns"]), loss


def _print_table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def _status(options, _program):
    states = {name: registry.state(registry.find(name)) for name in
              (registry.names() if options.all_names else [options.name])
              if registry.find(name) is not None}
    if options.json:
        print(json.dumps(states, indent=2))
        return 0
    if not states:
        print("no cluster is up")
    for name, state in states.items():
        print(f"cluster {name}: head {state['head']} {state['address']} at switch "
              f"{state['root']}, init {state['init']}, {state['slots']} slots a host")
        rows = [("name", "address", "above", "rate", "latency", "loss", "device", "init")]
        rows += [(switch, "-", facts["above"] or "-", *_link_cells(facts), "-", "-")
                 for switch, facts in state["switches"].items()]
        for host, facts in state["hosts"].items():
            alive = linux.process_start(facts["outer"]) is not None
            rows.append((host, facts["address"], facts["switch"], *_link_cells(facts),
                         facts["port"], str(facts["outer"]) if alive else "down"))
        _print_table(rows)
    return 0


def _links(options, _program):
    counters = registry.link_counters(registry.need(options.name))
    if options.json:
        print(json.dumps(counters, indent=2))
        return 0
    if not counters["links"]:
        print(f"cluster '{options.name}' has no links with latency or loss")
        return 0
    rows = [("above", "way", "frames", "bytes", "lost", "overflow", "refused", "late, mean",
             "worst")]
    for name, link in counters["links"].items():
        for way in ("up", "down"):
            counts = link[way]
            rows.append((name, "gone" if link["gone"] else way,
                         *(str(counts[key]) for key in ("frames", "bytes", "lost", "overflow",
                                                        "refused")),
                         _time_text(round(counts["late_mean_ns"])),
                         _time_text(counts["late_max_ns"])))
    _print_table(rows)
    if not counters["realtime"]:
        print("  without realtime priority: links are later than they need be")
    return 0


def _down(options, _program):
    with registry.locked():
        targets = registry.names() if options.all else [options.name]
        for name in targets:
            pid = registry.find(name)
            if pid is None:
                print(f"no cluster '{name}' is up")
                continue
            registry.kill(pid)
            registry.remove(name)
            print(f"cluster '{name}' is down")
    return 0


def _rsh(argv):
    """The remote shell of mpirun, run on the head: rsh [options] HOST WORDS...

    Like sshd it starts the words by a shell with a clean environment in the home directory.
    """
    words = list(argv)
    while words and words[0].startswith("-"):
        words.pop(0)
    if len(words) < 2:
        raise VclusterError("rsh: want HOST COMMAND")
    with open("/" + registry.STATE_PATH, encoding="utf-8") as file:
        state = json.load(file)
    user = pwd.getpwuid(os.geteuid())
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        "HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": "/bin/sh",
        **MPI_ROOT,
    }
    return session.run(_host_pid(state, words[0], "inner"),
                       ["/bin/sh", "-c", " ".join(words[1:])], environment, "/")


_COMMANDS = {"up": _up, "run": _run, "exec": _exec, "mpirun": _mpirun, "status": _status,
             "links": _links, "down": _down}


def main(arguments, program):
    """Runs one command and returns the exit status."""
    if arguments[:1] == ["rsh"]:
        return _rsh(arguments[1:])
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "run" and not _command(options.argv):
        parser.error("run: no command given; put it after --")
    options.all_names = not hasattr(options, "name")
    if options.command == "down" and options.all and not options.all_names:
        parser.error("down: --all and --name exclude each other")
    # The directory is determined now, while this process still has the caller's identity.
    registry.directory()
    if options.all_names:
        options.name = os.environ.get("VCLUSTER_NAME", "default")
    return _COMMANDS[options.command](options, program)
