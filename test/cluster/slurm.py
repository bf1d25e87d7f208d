"""Slurm on the hosts of a cluster of tools/vcluster: its controller on the head, slurmd on each
host, and munge on all of them. Hosts have control groups of their own where the system has
version 1."""

import contextlib
import os
import pathlib
import pwd
import secrets
import shutil
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo", "squeue", "scancel")
RSH = "/run/vcluster/rsh"
SECONDS = 60  # How long daemons may take to start, or to end.
MEMORY = 1000  # The MiB of each host that jobs may ask for.

SLURM_CONF = """\
ClusterName=ucg
SlurmctldHost={head}
SlurmUser=slurm
AuthType=auth/munge
StateSaveLocation=/run/slurmctld
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ReturnToService=2
KillWait=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
TopologyPlugin=topology/tree
ProctrackType=proctrack/{proctrack}
TaskPlugin={task}
NodeName={nodes} CPUs={cpus} RealMemory={memory}
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=10
"""
CGROUP_CONF = """\
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainCores=yes
ConstrainRAMSpace=yes
ConstrainSwapSpace=yes
AllowedSwapSpace=0
"""
# A host sees only the groups below its own, and slurmd makes the groups of its jobs there.
ENTER_GROUPS = """\
set -e
controllers=$1 group=$2
for controller in $controllers; do
    echo $$ >"$(cat "$group/$controller")/cgroup.procs"
done
exec unshare --cgroup --mount sh -ec '
    mount -t tmpfs tmpfs /sys/fs/cgroup
    for controller; do
        mkdir "/sys/fs/cgroup/$controller"
        mount -t cgroup -o "$controller" "$controller" "/sys/fs/cgroup/$controller"
    done
    exec slurmd -D' - $controllers
"""


def missing():
    """Says what is missing here for Slurm; "" if nothing is."""
    lacking = [name for name in PROGRAMS if not shutil.which(name)]
    if lacking:
        return f"{', '.join(lacking)} not installed: tools/packages slurm"
    with open("/proc/self/uid_map", encoding="ascii") as ranges:
        users = sum(int(line.split()[2]) for line in ranges)
    if os.geteuid() != 0 or users < 65536:
        return "its daemons are of several users, which root alone may start"
    try:
        pwd.getpwnam("slurm")
        pwd.getpwnam("munge")
    except KeyError as error:
        return str(error)
    return ""


class Groups:
    """Control groups of version 1 for the hosts, below those of this process."""

    CONTROLLERS = ("cpuset", "freezer", "memory")
    PREFIX = "ucg-slurm-test-"

    def __init__(self, folder, hosts):
        self.made = []
        self.why_not = ""
        self.folders = {host: pathlib.Path(folder) / f"groups-{host}" for host in hosts}
        try:
            for controller, own in self.own().items():
                self.remove_old(own)
                for host in hosts:
                    self.make(controller, own, host)
        except OSError as error:
            self.why_not = str(error)
            self.remove()

    @classmethod
    def own(cls):
        """{controller: the folder of this process's group}"""
        found = {}
        for line in pathlib.Path("/proc/self/cgroup").read_text("ascii").splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in set(controllers.split(",")) & set(cls.CONTROLLERS):
                found[controller] = pathlib.Path(f"/sys/fs/cgroup/{controller}{path}")
        lacking = set(cls.CONTROLLERS) - set(found)
        if lacking:
            raise OSError(f"no version 1 of {', '.join(sorted(lacking))}")
        return found

    def make(self, controller, own, host):
        group = own / f"{self.PREFIX}{secrets.token_hex(4)}-{host}"
        group.mkdir()
        self.made.append(group)
        if controller == "cpuset":
            for file in ("cpuset.cpus", "cpuset.mems"):
                (group / file).write_text((own / file).read_text("ascii"), encoding="ascii")
        self.folders[host].mkdir(exist_ok=True)
        (self.folders[host] / controller).write_text(str(group), encoding="utf-8")

    def remove_old(self, own):
        """Removes what a killed test has left."""
        for group in own.glob(f"{self.PREFIX}*"):
            self.remove_tree(group)

    @staticmethod
    def remove_tree(group):
        for path, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):  # These are groups of another test that is running.
                os.rmdir(path)

    def remove(self):
        """Removes the groups once Slurm's processes are gone. Returns what could not be removed."""
        for group in self.made:
            self.remove_tree(group)
        left = [str(group) for group in self.made if group.exists()]
        self.made = []
        return left


