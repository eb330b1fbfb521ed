"""What judging yields: a judgement per case, and one attempt per candidate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kerneltruth.cases.case import Case

# Re-exported: with these a judgement is made.
from kerneltruth.documents.records import CandidateRef as CandidateRef
from kerneltruth.documents.records import DtypeCount as DtypeCount
from kerneltruth.documents.records import ErrorMap as ErrorMap
from kerneltruth.documents.records import ErrorStats as ErrorStats
from kerneltruth.documents.records import Mismatch as Mismatch
from kerneltruth.oracle.verdict import FailKind, Verdict
from kerneltruth.runner.protocol import Binary

Headers = Literal["lean", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceNote:
    """A mismatch of form over all cases.

    Attributes:
        kind: `dtype` or `shape`.
        detail: what was returned in the first case, and what was due.
        output: name of the output.
        cases: how many cases show it.
        core: how many of them are of the core domain, where it counts as a failure.
        first: the first case that counts most: of the core domain, if any is.
    """

    kind: FailKind
    detail: str
    output: str
    cases: int
    core: int
    first: Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One case judged (under one configuration of an autotuned kernel).

    Attributes:
        interface: in what the form of right values differs from the promise.
    """

    case: Case
    verdict: Verdict
    stats: ErrorStats | None = None
    config: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    reference_digest: str | None = None
    output_digest: str | None = None
    seconds: float = 0.0
    interface: tuple[Mismatch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One candidate judged: exactly one verdict, and everything a result line needs.

    Attributes:
        torch_only: whether the source has no kernel of its own, only calls of PyTorch.
        verdict: of the first failing case, or of the whole if none failed.
        cases: cases judged (declined and unrefereeable ones not among them).
        failed: how many of them failed.
        dtypes: the same by dtype, and how many calls came back to be judged.
        declined: refusals in the extended domain.
        unrefereeable: cases that were replaced because their bound has no teeth, by reason.
        void: cases that were replaced because PyTorch's own function fails them too, by reason.
        skipped: cases not run, with a count and the reason.
        interface: outputs whose form differs from the promise while their values are right.
        failure: the first failing judgement.
        minimal: the smallest failing case found.
        explanation: where and how the output is wrong, in one or two sentences.
        shown: of the smallest case, the inputs, what is expected and what came, where that is
            short enough for a line.
        error_map: the same as a picture; it is stored with the finding alone.
        binaries: every specialization compiled, with its static facts.
        headers: of CUDA C++, which of PyTorch's headers it was built with: few, or all.
        own_weights: why a model was judged with the weights that its constructor draws; None where
            it was given the judge's.
    """

    task: str
    candidate: CandidateRef
    verdict: Verdict
    cases: int
    failed: int
    declined: tuple[tuple[Case, str], ...] = ()
    unrefereeable: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    failure: Judgement | None = None
    minimal: Case | None = None
    explanation: str = ""
    error_map: ErrorMap | None = None
    binaries: tuple[Binary, ...] = ()
    worst_ratio: float | None = None
    seconds: float = 0.0
    dtypes: dict[str, DtypeCount] = field(default_factory=dict)
    void: dict[str, int] = field(default_factory=dict)
    interface: tuple[InterfaceNote, ...] = ()
    shown: str = ""
    torch_only: bool = False
    headers: Headers | None = None
    own_weights: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseJudged:
    """Event: a case was judged."""

    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    """Event: the candidate has its verdict; always the last event of an attempt."""

    attempt: Attempt


Event = CaseJudged | AttemptEnded
