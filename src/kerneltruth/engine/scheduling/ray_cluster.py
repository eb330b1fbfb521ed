"""Judges on a Ray cluster: actors that each warm up once and do one job after the other.

The driver hands out jobs, and a result counts when it reaches the driver: a job whose actor or
node was lost before that is handed out again, so that none is lost and none is counted twice.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kerneltruth.engine.scheduling.scheduler import Done, J, Lost, Progress, Waiting
from kerneltruth.errors import EnvironmentFault, InternalError, UserError
from kerneltruth.runner.containment import levels

R = TypeVar("R")

# A node may die under a job more than once before the job itself is suspected.
TRIES = 3
_ANSWER_S = 5.0
# How often the cluster's nodes are listed, and how long to wait for a new one.
_LOOK_S = 5.0
_NEW_NODE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What one judge takes of a node.

    Attributes:
        cpus: cores; the judge and its child take turns, so one serves both.
        gpus: share of a GPU; Ray shows the judge that GPU only, as device 0.
    """

    cpus: float = 1.0
    gpus: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RayCluster(Generic[J, R]):
    """A scheduler of a cluster's judges; tells of no progress.

    Attributes:
        make: called once in each judge; gives what does a job there. It travels to the nodes.
        address: `ray://host:port`, `host:port`, `auto`, or None for a cluster on this machine.
        judges: the most at once; None means as many as the cluster has room for.
    """

    make: Callable[[], Callable[[J], R]]
    address: str | None
    judges: int | None
    placement: Placement

    def run(self, jobs: Iterable[J]) -> Iterator[Done[J, R] | Progress[J] | Lost[J]]:
        """Do every job once: see `Scheduler.run`.

        Raises:
            UserError: Ray is not installed, or there is no cluster at the address.
            EnvironmentFault: the cluster has no room for a judge.
        """
        ray = _ray()
        _connect(ray, self.address)
        try:
            room = _room(ray, self.placement)
            judges = _ClusterJudges(ray, self.make, self.placement)
            yield from judges.run(Waiting(jobs), min(self.judges or room, room))
        finally:
            with contextlib.suppress(Exception):
                ray.shutdown()


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise UserError(
            "--executor ray: Ray is not installed; pip install 'kerneltruth[ray]', "
            "or use --executor local"
        ) from error
    return ray


def _connect(ray: Any, address: str | None) -> None:
    if ray.is_initialized():
        return
    # Ray exits the whole process if no cluster answers, so find out first.
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdigit() and not _answers(host, int(port)):
        raise UserError(_nobody(address, "connection refused or timed out"))
    try:
        ray.init(address=address, log_to_driver=False, include_dashboard=False, logging_level=40)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        said = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(_nobody(address, said)) from error


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_ANSWER_S):
            return True
    except OSError:
        return False


def _nobody(address: str | None, said: str) -> str:
    return (
        f"--address {address or 'local'}: no Ray cluster answers there: {said}; "
        "start one with `ray start --head`, or use --executor local"
    )


def _room(ray: Any, placement: Placement) -> int:
    room = _capacity(ray, placement)
    if room < 1:
        raise EnvironmentFault(
            f"no node of the Ray cluster has {placement.cpus:g} CPUs and {placement.gpus:g} GPUs; "
            "add one, or use another --device"
        )
    return room


def _capacity(ray: Any, placement: Placement) -> int:
    room = 0
    for node in ray.nodes():
        if not node["Alive"]:
            continue
        has = node["Resources"]
        fits = [int(has.get("CPU", 0) / placement.cpus)]
        if placement.gpus:
            fits.append(int(has.get("GPU", 0) / placement.gpus))
        room += min(fits)
    return room


class _RayJudge:
    """The actor: warms up once, then does jobs."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]], isolation: str) -> None:
        # Another machine's processes do not inherit what this command was given.
        os.environ[levels.VARIABLE] = isolation
        self._work = make()

    def ready(self) -> bool:
        """Answers once the judge is warm."""
        return True

    def work(self, job: Any) -> Any:
        """Return the result of one job."""
        return self._work(job)


class _ClusterJudges:
    """Judges of the cluster, each with its current job."""

    def __init__(
        self, ray: Any, make: Callable[[], Callable[[Any], Any]], placement: Placement
    ) -> None:
        self._ray = ray
        self._make = make
        self._placement = placement
        self._actor = ray.remote(
            num_cpus=placement.cpus, num_gpus=placement.gpus, max_restarts=0, max_concurrency=1
        )(_RayJudge)
        self._busy: dict[Any, tuple[Any, Any]] = {}
        self._tries: dict[int, int] = {}
        self._last_task: dict[Any, str] = {}

    def run(self, waiting: Waiting[Any], judges: int) -> Iterator[Done[Any, Any] | Lost[Any]]:
        """Hand out jobs until none is left."""
        since = time.monotonic()
        while True:
            self._hire(waiting, judges)
            if self._busy:
                since = time.monotonic()
            elif not waiting.ahead():
                return
            elif time.monotonic() - since > _NEW_NODE_S:
                while (job := waiting.take(None, ())) is not None:
                    yield Lost(job=job, reason="the cluster has no node left for a judge")
                return
            else:
                time.sleep(1)
                continue
            ended, _ = self._ray.wait(list(self._busy), num_returns=1, timeout=_LOOK_S)
            for ref in ended:
                yield from self._take(ref, waiting)

    def _hire(self, waiting: Waiting[Any], judges: int) -> None:
        room = min(judges, _capacity(self._ray, self._placement))
        while len(self._busy) < room and waiting.ahead():
            self._hand_out(self._actor.remote(self._make, levels.wanted() or ""), waiting)

    def _take(self, ref: Any, waiting: Waiting[Any]) -> Iterator[Done[Any, Any] | Lost[Any]]:
        judge, job = self._busy.pop(ref)
        errors = self._ray.exceptions
        try:
            result = self._ray.get(ref)
        except (errors.RayActorError, errors.ObjectLostError, errors.NodeDiedError) as error:
            self._last_task.pop(judge, None)
            tries = self._tries[id(job)] = self._tries.get(id(job), 0) + 1
            if tries < TRIES:
                waiting.put_back(job)
            else:
                said = str(error).splitlines()[0]
                yield Lost(job=job, reason=f"its judge was lost {tries} times: {said}")
            return
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, UserError | EnvironmentFault):
                raise cause from None
            raise InternalError(f"while judging {job}: {error}") from error
        yield Done(job=job, result=result)
        self._hand_out(judge, waiting)

    def _hand_out(self, judge: Any, waiting: Waiting[Any]) -> None:
        """Give a judge its next job; a judge without work exits and makes room for another."""
        taken = {self._last_task.get(j) for j, _ in self._busy.values()}
        job = waiting.take(self._last_task.get(judge), taken)
        if job is None:
            self._last_task.pop(judge, None)
            self._ray.kill(judge)
            return
        self._last_task[judge] = job.task
        self._busy[judge.work.remote(job)] = (judge, job)
