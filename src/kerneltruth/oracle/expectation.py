"""What the judge expects of a case: inputs, reference, bound; cached by case identity."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from kerneltruth.cases.case import Case
from kerneltruth.cases.materialize import Inputs, flat_bytes, materialize, with_out
from kerneltruth.oracle import bounds
from kerneltruth.oracle.arguments import Layouts
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.contract import broken_claims
from kerneltruth.oracle.decoys import decoys, is_right
from kerneltruth.oracle.dtypes import DTYPES, is_float
from kerneltruth.oracle.evaluations import (
    LARGE,
    SLACK,
    Evaluations,
    all_evaluations,
    count_elements,
    few_evaluations,
)
from kerneltruth.oracle.gradients import judged_as
from kerneltruth.oracle.recent import Recent, tensor_bytes
from kerneltruth.oracle.reference import quietly
from kerneltruth.oracle.stats import (
    Difference,
    compare,
    compare_exact,
    each_rejected,
    rejects,
    rejects_exact,
)
from kerneltruth.tasks.spec import Output, Task


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedOutput:
    """One output: the float64 reference, its rounding, and the error allowed per element.

    A complex output stands here as its real and imaginary parts, in a last dim of 2, and `dtype`
    is theirs; `promised` and `shape` are what must be returned.
    """

    spec: Output
    dtype: str
    promised: str
    reference: torch.Tensor
    rounded: torch.Tensor
    bound: torch.Tensor | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that must be returned."""
        shape = tuple(self.reference.shape)
        return shape[:-1] if self.promised.startswith("complex") else shape

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
        """Whether all of some outputs are wrong beyond doubt: a quick look at many small ones."""
        if not outputs or self.bound is None or not is_float(self.dtype):
            return not outputs
        return each_rejected(outputs, self.reference, self.bound, rounded=self.rounded)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expectation:
    """A case made ready for judging.

    Attributes:
        invalid: why the operator itself rejects the case, if it does.
        tf32: whether the policy admits TF32, where a contract asks.
        unrefereeable: which decoy the bound lets through, if one.
    """

    case: Case
    inputs: Inputs
    outputs: tuple[ExpectedOutput, ...] = ()
    invalid: str | None = None
    unrefereeable: str | None = None
    tf32: bool = True

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


def expect(task: Task, case: Case, policy: Policy) -> Expectation:
    """Materialize a case, evaluate its reference and bounds, and try the decoys."""
    if task.unrefereeable is not None:
        nothing = Inputs(order=(), tensors={}, scalars={})
        return Expectation(case=case, inputs=nothing, unrefereeable=task.unrefereeable)
    return expect_on(task, case, materialize(task, case), policy)


def expect_on(task: Task, case: Case, inputs: Inputs, policy: Policy) -> Expectation:
    """What is due on given inputs, such as stored ones."""
    with quietly():
        return _expect_on(task, case, inputs, policy)


def expect_timed(task: Task, case: Case, inputs: Inputs, *, device: str = "cpu") -> Expectation:
    """What a timed call on these inputs must give; evaluated on `device`, and kept there.

    Raises:
        Exception: whatever torch raises where the operator does not accept the inputs.
    """
    with quietly(), torch.device(device):
        due = task.due(inputs.scalars, inputs.tensors)
        bounded = any(o.compare != "contract" for o in due)
        made = few_evaluations(task, case, inputs, bounded=bounded, device=device)
        outputs = _outputs(task, case, due, made, Policy())
    return Expectation(case=case, inputs=inputs, outputs=outputs)


def _expect_on(task: Task, case: Case, inputs: Inputs, policy: Policy) -> Expectation:
    task = judged_as(task, case)
    due = task.due(inputs.scalars, inputs.tensors)
    # A contract looks at no bound.
    bounded = policy.method == "spread" and any(o.compare != "contract" for o in due)
    try:
        made = all_evaluations(task, case, inputs, bounded=bounded, tf32=policy.tf32)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return Expectation(case=case, inputs=inputs, invalid=reason)
    outputs = _outputs(task, case, due, made, policy)
    if task.wants_out(inputs.scalars):
        (only,) = outputs
        inputs = with_out(inputs, only.shape, only.promised, case.seed)
    expected = Expectation(case=case, inputs=inputs, outputs=outputs, tf32=policy.tf32)
    # Decoys of a large output take as long as its evaluations.
    return expected if made.few else replace(expected, unrefereeable=_toothless(task, expected))


