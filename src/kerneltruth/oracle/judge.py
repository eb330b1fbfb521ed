"""Observation + expectation -> verdict. Pure: nothing here runs a candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from kerneltruth.cases.layouts import Placed, inspect
from kerneltruth.oracle.attempt import ErrorStats
from kerneltruth.oracle.contract import broken_claim, said
from kerneltruth.oracle.dtypes import DTYPES
from kerneltruth.oracle.expectation import Expectation, ExpectedOutput
from kerneltruth.oracle.reference import real_parts
from kerneltruth.oracle.stats import Difference
from kerneltruth.oracle.verdict import (
    CompileError,
    Crashed,
    Declined,
    Failed,
    FailKind,
    Infra,
    Passed,
    RuntimeFault,
    TimedOut,
    UnsupportedHere,
    Verdict,
)
from kerneltruth.runner.protocol import Observation, OtherResult, TensorResult
from kerneltruth.tasks.spec import Task

# How the detail of a verdict on a stray access begins.
WROTE, READS = "wrote ", "reads "


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ruling:
    """A verdict with what it rests on: statistics of the worst output, and the outputs."""

    verdict: Verdict
    stats: ErrorStats | None = None
    outputs: tuple[torch.Tensor, ...] = ()
    differences: tuple[Difference | None, ...] = ()


def rule(
    task: Task,
    expectation: Expectation,
    placed: Mapping[str, Placed],
    observation: Observation,
    *,
    deadline_s: float,
    device: str | None = None,
) -> Ruling:
    """Judge one call.

    Args:
        task: for the inputs that its contract lets a kernel write.
        expectation: of the case.
        placed: how each input tensor was laid out.
        observation: what the child reported.
        deadline_s: the deadline that the call had, for a timeout's message.
        device: where outputs must lie; None does not look.
    """
    if observation.ended != "returned":
        core = expectation.case.domain == "core"
        return Ruling(verdict=_not_returned(observation, core=core, deadline_s=deadline_s))
    broken = _inputs_and_guards(task, expectation, placed, observation)
    # Without tensors in, nothing says on which device the output should be.
    due_device = device if task.tensors else None
    results, wrong_form = returned_outputs(task, expectation, placed, observation, due_device)
    if wrong_form is not None:
        return Ruling(verdict=broken or wrong_form)
    return _values(task, expectation, results, broken)


def _not_returned(observation: Observation, *, core: bool, deadline_s: float) -> Verdict:
    message = observation.message or ""
    match observation.ended:
        case "timeout":
            return TimedOut(seconds=deadline_s)
        case "died" | "flooded":
            return Crashed(signal=observation.signal, detail=message or observation.ended)
        case "load_failed":
            return CompileError(detail=_error_line(observation))
        case "compile_failed" if core:
            return CompileError(detail=_error_line(observation))
        case "raised" if core:
            return RuntimeFault(error=observation.error or "Exception", detail=message)
        case "compile_failed" | "raised":
            return Declined(reason=_error_line(observation))
        case "unsupported":
            return UnsupportedHere(reason=message)
        case _:
            return Infra(reason=message or observation.ended)


def _error_line(observation: Observation) -> str:
    message = (observation.message or "").strip()
    return f"{observation.error}: {message}" if observation.error else message


def _inputs_and_guards(
    task: Task, expectation: Expectation, placed: Mapping[str, Placed], observation: Observation
) -> Failed | None:
    """Writes where a kernel has no business: guard bands, gaps, inputs."""
    if observation.guards_hit:
        detail = f"{WROTE}beyond memory that it allocated: {', '.join(observation.guards_hit)}"
        return Failed(kind="out_of_bounds", detail=detail)
    mutated: list[str] = []
    writable = task.writable(expectation.inputs.scalars, expectation.inputs.tensors)
    for name, place in placed.items():
        after = observation.buffers.get(name)
        if after is None or after == place.buffer:
            continue
        seen = inspect(place, after)
        if not (seen.guards_intact and seen.gaps_intact):
            return Failed(kind="out_of_bounds", detail=f"{WROTE}outside of the elements of {name}")
        if not seen.elements_intact and name not in writable:
            mutated.append(name)
    if mutated:
        return Failed(kind="input_mutated", detail="wrote to its input " + ", ".join(mutated))
    return None


def returned_outputs(
    task: Task,
    expectation: Expectation,
    placed: Mapping[str, Placed],
    observation: Observation,
    device: str | None,
) -> tuple[tuple[torch.Tensor, ...], Failed | None]:
    """The outputs as CPU tensors, or in what form they break the contract."""
    given = expectation.inputs
    written = task.written(given.scalars, given.tensors)
    after = {
        name: inspect(placed[name], observation.buffers.get(name, placed[name].buffer)).tensor
        for name in written
    }
    expected = expectation.outputs
    results = observation.results
    in_place = [want.spec.name in after for want in expected]
    if not results and written and not any(in_place):
        return tuple(after.values()), None
    if len(results) > len(expected):
        # As SGD does for the momentum that it was told to do without.
        results = tuple(r for r in results if not _is_none(r))
    if len(results) == len(expected):
        # What an operator in place returns beside is a courtesy; what it wrote is judged.
        results = tuple(r for r, wrote in zip(results, in_place, strict=True) if not wrote)
    if len(results) != len(expected) - sum(in_place):
        detail = f"returned {len(results)} outputs where the task has {len(expected)}"
        return (), Failed(kind="count", detail=detail)
    returned = iter(results)
    writable = task.writable(given.scalars, given.tensors)
    tensors = []
    for want, wrote in zip(expected, in_place, strict=True):
        if wrote:
            tensors.append(after[want.spec.name])
            continue
        result = next(returned)
        failed = _form(writable, result, want, device)
        if failed is not None:
            return (), failed
        assert isinstance(result, TensorResult)
        tensors.append(tensor_of(result))
    return tuple(tensors), None


def _is_none(result: TensorResult | OtherResult) -> bool:
    return isinstance(result, OtherResult) and result.type == "NoneType"


def _form(
    writable: tuple[str, ...],
    result: TensorResult | OtherResult,
    want: ExpectedOutput,
    device: str | None,
) -> Failed | None:
    name = want.spec.name
    if isinstance(result, OtherResult):
        detail = f"returned a {result.type} where a tensor was due"
        return Failed(kind="type", detail=detail, output=name)
    problems: tuple[tuple[bool, FailKind, str], ...] = (
        (
            tuple(result.shape) != want.shape,
            "shape",
            f"shape {tuple(result.shape)} where {want.shape} was due",
        ),
        (result.dtype != want.promised, "dtype", f"dtype {result.dtype}, not {want.promised}"),
        (
            device is not None and result.device != device,
            "device",
            f"the output lies on {result.device}, the inputs on {device}",
        ),
        (
            result.alias is not None
            and result.alias not in writable
            and want.reference.numel() > 0,
            "aliased_output",
            f"the output shares memory with the input {result.alias}",
        ),
    )
    for broken, kind, detail in problems:
        if broken:
            return Failed(kind=kind, detail=detail, output=name)
    return None


def tensor_of(result: TensorResult) -> torch.Tensor:
    """The result's logical elements as a CPU tensor; complex ones as their parts."""
    dtype = DTYPES[result.dtype]
    if not result.data:
        return real_parts(torch.empty(result.shape, dtype=dtype))
    # What came alone lies in memory that torch can use as it is.
    data = result.data if isinstance(result.data, bytearray) else bytearray(result.data)
    flat = torch.frombuffer(data, dtype=dtype)
    return real_parts(flat.reshape(result.shape))


