"""Extract the code from a model's reply: out of fences, prose and appended tests."""

from __future__ import annotations

import ast
import re
import warnings

from kerneltruth.runner.candidate import above_tests

# Text that reasoning models emit before their answer.
_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*</think(?:ing)?>", re.S)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.M | re.S)
# A fence that follows prose on its line, or ends on the last line of the code.
_LOOSE_FENCE = re.compile(r"(`{3,}|~{3,})[^\n`~]*\n(.*?)(?:\1|\Z)", re.S)
# A fence with code on the same line.
_CLOSE_FENCE = re.compile(r"(`{3,}|~{3,})(?:\w*[ \t]*\n)?(.*?)(?:\1|\Z)", re.S)
_OPEN_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^\n]*\n", re.M)


def code_of(reply: str) -> str:
    """Return the Python source in a reply.

    Text between `<think>` tags at the beginning is skipped. A reply that is Python as it stands is
    taken whole. Otherwise the longest fenced block that is Python counts, since replies show
    fragments beside the answer, even if the reply's end cuts it off. If nothing parses, the longest
    block or the whole text is left for the candidate's own verdict.
    """
    spoken = _THOUGHTS.sub("", reply.replace("\r\n", "\n"))
    text = above_tests(spoken)
    if _is_python(text):
        return text
    blocks = [match[2] for match in _FENCE.finditer(text)]
    if not blocks and (opened := _OPEN_FENCE.search(text)):
        blocks = [text[opened.end() :]]
    good = [block for block in blocks if _is_python(block)]
    if not good:
        fences = (_LOOSE_FENCE, _CLOSE_FENCE)
        loose = [match[2] for fence in fences for match in fence.finditer(text)]
        good = [block for block in loose if _is_python(block)]
    return max(good or blocks or [text], key=len)


def _is_python(text: str) -> bool:
    if not text.strip():
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
