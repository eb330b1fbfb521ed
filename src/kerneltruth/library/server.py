"""The server: a process that is started clean, keeps judges warm, and ends with its caller.

It answers questions as they end, in no order. A caller that is gone closes the socket, and with it
all that the server has started.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection, wait

from kerneltruth.engine.devices import begin, choose_devices, choose_targets, new_runner
from kerneltruth.engine.scheduling.judge_process import JudgeProcess, stop
from kerneltruth.engine.scheduling.scheduler import JUDGES_PER_GPU, judges_at_once
from kerneltruth.errors import EnvironmentFault, KernelTruthError, UserError
from kerneltruth.library.messages import (
    Ask,
    Cancel,
    Question,
    QuestionRefused,
    QueuedQuestion,
    Ready,
    Settings,
    TimeMessage,
    encoded,
    question_in,
    settings_in,
)
from kerneltruth.runner.host import Runner

# How often the server looks whether its caller is alive; a closed socket says it at once.
LOOK_S = 5.0
# Give up a question after this many deaths of its judge.
TRIES = 2
AnyJudge = JudgeProcess[QueuedQuestion, bytes]


def main() -> None:
    """Serve the caller at the other end of a socket, until it is gone."""
    _usual_signals()
    pipe = Connection(int(sys.argv[1]))
    os.set_inheritable(pipe.fileno(), False)
    lanes: list[Lane] = []
    try:
        _serve(pipe, settings_in(sys.argv[2]), lanes)
    except KernelTruthError as error:
        pipe.send_bytes(encoded(refusal(None, error)))
    except (EOFError, ConnectionError):
        pass
    except Exception:
        # The caller shows the last line.
        traceback.print_exc()
    finally:
        for lane in lanes:
            lane.close()
        sys.stderr.flush()
        # Tearing down an interpreter with torch in it takes longer than all of the above.
        os._exit(0)


def _serve(pipe: Connection, settings: Settings, lanes: list[Lane]) -> None:
    """Add a lane for each device, say so, and serve."""
    targets = choose_targets(settings.targets)
    for device in choose_devices(settings.devices):
        lanes.append(Lane(device, settings.workers, targets))
    ready = Ready(
        devices=tuple(lane.runner.device for lane in lanes),
        workers=sum(lane.most for lane in lanes),
    )
    pipe.send_bytes(encoded(ready))
    for lane in lanes:
        # Its processes import torch side by side with this one.
        begin(lane.runner)
    Server(pipe, lanes, settings.host).serve()


def _usual_signals() -> None:
    """Undo what the caller ignores and blocks; an exec passes it on."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for name in (signal.SIGCHLD, signal.SIGTERM, signal.SIGALRM):
        signal.signal(name, signal.SIG_DFL)


def refusal(number: int | None, error: Exception) -> QuestionRefused:
    """Return the answer that an error means."""
    match error:
        case UserError():
            return QuestionRefused(number=number, fault="user", reason=str(error))
        case EnvironmentFault():
            return QuestionRefused(number=number, fault="environment", reason=str(error))
        case _:
            return QuestionRefused(number=number, fault="internal", reason=str(error))


class Lane:
    """A device, and the judges that share it."""

    def __init__(self, device: str, workers: int | None, targets: tuple[str, ...]) -> None:
        self.runner: Runner = new_runner(device, targets)
        usual = judges_at_once(None)
        self.most = workers or (usual if device == "cpu" else min(usual, JUDGES_PER_GPU))
        self.judges: list[AnyJudge] = []
        self.timer: AnyJudge | None = None

    def idle(self) -> list[AnyJudge]:
        """Return the judges without a question; those that died meanwhile are dropped."""
        for judge in [j for j in self.judges if j.job is None and not j.process.is_alive()]:
            self.remove(judge)
        return [judge for judge in self.judges if judge.job is None]

    def busy(self) -> list[AnyJudge]:
        """Return the judges with a question."""
        timers = [self.timer] if self.timer else []
        return [judge for judge in (*self.judges, *timers) if judge.job is not None]

    def add(self) -> AnyJudge:
        """Fork another judge."""
        judge = self._fork()
        self.judges.append(judge)
        return judge

    def timing(self) -> AnyJudge | None:
        """Return the one judge that times, if it is free."""
        if self.timer is None:
            # Begun before the fork, so that they outlive the judge.
            self.runner.start(("time", "time_compiled"))
            self.timer = self._fork()
        return self.timer if self.timer.job is None else None

    def _fork(self) -> AnyJudge:
        from kerneltruth.library.work import QuestionWorker

        return JudgeProcess(QuestionWorker(self.runner, self.most))

    def remove(self, judge: AnyJudge) -> None:
        """End a judge at once."""
        stop([judge], 0.0)
        if judge is self.timer:
            self.timer = None
        else:
            self.judges.remove(judge)

    def close(self) -> None:
        """End all judges, and what the runner has started."""
        stop([*self.judges, *([self.timer] if self.timer else [])], 0.0)
        self.runner.close()


