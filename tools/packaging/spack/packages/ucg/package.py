"""UCG for Spack; see the page of tools/packaging/spack for what was tried and what was not."""

import pathlib
import re

from spack.package import *

try:
    from spack_repo.builtin.build_systems.meson import MesonPackage  # For Spack from 1.0 on.
except ImportError:
    pass  # In earlier versions spack.package has it.

# Variants that are options of the same name, by their types in meson_options.txt.
FEATURES = ("heap", "ompi", "pmix", "simgrid", "tests")
BOOLEANS = ("perf", "tools")


class Ucg(MesonPackage):
    """A collective library for MPI stacks, native to UCX, with a component for Open MPI."""

    # The clone that contains this recipe: the committed sources are built.
    git = f"file://{pathlib.Path(__file__).resolve().parents[5]}"

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("ompi", default=True, description="Build the component for Open MPI")
    variant("tools", default=True, description="Build the command-line tools")
    variant("perf", default=False, description="Build the benchmarks")
    variant("pmix", default=False, when="+perf", description="ucg_perftest under mpirun and srun")
    variant("heap", default=False, description="Build libucg_heap.so, to be preloaded")
    variant("simgrid", default=False, when="+tools", description="Simulate with SimGrid, too")
    variant("tests", default=False, description="Build the tests")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("meson@1.0.1:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("fmt@9:")
    depends_on("highway@1.0.3:")
    depends_on("hwloc@2.9:")
    depends_on("nlohmann-json@3.11:")
    depends_on("tomlplusplus@3.3:")
    depends_on("ucx@1.13:")
    depends_on("cli11@2.1:", when="+tools")

    # Open MPI must have the headers for building components (configure --with-devel-headers).
    # Spack's own build leaves them out, so an external one is needed, such as a distribution's.
    depends_on("openmpi@4.1,5.0,6", when="+ompi")
    depends_on("pmix", when="+ompi ^openmpi@5:")
    depends_on("pmix@4.2:", when="+pmix")
    depends_on("jemalloc@5.3:", when="+heap")
    depends_on("simgrid", when="+simgrid")
    depends_on("catch2@2.13:", when="+tests")
    depends_on("python@3.11:", type=("build", "run"), when="+tests")

    conflicts("%gcc@:11")
    conflicts("%clang@:13")
    conflicts("platform=darwin", msg="shared memory is Linux's")
    conflicts("platform=windows", msg="shared memory is Linux's")

    def meson_args(self):
        """The names of the variants in meson_options.txt."""

        def option(name, chosen, other):
            return f"-D{name}={chosen if self.spec.satisfies(f'+{name}') else other}"

        return [
            *(option(name, "enabled", "disabled") for name in FEATURES),
            *(option(name, "true", "false") for name in BOOLEANS),
        ]

    def setup_run_environment(self, env):
        """Open MPI looks for components in its own folder, but UCG's component is in UCG's
        prefix. The build has found out where Open MPI's own folder is, which distributions choose
        as they like."""
        described = pathlib.Path(self.prefix.lib, "pkgconfig", "ucg.pc")
        if not self.spec.satisfies("+ompi") or not described.exists():
            return
        path = re.search(r"^component_path=(.+)$", described.read_text("utf-8"), re.MULTILINE)
        if path:
            env.set("OMPI_MCA_mca_base_component_path", path[1])
        if self.spec.satisfies("^openmpi@5:"):
            # PMIx gets the path, too, and complains about what it cannot use there.
            env.set("PMIX_MCA_mca_base_component_path", "")
