"""The method `geak`: generate, reflect, optimize, after GEAK (arXiv 2507.23194).

After each review the model diagnoses it in words, and the next kernel is asked for with that
diagnosis. A kernel that is not right is debugged from the last answer. Once one is right and timed,
a faster one is asked for, beside the fastest so far, slowest first, each with its times and its
diagnosis. The limits are those of GEAK's own agent (`ancestor_num`, `max_perf_debug_num`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from kerneltruth.generate.chat import Message, Request
from kerneltruth.generate.prompts import Prompts
from kerneltruth.generate.turns import Turn, rank_of
from kerneltruth.suites.replies import code_of, spoken

# Right kernels that a request for a faster one shows.
MOST_SHOWN = 5
# Attempts to debug one faster kernel; then another is begun from those that are right.
MOST_DEBUGGED = 5
NO_DIAGNOSIS = "I cannot say."


def next_step(
    task: str, sample: int, turns: Sequence[Turn], begun: Sequence[Message], prompts: Prompts
) -> Request | None:
    """Return the next request of a chain whose answers all have a review; None at its end.

    `begun` is the conversation with which every request begins.
    """
    last = turns[-1]
    assert last.review is not None
    if not last.review.says_something:
        return None
    if last.diagnosis is None:
        return Request(
            task=task,
            sample=sample,
            round=len(turns) - 1,
            part="diagnosis",
            messages=(*begun, *_reviewed(last, prompts)),
        )
    timed = sorted((t for t in turns if t.review and t.review.timings), key=rank_of)
    failed = len([*takewhile(lambda t: not t.review or not t.review.is_right, reversed(turns))])
    # One answer begins a kernel, and the next ones debug it while it fails.
    if timed and failed % (1 + MOST_DEBUGGED) == 0:
        shown, request = timed[-1], _faster(timed, failed, prompts)
    else:
        shown, request = last, prompts.fill("apply")
    messages = (*begun, *_reviewed(shown, prompts), *_diagnosed(shown))
    return Request(
        task=task,
        sample=sample,
        round=len(turns),
        messages=(*messages, Message(role="user", content=request)),
    )


def _reviewed(turn: Turn, prompts: Prompts) -> tuple[Message, Message]:
    assert turn.review is not None
    return (
        Message(role="assistant", content=turn.reply.text),
        Message(role="user", content=prompts.to_diagnose(turn.review)),
    )


def _diagnosed(turn: Turn) -> tuple[Message, ...]:
    # Some endpoints refuse an empty message.
    return (Message(role="assistant", content=_words(turn) or NO_DIAGNOSIS),)


def _words(turn: Turn) -> str:
    return "" if turn.diagnosis is None else spoken(turn.diagnosis.text).strip()


def _faster(timed: Sequence[Turn], failed: int, prompts: Prompts) -> str:
    """Ask for a faster kernel, beside all that are shown but the fastest, which is in sight."""
    others = [
        prompts.version_of(turn.review, code_of(turn.reply.text), _words(turn))
        for turn in timed[-MOST_SHOWN:-1]
        if turn.review is not None
    ]
    return prompts.optimize(others, failed=failed)
