"""Commands in the pages of the repository: which lines of which page are commands."""

import os
import re
from dataclasses import dataclass

# Folders without pages of this repository.
SKIPPED = re.compile(r"\.git|build.*|corpus")

# A span of code in a sentence is a command if it begins with one of these and goes on.
PROGRAM = re.compile(
    r"(\./)?(tools|perf|test|build)/\S+ |(ucg_(info|plan|sim|topo|tune)|vcluster|mpirun|ompi_info|"
    r"meson|ninja|pkg-config|spin) ")


@dataclass(frozen=True)
class Command:
    page: str  # Path from the root.
    line: int
    text: str  # Without what stands behind #.

    def __str__(self):
        return f"{self.page}:{self.line}: {self.text}"


def pages(root):
    """All pages, by path."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not SKIPPED.fullmatch(name))
        found += [os.path.relpath(os.path.join(folder, name), root)
                  for name in sorted(files) if name.endswith(".md")]
    return found


def blocks(text):
    """[(first line, [line, ...])] of indented and of fenced code, and the rest of the text, in
    which those lines are empty."""
    found, prose, fenced, after_empty = [], [], False, True
    for number, line in enumerate(text.splitlines(), 1):
        fence = line.startswith("```")
        inside = fenced or (line.startswith("    ") and line.strip()
                            and (after_empty or is_last(found, number)))
        if inside and not fence:
            if not is_last(found, number):
                found.append((number, []))
            found[-1][1].append(line)
        fenced ^= fence
        prose.append("" if inside or fence else line)
        after_empty = not line.strip()
    return found, "\n".join(prose)


def is_last(found, number):
    """Does the last block end just before that line?"""
    return bool(found) and found[-1][0] + len(found[-1][1]) == number


def without_remark(line):
    """A remark stands two blanks apart from its command, or by itself."""
    return re.sub(r"(^|\s\s+)#.*$", "", line).strip()


def in_block(page, first, lines):
    """Its commands: a line each, unless a backslash joins two."""
    found, joined, start = [], "", first
    for number, line in enumerate(lines, first):
        text = without_remark(line)
        start = start if joined else number
        joined += text.removesuffix("\\")
        if text.endswith("\\"):
            continue
        if joined:
            found.append(Command(page, start, joined))
        joined = ""
    return found


def in_prose(page, prose):
    """Those in the middle of sentences."""
    found = []
    for match in re.finditer(r"`([^`]+)`", prose):
        text = " ".join(match[1].split())
        if PROGRAM.match(text):
            found.append(Command(page, prose.count("\n", 0, match.start()) + 1, text))
    return found


def examples(text):
    """Commands of our C++ tools in the text of a --help, each a simple one."""
    joined = re.sub(r"\\\n\s*", "", text)
    return [part.strip() for line in re.findall(r"^  +(.*\bucg_\w+ .*)$", joined, re.MULTILINE)
            for part in re.split(r" \| | && |; | > ", line)
            if re.match(r"ucg_(info|plan|sim|topo|tune) [a-z-]", part.strip())]


def commands(root, not_commands):
    """All commands of all pages, and those of `not_commands` that no page has: (page, text that the
    first line of a block begins with)."""
    found, seen = [], set()
    for page in pages(root):
        with open(os.path.join(root, page), encoding="utf-8") as file:
            in_page, prose = blocks(file.read())
        for first, lines in in_page:
            others = {(where, text) for where, text in not_commands
                      if where == page and lines[0].strip().startswith(text)}
            seen |= others
            if not others:
                found += in_block(page, first, lines)
        found += in_prose(page, prose)
    return found, set(not_commands) - seen
