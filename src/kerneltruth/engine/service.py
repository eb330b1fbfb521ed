"""Judges that stay warm on each of some devices, and answer requests as they come.

Light to import: torch comes with the judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection
from typing import TypeAlias

from kerneltruth.documents.timing import TimeDocument
from kerneltruth.documents.verdict import Infra
from kerneltruth.engine.devices import begin, choose_devices, choose_targets, new_runner
from kerneltruth.engine.requests import CheckRequest, Judged, NumberedRequest, TimeRequest
from kerneltruth.engine.scheduling.judge_process import JudgeProcess, stop
from kerneltruth.engine.scheduling.scheduler import JUDGES_PER_GPU, judges_at_once
from kerneltruth.errors import EnvironmentFault, InternalError
from kerneltruth.runner.host import Runner

# Give up a request after this many deaths of its judge.
TRIES = 2
ServiceAnswer: TypeAlias = Judged | TimeDocument | Exception
AnyJudge: TypeAlias = JudgeProcess[NumberedRequest, Judged | TimeDocument]
# What a judge runs for a request: the request, and a function that tells its progress.
JudgeWork: TypeAlias = Callable[[NumberedRequest, Callable[[object], None]], Judged | TimeDocument]


def _service_judge(runner: Runner, judges: int) -> JudgeWork:
    from kerneltruth.engine.service_judge import ServiceJudge

    return ServiceJudge(runner, judges)


class _Lane:
    """A device, and the judges that share it."""

    def __init__(
        self, runner: Runner, workers: int | None, new_work: Callable[[Runner, int], JudgeWork]
    ) -> None:
        self.runner = runner
        self._new_work = new_work
        usual = judges_at_once(None)
        self.most = workers or (usual if runner.device == "cpu" else min(usual, JUDGES_PER_GPU))
        self.judges: list[AnyJudge] = []
        self.timer: AnyJudge | None = None

    def idle(self) -> list[AnyJudge]:
        """Return the judges without a request; those that died meanwhile are dropped."""
        for judge in [j for j in self.judges if j.job is None and not j.process.is_alive()]:
            self.remove(judge)
        return [judge for judge in self.judges if judge.job is None]

    def busy(self) -> list[AnyJudge]:
        """Return the judges with a request."""
        return [judge for judge in self._all() if judge.job is not None]

    def add(self) -> AnyJudge:
        """Fork another judge."""
        self.judges.append(self._fork())
        return self.judges[-1]

    def timing(self) -> AnyJudge | None:
        """Return the one judge that times, if it is free."""
        if self.timer is None:
            # Begun before the fork, so that they outlive the judge.
            self.runner.start(("time", "time_compiled"))
            self.timer = self._fork()
        return self.timer if self.timer.job is None else None

    def _fork(self) -> AnyJudge:
        return JudgeProcess(self._new_work(self.runner, self.most))

    def _all(self) -> list[AnyJudge]:
        return [*self.judges, *([self.timer] if self.timer else [])]

    def remove(self, judge: AnyJudge) -> None:
        """End a judge at once."""
        stop([judge], 0.0)
        if judge is self.timer:
            self.timer = None
        else:
            self.judges.remove(judge)

    def close(self) -> None:
        """End all judges, and what the runner has started."""
        stop(self._all(), 0.0)
        self.runner.close()


class JudgeService:
    """Deals requests to judges, and tells their answers in the order in which they come."""

    def __init__(
        self,
        devices: Sequence[str],
        *,
        workers: int | None,
        targets: tuple[str, ...],
        tell: Callable[[int, ServiceAnswer], None],
        new_work: Callable[[Runner, int], JudgeWork] = _service_judge,
    ) -> None:
        """Choose the devices; nothing is started yet.

        Args:
            devices: as a user names them; each has judges of its own.
            workers: the most judges for each device; None means as many as suit the machine.
            targets: for which a CPU compiles Triton kernels, besides interpreting them.
            tell: called once for each request that is not cancelled, with its number and answer.
            new_work: makes what a judge runs, from its runner and how many judges share it.

        Raises:
            UserError, EnvironmentFault: as of `choose_devices`.
        """
        targets = choose_targets(targets)
        self._lanes = [
            _Lane(new_runner(device, targets), workers, new_work)
            for device in choose_devices(devices)
        ]
        self._tell = tell
        self._waiting: list[NumberedRequest] = []
        self._deaths: dict[int, int] = {}
        self.devices = tuple(lane.runner.device for lane in self._lanes)
        self.workers = sum(lane.most for lane in self._lanes)

    def begin(self) -> None:
        """Import torch, and begin to warm up the processes that run candidates."""
        for lane in self._lanes:
            begin(lane.runner)
        # Meanwhile, what judges need is imported once for all that are forked.
        import torch

        import kerneltruth.engine.service_judge  # noqa: F401

        torch.set_num_threads(1)

    def close(self) -> None:
        """End all judges, whatever they do."""
        for lane in self._lanes:
            lane.close()

    def ask(self, number: int, request: CheckRequest | TimeRequest) -> None:
        """Take a request; `deal` gives it to a judge."""
        self._waiting.append(NumberedRequest(number=number, request=request))

    def cancel(self, number: int) -> None:
        """Drop a job, and end the judge that works on it."""
        self._waiting = [job for job in self._waiting if job.number != number]
        for lane, judge in self._at_work():
            if judge.job is not None and judge.job.number == number:
                lane.remove(judge)

    def _at_work(self) -> list[tuple[_Lane, AnyJudge]]:
        return [(lane, judge) for lane in self._lanes for judge in lane.busy()]

    def pipes(self) -> list[Connection]:
        """Return the pipes of the judges at work; `take` reads those that are ready."""
        return [judge.pipe for _, judge in self._at_work()]

    def take(self, pipes: Iterable[object]) -> None:
        """Handle a message of each judge, or its death."""
        for pipe in pipes:
            # A judge may have ended since its pipe became ready.
            for lane, judge in self._at_work():
                if judge.pipe is pipe and judge.job is not None:
                    self._message(lane, judge, judge.job)

    def _message(self, lane: _Lane, judge: AnyJudge, job: NumberedRequest) -> None:
        try:
            word, value = judge.pipe.recv()
        except (EOFError, OSError):
            self._died(lane, judge, job)
            return
        if word == "progress":
            return
        judge.job = None
        self._tell(job.number, InternalError(value) if word == "broken" else value)

    def _died(self, lane: _Lane, judge: AnyJudge, job: NumberedRequest) -> None:
        """Try the job of a dead judge once more; then give it up."""
        judge.process.join(1.0)
        code = judge.process.exitcode
        lane.remove(judge)
        deaths = self._deaths[job.number] = self._deaths.get(job.number, 0) + 1
        if deaths < TRIES:
            self._waiting.insert(0, job)
            return
        from kerneltruth.engine.service_judge import not_judged

        reason = f"the judge process died twice (exit code {code})"
        lost: ServiceAnswer = EnvironmentFault(reason)
        if isinstance(job.request, CheckRequest):
            lost = not_judged(job.request, Infra(reason=reason))
        self._tell(job.number, lost)

    def deal(self) -> None:
        """Give every idle judge a job, and fork judges while there is room and need."""
        for lane in self._lanes:
            self._deal_timing(lane)
            for judge in lane.idle():
                self._deal_to(lane, judge)
        for lane in sorted(self._lanes, key=lambda lane: len(lane.judges)):
            while self._to_judge() and len(lane.judges) < lane.most:
                self._deal_to(lane, lane.add())

    def _deal_timing(self, lane: _Lane) -> None:
        job = next((job for job in self._waiting if job.timed), None)
        judge = lane.timing() if job is not None else None
        if job is not None and judge is not None:
            self._give(lane, judge, job)

    def _to_judge(self) -> list[NumberedRequest]:
        return [job for job in self._waiting if not job.timed]

    def _deal_to(self, lane: _Lane, judge: AnyJudge) -> None:
        """Give a judge a job of its own task, else of one that no judge works on."""
        jobs = self._to_judge()
        if not jobs:
            return
        taken = {other.last_task for _, other in self._at_work()}
        own = (job for job in jobs if job.task == judge.last_task)
        free = (job for job in jobs if job.task not in taken)
        self._give(lane, judge, next(own, next(free, jobs[0])))

    def _give(self, lane: _Lane, judge: AnyJudge, job: NumberedRequest) -> None:
        self._waiting.remove(job)
        try:
            judge.give(job)
        except OSError:
            # It died between two jobs.
            self._died(lane, judge, job)