class Server:
    """Deals questions to judges and sends their answers."""

    def __init__(self, pipe: Connection, lanes: list[Lane], host: int) -> None:
        self._pipe = pipe
        self._lanes = lanes
        self._host = host
        self._waiting: list[QueuedQuestion] = []
        self._deaths: dict[int, int] = {}

    def serve(self) -> None:
        """Serve until the caller is gone.

        Raises:
            EOFError: it has closed its end.
        """
        _import_torch()
        while os.getppid() == self._host:
            pipes = {judge.pipe: (lane, judge) for lane in self._lanes for judge in lane.busy()}
            for ready in wait([self._pipe, *pipes], LOOK_S):
                if ready is self._pipe:
                    self._hear(question_in(self._pipe.recv_bytes()))
                else:
                    self._take(*pipes[ready])  # type: ignore[index]
            self._deal()

    def _hear(self, message: Question) -> None:
        match message:
            case Ask(number=number, about=about):
                self._waiting.append(QueuedQuestion(number=number, about=about))
            case Cancel(number=number):
                self._waiting = [job for job in self._waiting if job.number != number]
                self._stop(number)

    def _stop(self, number: int) -> None:
        """End the judge of a question that nobody waits for."""
        for lane in self._lanes:
            for judge in lane.busy():
                if judge.job is not None and judge.job.number == number:
                    lane.remove(judge)

    def _take(self, lane: Lane, judge: AnyJudge) -> None:
        """Handle a message of a judge, or its death."""
        job = judge.job
        if job is None:
            return
        try:
            word, value = judge.pipe.recv()
        except (EOFError, OSError):
            self._died(lane, judge, job)
            return
        if word == "progress":
            return
        judge.job = None
        if word == "done":
            self._send(value)
        elif word == "stopped":
            self._send(encoded(refusal(job.number, value)))
        else:
            self._send(encoded(QuestionRefused(number=job.number, fault="internal", reason=value)))

    def _died(self, lane: Lane, judge: AnyJudge, job: QueuedQuestion) -> None:
        """Try the question of a dead judge once more; then give it up."""
        judge.process.join(1.0)
        code = judge.process.exitcode
        lane.remove(judge)
        deaths = self._deaths[job.number] = self._deaths.get(job.number, 0) + 1
        if deaths < TRIES:
            self._waiting.insert(0, job)
        else:
            self._send(_lost(job, f"the judge process died twice (exit code {code})"))

    def _deal(self) -> None:
        """Give every idle judge a question, and fork judges while there is room and need."""
        for lane in self._lanes:
            self._deal_timing(lane)
            for judge in lane.idle():
                self._deal_to(lane, judge)
        for lane in sorted(self._lanes, key=lambda lane: len(lane.judges)):
            while self._to_check() and len(lane.judges) < lane.most:
                self._deal_to(lane, lane.add())

    def _deal_timing(self, lane: Lane) -> None:
        job = next((j for j in self._waiting if isinstance(j.about, TimeMessage)), None)
        judge = lane.timing() if job is not None else None
        if job is not None and judge is not None:
            self._give(lane, judge, job)

    def _to_check(self) -> list[QueuedQuestion]:
        return [job for job in self._waiting if not isinstance(job.about, TimeMessage)]

    def _deal_to(self, lane: Lane, judge: AnyJudge) -> None:
        """Give a judge a question of its own task, else of one that no judge works on."""
        jobs = self._to_check()
        if not jobs:
            return
        taken = {other.last_task for lane in self._lanes for other in lane.busy()}
        own = (job for job in jobs if job.task == judge.last_task)
        free = (job for job in jobs if job.task not in taken)
        self._give(lane, judge, next(own, next(free, jobs[0])))

    def _give(self, lane: Lane, judge: AnyJudge, job: QueuedQuestion) -> None:
        self._waiting.remove(job)
        try:
            judge.give(job)
        except OSError:
            # It died between two questions.
            self._died(lane, judge, job)

    def _send(self, answer: bytes) -> None:
        self._pipe.send_bytes(answer)


def _lost(job: QueuedQuestion, reason: str) -> bytes:
    from kerneltruth.documents.verdict import Infra
    from kerneltruth.library.work import answer, request_of, without_trial

    if isinstance(job.about, TimeMessage):
        return encoded(QuestionRefused(number=job.number, fault="environment", reason=reason))
    return answer(job.number, without_trial(request_of(job.about), Infra(reason=reason)))


def _import_torch() -> None:
    """Import what judges need, once for all that are forked."""
    import torch

    import kerneltruth.library.work  # noqa: F401

    torch.set_num_threads(1)


if __name__ == "__main__":
    main()
