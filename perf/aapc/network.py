"""The limits that a topology sets for an alltoall: section 3 of Faraj and Yuan."""

import os
import sys

from measure import ROOT

sys.path.append(os.path.join(ROOT, "tools"))

from vcluster_parts import topology  # noqa: E402 (the line above must come first)

_MASK = (1 << 64) - 1


def _mixed(x):
    x = ((x ^ x >> 30) * 0xbf58476d1ce4e5b9) & _MASK
    x = ((x ^ x >> 27) * 0x94d049bb133111eb) & _MASK
    return x ^ x >> 31


def message_bytes(size, seed, ranks, source, target):
    """The lengths of the messages as alltoall_blocks.c draws them."""
    if not seed:
        return size
    pair = source * ranks + target + 1
    return _mixed((pair * 0x9e3779b97f4a7c15 + seed) & _MASK) % (2 * size + 1)


class Network:
    """A tree of switches, which `ucg_topo` reads; rank r is on the r-th host of the file."""

    def __init__(self, name, path, ucg_topo):
        self.name, self.path, self.ucg_topo = name, path, ucg_topo
        tree = topology.read(path, ucg_topo)
        self.machines = tree.hosts
        self.parents = {child: switch.name for child, switch in tree.parents().items()}

    def _path(self, source, target):
        """The directed links that a message passes, each named by its lower end and a direction."""
        up, down = self._above(source), self._above(target)
        while up and down and up[-1] == down[-1]:
            up.pop()
            down.pop()
        return [(node, "up") for node in up] + [(node, "down") for node in down]

    def _above(self, node):
        chain = []
        while node in self.parents:
            chain.append(node)
            node = self.parents[node]
        return chain

    def limits(self, rate, size, seed):
        """The bytes of all messages, and the least time that links of `rate` need for them."""
        ranks, loads, total = len(self.machines), {}, 0
        for source, from_host in enumerate(self.machines):
            for target, to_host in enumerate(self.machines):
                if source != target:
                    message = message_bytes(size, seed, ranks, source, target)
                    total += message
                    for link in self._path(from_host, to_host):
                        loads[link] = loads.get(link, 0) + message
        least = max(loads.values()) * 8 / topology.parse_rate(rate) if rate else None
        return {"all_bytes": total, "least_us": least and least * 1e6}
