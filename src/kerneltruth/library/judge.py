"""`Judge`: a warm server that judges candidates, for threads and for asyncio."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import threading
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from kerneltruth.documents.timing import TimeDocument
from kerneltruth.errors import UserError
from kerneltruth.library.candidates import Judgeable, Source, source_in
from kerneltruth.library.link import ServerLink
from kerneltruth.library.messages import Checked, Timed, TimeMessage
from kerneltruth.library.options import CheckOptions, asked_of, message_of, require_valid, several
from kerneltruth.library.report import Report, report_of
from kerneltruth.library.streams import astreamed, streamed

if TYPE_CHECKING:
    from kerneltruth.tasks.model import Task

# Questions ahead of the answers, for each judge; a list is sent further ahead, so that judges find
# candidates of one task.
AHEAD = 4
AHEAD_OF_LIST = 256
# As of the command.
TARGETS = ("sm_90",)
# As long as those that commands draw.
_SEED_BITS = 32


class Judge:
    """Judges kernels in a server of its own, which is started clean and stays warm.

    Nothing of the calling process changes, and it imports no torch for it. Threads and asyncio may
    share a Judge; each forked child makes its own.

    Examples:
        >>> with kt.Judge(device="cpu", workers=2, seed=1) as judge:
        ...     judge.check(relu, task="relu", cases=8).passed
        True
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        devices: Sequence[str] | None = None,
        workers: int | None = None,
        seed: int | None = None,
        targets: Sequence[str] = TARGETS,
    ) -> None:
        """Describe a judge; its server starts with the `with` block, or at the first use.

        Args:
            device: `auto` (the default: the first GPU, else the CPU), `cpu`, `cuda:N`, or
                `cuda:all`.
            devices: several of them, in place of `device`.
            workers: how many candidates are judged at once on each device; by default one for each
                core, and at most 8 for a GPU.
            seed: of all cases; by default it is drawn.
            targets: for which Triton kernels are compiled too where a CPU interprets them, as by
                the command; none of them saves up to a second for each new kernel.

        Raises:
            UserError: both `device` and `devices`, or workers or a seed that are no such number.
        """
        if device is not None and devices is not None:
            raise UserError("Judge: give device or devices, not both")
        _require_number("workers", workers, 1)
        _require_number("seed", seed, 0)
        self._devices = several(devices if devices is not None else [device or "auto"])
        self._workers = workers
        self._targets = several(targets)
        self._seed = secrets.randbits(_SEED_BITS) if seed is None else seed
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._link: ServerLink | None = None
        self._closed = False

    def __enter__(self) -> Self:
        self._linked()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def usable(self) -> bool:
        """Whether it can be used: it is open, in the process that made it, and its server lives."""
        mine = not self._closed and os.getpid() == self._pid
        return mine and (self._link is None or self._link.usable)

    def close(self) -> None:
        """End the server; a closed Judge cannot be used any more.

        Examples:
            >>> closed = kt.Judge(device="cpu")
            >>> closed.close()
            >>> closed.check(relu, task="relu")
            Traceback (most recent call last):
                ...
            kerneltruth.errors.UserError: this Judge is closed; ...
        """
        # A server that another thread is starting must not outlive this call. A forked child starts
        # none, and may have inherited a held lock.
        with self._lock if os.getpid() == self._pid else contextlib.nullcontext():
            self._closed = True
            if self._link is not None:
                self._link.close()

    def check(self, candidate: Judgeable, **options: Unpack[CheckOptions]) -> Report:
        """Judge one candidate and wait for its report.

        Args:
            candidate: a path, a source text, a function, a (name, source) pair, or a
                `NamedCandidate`.
            **options: see `CheckOptions`.

        Raises:
            UserError: no such task, a file that cannot be read, or a wrong option.
            EnvironmentFault: the machine cannot do it.

        Examples:
            >>> judge.check(("mine", clipped), task="relu")
            Report(name='mine', task='relu', verdict='fail', kind='value', cases=..., score=...)
        """
        source = source_in(candidate)
        return _of_a_task(report_of(source, _awaited(self._ask(source, options))))

    async def acheck(self, candidate: Judgeable, **options: Unpack[CheckOptions]) -> Report:
        """Judge one candidate, as `check` does; cancelling it frees the judge.

        Examples:
            >>> import asyncio
            >>> asyncio.run(judge.acheck(relu, task="relu", cases=4)).passed
            True
        """
        # Imported here, as it takes a while and not all callers need it.
        import asyncio

        source = source_in(candidate)
        future = await asyncio.to_thread(self._ask, source, options)
        return _of_a_task(report_of(source, await asyncio.wrap_future(future)))

    def check_many(
        self, candidates: Iterable[Judgeable], **options: Unpack[CheckOptions]
    ) -> Iterator[Report]:
        """Judge many candidates; yield reports as they end, each with `name` and `index`.

        A fault of one candidate is its verdict. Closing the iterator drops the rest.

        Args:
            candidates: as for `check`; taken as judges get free.
            **options: see `CheckOptions`; for all candidates.

        Raises:
            UserError: no such task, a file that cannot be read, or a wrong option.
            EnvironmentFault: the machine cannot do it.

        Examples:
            >>> answers = [("first", relu), ("second", clipped)]
            >>> reports = judge.check_many(answers, task="relu", cases=4)
            >>> sorted((report.name, report.verdict) for report in reports)
            [('first', 'pass'), ('second', 'fail')]
        """
        ahead = self._ahead(candidates)
        return streamed(candidates, ahead, lambda source: self._ask(source, options))

    def acheck_many(
        self,
        candidates: Iterable[Judgeable] | AsyncIterable[Judgeable],
        **options: Unpack[CheckOptions],
    ) -> AsyncIterator[Report]:
        """Judge many candidates, which may be async too, as `check_many` does, for `async for`.

        Examples:
            >>> import asyncio
            >>> async def verdicts():
            ...     reports = judge.acheck_many([relu, clipped], task="relu", cases=4)
            ...     return sorted([report.verdict async for report in reports])
            >>> asyncio.run(verdicts())
            ['fail', 'pass']
        """
        return self._astreamed(candidates, options)

    async def _astreamed(
        self, candidates: Iterable[Judgeable] | AsyncIterable[Judgeable], options: CheckOptions
    ) -> AsyncIterator[Report]:
        import asyncio

        ahead = await asyncio.to_thread(self._ahead, candidates)
        reports = astreamed(candidates, ahead, lambda source: self._ask(source, options))
        async with contextlib.aclosing(reports):
            async for report in reports:
                yield report

    def time(  # noqa: PLR0913 - what the command `time` takes
        self,
        candidate: Judgeable,
        *,
        task: str | Task | None = None,
        suite: str | None = None,
        reference: str | os.PathLike[str] | None = None,
        tasks: str | os.PathLike[str] | None = None,
        entry: str | None = None,
        against: Sequence[str] = (),
        dtype: str | None = None,
        budget: float = 2.0,
        energy: bool = False,
        timeout: float = 30.0,
    ) -> TimeDocument:
        """Time one candidate beside its baselines, and wait for the document of `time --json`.

        Times are microseconds; a ratio is the baseline's time over the candidate's.

        Args:
            candidate: as for `check`.
            task: as for `check`.
            suite: as for `check`.
            reference: as for `check`.
            tasks: as for `check`.
            entry: as for `check`.
            against: the baselines: `eager`, `compile`, `control`; by default the usual ones.
            dtype: in which it is timed; by default the task's own.
            budget: seconds for each shape.
            energy: whether joules a call and watts are measured, too; about 10 s a shape.
            timeout: seconds allowed for a batch of calls.

        Raises:
            UserError: no such task or baseline.
            EnvironmentFault: it cannot be timed here.

        Examples:
            >>> twice = kt.task("twice(x[M])", dims={"M": "batch"}, reference=lambda x: 2 * x)
            >>> own = "def twice(x): return x + x"
            >>> timing = judge.time(own, task=twice, against=("eager",), budget=0.05)
            >>> timing.shapes[0].baselines["eager"].outcome in ("faster", "tie", "slower")
            True
        """
        source = source_in(candidate).with_entry(entry)
        name, where = asked_of(source.task or task, suite, reference, tasks)
        about = TimeMessage(
            file=source.file,
            source=source.text,
            entry=source.entry,
            task=name,
            suite=where,
            dtype=dtype,
            baselines=several(against),
            budget_s=budget,
            energy=energy,
            deadline_s=timeout,
        )
        require_valid(about)
        answer = _awaited(self._linked().ask(about))
        assert isinstance(answer, Timed)
        return answer.document

    def _ask(self, source: Source, options: CheckOptions) -> Future[Checked | Timed]:
        return self._linked().ask(message_of(source, options, self._seed))

    def _linked(self) -> ServerLink:
        """Return the link to the server, which is started if there is none.

        Raises:
            UserError: the Judge is closed, or belongs to another process.
            EnvironmentFault: the server is gone, or cannot start.
        """
        if os.getpid() != self._pid:
            raise UserError(
                f"this Judge belongs to process {self._pid}; make one in this process, after the "
                "fork"
            )
        _refuse_recursion()
        with self._lock:
            if self._closed:
                raise UserError("this Judge is closed; make another, or use it within its block")
            if self._link is None:
                self._link = ServerLink(self._devices, self._workers, self._targets)
            return self._link

    def _ahead(self, candidates: object) -> int:
        """Return how many questions are asked before the first answer.

        Raises:
            UserError: they are one candidate, or names without their sources.
        """
        if isinstance(candidates, Mapping):
            raise UserError("check_many: candidates are a mapping; give its .items()")
        several_ = isinstance(candidates, Iterable | AsyncIterable)
        if isinstance(candidates, str) or not several_:
            raise UserError(
                f"check_many: candidates are one {type(candidates).__name__}; give a list of "
                "candidates, or call check"
            )
        of_list = AHEAD_OF_LIST if isinstance(candidates, Sequence) else 0
        return max(of_list, AHEAD * self._linked().workers)


def _require_number(name: str, value: object, least: int) -> None:
    if value is not None and not (type(value) is int and value >= least):
        raise UserError(f"Judge: {name}={value!r}: must be a whole number of at least {least}")


def _refuse_recursion() -> None:
    """Refuse a call in a file that a judge imports, where each would lead to another.

    Raises:
        UserError: this process imports a file of tasks.
    """
    if getattr(sys.modules.get("kerneltruth.suites.declared"), "RUNNING", ()):
        raise UserError(
            "a kernel is judged while its file's tasks are read; put the call under "
            '`if __name__ == "__main__":`'
        )


def _of_a_task(report: Report) -> Report:
    """Refuse a candidate whose task neither the caller nor its source says.

    Raises:
        UserError: there is no task.
    """
    if report.verdict == "compile_error" and not report.task:
        raise UserError(report.detail)
    return report


def _awaited(future: Future[Checked | Timed]) -> Checked | Timed:
    """Wait for an answer; a Ctrl-C tells the server that nobody waits any more."""
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
