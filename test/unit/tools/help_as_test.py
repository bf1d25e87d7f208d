#!/usr/bin/env python3
"""Tests the output of --help-as of the tools: help_as_test.py TOOL...

Every page is free of what groff warns of and names every option that --help names; bash offers the
options and subcommands. What is not installed (groff, zsh) is not asked, and said."""

import os
import re
import shutil
import subprocess
import sys


def output(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **more)
    if done.returncode != 0:
        sys.exit(f"FAILED: {command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def options_of(tool, *words):
    """The long options that the help shows."""
    text = output(tool, *words, "--help")
    listed = re.findall(r"^ +(-.*?)(?:  |$)", text.split("Usage:")[1], re.MULTILINE)
    return {name for names in listed for name in re.findall(r"--[\w-]+", names.split(" ")[0])}


def subcommands_of(tool):
    found = re.search(r"^Subcommands:\n((?:  .*\n)+)", output(tool, "--help"), re.MULTILINE)
    return re.findall(r"^  ([\w-]+)  ", found[1], re.MULTILINE) if found else []


def check_man(tool, options):
    page = output(tool, "--help-as", "man")
    assert page.startswith('.TH "'), page[:80]
    for option in options:
        assert option.replace("-", "\\-") in page, f"{tool}: the page lacks {option}"
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8"], input=page, text=True,
                              capture_output=True, timeout=60, check=True)
        assert not done.stderr, f"{tool}: {done.stderr}"


def completions(tool, script, *words):
    """The words that bash offers after `words`, the last of which is being typed."""
    name = os.path.basename(tool)
    typed = " ".join(f"'{word}'" for word in (name, *words))
    return output("bash", "-c", f"{script}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words)}; "
                                f"_{name}; printf '%s\\n' \"${{COMPREPLY[@]}}\"").split()


def check_bash(tool, subcommands):
    script = output(tool, "--help-as", "bash")
    assert set(completions(tool, script, "--")) == options_of(tool), tool
    for command in subcommands:
        assert command in completions(tool, script, ""), f"{tool}: {command}"
        offered = set(completions(tool, script, command, "--"))
        assert offered == options_of(tool, command), f"{tool} {command}: {offered}"
        if "--format" in offered:
            assert not completions(tool, script, command, "--format", ""), tool


def check_zsh(tool):
    script = output(tool, "--help-as", "zsh")
    assert script.startswith(f"#compdef {os.path.basename(tool)}\n"), script[:80]
    if shutil.which("zsh"):
        output("zsh", "-n", input=script)


def main():
    for program in ("groff", "zsh"):
        if not shutil.which(program):
            print(f"{program} is not installed: its part is left out")
    for tool in sys.argv[1:]:
        subcommands = subcommands_of(tool)
        options = options_of(tool).union(*(options_of(tool, name) for name in subcommands))
        check_man(tool, options)
        check_bash(tool, subcommands)
        check_zsh(tool)
        wrong = subprocess.run([tool, "--help-as", "html"], capture_output=True, text=True,
                               timeout=60)
        assert wrong.returncode == 2 and "man, bash, zsh" in wrong.stderr, wrong
    print("all as expected")


if __name__ == "__main__":
    main()
