"""Many requests asked: some at a time, with patience, within a budget, each answer kept at once."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kerneltruth.generate.account import Budget
from kerneltruth.generate.chat import ChatModel, Reply, Request, Trouble
from kerneltruth.generate.pace import Pace

_LOOK_UP_S = 0.2
# So many requests without an answer, one after the other, say that no one is there to answer.
GIVE_UP_AFTER = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A request and its answer; `tries` counts all calls."""

    request: Request
    reply: Reply
    tries: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A request that brought no answer, after all patience."""

    request: Request
    trouble: Trouble
    tries: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAsked:
    """A request that was not sent, and why: `calls`, `tokens`, `seconds` or `stopped`."""

    request: Request
    reason: str


Outcome = Answered | Unanswered | NotAsked


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often to try again, and how long to wait in between.

    Attributes:
        retries: further calls after the first.
        first_s: the wait before the second call; it doubles from one to the next.
        longest_s: no wait is longer; an endpoint that asks for a longer one is not asked again.
    """

    retries: int = 6
    first_s: float = 1.0
    longest_s: float = 300.0

    def wait_s(self, tries: int, trouble: Trouble, rng: random.Random) -> float | None:
        """The wait before another call, or None where there is to be none."""
        if trouble.scope != "call" or tries > self.retries:
            return None
        if trouble.wait_s is not None:
            return trouble.wait_s if trouble.wait_s <= self.longest_s else None
        # Spread, so that requests that failed together do not come back together.
        longest = min(self.first_s * 2.0 ** (tries - 1), self.longest_s)
        return longest * rng.uniform(0.5, 1.0)


class Desk:
    """Asks a model many things; threads of this process do the waiting.

    Attributes:
        spoilt: the trouble that ended everything, if there was one.
        refusal: what the budget had no more of, if it forbade a call.
        on_their_way: calls that wait for their answer.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        budget: Budget,
        pace: Pace,
        patience: Patience,
        workers: int,
        record: Callable[[Answered | Unanswered], None],
        heard: bool = False,
        seed: int = 0,
    ) -> None:
        """Prepare.

        Args:
            model: to be asked.
            budget: what may be spent.
            pace: how often.
            patience: with calls that fail.
            workers: how many requests may be on their way at once.
            record: keeps an outcome; it is called before anyone else sees it, one at a time.
            heard: whether this model has answered such requests before.
            seed: of the spread of waits.
        """
        self.spoilt: Trouble | None = None
        self.refusal: str | None = None
        self.on_their_way = 0
        self._model = model
        self._budget = budget
        self._pace = pace
        self._patience = patience
        self._workers = workers
        self._record = record
        self._rng = random.Random(seed)
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._in_a_row = 0
        self._heard = heard
        self._threads: list[threading.Thread] = []

    def stop(self) -> None:
        """Send nothing more."""
        self._stopped.set()

    def wait(self) -> None:
        """Wait for what is on its way, whose outcomes are recorded; after `stop`."""
        for thread in self._threads:
            thread.join()

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """Ask everything; outcomes come as they are, and one for each request."""
        waiting: queue.SimpleQueue[Request] = queue.SimpleQueue()
        outcomes: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
        for request in requests:
            waiting.put(request)

        def work() -> None:
            try:
                while True:
                    outcomes.put(self._ask(waiting.get_nowait()))
            except queue.Empty:
                return
            except BaseException as error:
                self._stopped.set()
                outcomes.put(error)

        self._threads = [
            # Daemons: a second Ctrl-C need not wait for an answer that may take minutes.
            threading.Thread(target=work, daemon=True)
            for _ in range(min(self._workers, len(requests)))
        ]
        for thread in self._threads:
            thread.start()
        for _ in requests:
            # Waits in short turns, so that Ctrl-C is heard.
            while (outcome := _taken(outcomes)) is None:
                pass
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome
        self.wait()

    def _ask(self, request: Request) -> Outcome:
        began = time.monotonic()
        tries = 0
        last: Trouble | None = None
        while True:
            refusal = self._admitted(request)
            if refusal is not None:
                if last is None:
                    return NotAsked(request=request, reason=refusal)
                return self._kept_trouble(request, last, tries, began)
            tries += 1
            outcome = self._called(request)
            if isinstance(outcome, Reply):
                return self._kept_answer(request, outcome, tries, began)
            self._budget.settle(request, None, None)
            last = outcome
            with self._lock:
                wait_s = self._patience.wait_s(tries, outcome, self._rng)
            if wait_s is not None and self._budget.ends_within(wait_s):
                self.refusal, wait_s = "seconds", None
            if wait_s is None:
                return self._kept_trouble(request, outcome, tries, began)
            if outcome.wait_s is not None:
                self._pace.hold(outcome.wait_s)
            self._stopped.wait(wait_s)

    def _called(self, request: Request) -> Reply | Trouble:
        with self._lock:
            self.on_their_way += 1
        try:
            return self._model.call(request)
        finally:
            with self._lock:
                self.on_their_way -= 1

    def _admitted(self, request: Request) -> str | None:
        """Wait for the budget and the pace; returns what forbids the call, or None."""
        if self._stopped.is_set():
            return "stopped"
        refusal = self._budget.admit(request, self._stopped.is_set)
        if refusal is not None:
            self.refusal = refusal
            return refusal
        wait_s = self._pace.turn()
        if self._budget.ends_within(wait_s):
            self._budget.withdraw(request)
            self.refusal = "seconds"
            return self.refusal
        if self._stopped.wait(wait_s):
            self._budget.withdraw(request)
            return "stopped"
        return None

    def _kept_answer(self, request: Request, reply: Reply, tries: int, began: float) -> Answered:
        seconds = time.monotonic() - began
        answered = Answered(request=request, reply=reply, tries=tries, seconds=seconds)
        with self._lock:
            self._in_a_row, self._heard = 0, True
            self._record(answered)
        self._budget.settle(request, reply.usage, reply.text)
        return answered

    def _kept_trouble(
        self, request: Request, trouble: Trouble, tries: int, began: float
    ) -> Unanswered:
        seconds = time.monotonic() - began
        unanswered = Unanswered(request=request, trouble=trouble, tries=tries, seconds=seconds)
        with self._lock:
            if trouble.scope == "chain":
                return unanswered
            self._record(unanswered)
            # A request may be one that cannot be answered; where none could be yet, they all are.
            counts = trouble.scope != "request" or not self._heard
            self._in_a_row += counts and not self._stopped.is_set()
            if trouble.scope == "endpoint" or self._in_a_row >= GIVE_UP_AFTER:
                self.spoilt = self.spoilt or trouble
                self._stopped.set()
        return unanswered


def _taken(
    outcomes: queue.SimpleQueue[Outcome | BaseException],
) -> Outcome | BaseException | None:
    try:
        return outcomes.get(timeout=_LOOK_UP_S)
    except queue.Empty:
        return None