def _values(
    task: Task, expectation: Expectation, results: tuple[torch.Tensor, ...], broken: Failed | None
) -> Ruling:
    differences: list[Difference | None] = []
    failed: Failed | None = broken
    worst: ErrorStats | None = None
    references = [o.reference for o in expectation.outputs]
    for got, want in zip(results, expectation.outputs, strict=True):
        if want.spec.compare == "accept" and want.spec.accept is not None:
            right = want.spec.accept(expectation.inputs.tensors, results, references)
            differences.append(None)
            if failed is None and not bool(right.all()):
                count = int((~right).sum())
                detail = f"{count} of {right.numel()} elements are not an accepted answer"
                failed = Failed(kind="value", detail=detail, output=want.spec.name)
            continue
        if want.spec.compare == "contract":
            differences.append(None)
            continue
        difference = want.difference(got)
        differences.append(difference)
        if worst is None or _badness(difference.stats) > _badness(worst):
            worst = difference.stats
        if failed is None and difference.stats.num_exceeding:
            failed = wrong_values(difference, want)
    return Ruling(
        verdict=failed or _against_contract(task, expectation, results) or Passed(),
        stats=worst,
        outputs=results,
        differences=tuple(differences),
    )


def _against_contract(
    task: Task, expectation: Expectation, results: tuple[torch.Tensor, ...]
) -> Failed | None:
    """The claim of the task's contract that the outputs break."""
    outputs = expectation.outputs
    claim = broken_claim(
        task,
        tuple(o.spec for o in outputs),
        expectation.case.dtype,
        expectation.inputs.tensors,
        expectation.inputs.scalars,
        results,
        tuple(o.reference for o in outputs),
    )
    return None if claim is None else Failed(kind="value", detail=said(claim))


def _badness(stats: ErrorStats) -> tuple[bool, float]:
    return stats.num_exceeding > 0, stats.max_bound_ratio or 0.0


def wrong_values(difference: Difference, want: ExpectedOutput) -> Failed:
    """The verdict on an output with wrong elements."""
    stats = difference.stats
    kind: FailKind = "value"
    exceeding = int(stats.num_exceeding)
    if bool(difference.nan_parity.any()):
        kind = "nan"
    elif bool(difference.inf_parity.any()):
        kind = "inf"
    detail = f"{exceeding} of {stats.count} elements are wrong"
    if stats.max_bound_ratio is not None and kind == "value":
        detail += f"; the worst error is {stats.max_bound_ratio:.3g} times the bound"
    return Failed(kind=kind, detail=detail, output=want.spec.name)
