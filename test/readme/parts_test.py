#!/usr/bin/env python3
"""Tests what commands.py takes for a command, and that it leaves no command out for want of a
rule."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import documents  # noqa: E402 (the lines above must come first)
import rules  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

PAGE = """# A page

Words, and `ucg_info -d` in a
sentence, with `ucg_plan
show` over two lines; `a + b`, `tools/check` and `UCG_TLS=shm` are none.

    tools/check --only unit      # what it does,
                                 # in two lines
    one && two; three
    long \\
        --more

1. An item
    that goes on.

```
fenced 1
```

    drawing ──>
    second line
"""


class Documents(unittest.TestCase):
    def commands(self, not_commands):
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "README.md"), "w", encoding="utf-8") as file:
                file.write(PAGE)
            os.mkdir(os.path.join(root, "build-x"))
            with open(os.path.join(root, "build-x", "OTHER.md"), "w", encoding="utf-8") as file:
                file.write("    not ours\n")
            return documents.commands(root, not_commands)

    def test_what_is_a_command(self):
        found, stale = self.commands([("README.md", "drawing")])
        self.assertEqual(stale, set())
        self.assertEqual(
            [(command.line, command.text) for command in found],
            [(7, "tools/check --only unit"), (9, "one && two; three"), (10, "long --more"),
             (17, "fenced 1"), (3, "ucg_info -d"), (4, "ucg_plan show")])

    def test_a_block_that_is_gone_is_told(self):
        self.assertEqual(self.commands([("README.md", "drawing"), ("README.md", "other")])[1],
                         {("README.md", "other")})


class Rules(unittest.TestCase):
    def test_what_nobody_has_classified_fits_no_rule(self):
        for text in ("rm -rf build", "tools/new_tool --help", "sudo tools/packages build",
                     "ompi_info --all", "ninja -C elsewhere"):
            self.assertIsNone(rules.rule_of(text), text)

    def test_every_command_of_every_page_fits_a_rule(self):
        found, stale = documents.commands(ROOT, rules.NOT_COMMANDS)
        self.assertEqual(stale, set())
        self.assertGreater(len(found), 60)
        self.assertEqual([str(command) for command in found
                          for part in rules.parts(command.text) if rules.rule_of(part) is None], [])

    def test_a_line_is_run_in_parts(self):
        self.assertEqual(rules.parts("a b && c; d"), ["a b", "c", "d"])

    def test_changes(self):
        self.assertEqual(rules.changed("ninja -C build", rules.rule_of("ninja -C build")),
                         "ninja -C build -n")

    def test_every_page_can_be_reached_from_the_front_page(self):
        pages = set(documents.pages(ROOT))
        reached, left = set(), {"README.md"}
        while left:
            page = left.pop()
            reached.add(page)
            found = documents.links(ROOT, page)
            missing = [link for link in found if not os.path.exists(os.path.join(ROOT, link))]
            self.assertEqual(missing, [], page)
            left |= (found & pages) - reached
        self.assertEqual(pages - reached, set())


if __name__ == "__main__":
    unittest.main()