def _outputs(
    task: Task, case: Case, due: Sequence[Output], made: Evaluations, policy: Policy
) -> tuple[ExpectedOutput, ...]:
    outputs = []
    for index, (spec, value) in enumerate(zip(due, made.truth, strict=True)):
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
                promised=spec.dtype_at(case.dtype),
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
    made: Evaluations,
    policy: Policy,
) -> torch.Tensor:
    if policy.method != "spread":
        return bounds.absolute_bound(task, dtype, value, policy)
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
    if made.few:
        bound *= SLACK
    if made.timed and bound.numel():
        # What few evaluations all cut off at the same value, another may leave within the usual.
        bound = torch.maximum(bound, bound.median())
    return bound


def _steps(value: torch.Tensor, index: int, made: Evaluations) -> torch.Tensor:
    """How far an integer output may be off."""
    if made.timed:
        return torch.ones(value.shape, dtype=torch.float64)
    return bounds.integer_slack(value, made.implementations, index)


def _toothless(task: Task, made: Expectation) -> str | None:
    """Name a decoy that the bounds let through, or None if they have teeth.

    A decoy replaces one output; a case with no element to judge says nothing and is let pass.
    """
    for index, expected in enumerate(made.outputs):
        if expected.spec.compare == "accept" or expected.reference.numel() == 0:
            continue
        offered = decoys(expected.rounded, made.inputs.tensors, expected.dtype)
        tried: Iterable[tuple[str, torch.Tensor]] = (
            (name, decoy) for name, decoy in offered if name not in expected.spec.spared
        )
        if expected.spec.compare != "contract" and expected.reference.numel() <= bounds.SMALL:
            tried = list(tried)
            if expected.rejects_each([decoy for _, decoy in tried]):
                continue
        for name, decoy in tried:
            if expected.spec.compare == "contract":
                rejected = _breaks(task, made, index, decoy)
            else:
                rejected = expected.rejects(decoy)
            if not (rejected or is_right(decoy, expected.rounded, expected.dtype)):
                what = "contract" if expected.spec.compare == "contract" else "bound"
                return f"the {what} lets a decoy through: {name}"
    return None


def _breaks(task: Task, made: Expectation, index: int, decoy: torch.Tensor) -> bool:
    """Whether the contract is broken when a decoy stands in the place of one right output."""
    outputs = made.outputs
    returned = tuple(decoy if i == index else o.rounded for i, o in enumerate(outputs))
    broken = broken_claims(
        task,
        tuple(o.spec for o in outputs),
        made.case.dtype,
        made.inputs.tensors,
        made.inputs.scalars,
        returned,
        tuple(o.reference for o in outputs),
        tf32=made.tf32,
        most=1,
    )
    return bool(broken)


class ExpectationCache:
    """Expectations by case identity, so that many candidates of one task share them.

    Attributes:
        layouts: what calls are made of, of which the same holds.
    """

    def __init__(self, policy: Policy, *, limit_bytes: int = 192 * 2**20) -> None:
        self.policy = policy
        self.layouts = Layouts()
        self._recent: Recent[Expectation] = Recent(_bytes, limit_bytes=limit_bytes)
        self._counts: dict[Hashable, int] = {}

    def count(self, plan: Hashable, make: Callable[[], int]) -> int:
        """How many cases a plan for a task comes to, which takes as long as making them."""
        if plan not in self._counts:
            self._counts[plan] = make()
        return self._counts[plan]

    def get(self, task: Task, case: Case) -> Expectation:
        """The expectation of a case, from the cache if it is there."""
        made = self._recent.get(case.identity, lambda: expect(task, case, self.policy))
        # Strategy and domain are no part of the identity, so the cached case may differ in them.
        return made if made.case == case else replace(made, case=case)


def _bytes(expectation: Expectation) -> int:
    outputs = [t for o in expectation.outputs for t in (o.reference, o.rounded, o.bound)]
    return tensor_bytes(outputs) + tensor_bytes(expectation.inputs.tensors.values())
