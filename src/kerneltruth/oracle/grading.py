"""Grade the results of timed calls, at the sizes that are timed and on the device of the timing.

The rules are those of any case, and the expectation comes from `expectation_builder.expect_timed`.
Grading tells work from no work; the cases of the exe stage have already judged how exact the kernel
is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from kerneltruth.cases.layouts import Placed
from kerneltruth.cases.materialize import flat_bytes
from kerneltruth.documents.verdict import Failed, Infra, Passed, Verdict
from kerneltruth.oracle.claims import broken_claims, cannot_be_computed, claims_in_words
from kerneltruth.oracle.expectation import Expectation, ExpectedOutput
from kerneltruth.oracle.judge import (
    not_accepted,
    returned_outputs,
    rule,
    wrong_values,
)
from kerneltruth.oracle.reference import quietly
from kerneltruth.runner.observation import ITEMSIZE, Observation, OtherResult, TensorResult
from kerneltruth.tasks.spec import Task


def spotwise(task: Task, expectation: Expectation) -> bool:
    """Whether each element of the outputs is right or wrong by itself, and can be kept alone."""
    return not _written(task, expectation) and all(
        want.spec.compare not in ("claims", "accept") and ITEMSIZE.get(want.promised_dtype, 0) <= 8
        for want in expectation.outputs
    )


def grade_spots(
    task: Task,
    calls: Sequence[Expectation],
    spots: Sequence[Sequence[int]],
    seen: Observation,
) -> Verdict:
    """Judge some elements of several calls' results, if that is possible (`spotwise`).

    Claims about whole results are left out. Several calls may be the same. Spots are row-major
    elements of each output, and the observed results have a line for each call.
    """
    odd = next((r for r in seen.results if isinstance(r, OtherResult)), None)
    if odd is not None:
        return Failed(kind="shape", detail=odd.text)
    return grade(replace(task, claims=None), _at_spots(calls, spots), seen)


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
    shape = want.reference.shape
    # The two parts of a complex number stay together.
    parts = shape[len(want.shape) :]
    where = torch.tensor(spots, dtype=torch.int64, device=want.reference.device)

    def some(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.broadcast_to(shape).reshape(-1, *parts)[where]

    bound = None if want.bound is None else some(want.bound)
    return replace(want, reference=some(want.reference), rounded=some(want.rounded), bound=bound)


def grade(task: Task, expectation: Expectation, seen: Observation) -> Verdict:
    """Judge a timed call's results, which include the inputs that it wrote.

    If the claims raise an error for the reference too, the judge cannot tell, and the verdict is
    `Infra`.
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
    # Fewer bytes to write are less work; one element has as many in any number of dims.
    form = next((m for m in got.interface if m.kind != "shape"), None)
    if form is not None:
        return Failed(kind=form.kind, detail=form.detail, output=form.output)
    device = expectation.timed_on or "cpu"
    with quietly(), torch.device(device):
        return _values(task, expectation, tuple(t.to(device) for t in got.tensors), device)


def _values(
    task: Task, expectation: Expectation, got: tuple[torch.Tensor, ...], device: str
) -> Verdict:
    reads_inputs = task.claims is not None or any(w.spec.accept for w in expectation.outputs)
    given = expectation.inputs.tensors if reads_inputs else {}
    inputs = {n: None if t is None else t.to(device) for n, t in given.items()}
    for output, want in zip(got, expectation.outputs, strict=True):
        if want.spec.compare in ("accept", "claims"):
            if (failed := not_accepted(expectation, want, got, inputs)) is not None:
                return failed
        elif want.rejects(output):
            return _wrong_on_cpu(output, want)
    claims = broken_claims(task, expectation, got, inputs)
    if not claims:
        return Passed()
    if cannot_be_computed(claims[0]):
        references = tuple(want.reference for want in expectation.outputs)
        own = broken_claims(task, expectation, references, inputs)
        if own and cannot_be_computed(own[0]):
            return Infra(reason=own[0].name)
    return Failed(kind="value", detail=claims_in_words(claims))


def _wrong_on_cpu(output: torch.Tensor, want: ExpectedOutput) -> Failed:
    """How wrong an output is, which takes more memory than the device may have left."""
    with torch.device("cpu"):
        here = replace(
            want,
            reference=want.reference.cpu(),
            rounded=want.rounded.cpu(),
            bound=None if want.bound is None else want.bound.cpu(),
        )
        return wrong_values(here.difference(output.cpu()), here)


def _written(task: Task, expectation: Expectation) -> tuple[str, ...]:
    return task.written(expectation.inputs.scalars, expectation.inputs.tensors)


def _without_aliases(seen: Observation) -> Observation:
    results = tuple(
        replace(r, alias=None) if isinstance(r, TensorResult) else r for r in seen.results
    )
    return replace(seen, results=results)


def _placed(tensor: torch.Tensor) -> Placed:
    """A tensor as it lay in its buffer: contiguous, with nothing around it."""
    flat = flat_bytes(tensor)
    return Placed(
        buffer=flat.numpy().tobytes(),
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        strides=tuple(tensor.contiguous().stride()),
        offset=0,
    )
