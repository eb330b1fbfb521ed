"""The judge's conclusion: a tagged union, never a bool.

Every judged case, and every attempt, has exactly one of these. `Passed` and `Failed` are judgements
of the kernel's output; `CompileError`, `RuntimeFault`, `Crashed` and `TimedOut` say that there was
no output; `Declined` is a clear refusal in the extended domain, counted but not wrong; the last
four say that no judgement was possible; the candidate is not at fault.
"""

from __future__ import annotations

import typing
from typing import Literal

from kerneltruth.documents.model import Model, Number

# What proves deceit: no mistake in an honest kernel behaves so.
HackKind = Literal["changed_later", "kept_result", "false_claim"]
FailKind = Literal[
    "count",
    "type",
    "shape",
    "dtype",
    "device",
    "value",
    "nan",
    "inf",
    "input_mutated",
    "out_of_bounds",
    "assumes_contiguous",
    "uninitialized",
    "nondeterministic",
    "kept_state",
    "same_draw",
    "other_bits",
    "aliased_output",
    "no_kernel",
    "changed_later",
    "kept_result",
    "false_claim",
]
# What a quantized task asks beside its formula. With `fake_quantization` nothing is quantized where
# it should be, or floats are returned in place of codes.
QuantizationRule = Literal[
    "scale",
    "zero_point",
    "rounding",
    "saturation",
    "layout",
    "fake_quantization",
]
VerdictWord = Literal[
    "pass",
    "fail",
    "hack",
    "compile_error",
    "runtime_error",
    "declined",
    "crash",
    "timeout",
    "unrefereeable",
    "void",
    "unsupported_here",
    "infra",
]
# No judgement of the kernel was possible, because of the machine or the task.
NOT_JUDGED: frozenset[str] = frozenset({"infra", "unsupported_here", "unrefereeable"})


class Cause(Model, frozen=True, kw_only=True):
    """Why some of the wrong elements are wrong: how many, and their share of all wrong ones."""

    kind: FailKind
    elements: int
    share: Number


class VerdictModel(Model, frozen=True, kw_only=True, tag_field="verdict"):
    """What all verdicts share: the word that distinguishes them."""

    @property
    def word(self) -> VerdictWord:
        """The verdict in documents."""
        return typing.cast(VerdictWord, self.__struct_config__.tag)


class Passed(VerdictModel, frozen=True, kw_only=True, tag="pass"):
    """Every output is within the bound and no guard was touched."""


class Failed(VerdictModel, frozen=True, kw_only=True, tag="fail"):
    """The kernel returned, but its result or a side effect is wrong.

    Attributes:
        output: the output that is wrong, if one is.
        causes: of the wrong elements, the largest first; empty if not looked for.
        inputs: the inputs with a layout on which it fails.
    """

    kind: FailKind
    detail: str
    output: str | None = None
    causes: tuple[Cause, ...] = ()
    inputs: tuple[str, ...] = ()


class Hack(Failed, frozen=True, kw_only=True, tag="hack"):
    """A failure whose behaviour proves deceit: `kind` says which, and `detail` is the proof."""

    kind: HackKind


class CompileError(VerdictModel, frozen=True, kw_only=True, tag="compile_error"):
    """The source does not load, or a kernel does not compile for the target."""

    detail: str
    target: str | None = None


class RuntimeFault(VerdictModel, frozen=True, kw_only=True, tag="runtime_error"):
    """The kernel raised in the core domain, or refused what is required of it (`refused`)."""

    error: str
    detail: str


class Declined(VerdictModel, frozen=True, kw_only=True, tag="declined"):
    """The kernel refused, before any output, a case that is not required of it."""

    reason: str


class Crashed(VerdictModel, frozen=True, kw_only=True, tag="crash"):
    """The child died: by a signal, or by exiting on its own."""

    signal: int | None
    detail: str


class TimedOut(VerdictModel, frozen=True, kw_only=True, tag="timeout"):
    """The deadline passed and the child was killed with its descendants."""

    seconds: Number


class Unrefereeable(VerdictModel, frozen=True, kw_only=True, tag="unrefereeable"):
    """No bound can tell right from wrong on this case."""

    reason: str


class Void(VerdictModel, frozen=True, kw_only=True, tag="void"):
    """PyTorch's own function fails the same call, so the case says nothing about a kernel."""

    reason: str


class UnsupportedHere(VerdictModel, frozen=True, kw_only=True, tag="unsupported_here"):
    """This machine, or Triton's interpreter, cannot run it: neither pass nor fail."""

    reason: str


class Infra(VerdictModel, frozen=True, kw_only=True, tag="infra"):
    """Our side broke: a lost worker, a full disk, no memory."""

    reason: str


Verdict = (
    Passed
    | Failed
    | Hack
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


# What no single call shows.
OF_SEVERAL_CALLS: frozenset[FailKind] = frozenset(
    {"kept_state", "same_draw", "other_bits", "kept_result", "changed_later"}
)


def said_of(verdict: Verdict) -> str:
    """Return what a verdict says of itself; empty for a pass alone, which needs no reason."""
    match verdict:
        case Passed():
            return ""
        case Failed(detail=detail, kind=kind):
            return detail or kind
        case CompileError(detail=said) | Crashed(detail=said):
            pass
        case RuntimeFault(error=error, detail=detail):
            said = detail or f"raises {error}"
        case TimedOut(seconds=seconds):
            said = f"did not return within {seconds:g} s"
        case _:
            said = verdict.reason
    return said or verdict.word


def is_bad(verdict: Verdict) -> bool:
    """Whether the verdict speaks against the kernel."""
    return isinstance(verdict, Failed | CompileError | RuntimeFault | Crashed | TimedOut)
