"""Render `generate`: what was answered, what it cost, and what to do next."""

from __future__ import annotations

import shlex

from rich.console import Group, RenderableType
from rich.text import Text

from kerneltruth.documents.generations import GenerateDocument, Refinement, SpendingRecord

MOST_LISTED = 20


def generate_view(document: GenerateDocument) -> RenderableType:
    """Return counts with their denominators, one per line."""
    chains = document.chains
    parts: list[RenderableType] = [
        Text(
            f"{document.answers} answers in {chains} chains for {document.tasks} tasks of "
            f"{document.suite}, by {document.method}"
        )
    ]
    finishes = document.finishes
    if odd := {word: n for word, n in finishes.items() if word not in ("stop", "unknown")}:
        ends = ", ".join(f"{word} {n}" for word, n in sorted(odd.items()))
        parts.append(Text(f"answers cut off before their end: {ends} of {document.answers}"))
    if document.refine:
        parts.append(_refine(document.refine))
    parts += _missing(document)
    if document.account.calls:
        parts.append(_account(document.account))
    run = shlex.quote(document.run)
    parts.append(Text(f"generation: {document.run}"))
    parts.append(Text(f"judge it: kerneltruth run --suite {document.suite} --candidates {run}"))
    return Group(*parts)


def _refine(refine: Refinement) -> Text:
    chains = refine.chains
    return Text(
        f"right by the feedback's cases: at first {refine.right_at_first} of {chains}, "
        f"the best round {refine.right_at_best} of {chains}, "
        f"the last {refine.right_at_last} of {chains}"
    )


def _missing(document: GenerateDocument) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if document.stopped:
        parts.append(
            Text(
                f"the budget of {document.stopped} is spent: {document.not_asked} requests "
                "were not made; repeat the command with a larger budget to go on",
                "yellow",
            )
        )
    for item in document.unanswered[:MOST_LISTED]:
        text = f"not answered: {item.task} sample {item.sample}: {item.why}"
        parts.append(Text(text, "yellow"))
    for unread in document.broken[:MOST_LISTED]:
        parts.append(Text(f"not read: {unread.where}: {unread.why}", "yellow"))
    for count in (len(document.unanswered), len(document.broken)):
        if (more := count - MOST_LISTED) > 0:
            parts.append(Text(f"{more} more, all in --json", "yellow"))
    return parts


def _account(account: SpendingRecord) -> Text:
    if account.tokens is None:
        missing = account.answers_without_tokens
        tokens = f"{missing} of {account.answers} answers came without a count of their tokens"
    else:
        sent, said = account.prompt_tokens, account.completion_tokens
        tokens = f"{sent} + {said} tokens, prompts and answers"
    cost = "" if account.cost is None else f", cost {account.cost:.4f}"
    judged = f", {account.judge_seconds:.1f} s of judging" if account.judge_seconds else ""
    cached = f", {account.cached} of the answers from the cache" if account.cached else ""
    return Text(f"{account.calls} calls, {tokens}{cost}{judged}{cached}")
