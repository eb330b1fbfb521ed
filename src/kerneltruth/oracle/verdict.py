"""What the judge concludes: a tagged union, never a bool.

Every attempt on a case ends in exactly one of these. `Passed` and `Failed` are judgements of the
kernel's output; `CompileError`, `RuntimeFault`, `Crashed` and `TimedOut` say that there was no
output; `Declined` is a clear refusal in the extended domain, counted but not wrong; the last four
say that no judgement was possible; the candidate is not at fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

# Re-exported: this is where the kinds are looked for.
from kerneltruth.documents.records import FailKind as FailKind

FAIL_KINDS: tuple[str, ...] = get_args(FailKind)
# What no single call shows.
OF_SEVERAL_CALLS: frozenset[FailKind] = frozenset({"kept_state", "same_draw"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Every output is within the bound and no guard was touched."""

    verdict: ClassVar[Literal["pass"]] = "pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why some of the wrong elements are wrong: how many, and their share of all wrong ones."""

    kind: FailKind
    elements: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The kernel returned, and what it returned or did is wrong.

    Attributes:
        output: the output that is wrong, if one is.
        causes: of the wrong elements, the largest first; empty if not looked for.
        inputs: the inputs at whose layout it fails.
    """

    verdict: ClassVar[Literal["fail"]] = "fail"
    kind: FailKind
    detail: str
    output: str | None = None
    causes: tuple[Cause, ...] = ()
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileError:
    """The source does not load, or a kernel does not compile for the target."""

    verdict: ClassVar[Literal["compile_error"]] = "compile_error"
    detail: str
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeFault:
    """The kernel raised in the core domain."""

    verdict: ClassVar[Literal["runtime_error"]] = "runtime_error"
    error: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """The kernel refused, before any output, a case of the extended domain."""

    verdict: ClassVar[Literal["declined"]] = "declined"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """The child died: by a signal, or by exiting on its own."""

    verdict: ClassVar[Literal["crash"]] = "crash"
    signal: int | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """The deadline passed and the child was killed with its descendants."""

    verdict: ClassVar[Literal["timeout"]] = "timeout"
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrefereeable:
    """No bound can tell right from wrong on this case."""

    verdict: ClassVar[Literal["unrefereeable"]] = "unrefereeable"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Void:
    """PyTorch's own function fails the same call, so that the case says nothing of a kernel."""

    verdict: ClassVar[Literal["void"]] = "void"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedHere:
    """This machine, or Triton's interpreter, cannot run it: neither pass nor fail."""

    verdict: ClassVar[Literal["unsupported_here"]] = "unsupported_here"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Infra:
    """Our side broke: a lost worker, a full disk, no memory."""

    verdict: ClassVar[Literal["infra"]] = "infra"
    reason: str


Verdict = (
    Passed
    | Failed
    | CompileError
    | RuntimeFault
    | Declined
    | Crashed
    | TimedOut
    | Unrefereeable
    | Void
    | UnsupportedHere
    | Infra
)


def word(verdict: Verdict) -> str:
    """The verdict as the contract spells it."""
    return verdict.verdict


def is_bad(verdict: Verdict) -> bool:
    """Whether the verdict speaks against the kernel."""
    return isinstance(verdict, Failed | CompileError | RuntimeFault | Crashed | TimedOut)
