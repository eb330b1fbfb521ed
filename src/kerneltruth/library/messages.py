"""The messages between a caller and its server, as JSON documents."""

from __future__ import annotations

import json
from typing import Literal, TypeAlias

from kerneltruth.documents.checks import CheckDocument
from kerneltruth.documents.model import Model, Number, dumps, parse
from kerneltruth.documents.stored import Finding
from kerneltruth.documents.timing import TimeDocument
from kerneltruth.engine.requests import Explain


class Settings(Model, frozen=True, kw_only=True):
    """How a server is started.

    Attributes:
        devices: as the caller names them; each has judges of its own.
        workers: the most judges for each device; None means as many as suit the machine.
        targets: for which a CPU compiles Triton kernels, besides interpreting them.
        host: the process id of the caller.
    """

    devices: tuple[str, ...]
    workers: int | None
    targets: tuple[str, ...]
    host: int


class CheckMessage(Model, frozen=True, kw_only=True, tag="check"):
    """Judge a candidate: the fields are among those of `engine.requests.CheckRequest`."""

    file: str
    source: str | None = None
    entry: str | None = None
    task: str | None = None
    suite: str | None = None
    contract: str
    cases: int | None
    seed: int
    dtypes: tuple[str, ...]
    strategies: tuple[str, ...]
    require_kernel: bool
    twice: bool
    deadline_s: Number
    explain: Explain
    out: str | None


class TimeMessage(Model, frozen=True, kw_only=True, tag="time"):
    """Time a candidate: the fields are among those of `engine.requests.TimeRequest`."""

    file: str
    source: str | None = None
    entry: str | None = None
    task: str | None = None
    suite: str | None = None
    dtype: str | None
    baselines: tuple[str, ...]
    budget_s: Number
    energy: bool = False
    deadline_s: Number


class Ask(Model, frozen=True, kw_only=True, tag="ask"):
    """A question; its answer has the same number."""

    number: int
    about: CheckMessage | TimeMessage


class Cancel(Model, frozen=True, kw_only=True, tag="cancel"):
    """The caller no longer wants an answer."""

    number: int


class Ready(Model, frozen=True, kw_only=True, tag="ready"):
    """The server has its devices, and imports torch now."""

    devices: tuple[str, ...]
    workers: int


class Checked(Model, frozen=True, kw_only=True, tag="checked"):
    """A candidate is judged: its findings, the one that decides first, and that one's script."""

    number: int
    document: CheckDocument
    findings: tuple[Finding, ...]
    script: str


class Timed(Model, frozen=True, kw_only=True, tag="timed"):
    """A candidate is timed."""

    number: int
    document: TimeDocument


class QuestionRefused(Model, frozen=True, kw_only=True, tag="refused"):
    """There is no answer; without a number, the server cannot start."""

    number: int | None
    fault: Literal["user", "environment", "internal"]
    reason: str


Question: TypeAlias = Ask | Cancel
ServerAnswer: TypeAlias = Ready | Checked | Timed | QuestionRefused


def encoded(message: Question | ServerAnswer) -> bytes:
    """Return a message as bytes."""
    return dumps(message).encode()


def settings_in(text: str) -> Settings:
    """Read the settings of a server."""
    return parse(Settings, json.loads(text))


def question_in(data: bytes) -> Question:
    """Read a question."""
    found: Question = parse(Ask | Cancel, json.loads(data))  # type: ignore[arg-type]
    return found


def answer_in(data: bytes) -> ServerAnswer:
    """Read an answer."""
    found: ServerAnswer = parse(Ready | Checked | Timed | QuestionRefused, json.loads(data))  # type: ignore[arg-type]
    return found
