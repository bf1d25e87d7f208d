"""Slurm's host list expressions: "n[0-3,8],login", "rack[0-1]node[00-15]"."""

import itertools
import re

from .errors import VclusterError

# A longer list is a typing error, not a cluster for one machine.
MAX_HOSTS = 65536

# No name of a host is longer than this.
MAX_LENGTH = 255

_PIECE = re.compile(r"([^\[\],\s]*)(?:\[([^\[\]]*)\])?")


def _refuse(text, reason):
    shown = text[:60] + ("..." if len(text) > 60 else "")
    raise VclusterError(f"host list '{shown}': {reason}")


def _split_at_commas(text):
    """Splits at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += {"[": 1, "]": -1}.get(character, 0)
        if depth not in (0, 1):
            _refuse(text, "brackets do not match")
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    if depth != 0:
        _refuse(text, "brackets do not match")
    return parts + [text[start:]]


def _expand_range(text, whole):
    """"0-3,08" -> ["0", "1", "2", "3", "08"]; leading zeros give the width, as in Slurm."""
    numbers = []
    for item in text.split(","):
        match = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", item)
        if not match:
            _refuse(whole, f"'{item}' is not a number or a range")
        low, high = match[1], match[2] or match[1]
        if int(low) > int(high):
            _refuse(whole, f"range '{item}' runs backwards")
        if int(high) - int(low) >= MAX_HOSTS:
            _refuse(whole, f"more than {MAX_HOSTS} names")
        numbers += [str(n).zfill(len(low)) for n in range(int(low), int(high) + 1)]
    return numbers


def _expand_word(word, whole):
    choices, position, count, constant = [], 0, 1, 0
    while position < len(word):
        match = _PIECE.match(word, position)
        if match.end() == position:
            _refuse(whole, f"cannot read '{word[position:]}'")
        choices.append([match[1]])
        constant += len(match[1])
        if constant > MAX_LENGTH:
            _refuse(whole, f"a name has at most {MAX_LENGTH} characters")
        if match[2] is not None:
            choices.append(_expand_range(match[2], whole))
        count *= len(choices[-1])
        if count > MAX_HOSTS:
            _refuse(whole, f"more than {MAX_HOSTS} names")
        position = match.end()
    return ["".join(parts) for parts in itertools.product(*choices)]


def expand(text):
    """All names of a host list expression in the order written; VclusterError when malformed."""
    names = []
    for word in _split_at_commas(text):
        if not word:
            _refuse(text, "empty name")
        names += _expand_word(word, text)
    if len(names) > MAX_HOSTS:
        _refuse(text, f"more than {MAX_HOSTS} names")
    return names
