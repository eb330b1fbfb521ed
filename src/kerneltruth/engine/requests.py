"""Requests, which a command, a test or a service makes, and the steps that answer them.

Light to import: no torch here.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeAlias, TypeVar

from kerneltruth.documents.checks import (
    CheckDocument,
    ChecksDocument,
    MinimizeDocument,
    RefusedFile,
    ReplayDocument,
)
from kerneltruth.documents.exploits import ExploitsDocument
from kerneltruth.documents.lines import Labels
from kerneltruth.documents.runs import AuditDocument, RunDocument
from kerneltruth.documents.stored import Finding
from kerneltruth.documents.suites import SuiteDocument, TimedSuiteDocument
from kerneltruth.documents.timing import TimeDocument
from kerneltruth.errors import UserError

STAGES = ("call", "exe", "perf")
EXECUTORS = ("local", "ray")
# Cases of one file; and of one of many, unless trying the task's promises takes more.
CASES_OF_FILE = 48
CASES = 16
CONTRACT = "core"
# The share of right candidates of a run that are judged in a second round, asked or not.
TWICE_OF_MANY = 1 / 20
Explain = Literal["full", "brief", "none"]
SHORT_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"}


D = TypeVar("D")
AnyAudit: TypeAlias = AuditDocument | SuiteDocument | TimedSuiteDocument


class EngineRequest(Generic[D]):
    """What a command, a test or a service wants; its steps end in a document of the type `D`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest(EngineRequest[CheckDocument]):
    """Judge one kernel file.

    Attributes:
        source: the text of the file, where it is not read from the disk.
        entry: the function to call; None finds it by its name.
        keep: whether a run directory is written; without one a failure has its script at once.
        twice: whether a right candidate is judged in a second round.
        explain: how much a failure's smallest case may cost.
    """

    file: Path
    source: str | None = None
    entry: str | None = None
    keep: bool = True
    explain: Explain = "full"
    task: str | None = None
    suite: str | None = None
    dtypes: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    cases: int | None = None
    bounds: str = "spread"
    tf32: bool = True
    domain: str = "extended"
    require_kernel: bool = False
    twice: bool = False
    contract: str = CONTRACT
    targets: tuple[str, ...] = ("sm_90",)
    device: str = "auto"
    seed: int = 0
    out: Path | None = None
    deadline_s: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksRequest(EngineRequest[ChecksDocument]):
    """Judge several kernel files, and those of folders.

    Attributes:
        paths: of files and folders; `-` is the standard input.
        each: how each file is judged; its own `file` is ignored.
    """

    paths: tuple[Path, ...]
    each: CheckRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(EngineRequest[RunDocument]):
    """Judge many candidates in stages.

    Attributes:
        candidates: a file, a folder, or a run directory of KernelBench.
        cases: judged per candidate in the exe stage; None means 16, or as many as it takes to try
            what its task promises.
        require_kernel: whether a right result must be the work of the candidate's own kernels.
        twice: whether all right candidates are judged in a second round, and not only a share.
        stages: which of `STAGES`, a prefix of them.
        peer_checks: whether the peers' checks are run on each candidate too.
        against: the baselines of right candidates; empty means the usual ones.
        kernels: whether it is said whose kernels take the device's time of timed candidates.
        last_failed: whether only candidates are judged that did not pass in their last run.
        address: of the Ray cluster; None starts or finds a local one.
    """

    suite: str
    candidates: Path
    device: str = "auto"
    seed: int = 0
    out: Path | None = None
    workers: int | None = None
    deadline_s: float = 20.0
    cases: int | None = None
    strategies: tuple[str, ...] = ()
    require_kernel: bool = False
    twice: bool = False
    contract: str = CONTRACT
    stages: tuple[str, ...] = STAGES
    explain: bool = True
    peer_checks: bool = False
    against: tuple[str, ...] = ()
    kernels: bool = False
    last_failed: bool = False
    labels: Labels = field(default_factory=Labels)
    executor: str = "local"
    address: str | None = None
    targets: tuple[str, ...] = ("sm_90",)


