"""What the links between hosts allow: the least time in which their bytes can move.

Each host has one link, which carries so many bytes per second each way at a time. Each host holds
as many ranks, in order. Bytes that are combined on the way (reductions) cross as what they are
combined to. Bursts, headers and the latency of the links come on top, or, where links let a burst
pass, short messages take less.
"""


def _to_all(hosts, ranks):
    """Whatever is one vector at all hosts, or comes from all of them."""
    return 1


def _twice_in_parts(hosts, ranks):
    """A part of the sum goes to each host, and all parts to all."""
    return 2 * (hosts - 1) / hosts


def _other_ranks(hosts, ranks):
    """A block of each rank that is on another host passes one host's link."""
    return (hosts - 1) * ranks


def _each_to_each(hosts, ranks):
    """A block of each rank here for each rank elsewhere."""
    return ranks * (hosts - 1) * ranks


_VECTORS = {  # What passes the busiest link one way, in units of the bytes that collbench names.
    "bcast": _to_all, "reduce": _to_all, "scan": _to_all, "exscan": _to_all,
    "allreduce": _twice_in_parts,
    "allgather": _other_ranks, "allgatherv": _other_ranks,
    "gather": _other_ranks, "gatherv": _other_ranks,
    "scatter": _other_ranks, "scatterv": _other_ranks,
    "reduce_scatter": _other_ranks, "reduce_scatter_block": _other_ranks,
    "alltoall": _each_to_each, "alltoallv": _each_to_each,
}


def least_us(collective, size, hosts, ranks, bits_per_second):
    """Microseconds; `size` as collbench means it, `ranks` on each host. None: nobody has worked it
    out, or there are no bytes."""
    units = _VECTORS.get(collective.removesuffix("_init").removeprefix("i"))
    if units is None or not size:
        return None
    return units(hosts, ranks) * size * 8 / bits_per_second * 1e6
