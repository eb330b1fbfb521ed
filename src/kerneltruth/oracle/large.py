"""One call of a right kernel beyond 2^31 elements or bytes, judged by some of its rows.

Inputs and results of that size are neither drawn nor sent: see `cases.large`. So a wrong result has
no finding, and decides nothing; it is a hazard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import torch
from msgspec import structs

from kerneltruth.cases.large import LargeCall, Unit, has_rows, large_calls, row_dim
from kerneltruth.cases.materialize import Inputs, flat_bytes, materialize
from kerneltruth.cases.strategies import generate
from kerneltruth.clock.device.lock import much_memory
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import ProfileEntry, Status
from kerneltruth.documents.verdict import (
    Crashed,
    Failed,
    Passed,
    Unrefereeable,
    UnsupportedHere,
    Verdict,
)
from kerneltruth.oracle.arguments import lay_out
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.case_status import CaseStatus, case_status, reason_of
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.expectation_builder import expect_on
from kerneltruth.oracle.grading import grade
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.profile import LEFT_OUT
from kerneltruth.oracle.reference import reference
from kerneltruth.runner.arguments import RepeatedArgument, TensorArgument
from kerneltruth.runner.observation import Observation, OtherResult
from kerneltruth.runner.protocol import Rows
from kerneltruth.runner.unsupported import MEMORY_LACKS
from kerneltruth.tasks.spec import Task

# Its kind within `shapes`, and the key of its hazard.
KIND, LARGE = "2^31 elements", "shapes.large"
# A right kernel may be slow; the call of a quick one takes milliseconds.
DEADLINE_S = 5.0
NEEDS_GPU = "needs a GPU"
NOT_PASSED = "tried only where all that decides holds"
TOO_LONG = "its rows are too long, or such sizes are not allowed"
NO_NUMPY = "NumPy's arrays are on the CPU"
OUT_OF_MEMORY = "OutOfMemoryError"
# Independent rows differ at most by the order of sums in float64.
_SAME = 1e-9
# What a device says where a kernel has left its memory, in CUDA's words and in Triton's.
STRAYED = ("illegal memory access", "misaligned address")


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeResult:
    """A large call, and the verdict on the rows that are judged."""

    call: LargeCall
    verdict: Verdict

    @property
    def where(self) -> str:
        """Its sizes: `M=8355457 N=257 float32 (more than 2^31 elements)`."""
        return f"{self.call.case.summary()} (more than 2^31 {self.call.unit})"

    @property
    def said(self) -> str:
        """What became of it, and where."""
        return f"{reason_of(self.verdict)} at {self.where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeEntry:
    """What became of the large call, and why or where."""

    status: Status
    reason: str

    @property
    def hazard(self) -> dict[str, str]:
        """The line under the verdict, if results are wrong."""
        if self.status != "broken":
            return {}
        return {LARGE: f"wrong at large sizes: {self.reason}"}

    def noted(self, profile: Mapping[str, ProfileEntry]) -> dict[str, ProfileEntry]:
        """The entry of `shapes`, with what this adds: where it held, or why it was not tried."""
        entry = profile.get("shapes")
        if entry is None or entry.status != "held" or self.status == "broken":
            return {}
        if self.status == "held":
            return {"shapes": structs.replace(entry, reason=self.reason)}
        return {"shapes": structs.replace(entry, untried={**entry.untried, KIND: self.reason})}


def call_large(
    session: CandidateSession, plan: Plan, verdict: Verdict, profile: Mapping[str, ProfileEntry]
) -> LargeEntry | None:
    """Make the large call; None where the task has no independent rows.

    To be called after all cases: `verdict` and `profile` are what they came to.
    """
    task = session.task
    case = next(generate(task, count=1, seed=plan.seed, strategies=("default",)), None)
    symbol = None if case is None else row_dim(task, case)
    outputs = None if case is None or symbol is None else _independent(task, case, symbol)
    if case is None or symbol is None or outputs is None:
        return None
    untried = _why_not(session, plan, verdict)
    if untried is not None:
        return LargeEntry(status="not_tried", reason=untried)
    halves = [d for d in ("float16", "bfloat16") if _holds(profile, d) and d != case.dtype]
    calls = large_calls(task, case, symbol, outputs, narrower=halves[:1])
    with much_memory(session.runner.device, alone=True):
        return _entry_of(_results(session, calls))


def _why_not(session: CandidateSession, plan: Plan, verdict: Verdict) -> str | None:
    if plan.is_narrowed:
        return LEFT_OUT
    if session.runner.device == "cpu":
        return NEEDS_GPU
    if session.candidate.language == "numpy":
        return NO_NUMPY
    return None if isinstance(verdict, Passed) else NOT_PASSED


def _holds(profile: Mapping[str, ProfileEntry], dtype: str) -> bool:
    entry = profile.get(f"dtypes.{dtype}")
    return entry is not None and entry.status == "held"


def _independent(task: Task, case: Case, symbol: str) -> list[int] | None:
    """Elements of a row of each output, if each row of the result depends on its own row alone."""
    case = case.with_dims(**{symbol: 7})
    if not task.allows(case.sizes, case.settings):
        return None
    inputs = materialize(task, case)
    with_rows = _with_rows(task, case, symbol)
    try:
        whole, few, others = (
            reference(task, _picked(inputs, with_rows, rows).tensors, inputs.scalars)
            for rows in ([*range(7)], [0, 1, 2], [3, 4, 5, 6])
        )
    except (RuntimeError, ValueError, IndexError, TypeError):
        return None
    parts = zip(whole, few, others, strict=True)
    same = all(_is_joined(output, first, second) for output, first, second in parts)
    return [prod(output.shape[1:]) for output in whole] if same else None


def _is_joined(whole: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> bool:
    if whole.ndim == 0 or (len(first), len(second)) != (3, 4):
        return False
    joined = torch.cat([first, second])
    if joined.shape != whole.shape or not whole.is_floating_point():
        return torch.equal(joined, whole)
    return torch.allclose(joined, whole, rtol=_SAME, atol=_SAME, equal_nan=True)


def _with_rows(task: Task, case: Case, symbol: str) -> frozenset[str]:
    """The tensors that have a row for each of the call's."""
    present = (spec for spec in task.tensors if spec.name not in case.absent)
    return frozenset(spec.name for spec in present if has_rows(task, spec, case, symbol))


