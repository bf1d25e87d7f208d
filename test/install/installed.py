#!/usr/bin/env python3
"""Installs a build into a private image of /usr and uses it: installed.py BUILD.

Exit status: 0 all as it should be, 1 not, 77 skipped.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

INSIDE = "--inside"
ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = pathlib.Path("/usr/local/share/doc/ucg")
# Pages of these folders are installed, those of all others are in the source tree only.
PAGE_FOLDERS = (".", "tools/doc")


def run(command, environment=None):
    """Returns what a command prints on both streams, since Open MPI prints to standard error;
    raises on failure."""
    done = subprocess.run(command, env=dict(os.environ, **(environment or {})), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    if done.returncode != 0:
        sys.exit(f"FAILED: {shlex.join(command)}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print(f"ok: {what}")


def variable(name):
    return run(["pkg-config", f"--variable={name}", "ucg"]).strip()


def check_component():
    root_may = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_coll_ucg_verbose": "1"}
    for name in [name for name in os.environ if "component_path" in name]:
        del os.environ[name]
    mpirun = shutil.which("mpirun.openmpi") or "mpirun"
    program = ["-np", "2", "ucg_collbench", "--smoke"]
    said = run([mpirun, "--oversubscribe", *program], root_may)
    expect("by libucg" in said, "mpirun without an option runs a program through UCG")
    off = run([mpirun, "--oversubscribe", "--mca", "coll", "^ucg", *program], root_may)
    expect("by libucg" not in off, "--mca coll ^ucg turns it off")
    expect("mca_coll_ucg.so" in os.listdir(run(["ucg_component_path"]).strip().split(":")[0]),
           "ucg_component_path names the component's folder")
    expect(variable("component_path") == run(["ucg_component_path"]).strip(),
           "pkg-config knows it, too")


def check_library(folder):
    example = "/usr/local/share/doc/ucg/examples/fork_allreduce.c"
    flags = run(["pkg-config", "--cflags", "--libs", "ucg"]).split()
    program = os.path.join(folder, "fork_allreduce")
    libraries = {"LD_LIBRARY_PATH": variable("libdir")}
    run(["cc", example, "-o", program, *flags])
    run([program, "2"], libraries)
    expect(True, "the example is compiled by pkg-config's flags, and runs")
    expect(os.path.exists(variable("heap")), "pkg-config's heap is there")
    if shutil.which("ucg_component_path"):
        expect(variable("heap") == run(["ucg_component_path", "--heap"]).strip(),
               "ucg_component_path knows it, too")
    if shutil.which("cmake"):
        check_cmake(folder, example, libraries)


def check_cmake(folder, example, libraries):
    with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write("cmake_minimum_required(VERSION 3.16)\nproject(example C)\n"
                   "find_package(UCG 0.1 REQUIRED)\n"
                   f"add_executable(example {example})\ntarget_link_libraries(example UCG::ucg)\n")
    built = os.path.join(folder, "cmake")
    run(["cmake", "-S", folder, "-B", built])
    run(["cmake", "--build", built])
    run([os.path.join(built, "example"), "2"], libraries)
    expect(True, "CMake finds the package")


def check_moved(folder, build):
    """An installation in another place than the prefix, as that of another system is."""
    staged = os.path.join(folder, "staged")
    run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", staged])
    prefix = os.path.join(staged, "usr", "local")
    links = [path for path in pathlib.Path(prefix, "bin").iterdir() if path.is_symlink()]
    expect(links and all(path.resolve().is_file() and path.resolve().is_relative_to(prefix)
                         for path in links), "links of a staged installation stay in it")
    if not shutil.which("cmake"):
        return
    project = os.path.join(folder, "moved")
    os.mkdir(project)
    with open(os.path.join(project, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write("cmake_minimum_required(VERSION 3.16)\nproject(moved C)\n"
                   f"find_package(UCG REQUIRED PATHS {prefix} NO_DEFAULT_PATH)\n"
                   "foreach(what IMPORTED_LOCATION INTERFACE_INCLUDE_DIRECTORIES)\n"
                   "  get_target_property(found UCG::ucg ${what})\n"
                   '  message(STATUS "found ${found}")\nendforeach()\n')
    said = run(["cmake", "-S", project, "-B", os.path.join(project, "build")])
    found = re.findall(r"found (.*)", said)
    expect(len(found) == 2 and all(path.startswith(prefix) and os.path.exists(path)
                                   for path in found), f"CMake finds it there: {found}")


def check_tools():
    for tool in ("ucg_aapc", "ucg_info", "ucg_perftest", "ucg_plan", "ucg_sim", "ucg_topo",
                 "ucg_tune"):
        run([tool, "--version"])
        expect(os.path.getsize(f"/usr/local/share/man/man1/{tool}.1") > 500, f"{tool} has a page")
        for script in (f"bash-completion/completions/{tool}", f"zsh/site-functions/_{tool}"):
            expect(os.path.getsize(f"/usr/local/share/{script}") > 100, f"{script} is there")
    for script in ("ucg_compare", "ucg_vcluster"):
        expect("usage: " in run([script, "--help"]).lower(), f"{script} --help")
    expect("ucg_vcluster up" in run(["ucg_vcluster", "--help"]), "ucg_vcluster knows its name")
    for script in ("ucg_compare", "ucg_vcluster"):
        expect(not re.search(r"\b(perf|tools)/", run([script, "--help"])),
               f"{script} --help names no program of the source tree")
    expect(os.path.exists("/usr/local/share/ucg/calibrate"), "calibrate is there")


def check_compare(folder):
    """The preset of another MPI library, for which the program is compiled."""
    cache = {"XDG_CACHE_HOME": os.path.join(folder, "cache")}
    said = run(["ucg_compare", "--preset", "tuned,mpich", "--np", "2", "--mode", "b2b", "--pairs",
                "1", "--gate", "off", "-c", "barrier", "--time", "0.001"], cache)
    if shutil.which("mpicc.mpich") and shutil.which("mpirun.mpich"):
        expect(re.search(r"tuned us +mpich us +ucg us", said), "ucg_compare measures MPICH, too")
    else:
        expect("preset mpich LEFT OUT: no " in said, "ucg_compare says what it leaves out")
    expect(re.search(r"^# processors .*, UCG \d", said, re.MULTILINE) and
           "profile of UCG: not known" not in said, "ucg_compare says of what a report is")


def check_pages():
    """Links lead to pages that are installed, or into folders of the source tree of which none
    is."""
    for name in ("LICENSE", "NOTICE"):
        expect((PAGES / name).exists(), f"{name} is there")
    pages = sorted(PAGES.rglob("*.md"))
    expect(len(pages) > 10, "pages are there")
    for page in pages:
        for link in re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            target = os.path.normpath(page.parent.relative_to(PAGES) / link)
            is_installed = (os.path.dirname(target) or ".") in PAGE_FOLDERS
            expect((PAGES if is_installed else ROOT).joinpath(target).exists(),
                   f"{page.relative_to(PAGES)}: {target} is there")


def inside(build):
    """Runs with this mount namespace to itself."""
    with tempfile.TemporaryDirectory(prefix="ucg-installed-") as folder:
        # An overlay cannot have its upper folder on another overlay.
        run(["mount", "-t", "tmpfs", "ucg", folder])
        for name in ("upper", "work"):
            os.mkdir(os.path.join(folder, name))
        run(["mount", "-t", "overlay", "ucg", "-o",
             f"lowerdir=/usr,upperdir={folder}/upper,workdir={folder}/work", "/usr"])
        run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"])
        check_component()
        check_library(folder)
        check_moved(folder, build)
        check_tools()
        if shutil.which("ucg_compare"):
            check_compare(folder)
        check_pages()
        run(["umount", "-l", "/usr"])
        run(["umount", "-l", folder])


def main():
    if sys.argv[1] == INSIDE:
        return inside(*sys.argv[2:])
    new_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    alone = ["unshare", "--mount", *new_user]
    tried = subprocess.run([*alone, "true"], capture_output=True, text=True, timeout=60)
    if tried.returncode != 0:
        print(f"skipped: no mount namespace here: {tried.stderr.strip()}")
        return 77
    return subprocess.run([*alone, sys.executable, os.path.abspath(__file__), INSIDE,
                           *sys.argv[1:]], timeout=600).returncode


if __name__ == "__main__":
    sys.exit(main())
