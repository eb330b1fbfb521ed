"""Account for what answers cost, and enforce limits: calls, tokens, seconds, money."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from kerneltruth.documents.generations import SpendingRecord
from kerneltruth.generate.chat import Reply, Request, Usage, byte_count, text_size

# Code and English have 3 to 5 bytes per token; an endpoint that does not count is charged at this
# cautious rate.
BYTES_PER_TOKEN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a million tokens cost, in the user's currency."""

    prompt: float
    completion: float

    def of(self, prompt: int, completion: int) -> float:
        """Return the cost of these numbers of tokens."""
        return (prompt * self.prompt + completion * self.completion) / 1e6


@dataclass(slots=True)
class Account:
    """What all commands of a generation spent together.

    Attributes:
        calls: requests sent, including those without an answer, or taken from a cache.
        unreported: answers whose tokens the endpoint did not count.
        estimated: a cautious guess of those tokens, for budgets alone.
        cached: answers that came from a cache; they count all the same.
        judge_s: seconds of judging and timing answers between rounds.
    """

    calls: int = 0
    answers: int = 0
    prompt: int = 0
    completion: int = 0
    unreported: int = 0
    estimated: int = 0
    cached: int = 0
    judge_s: float = 0.0

    def add_answer(
        self, tries: int, usage: Usage | None, size: int, *, cached: bool = False
    ) -> None:
        """Count an answer; `size` is the bytes of request and answer."""
        self.calls += tries
        self.answers += 1
        self.cached += cached
        if usage is None:
            self.unreported += 1
            self.estimated += size // BYTES_PER_TOKEN + 1
        else:
            self.prompt += usage.prompt
            self.completion += usage.completion

    def document(self, prices: Prices | None) -> SpendingRecord:
        """Return the account as the command prints it; null means unknown."""
        known = self.unreported == 0
        cost = prices.of(self.prompt, self.completion) if prices and known else None
        return SpendingRecord(
            calls=self.calls,
            answers=self.answers,
            prompt_tokens=self.prompt if known else None,
            completion_tokens=self.completion if known else None,
            tokens=self.prompt + self.completion if known else None,
            answers_without_tokens=self.unreported,
            cost=cost,
            cached=self.cached,
            judge_seconds=self.judge_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingLimits:
    """What a generation may spend; None means no limit.

    Attributes:
        seconds: of one command; requests already on their way are still waited for.
        judge_seconds: of judging and timing answers between rounds; none is begun after them.
        reply_tokens: the most tokens of one answer; every request states it.
    """

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    judge_seconds: float | None = None
    reply_tokens: int = 8192


class Budget:
    """Admits requests while the budget lasts.

    A request reserves the most that it may cost, so that parallel requests cannot overspend.
    """

    def __init__(
        self,
        limits: SpendingLimits,
        account: Account,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._account = account
        self._clock = clock
        self._until = None if limits.seconds is None else clock() + limits.seconds
        self._reserved = 0
        self._freed = asyncio.Event()

    async def admit(self, request: Request) -> str | None:
        """Reserve a call; return what forbids it (`calls`, `tokens`, `seconds`) or None.

        Waits while only requests in flight block it.
        """
        cost = self._most(request)
        while (refusal := self._refusal(cost)) == "tokens" and self._reserved:
            await self._freed.wait()
        if refusal is None:
            self._account.calls += 1
            self._reserved += cost
        return refusal

    @property
    def judge_is_spent(self) -> bool:
        """Return whether no further answer may be judged."""
        limit = self._limits.judge_seconds
        return limit is not None and self._account.judge_s >= limit

    @property
    def has_answers(self) -> bool:
        """Return whether the model has answered before."""
        return self._account.answers > 0

    def ends_within(self, seconds: float) -> bool:
        """Return whether the time ends within `wait_s`, so that waiting is useless."""
        return self._until is not None and self._clock() + seconds >= self._until

    def settle(self, request: Request, reply: Reply | None, *, cached: bool = False) -> None:
        """Record the cost of an admitted call; `reply` is None if it brought no answer."""
        self._free(request)
        if reply is not None:
            size = text_size(request.messages) + byte_count(reply.text)
            self._account.add_answer(0, reply.usage, size, cached=cached)

    def withdraw(self, request: Request) -> None:
        """Return an admitted call that was never sent."""
        self._free(request)
        self._account.calls -= 1

    def _free(self, request: Request) -> None:
        self._reserved -= self._most(request)
        self._freed.set()
        self._freed = asyncio.Event()

    def _most(self, request: Request) -> int:
        prompt = text_size(request.messages) // BYTES_PER_TOKEN + 1
        return prompt + self._limits.reply_tokens

    def _refusal(self, cost: int) -> str | None:
        limits, account = self._limits, self._account
        if limits.calls is not None and account.calls >= limits.calls:
            return "calls"
        if self._until is not None and self._clock() >= self._until:
            return "seconds"
        if limits.tokens is not None:
            spent = account.prompt + account.completion + account.estimated
            if spent + self._reserved + cost > limits.tokens:
                return "tokens"
        return None
