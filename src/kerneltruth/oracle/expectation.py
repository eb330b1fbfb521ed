"""What is expected of a case: its inputs and, for each output, the reference and its bound."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from msgspec.structs import replace

from kerneltruth.cases.materialize import Inputs, flat_bytes
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Judgement
from kerneltruth.oracle import bounds
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.dtypes import DTYPES, is_float
from kerneltruth.oracle.right_results import LARGE, SLACK, RightResults, count_elements
from kerneltruth.oracle.stats import Difference, compare, compare_exact
from kerneltruth.oracle.wrong_elements import each_rejected, rejects, rejects_exact
from kerneltruth.tasks.spec import Output, Task


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedOutput:
    """One output: the float64 reference, its rounding, and the error allowed per element.

    A complex output is stored as real and imaginary parts in a last dim of 2, with their `dtype`.
    `promised_dtype` and `shape` describe what must be returned.
    """

    spec: Output
    dtype: str
    promised_dtype: str
    reference: torch.Tensor
    rounded: torch.Tensor
    bound: torch.Tensor | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that must be returned."""
        shape = tuple(self.reference.shape)
        return shape[:-1] if self.promised_dtype.startswith("complex") else shape

    def difference(self, got: torch.Tensor) -> Difference:
        """Compare an output of the right shape and dtype."""
        if is_float(self.dtype) and self.bound is not None:
            return compare(got, self.reference, self.bound, rounded=self.rounded)
        return compare_exact(got, self.reference, self.bound)

    def rejects(self, got: torch.Tensor) -> bool:
        """Whether an output of the right shape and dtype is wrong anywhere."""
        if is_float(self.dtype) and self.bound is not None:
            return rejects(got, self.reference, self.bound, rounded=self.rounded)
        return rejects_exact(got, self.reference, self.bound)

    def rejects_each(self, outputs: Sequence[torch.Tensor]) -> bool:
        """Whether all these outputs are surely wrong: a quick check of many small ones."""
        if not outputs or self.bound is None or not is_float(self.dtype):
            return not outputs
        return each_rejected(outputs, self.reference, self.bound, rounded=self.rounded)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expectation:
    """A case made ready for judging.

    Attributes:
        invalid: why the operator itself rejects the case, if it does.
        tf32: whether the policy admits TF32, for claims that ask.
        unrefereeable: which decoy the bound lets through, if one.
        timed_on: the device where a timed call is graded; None for a case.
    """

    case: Case
    inputs: Inputs
    outputs: tuple[ExpectedOutput, ...] = ()
    invalid: str | None = None
    unrefereeable: str | None = None
    tf32: bool = True
    timed_on: str | None = None

    @property
    def is_large(self) -> bool:
        """Whether each call and comparison costs a good part of a second."""
        return count_elements(self.inputs, [o.reference for o in self.outputs]) > LARGE

    def digest(self) -> str:
        """Sha256 over the rounded reference outputs, row-major, in the output dtype."""
        return tensors_digest(tuple(o.rounded for o in self.outputs))


def tensors_digest(tensors: tuple[torch.Tensor, ...]) -> str:
    """Sha256 over the logical elements of the tensors in order, row-major."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(flat_bytes(tensor).numpy().data)
    return digest.hexdigest()


def with_digests(
    judgement: Judgement, expectation: Expectation, outputs: tuple[torch.Tensor, ...] = ()
) -> Judgement:
    """The judgement with what a replay compares: digests of inputs, reference and outputs."""
    return replace(
        judgement,
        digests=expectation.inputs.digests(),
        reference_digest=expectation.digest(),
        output_digest=tensors_digest(outputs) if outputs else None,
    )


def expected_outputs(
    task: Task, case: Case, specs: Sequence[Output], made: RightResults, policy: Policy
) -> tuple[ExpectedOutput, ...]:
    """Each output with the error that a right kernel may show, from one set of evaluations."""
    outputs = []
    for index, (spec, value) in enumerate(zip(specs, made.truth, strict=True)):
        dtype = spec.parts_at(case.dtype)
        rounded = value.to(DTYPES[dtype])
        bound: torch.Tensor | None = None
        if is_float(dtype):
            value = value.to(torch.float64)
            bound = _bound(task, case, dtype, value, index, made, policy)
        elif spec.compare == "bound":
            bound = _steps(value, index, made)
        outputs.append(
            ExpectedOutput(
                spec=spec,
                dtype=dtype,
                promised_dtype=spec.dtype_at(case.dtype),
                reference=value,
                rounded=rounded,
                bound=bound,
            )
        )
    return tuple(outputs)


def _bound(
    task: Task,
    case: Case,
    dtype: str,
    value: torch.Tensor,
    index: int,
    made: RightResults,
    policy: Policy,
) -> torch.Tensor:
    if policy.method != "spread":
        return bounds.absolute_bound(task, dtype, value, policy)
    bound = _spread(task, case, dtype, value, index, made, policy)
    if dtype not in task.admitted:
        return bound
    share = torch.nan_to_num(value.abs(), nan=0.0, posinf=0.0) * task.admitted_share
    return torch.maximum(bound, (share + task.admitted[dtype]).to(bound.dtype))


def _spread(
    task: Task,
    case: Case,
    dtype: str,
    value: torch.Tensor,
    index: int,
    made: RightResults,
    policy: Policy,
) -> torch.Tensor:
    bound = bounds.spread_bound(
        task,
        case,
        dtype,
        value,
        made.implementations,
        index,
        tf32=policy.tf32 and task.contracted(),
        overflowing=made.overflowing[index] if made.overflowing else None,
    )
    if made.conditioning is not None:
        bound = bounds.of_own_element(
            task,
            case,
            dtype,
            value,
            made.implementations,
            conditioning=made.conditioning,
            within=bound,
        )
    if made.few:
        bound *= SLACK
    if made.timed and bound.numel():
        # An element that these few all cut off may be kept by another, within the usual bound.
        bound = torch.maximum(bound, bound.median())
    return bound


def _steps(value: torch.Tensor, index: int, made: RightResults) -> torch.Tensor:
    """How far an integer output may be off."""
    if made.timed:
        return torch.ones(value.shape, dtype=torch.float64)
    return bounds.integer_slack(value, made.implementations, index)
