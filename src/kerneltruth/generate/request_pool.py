"""Send many requests to one model: in parallel, with retries, within a budget."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kerneltruth.generate.account import Budget
from kerneltruth.generate.cache import AnswerCache, CachedAnswer
from kerneltruth.generate.chat import ApiError, ChatModel, Reply, Request

# This many requests in a row without an answer mean that the endpoint is down.
GIVE_UP_AFTER = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request and its answer, or the error that was left after all retries.

    `tries` counts all calls. An answer from a cache counts as one call, of the seconds that it once
    took.
    """

    request: Request
    answer: Reply | ApiError
    tries: int
    seconds: float
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """A request that was not sent, and the reason: `calls`, `tokens`, `seconds` or `stopped`."""

    request: Request
    reason: str


Settled = Sent | NotSent


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often to retry, and how long to wait in between.

    Attributes:
        retries: further calls after the first.
        first_s: the wait before the second call; it doubles each time.
        longest_s: the longest wait; an endpoint that asks for a longer one is not called again.
    """

    retries: int = 6
    first_s: float = 1.0
    longest_s: float = 300.0

    def wait_s(self, tries: int, error: ApiError, rng: random.Random) -> float | None:
        """Return the wait before another call, or None for no further call."""
        if error.scope != "call" or tries > self.retries:
            return None
        if error.wait_s is not None:
            return error.wait_s if error.wait_s <= self.longest_s else None
        # Spread out, so that requests that failed together do not return together.
        longest = min(self.first_s * 2.0 ** (tries - 1), self.longest_s)
        return longest * rng.uniform(0.5, 1.0)


class RequestPool:
    """Sends requests to a model in parallel, in an event loop that runs while callers wait.

    Attributes:
        fatal: the error that ended everything, if any.
        refusal: the exhausted part of the budget, if it forbade a call.
        in_flight: calls that wait for their answer.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        budget: Budget,
        pace: Pace,
        retry: RetryPolicy,
        concurrency: int,
        record: Callable[[Sent], None],
        cache: AnswerCache | None = None,
        seed: int = 0,
    ) -> None:
        """Send nothing yet.

        `record` stores what was settled before it is yielded.
        """
        self.fatal: ApiError | None = None
        self.refusal: str | None = None
        self.in_flight = 0
        self._model = model
        self._budget = budget
        self._pace = pace
        self._retry = retry
        self._record = record
        self._cache = cache
        self._answered_before = budget.has_answers
        self._rng = random.Random(seed)
        self._errors_in_a_row = 0
        self._runner = asyncio.Runner()
        self._slots = asyncio.Semaphore(concurrency)
        self._stopped = asyncio.Event()
        self._tasks: dict[asyncio.Task[Settled], int] = {}

    def ask(self, requests: Sequence[Request]) -> Iterator[Settled]:
        """Send all requests; yield each as it is settled."""
        loop = self._runner.get_loop()
        self._tasks = {loop.create_task(self._slotted(r)): n for n, r in enumerate(requests)}
        pending = set(self._tasks)
        while pending:
            done, pending = self._runner.run(
                asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            )
            for task in sorted(done, key=self._tasks.__getitem__):
                yield task.result()

    def stop(self) -> None:
        """Send nothing more."""
        self._stopped.set()

    def wait(self) -> None:
        """Wait for open requests after `stop`; what they settle is recorded."""
        if self._tasks:
            self._runner.run(asyncio.wait(self._tasks))

    def close(self) -> None:
        """Cancel open requests, and close the model's connections."""
        for task in self._tasks:
            task.cancel()
        with self._runner:
            self._runner.run(self._model.close())

    async def _slotted(self, request: Request) -> Settled:
        async with self._slots:
            try:
                return await self._ask(request)
            except BaseException:
                self.stop()
                raise

    async def _ask(self, request: Request) -> Settled:
        if self._cache is not None and (kept := self._cache.get(request)) is not None:
            return await self._recalled(request, kept)
        began, tries = time.monotonic(), 0
        refusal = await self._refusal_of(request)
        if refusal is not None:
            return NotSent(request=request, reason=refusal)
        while True:
            tries += 1
            answer = await self._call(request)
            seconds = time.monotonic() - began
            sent = Sent(request=request, answer=answer, tries=tries, seconds=seconds)
            if isinstance(answer, Reply):
                settled = self._kept_answer(sent, answer)
                if self._cache is not None:
                    self._cache.put(request, answer, seconds)
                return settled
            self._budget.settle(request, None)
            if not await self._may_retry(request, answer, tries):
                return self._kept_error(sent, answer)

    async def _recalled(self, request: Request, kept: CachedAnswer) -> Settled:
        """Take an answer from the cache: the budget admits it as a call, and the pace is free."""
        refusal = "stopped" if self._stopped.is_set() else await self._budget.admit(request)
        if refusal is not None:
            if refusal != "stopped":
                self.refusal = refusal
            return NotSent(request=request, reason=refusal)
        sent = Sent(request=request, answer=kept.reply, tries=1, seconds=kept.seconds, cached=True)
        return self._kept_answer(sent, kept.reply)

    async def _call(self, request: Request) -> Reply | ApiError:
        self.in_flight += 1
        try:
            return await self._model.call(request)
        finally:
            self.in_flight -= 1

    async def _may_retry(self, request: Request, error: ApiError, tries: int) -> bool:
        """Wait until a retry may follow this error; return whether one may."""
        wait_s = self._retry.wait_s(tries, error, self._rng)
        if wait_s is None:
            return False
        if self._budget.ends_within(wait_s):
            self.refusal = "seconds"
            return False
        if error.wait_s is not None:
            self._pace.hold(error.wait_s)
        await self._sleep(wait_s)
        return await self._refusal_of(request) is None

    async def _refusal_of(self, request: Request) -> str | None:
        """Wait for the budget and the pace; return what forbids the call, or None."""
        if self._stopped.is_set():
            return "stopped"
        refusal = await self._budget.admit(request)
        if refusal is None:
            wait_s = self._pace.turn()
            if not self._budget.ends_within(wait_s):
                await self._sleep(wait_s)
                if not self._stopped.is_set():
                    return None
                self._budget.withdraw(request)
                return "stopped"
            self._budget.withdraw(request)
            refusal = "seconds"
        self.refusal = refusal
        return refusal

    async def _sleep(self, seconds: float) -> None:
        """Wait `seconds`, or until nothing more is to be sent."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

    def _kept_answer(self, sent: Sent, reply: Reply) -> Sent:
        self._errors_in_a_row, self._answered_before = 0, True
        self._record(sent)
        self._budget.settle(sent.request, reply, cached=sent.cached)
        return sent

    def _kept_error(self, sent: Sent, error: ApiError) -> Sent:
        if error.scope == "chain":
            return sent
        self._record(sent)
        # A single request may be unanswerable; if none was answered yet, all are.
        counts = error.scope != "request" or not self._answered_before
        self._errors_in_a_row += counts and not self._stopped.is_set()
        if error.scope == "endpoint" or self._errors_in_a_row >= GIVE_UP_AFTER:
            self.fatal = self.fatal or error
            self.stop()
        return sent


class Pace:
    """Spaces requests: one every 60 / `per_minute` seconds, without bursts."""

    def __init__(
        self, per_minute: float | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gap = 60 / per_minute if per_minute else 0.0
        self._clock = clock
        self._next = clock()

    def turn(self) -> float:
        """Reserve the next slot; return the seconds until it."""
        now = self._clock()
        at = max(self._next, now)
        self._next = at + self._gap
        return at - now

    def hold(self, seconds: float) -> None:
        """Send nothing for `seconds`."""
        self._next = max(self._next, self._clock() + seconds)