def stages_until(last: str) -> tuple[str, ...]:
    """Return the stages up to one of them.

    Raises:
        UserError: there is no such stage.
    """
    if last not in STAGES:
        raise UserError(f"--stage {last!r}: must be one of {', '.join(STAGES)}")
    return STAGES[: STAGES.index(last) + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest(EngineRequest[AnyAudit]):
    """Judge the corpus; or prove, or time, the functions of a suite.

    Attributes:
        contract: what decides; None means the usual contract for the corpus, and every obligation
            for a suite.
    """

    device: str = "auto"
    seed: int = 0
    out: Path | None = None
    workers: int | None = None
    deadline_s: float = 20.0
    only: tuple[str, ...] = ()
    cases: int = 36
    contract: str | None = None
    promises: bool = False
    peer_checks: bool = True
    targets: tuple[str, ...] = ("sm_90",)
    suite: str | None = None
    timed: bool = False
    budget_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploitsRequest(EngineRequest[ExploitsDocument]):
    """Try the exploits of the corpus.

    Attributes:
        only: names of exploits; empty means all.
        timed: whether those about speed are tried too, one after the other.
    """

    device: str = "auto"
    seed: int = 0
    workers: int | None = None
    only: tuple[str, ...] = ()
    timed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRequest(EngineRequest[TimeDocument]):
    """Time one kernel file beside its baselines.

    Attributes:
        budget_s: seconds of blocks for each shape.
        measure_again: forget what is known of the device.
        profile: whether Nsight Compute looks at the kernels too.
        kernels: whether it is said which kernels take the device's time, and whose they are; None
            means where a GPU has timed it.
        energy: whether the energy of calls is measured, too.
        source: the text of the file, where it is not read from the disk.
        entry: the function to call; None finds it by its name.
    """

    file: Path
    source: str | None = None
    entry: str | None = None
    task: str | None = None
    suite: str | None = None
    dtype: str | None = None
    baselines: tuple[str, ...] = ()
    budget_s: float = 2.0
    measure_again: bool = False
    profile: bool = False
    kernels: bool | None = False
    energy: bool = False
    device: str = "auto"
    seed: int | None = None
    out: Path | None = None
    deadline_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest(EngineRequest[ReplayDocument]):
    """Run findings again.

    Attributes:
        from_snapshot: whether the stored inputs are used, not those that the seed gives.
        errors: the folder for the errors of each element, as arrays and pictures; None for none.
        suite: a suite that a user brings along, if it is not where findings were made.
    """

    paths: tuple[Path, ...]
    obligation: str | None = None
    from_snapshot: bool = False
    errors: Path | None = None
    suite: str | None = None
    device: str = "auto"
    deadline_s: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimizeRequest(EngineRequest[MinimizeDocument]):
    """Find the smallest failing case of a finding, and write a script that shows it.

    Attributes:
        script: where to write it; None means beside the finding.
        suite: a suite that a user brings along, if it is not where the finding was made.
    """

    path: Path
    script: Path | None = None
    evaluations: int = 400
    suite: str | None = None
    device: str = "auto"
    deadline_s: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRequest:
    """A request, and the number by which its answer is known."""

    number: int
    request: CheckRequest | TimeRequest

    @property
    def task(self) -> str:
        """The task as the caller names it, or the file, with its suite."""
        return f"{self.request.suite or ''}/{self.request.task or self.request.file}"

    @property
    def timed(self) -> bool:
        """Whether it is to be timed, which one judge of a device does."""
        return isinstance(self.request, TimeRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far a command has come.

    `notable` steps are worth a line of their own where there is no progress bar.
    """

    done: int
    total: int
    text: str
    notable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEnded(Step):
    """One of several files is judged, or refused."""

    path: str
    ended: CheckDocument | RefusedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What came of a candidate.

    Attributes:
        findings: all that it breaks, the one that decides first.
        script: shows what decides without this package; empty where none was made.
    """

    document: CheckDocument
    findings: tuple[Finding, ...] = ()
    script: str = ""


# A stream of steps that ends in a document, which the generator returns.
Events: TypeAlias = Generator[Step, None, D]


def result_of(steps: Generator[object, None, D]) -> D:
    """Run steps to their end, and return what the generator returns."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: D = end.value
            return result
