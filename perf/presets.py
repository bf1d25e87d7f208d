"""Stock libraries by the names of --preset: the options that select them, and whether they are
installed."""

import subprocess

PML_UCX = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]

# Options of mpirun. A component with a priority above coll/tuned's 30 takes the collectives that it
# has; the rest stays with tuned. Where the kernel copies slowly between processes, stock is fastest
# without such copies; Open MPI 4.1 calls its shared-memory component vader, and later series have a
# framework for such copies.
COLL_COMPONENTS = ["sm", "adapt", "han", "acoll", "xhc"]
OPENMPI = {
    "tuned": ["--mca", "pml", "ob1"],
    "no_cma": ["--mca", "pml", "ob1", "--mca", "btl_vader_single_copy_mechanism", "none",
               "--mca", "smsc", "^cma"],
    "ucx": PML_UCX,
    "ucx_posix": [*PML_UCX, "-x", "UCX_TLS=self,posix"],
    **{name: ["--mca", "pml", "ob1", "--mca", f"coll_{name}_priority", "100"]
       for name in COLL_COMPONENTS},
}
ALL = [*OPENMPI, "mpich"]
HELP = ("stock libraries to find the best of, comma-separated: tuned (Open MPI's default over pml "
        "ob1), no_cma (without the kernel's copies between processes), ucx (tuned over pml ucx), "
        "ucx_posix (over its shared memory alone, for one host), sm, adapt, han, acoll and xhc "
        "(those components of coll, where Open MPI has them; han is for several hosts), mpich (if "
        "it is installed)")


def is_there(name):
    """Has this Open MPI what the preset needs? Prints a message if not."""
    if name not in COLL_COMPONENTS:
        return True
    listed = subprocess.run(["ompi_info", "--parsable"], capture_output=True, text=True,
                            check=False).stdout
    found = f"mca:coll:{name}:" in listed
    if not found:
        print(f"# preset {name} LEFT OUT: this Open MPI has no coll/{name}")
    return found
