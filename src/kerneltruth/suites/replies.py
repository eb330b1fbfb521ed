"""Extract the code from a model's reply: out of fences, prose and appended tests."""

from __future__ import annotations

import re

from kerneltruth.runner.bundle import parsed_text
from kerneltruth.runner.candidate import above_tests

# Text that reasoning models emit before their answer.
_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*</think(?:ing)?>", re.S)
# Runs are matched whole: a long one of ` would else be tried at each of its signs.
_RUN = r"(?<!`)`{3,}+|(?<!~)~{3,}+"
_FENCE = re.compile(rf"[ \t]*({_RUN})([^\n]*)")
# A fence that follows prose on its line, or ends on the last line of the code.
_LOOSE_FENCE = re.compile(rf"({_RUN})[^\n`~]*\n(.*?)(?:\1|\Z)", re.S)
# A fence with code on the same line.
_CLOSE_FENCE = re.compile(rf"({_RUN})(?:\w*[ \t]*\n)?(.*?)(?:\1|\Z)", re.S)
_OPEN_FENCE = re.compile(rf"^[ \t]*(?:{_RUN})[^\n]*\n", re.M)


def code_of(reply: str) -> str:
    """Return the Python source in a reply.

    Text between `<think>` tags at the beginning is skipped. A reply that is Python as it stands is
    taken whole. Otherwise the longest fenced block that is Python counts, since replies show
    fragments beside the answer, even if the reply's end cuts it off. If nothing parses, the longest
    block or the whole text is left for the candidate's own verdict.
    """
    text = above_tests(spoken(reply))
    if _is_python(text):
        return text
    blocks = _fenced(text)
    if not blocks and (opened := _OPEN_FENCE.search(text)):
        blocks = [text[opened.end() :]]
    good = [block for block in blocks if _is_python(block)]
    if not good:
        fences = (_LOOSE_FENCE, _CLOSE_FENCE)
        loose = [match[2] for fence in fences for match in fence.finditer(text)]
        good = [block for block in loose if _is_python(block)]
    return max(good or blocks or [text], key=len)


def spoken(reply: str) -> str:
    """Return a reply without the thoughts at its beginning."""
    return _THOUGHTS.sub("", reply.replace("\r\n", "\n"))


def _fenced(text: str) -> list[str]:
    """Return the texts between fences, in linear time."""
    lines = [f"{line}\n" for line in text.split("\n")]
    fences = [_FENCE.match(line) for line in lines]
    closing = {f[1]: n for n, f in enumerate(fences) if f is not None and not f[2].strip(" \t\r")}
    found: list[str] = []
    opened: tuple[str, int] | None = None
    for number, fence in enumerate(fences):
        if fence is None:
            continue
        if opened is None:
            if closing.get(fence[1], -1) > number:
                opened = fence[1], number + 1
        elif fence[1] == opened[0] and not fence[2].strip(" \t\r"):
            found.append("".join(lines[opened[1] : number]))
            opened = None
    return found


def _is_python(text: str) -> bool:
    if not text.strip():
        return False
    try:
        parsed_text(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
