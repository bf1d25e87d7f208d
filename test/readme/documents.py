"""Finds the commands in the pages of the repository."""

import os
import re
from dataclasses import dataclass

# These folders have no pages of this repository.
SKIPPED = re.compile(r"\.git|build.*|corpus")

# A code span in a sentence is a command if it begins with one of these words and has more words.
PROGRAM = re.compile(
    r"(\./)?(tools|perf|test|build)/\S+ |(ucg_(info|plan|sim|topo|tune)|vcluster|mpirun|ompi_info|"
    r"meson|ninja|pkg-config|spin) ")


@dataclass(frozen=True)
class Command:
    page: str  # The path from the root.
    line: int
    text: str  # The text without a remark behind "#".

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
    """Does the last block end just before this line?"""
    return bool(found) and found[-1][0] + len(found[-1][1]) == number


def without_remark(line):
    """The line without its remark, which is two blanks apart from the command, or stands alone."""
    return re.sub(r"(^|\s\s+)#.*$", "", line).strip()


def in_block(page, first, lines):
    """The commands of a block: one for each line, unless a backslash joins two lines."""
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
    """The commands within sentences."""
    found = []
    for match in re.finditer(r"`([^`]+)`", prose):
        text = " ".join(match[1].split())
        if PROGRAM.match(text):
            found.append(Command(page, prose.count("\n", 0, match.start()) + 1, text))
    return found


def examples(text):
    """The commands of our C++ tools in the text of a --help, as simple commands."""
    joined = re.sub(r"\\\n\s*", "", text)
    return [part.strip() for line in re.findall(r"^  +(.*\bucg_\w+ .*)$", joined, re.MULTILINE)
            for part in re.split(r" \| | && |; | > ", line)
            if re.match(r"ucg_(info|plan|sim|topo|tune) [a-z-]", part.strip())]


def commands(root, not_commands):
    """All commands of all pages, and those of `not_commands`, (page, begin of a block's first
    line), that no page has."""
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


def links(root, page):
    """The files to which a page links, from the root."""
    with open(os.path.join(root, page), encoding="utf-8") as file:
        found = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", file.read())
    return {os.path.normpath(os.path.join(os.path.dirname(page), link)) for link in found}
