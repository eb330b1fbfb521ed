"""Many candidates judged: reports as they end, for a loop and for `async for`."""

from __future__ import annotations

import itertools
import queue
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
)
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from kerneltruth.library.candidates import Judgeable, Source, source_in_answer
from kerneltruth.library.messages import Checked, Timed
from kerneltruth.library.report import Report, report_of

if TYPE_CHECKING:
    import asyncio

SendSource = Callable[[Source], Future[Checked | Timed]]


def streamed(candidates: Iterable[Judgeable], ahead: int, ask: SendSource) -> Iterator[Report]:
    """Yield reports as they end; closing the iterator cancels what is open.

    Args:
        candidates: taken as they are needed.
        ahead: how many questions are open at once.
        ask: sends a question.
    """
    open_: dict[Future[Checked | Timed], tuple[int, Source]] = {}
    ended: queue.SimpleQueue[Future[Checked | Timed]] = queue.SimpleQueue()
    numbered = enumerate(candidates)
    try:
        while True:
            for index, each in itertools.islice(numbered, ahead - len(open_)):
                source = source_in_answer(each)
                future = ask(source)
                open_[future] = index, source
                future.add_done_callback(ended.put)
            if not open_:
                return
            done = ended.get()
            index, source = open_.pop(done)
            yield report_of(source, done.result(), index)
    finally:
        for future in open_:
            future.cancel()


def astreamed(
    candidates: Iterable[Judgeable] | AsyncIterable[Judgeable], ahead: int, ask: SendSource
) -> AsyncGenerator[Report, None]:
    """Yield reports as they end, for `async for`; arguments as for `streamed`."""
    return _AsyncStream(candidates, ahead, ask).reports()


class _AsyncStream:
    """Open questions, and the next candidate on its way."""

    def __init__(
        self,
        candidates: Iterable[Judgeable] | AsyncIterable[Judgeable],
        ahead: int,
        ask: SendSource,
    ) -> None:
        self._candidates = _each(candidates)
        self._ahead = ahead
        self._ask = ask
        self._index = 0
        self._next: asyncio.Future[Judgeable | None] | None = None
        self._open: dict[asyncio.Future[Checked | Timed], tuple[int, Source]] = {}

    async def reports(self) -> AsyncGenerator[Report, None]:
        """Yield reports until candidates and open questions are at an end."""
        self._take()
        try:
            while self._next is not None or self._open:
                ended = await self._ended()
                for done in [future for future in self._open if future in ended]:
                    index, source = self._open.pop(done)
                    yield report_of(source, done.result(), index)
                if self._next is not None and self._next in ended:
                    await self._ask_next(self._next.result())
        finally:
            for future in (*self._open, *([self._next] if self._next else ())):
                future.cancel()

    def _take(self) -> None:
        import asyncio

        self._next = asyncio.ensure_future(anext(self._candidates, None))

    async def _ended(self) -> set[asyncio.Future[Any]]:
        """Wait for an answer or, while there is room, for the next candidate."""
        import asyncio

        watched: list[asyncio.Future[Any]] = [*self._open]
        if self._next is not None and len(self._open) < self._ahead:
            watched.append(self._next)
        ended, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
        return ended

    async def _ask_next(self, candidate: Judgeable | None) -> None:
        import asyncio

        if candidate is None:
            self._next = None
            return
        source = source_in_answer(candidate)
        # A long text may have to wait for a server that still warms up.
        question = await asyncio.to_thread(self._ask, source)
        self._open[asyncio.wrap_future(question)] = self._index, source
        self._index += 1
        self._take()


async def _each(
    candidates: Iterable[Judgeable] | AsyncIterable[Judgeable],
) -> AsyncIterator[Judgeable]:
    if isinstance(candidates, AsyncIterable):
        async for each in candidates:
            yield each
    else:
        for each in candidates:
            yield each
