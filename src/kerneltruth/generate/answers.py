"""Write a generation's results: its answers as submissions, and counts by round."""

from __future__ import annotations

from pathlib import Path

from kerneltruth.documents.generations import AnswerLine, Refinement
from kerneltruth.documents.lines import SpentRecord
from kerneltruth.generate.account import Prices
from kerneltruth.generate.directory import BEST, publish
from kerneltruth.generate.trajectory import Method, Turn, best_of
from kerneltruth.generate.transcript import Exchange, Transcript
from kerneltruth.suites.generations import ANSWERS

Chain = tuple[str, int]


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
    chains: dict[Chain, list[Exchange]] = {}
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
            spent=spent_on(exchange, prices),
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


def spent_on(exchange: Exchange, prices: Prices | None) -> SpentRecord:
    """Return what an answer took; null means unknown."""
    usage = exchange.reply.usage
    return SpentRecord(
        prompt_tokens=usage.prompt if usage else None,
        completion_tokens=usage.completion if usage else None,
        seconds=exchange.seconds,
        cost=prices.of(usage.prompt, usage.completion) if usage and prices else None,
    )
