"""Finds the places where a C or C++ source can be changed into a mutant, by its text and without a
compiler.

The sources are formatted by clang-format, so a binary operator has blanks around it, and a
template's bracket or a reference does not. A place that is found wrongly all the same does not
compile, and is counted as such.
"""

import difflib
import pathlib
import re
import sys
from dataclasses import dataclass

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tidy"))

from tidy import without_comments_and_strings  # noqa: E402 (the line above comes first)


@dataclass(frozen=True)
class Mutant:
    """One change of one file: text[begin:end] becomes `new`."""

    area: str
    path: str
    begin: int
    end: int
    new: str
    what: str

    def apply(self, text):
        """The file with the change."""
        return text[:self.begin] + self.new + text[self.end:]

    def line(self, text):
        """The line of the change, counted from 1."""
        return text.count("\n", 0, self.begin) + 1

    def diff(self, text):
        """For people, and for `patch -p1`."""
        return "".join(difflib.unified_diff(
            text.splitlines(True), self.apply(text).splitlines(True), f"a/{self.path}",
            f"b/{self.path}", n=2))


OPERATORS = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ",
    " && ": " || ", " || ": " && ", " + 1": "", " - 1": "", " + ": " - ", " - ": " + ",
    " += ": " -= ", " -= ": " += ", "min(": "max(", "max(": "min(",
}
# The longest come first; 1 is not the beginning of 16.
OPERATOR = re.compile("|".join(
    [r" [+-] 1(?![\w.'])", r"(?<![\w])(?:min|max)(?=[(<])",
     *(re.escape(name) for name in OPERATORS if name[0] == " " and not name.endswith("1"))]))
# A call or an assignment. A declaration has a blank before its bracket or its sign.
STATEMENT = re.compile(r"(?:\+\+|--|\*)?[A-Za-z_][\w:.>\[\]*()<-]*"
                       r"(?:\(.*\)| (?:[-+*/|&^]|<<|>>)?= .*|\+\+|--)", re.DOTALL)
KEYWORD = re.compile(r"(?:return|break|continue|goto|using|typedef|case|default|throw|delete|extern"
                     r"|friend|namespace|public|private)\b|[A-Z_]+\(")
RETURN = re.compile(r"\breturn ([^;{}]+);")
CONSTANTS = {"true": "false", "false": "true"}
ALREADY = re.compile(r"0|nullptr|NULL|[A-Z]\w*\(\)|[A-Z_]+_(?:OK|SUCCESS)")
BRANCH = re.compile(r"\bif \(")


def closing(code, begin):
    """The place where the bracket at `begin` is closed; None if it is not closed."""
    depth = 0
    for place in range(begin, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place
    return None


def statements(code):
    """(begin, end with the semicolon) of all texts between semicolons and braces."""
    begin, depth = 0, 0
    for place, letter in enumerate(code):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0 and letter in "{};":
            if letter == ";":
                text = code[begin:place]
                first = begin + len(text) - len(text.lstrip())
                yield first, place + 1
            begin = place + 1


def without_directives(code):
    """Blanks the lines of the preprocessor and those that continue them."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
                  lambda found: re.sub(r"[^\n]", " ", found[0]), code, flags=re.MULTILINE)


def checks(code):
    """(begin, end) of assertions: what they check holds, so no test could notice a change."""
    for found in re.finditer(r"\b(?:static_assert|UCG_ASSERT\w*|assert) ?\(", code):
        yield found.start(), closing(code, found.end() - 1) or len(code)


def operators(code):
    """Replaces a comparison, a sign, a logical operator, a minimum or a maximum by another one, or
    removes a 1."""
    for found in OPERATOR.finditer(code):
        new = {"min": "max", "max": "min"}.get(found[0]) or OPERATORS.get(found[0], "")
        yield found.start(), found.end(), new, f"{found[0].strip()} to {new.strip() or 'nothing'}"


def removals(code):
    """Removes a statement."""
    for begin, end in statements(code):
        text = code[begin:end - 1]
        if STATEMENT.fullmatch(text) and not KEYWORD.match(text):
            yield begin, end, ";", "statement removed"


def branches(code):
    """Makes a branch be taken never, or always."""
    for found in BRANCH.finditer(code):
        end = closing(code, found.end() - 1)
        inside = code[found.end():end]
        # The condition begins after a declaration within `if`.
        begin = found.end() + inside.rfind(";") + 1
        text = code[begin:end]
        if end is None or not text.strip() or " = " in text or "{" in text:
            continue
        yield begin, end, f" ({text.strip()}) && false".lstrip(), "branch never taken"
        yield begin, end, f" ({text.strip()}) || true".lstrip(), "branch always taken"


def returns(code, default):
    """Replaces a returned value by a constant."""
    for found in RETURN.finditer(code):
        new = CONSTANTS.get(found[1], default)
        if not ALREADY.fullmatch(found[1]):
            yield found.start(1), found.end(1), new, f"return {new}"


def mutants(area, path, text):
    """All mutants of one file."""
    code = without_directives(without_comments_and_strings(text))
    checked = list(checks(code))
    default = "0" if path.endswith((".c", ".h")) else "{}"
    for found in (operators(code), removals(code), branches(code), returns(code, default)):
        for begin, end, new, what in found:
            if any(first <= begin < last for first, last in checked):
                continue
            if code[begin:end] != text[begin:end]:  # Literals are not changed.
                new = restored(text[begin:end], code[begin:end], new)
            yield Mutant(area, path, begin, end, new, what)


def restored(original, blanked, new):
    """`new` with the literals of the text put back that blanking had removed from it."""
    stripped = blanked.strip()
    return new.replace(stripped, original.strip()) if stripped and stripped in new else new