class Slurm:
    """Slurm's daemons; those of a host end with the host at the latest."""

    def __init__(self, folder, hosts, cpus, topology):
        self.folder, self.hosts, self.daemons = pathlib.Path(folder), hosts, []
        self.folder.chmod(0o755)  # Slurm's own user has to read it.
        self.groups = Groups(folder, hosts)
        self.has_groups = not self.groups.why_not
        configuration = self.folder / "etc"
        configuration.mkdir()
        texts = {
            "slurm.conf": SLURM_CONF.format(
                head=os.uname().nodename, folder=folder, nodes=",".join(hosts), cpus=cpus,
                memory=MEMORY, proctrack="cgroup" if self.has_groups else "linuxproc",
                task="task/affinity" + (",task/cgroup" if self.has_groups else "")),
            "cgroup.conf": CGROUP_CONF,
            "topology.conf": topology,
            "../enter_groups.sh": ENTER_GROUPS,
        }
        for name, text in texts.items():
            (configuration / name).write_text(text, encoding="utf-8")
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        shutil.chown(key, "munge", "munge")
        key.chmod(0o400)

    def common(self):
        """The shell commands that put Slurm's files in their usual place and start munge."""
        return (f"mount --bind {self.folder}/etc /etc/slurm && "
                "install -d -o munge -g munge /run/munge && "
                "setpriv --reuid=munge --regid=munge --clear-groups munged --num-threads=1 "
                f"--key-file={self.folder}/munge.key --socket=/run/munge/munge.socket.2 "
                "--pid-file=/run/munge/munged.pid --log-file=/run/munge/munged.log "
                "--seed-file=/run/munge/munged.seed")

    def spawn(self, command, name):
        with open(self.folder / f"{name}.out", "wb") as out:
            self.daemons.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                                 stderr=subprocess.STDOUT))

    def start(self):
        """Starts all daemons; raises RuntimeError with their own messages."""
        subprocess.run(["sh", "-ec", f"{self.common()} && install -d -o slurm /run/slurmctld"],
                       check=True)
        self.spawn(["slurmctld", "-D"], "slurmctld")
        for host in self.hosts:
            daemon = "slurmd -D"
            if self.has_groups:
                daemon = (f'sh {self.folder}/enter_groups.sh "{" ".join(Groups.CONTROLLERS)}" '
                          f"{self.groups.folders[host]}")
            self.spawn([RSH, host, f"{self.common()} && exec {daemon}"], host)
        self.await_hosts(self.are_idle)

    def are_idle(self):
        said = subprocess.run(["sinfo", "--noheader", "--format=%T %D"], text=True,
                              capture_output=True, check=False)
        return said.stdout.strip() == f"idle {len(self.hosts)}"

    def await_hosts(self, condition):
        deadline = time.monotonic() + SECONDS
        while not condition():
            if time.monotonic() > deadline or any(d.poll() is not None for d in self.daemons):
                raise RuntimeError(f"Slurm is not up:\n{self.logs()}")
            time.sleep(0.1)

    def logs(self):
        """The ends of the log files only: this comes after the message about the failure, which
        must stay visible."""
        paths = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        return "".join(f"--- {path.name}\n{path.read_text('utf-8', 'replace')[-500:]}"
                       for path in paths)

    def stop(self):
        """Ends the daemons and says what is left of them."""
        for daemon in self.daemons:
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(SECONDS)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        return self.groups.remove()


def on_host(host, *words):
    """What a command prints on that host."""
    return subprocess.run([RSH, host, " ".join(words)], text=True, capture_output=True, check=True,
                          timeout=SECONDS).stdout
