"""Write a generation's results: its answers as submissions, and counts by round."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from kerneltruth.documents.generations import AnswerLine, Refinement
from kerneltruth.documents.lines import SpentRecord
from kerneltruth.generate.account import Prices
from kerneltruth.generate.directory import BEST, publish
from kerneltruth.generate.trajectory import Method
from kerneltruth.generate.transcript import Exchange, Transcript
from kerneltruth.generate.turns import Turn, best_of
from kerneltruth.suites.generations import ANSWERS

ChainKey = tuple[str, int]
N = TypeVar("N", int, float)


def refinement(chains: list[list[Turn]]) -> Refinement:
    """Count by round, from the verdicts of the feedback."""
    begun = [turns for turns in chains if turns and all(t.review is not None for t in turns)]
    rights = [[t.review is not None and t.review.is_right for t in turns] for turns in begun]
    return Refinement(
        chains=len(begun),
        right_at_first=sum(right[0] for right in rights),
        right_at_best=sum(any(right) for right in rights),
        right_at_last=sum(right[-1] for right in rights),
        rounds=sum(len(turns) for turns in begun),
    )


def publish_answers(
    path: Path,
    suite: str,
    method: Method,
    label: str,
    transcript: Transcript,
    prices: Prices | None,
) -> None:
    """Write what `run` reads: all answers, and separately the best one of each chain."""
    chains: dict[ChainKey, list[Exchange]] = {}
    for exchange in transcript.exchanges():
        chains.setdefault((exchange.task, exchange.sample), []).append(exchange)

    def line(exchange: Exchange) -> AnswerLine:
        return AnswerLine(
            task=exchange.task.removeprefix(f"{suite}/"),
            suite=suite,
            method=method.name,
            model=label,
            sample=exchange.sample,
            round=exchange.round,
            finish=exchange.reply.finish,
            predict=exchange.reply.text,
            spent=spent_on(exchange, prices, transcript),
        )

    publish(path, ANSWERS, (line(e) for exchanges in chains.values() for e in exchanges))
    if not method.asks_the_judge:
        return
    best = []
    for exchanges in chains.values():
        turns = [
            Turn(reply=e.reply, review=transcript.review(e.task, e.sample, e.round))
            for e in exchanges
        ]
        best.append(line(exchanges[best_of(turns)]))
    publish(path, BEST, best)


def spent_on(exchange: Exchange, prices: Prices | None, transcript: Transcript) -> SpentRecord:
    """Return what an answer took, with the diagnosis that led to it; null means unknown.

    A diagnosis that led to no answer counts for the one that it is about.
    """
    task, sample, turn = exchange.task, exchange.sample, exchange.round
    parts = [exchange, transcript.diagnosis(task, sample, turn - 1)]
    if transcript.reply(task, sample, turn + 1) is None:
        parts.append(transcript.diagnosis(task, sample, turn))
    said = [part for part in parts if part is not None]
    usages = [part.reply.usage for part in said]
    prompt = _whole([usage.prompt if usage else None for usage in usages])
    completion = _whole([usage.completion if usage else None for usage in usages])
    review = transcript.review(task, sample, turn)
    return SpentRecord(
        prompt_tokens=prompt,
        completion_tokens=completion,
        seconds=_whole([part.seconds for part in said]),
        cost=None
        if prices is None or prompt is None or completion is None
        else prices.of(prompt, completion),
        judge_seconds=review.seconds if review else 0.0,
    )


def _whole(amounts: Sequence[N | None]) -> N | None:
    """Return the sum; None if one is unknown."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known[1:], known[0]) if len(known) == len(amounts) else None
