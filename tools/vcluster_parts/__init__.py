"""The parts of tools/vcluster, lowest first.

program     the name by which it was called
errors      the one exception that becomes a message
linux       namespaces, mounts and process facts, straight from the C library
topology    Topology (a checked tree of switches and hosts), as ucg_topo reads it; link rates
fabric      Topology -> running namespaces; the init processes that hold them
registry    which clusters are up; one small file each, found stale by process start time
session     run a command inside a host, pass signals on, give back its exit status
cli         the command line
"""
