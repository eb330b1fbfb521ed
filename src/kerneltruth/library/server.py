"""The server: a process that is started clean, keeps judges warm, and ends with its caller.

It answers questions as they end, in no order. A caller that is gone closes the socket, and with it
all that the server has started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection, wait
from pathlib import Path

from msgspec import structs

from kerneltruth.documents.timing import TimeDocument
from kerneltruth.engine.requests import CheckRequest, Judged, TimeRequest
from kerneltruth.engine.service import JudgeService, ServiceAnswer
from kerneltruth.errors import EnvironmentFault, KernelTruthError, UserError
from kerneltruth.library.messages import (
    Ask,
    Cancel,
    Checked,
    CheckMessage,
    Question,
    QuestionRefused,
    Ready,
    Settings,
    Timed,
    TimeMessage,
    encoded,
    question_in,
    settings_in,
)

# How often the server looks whether its caller is alive; a closed socket says it at once.
LOOK_S = 5.0


def main() -> None:
    """Serve the caller at the other end of a socket, until it is gone."""
    _usual_signals()
    pipe = Connection(int(sys.argv[1]))
    os.set_inheritable(pipe.fileno(), False)
    ending = contextlib.ExitStack()
    try:
        _serve(pipe, settings_in(sys.argv[2]), ending)
    except KernelTruthError as error:
        pipe.send_bytes(encoded(message_of(None, error)))
    except (EOFError, ConnectionError):
        pass
    except Exception:
        # The caller shows the last line.
        traceback.print_exc()
    finally:
        ending.close()
        sys.stderr.flush()
        # Tearing down an interpreter with torch in it takes longer than all of the above.
        os._exit(0)


def _serve(pipe: Connection, settings: Settings, ending: contextlib.ExitStack) -> None:
    """Choose the devices, say so, and serve until the caller is gone.

    Raises:
        EOFError: it has closed its end.
    """
    judges = JudgeService(
        settings.devices,
        workers=settings.workers,
        targets=settings.targets,
        tell=lambda number, answer: pipe.send_bytes(encoded(message_of(number, answer))),
    )
    ending.callback(judges.close)
    pipe.send_bytes(encoded(Ready(devices=judges.devices, workers=judges.workers)))
    judges.begin()
    while os.getppid() == settings.host:
        ready = wait([pipe, *judges.pipes()], LOOK_S)
        if pipe in ready:
            _hear(judges, question_in(pipe.recv_bytes()))
        judges.take(ready)
        judges.deal()


def _hear(judges: JudgeService, message: Question) -> None:
    match message:
        case Ask(number=number, about=about):
            judges.ask(number, request_of(about))
        case Cancel(number=number):
            judges.cancel(number)


def request_of(about: CheckMessage | TimeMessage) -> CheckRequest | TimeRequest:
    """Return the engine's request of a message."""
    fields = structs.asdict(about) | {"file": Path(about.file)}
    if isinstance(about, TimeMessage):
        return TimeRequest(**fields)
    out = None if about.out is None else Path(about.out)
    return CheckRequest(**fields | {"out": out}, keep=out is not None)


def _usual_signals() -> None:
    """Undo what the caller ignores and blocks; an exec passes it on."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for name in (signal.SIGCHLD, signal.SIGTERM, signal.SIGALRM):
        signal.signal(name, signal.SIG_DFL)


def message_of(number: int | None, answer: ServiceAnswer) -> Checked | Timed | QuestionRefused:
    """Return the message that an answer becomes."""
    match answer:
        case Judged(document=document, findings=findings, script=script):
            assert number is not None
            return Checked(number=number, document=document, findings=findings, script=script)
        case TimeDocument():
            assert number is not None
            return Timed(number=number, document=answer)
        case UserError():
            return QuestionRefused(number=number, fault="user", reason=str(answer))
        case EnvironmentFault():
            return QuestionRefused(number=number, fault="environment", reason=str(answer))
        case _:
            return QuestionRefused(number=number, fault="internal", reason=str(answer))


if __name__ == "__main__":
    main()
