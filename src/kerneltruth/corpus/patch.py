"""Apply a unified diff to the one text that it was made from."""

from __future__ import annotations

import re

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


def apply_patch(patch: str, text: str) -> str:
    """Return the text with the changes of its patch, as `diff -u` writes them.

    Raises:
        ValueError: the text is not what the patch was made from.
    """
    old, new = text.splitlines(keepends=True), list[str]()
    taken = 0
    for line in patch.splitlines(keepends=True)[2:]:  # The first two name the files.
        if found := _HUNK.match(line):
            begin = int(found[1]) - 1
            new += old[taken:begin]
            taken = begin
        elif line.startswith("+"):
            new.append(line[1:])
        elif old[taken : taken + 1] == [line[1:]]:
            new += old[taken : taken + 1] if line.startswith(" ") else []
            taken += 1
        else:
            raise ValueError(f"line {taken + 1} is not {line[1:].rstrip()!r}")
    return "".join(new + old[taken:])
