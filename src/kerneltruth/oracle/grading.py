"""Results of timed calls, graded: at shapes of the size that is timed, on whatever device.

The same reference and rules as for any case, with a bound made of fewer evaluations and, in turn,
wider. It is there to tell work from no work: stale, skipped, cached and unfinished results are
wrong by far more. How exact a kernel is has been judged before, on the cases of the exe stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from kerneltruth.cases.case import Case
from kerneltruth.cases.layouts import Placed
from kerneltruth.cases.materialize import Inputs, flat_bytes
from kerneltruth.oracle.admissible import Implementation, compute_dtype, implementations
from kerneltruth.oracle.bounds import spread_bound
from kerneltruth.oracle.contract import broken_claims, cannot_be_computed, said
from kerneltruth.oracle.dtypes import DTYPES, epsilon, is_float
from kerneltruth.oracle.expectation import Expectation, ExpectedOutput, with_spread
from kerneltruth.oracle.judge import returned_outputs, rule, wrong_values
from kerneltruth.oracle.reference import Scalars, Tensors, cast, evaluate, quietly
from kerneltruth.oracle.verdict import Failed, Infra, Passed, Verdict
from kerneltruth.runner.protocol import ITEMSIZE, Observation, OtherResult, TensorResult
from kerneltruth.tasks.spec import Claim, Task

# By how much the bound is wider than one of all evaluations, whose spread is a few times larger.
SLACK = 4.0


def due(task: Task, case: Case, inputs: Inputs, *, device: str = "cpu") -> Expectation:
    """What a timed call on these inputs must give; evaluated on `device`, and kept there.

    Raises:
        Exception: whatever torch raises where the operator does not accept the inputs.
    """
    with quietly(), torch.device(device):
        specs = task.due(inputs.scalars, inputs.tensors)
        bounded = any(o.compare != "contract" for o in specs)
        truth, known = _evaluated(task, case, inputs, bounded=bounded, device=device)
        outputs = []
        for index, (spec, value) in enumerate(zip(specs, truth, strict=True)):
            dtype = spec.parts_at(case.dtype)
            rounded = value.to(DTYPES[dtype])
            bound = None
            if is_float(dtype):
                value = value.to(torch.float64)
                tf32 = task.contracted()
                bound = spread_bound(task, case, dtype, value, known, index, tf32=tf32) * SLACK
                bound = _usual_at_least(bound)
            elif spec.compare == "bound":
                bound = torch.ones(value.shape, dtype=torch.float64)
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
    return Expectation(case=case, inputs=inputs, outputs=tuple(outputs))


def _usual_at_least(bound: torch.Tensor) -> torch.Tensor:
    """The bound, nowhere less than half of its elements have.

    What few evaluations all cut off at the same value, another one may leave within the usual.
    """
    return torch.maximum(bound, bound.median()) if bound.numel() else bound


def _evaluated(
    task: Task, case: Case, inputs: Inputs, *, bounded: bool, device: str
) -> tuple[tuple[torch.Tensor, ...], tuple[Implementation, ...]]:
    """The reference, and admissible results where there is a bound to be made."""
    both = with_spread(task, case, inputs, tf32=True) if bounded else None
    if both is not None:
        truth, farthest = both
        there = tuple(o.to(device) for o in farthest.outputs)
        return tuple(o.to(device) for o in truth), (replace(farthest, outputs=there),)
    tensors = {n: None if t is None else t.to(device) for n, t in inputs.tensors.items()}
    truth = evaluate(task, cast(task, tensors, torch.float64), inputs.scalars)
    if not bounded:
        return truth, ()
    return truth, tuple(_implementations(task, case, tensors, inputs.scalars))


def spotwise(task: Task, expectation: Expectation) -> bool:
    """Whether each element of the outputs is right or wrong by itself, and can be kept alone."""
    return not _written(task, expectation) and all(
        want.spec.compare not in ("contract", "accept") and ITEMSIZE.get(want.promised, 0) <= 8
        for want in expectation.outputs
    )


def grade_spots(
    task: Task,
    calls: Sequence[Expectation],
    spots: Sequence[Sequence[int]],
    seen: Observation,
    *,
    device: str = "cpu",
) -> Verdict:
    """Judge some elements of what several calls gave, where that is possible (`spotwise`).

    Args:
        task: the task; what its contract says of results as a whole is left out.
        calls: what each call must give as a whole; many may be the same.
        spots: of each output, which elements, row-major.
        seen: of each output a tensor with a line for each call.
        device: where `due` was asked for.
    """
    odd = next((r for r in seen.results if isinstance(r, OtherResult)), None)
    if odd is not None:
        return Failed(kind="shape", detail=odd.text)
    return grade(replace(task, contract=None), _at_spots(calls, spots), seen, device=device)


def _at_spots(calls: Sequence[Expectation], spots: Sequence[Sequence[int]]) -> Expectation:
    outputs = []
    for index, at in enumerate(spots):
        want = calls[0].outputs[index]
        known = {id(call): _at(call.outputs[index], at) for call in calls}
        lines = [known[id(call)] for call in calls]
        bounds = [line.bound for line in lines if line.bound is not None]
        outputs.append(
            replace(
                want,
                reference=torch.stack([line.reference for line in lines]),
                rounded=torch.stack([line.rounded for line in lines]),
                bound=torch.stack(bounds) if bounds else None,
            )
        )
    return replace(calls[0], outputs=tuple(outputs))


def _at(want: ExpectedOutput, spots: Sequence[int]) -> ExpectedOutput:
    """Some elements of an output, in a line."""
    shape = want.reference.shape
    # The two parts of a complex number stay together.
    parts = shape[len(want.shape) :]
    where = torch.tensor(spots, dtype=torch.int64, device=want.reference.device)

    def some(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.broadcast_to(shape).reshape(-1, *parts)[where]

    bound = None if want.bound is None else some(want.bound)
    return replace(want, reference=some(want.reference), rounded=some(want.rounded), bound=bound)


def _implementations(
    task: Task, case: Case, tensors: Tensors, scalars: Scalars
) -> list[Implementation]:
    found = list(
        implementations(task, case.dtype, tensors, scalars, seed=case.seed, tf32=True, few=True)
    )
    inner = compute_dtype(case.dtype)
    if not is_float(inner):
        return found
    for name, factor in (("up", 1 + epsilon(inner)), ("down", 1 - epsilon(inner))):
        moved = {
            n: t.to(torch.float64) * factor if t is not None and t.is_floating_point() else t
            for n, t in tensors.items()
        }
        outputs = evaluate(task, moved, scalars)
        found.append(Implementation(name=name, outputs=outputs, settles=False))
    return found


def grade(
    task: Task, expectation: Expectation, seen: Observation, *, device: str = "cpu"
) -> Verdict:
    """Judge what a timed call gave; the inputs that it wrote are among what was seen.

    `device` is where `due` was asked for. What the judge cannot tell, since its claims raise an
    error for the reference too, is `Infra`.
    """
    if seen.ended != "returned":
        return rule(task, expectation, {}, seen, deadline_s=0.0).verdict
    placed = {
        name: _placed(tensor)
        for name, tensor in expectation.inputs.tensors.items()
        if tensor is not None and name in _written(task, expectation)
    }
    # A kernel's buffers may be reused from call to call, and its views be of its inputs.
    got = returned_outputs(task, expectation, placed, _without_aliases(seen), None)
    if got.failed is not None:
        return got.failed
    if got.interface:
        # Fewer bytes to write are less work.
        form = got.interface[0]
        return Failed(kind=form.kind, detail=form.detail, output=form.output)
    with quietly(), torch.device(device):
        return _values(task, expectation, tuple(t.to(device) for t in got.tensors), device)


def _values(
    task: Task, expectation: Expectation, got: tuple[torch.Tensor, ...], device: str
) -> Verdict:
    given = expectation.inputs
    asked = task.contract is not None or any(w.spec.accept for w in expectation.outputs)
    tensors = {n: None if t is None else t.to(device) for n, t in given.tensors.items() if asked}
    references = tuple(want.reference for want in expectation.outputs)
    for output, want in zip(got, expectation.outputs, strict=True):
        if want.spec.compare == "accept" and want.spec.accept is not None:
            right = want.spec.accept(tensors, got, list(references))
            if not bool(right.all()):
                count = int((~right).sum())
                detail = f"{count} of {right.numel()} elements are not an accepted answer"
                return Failed(kind="value", detail=detail, output=want.spec.name)
        elif want.spec.compare != "contract" and want.rejects(output):
            with torch.device("cpu"):
                here = replace(
                    want,
                    reference=want.reference.cpu(),
                    rounded=want.rounded.cpu(),
                    bound=None if want.bound is None else want.bound.cpu(),
                )
                return wrong_values(here.difference(output.cpu()), here)
    specs = tuple(want.spec for want in expectation.outputs)

    def broken(outputs: tuple[torch.Tensor, ...]) -> tuple[Claim, ...]:
        dtype = expectation.case.dtype
        return broken_claims(task, specs, dtype, tensors, given.scalars, outputs, references)

    claims = broken(got)
    if not claims:
        return Passed()
    if cannot_be_computed(claims[0]):
        own = broken(references)
        if own and cannot_be_computed(own[0]):
            return Infra(reason=own[0].name)
    return Failed(kind="value", detail=said(claims))


def _written(task: Task, expectation: Expectation) -> tuple[str, ...]:
    return task.written(expectation.inputs.scalars, expectation.inputs.tensors)


def _without_aliases(seen: Observation) -> Observation:
    results = tuple(
        replace(r, alias=None) if isinstance(r, TensorResult) else r for r in seen.results
    )
    return replace(seen, results=results)


def _placed(tensor: torch.Tensor) -> Placed:
    """A tensor as it lay in its row: contiguous, and nothing around it."""
    flat = flat_bytes(tensor)
    return Placed(
        buffer=flat.numpy().tobytes(),
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        strides=tuple(tensor.contiguous().stride()),
        offset=0,
    )
