"""What the links between hosts allow: the least time in which their bytes can move.

Each host has one link, which carries so many bytes per second in each direction at the same time.
Each host holds the same number of ranks, in order. Bytes that are combined on the way (reductions)
cross as the combined result. Bursts, headers and the latency of the links add to this; where links
let a burst pass, short messages may take less.
"""


def _to_all(hosts, ranks):
    """One vector that all hosts get, or that comes from all of them."""
    return 1


def _twice_in_parts(hosts, ranks):
    """A part of the sum goes to each host, and then all parts go to all hosts."""
    return 2 * (hosts - 1) / hosts


def _other_ranks(hosts, ranks):
    """The block of each rank on another host passes one host's link."""
    return (hosts - 1) * ranks


def _each_to_each(hosts, ranks):
    """A block goes from each rank of this host to each rank elsewhere."""
    return ranks * (hosts - 1) * ranks


# The bytes that pass the busiest link in one direction, in units of collbench's bytes.
_VECTORS = {
    "bcast": _to_all, "reduce": _to_all, "scan": _to_all, "exscan": _to_all,
    "allreduce": _twice_in_parts,
    "allgather": _other_ranks, "allgatherv": _other_ranks,
    "gather": _other_ranks, "gatherv": _other_ranks,
    "scatter": _other_ranks, "scatterv": _other_ranks,
    "reduce_scatter": _other_ranks, "reduce_scatter_block": _other_ranks,
    "alltoall": _each_to_each, "alltoallv": _each_to_each,
}


def least_us(collective, size, hosts, ranks, bits_per_second):
    """The least time in microseconds; `size` has collbench's meaning, `ranks` is the number on
    each host. None if the limit is not known, or if there are no bytes."""
    units = _VECTORS.get(collective.removesuffix("_init").removeprefix("i"))
    if units is None or not size:
        return None
    return units(hosts, ranks) * size * 8 / bits_per_second * 1e6