def _picked(inputs: Inputs, names: Collection[str], rows: Sequence[int]) -> Inputs:
    """The inputs with these rows of the named tensors."""
    picked = {
        name: tensor[list(rows)] if tensor is not None and name in names else tensor
        for name, tensor in inputs.tensors.items()
    }
    return replace(inputs, tensors=picked)


def _results(session: CandidateSession, calls: Iterable[LargeCall]) -> Iterator[LargeResult]:
    """Make the first call that the device has memory for, and a smaller one if it is wrong."""
    wrong: Unit | None = None
    for call in calls:
        if call.unit == wrong:
            continue
        verdict = _verdict(session, call)
        yield LargeResult(call=call, verdict=verdict)
        if case_status(verdict) == "broken":
            wrong = call.unit
        elif not reason_of(verdict).startswith(MEMORY_LACKS):
            return


def _verdict(session: CandidateSession, call: LargeCall) -> Verdict:
    """Make the call, and judge some rows of its results."""
    task, block = session.task, materialize(session.task, call.block)
    names = _with_rows(task, call.block, call.symbol)
    case = call.block.with_dims(**{call.symbol: len(call.judged)})
    expectation = expect_on(task, case, _picked(block, names, call.judged), session.cache.policy)
    unsettled = expectation.unrefereeable or expectation.invalid
    if unsettled is not None:
        return Unrefereeable(reason=unsettled)
    arguments = [
        _repeated(a, block, call) if a.name in names and isinstance(a, TensorArgument) else a
        for a in lay_out(task, case, expectation.inputs).arguments
    ]
    deadline_s = min(DEADLINE_S, session.deadline_s)
    seen = session.call_rows(
        arguments,
        case,
        rows=Rows(
            total=call.rows,
            starts=tuple(start for start, _ in call.ranges),
            counts=tuple(count for _, count in call.ranges),
        ),
        free_bytes=call.free_bytes,
        deadline_s=deadline_s,
    )
    return _ruled(task, expectation, seen, deadline_s)


def _repeated(argument: TensorArgument, block: Inputs, call: LargeCall) -> RepeatedArgument:
    tensor = block.tensors[argument.name]
    assert tensor is not None
    return RepeatedArgument(
        name=argument.name,
        dtype=argument.dtype,
        shape=(call.rows, *tensor.shape[1:]),
        block=flat_bytes(tensor).numpy().tobytes(),
        member_of=argument.member_of,
    )


def _ruled(task: Task, expectation: Expectation, seen: Observation, deadline_s: float) -> Verdict:
    message = seen.message or ""
    if seen.ended == "timeout":
        return UnsupportedHere(reason=f"a call did not return within {deadline_s:g} s")
    if seen.error == OUT_OF_MEMORY:
        return UnsupportedHere(reason=f"{MEMORY_LACKS}: {message}")
    if seen.ended == "raised" and any(words in message for words in STRAYED):
        return Crashed(signal=None, detail=message.partition("\n")[0])
    if seen.guards_hit:
        return Failed(kind="out_of_bounds", detail="wrote beyond memory that it allocated")
    other = next((r for r in seen.results if isinstance(r, OtherResult)), None)
    if other is not None:
        return Failed(kind="shape", detail=f"returned {other.text}")
    return grade(task, expectation, seen)


def _entry_of(results: Iterable[LargeResult]) -> LargeEntry:
    """What some large calls come to: a wrong one outweighs a right one, and both a refusal."""
    by_status: dict[CaseStatus | None, LargeResult] = {}
    for result in results:
        by_status[case_status(result.verdict)] = result
    wrong, held = by_status.get("broken"), by_status.get("held")
    if wrong is not None:
        right = f"; right at {held.where}" if held is not None else ""
        return LargeEntry(status="broken", reason=f"{wrong.said}{right}")
    if held is not None:
        return LargeEntry(status="held", reason=f"also right at {held.where}")
    refused, untried = by_status.get("refused"), by_status.get(None)
    if refused is not None:
        return LargeEntry(status="refused", reason=f"refused: {refused.said}")
    return LargeEntry(status="not_tried", reason=TOO_LONG if untried is None else untried.said)
