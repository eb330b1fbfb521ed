"""Observation + expectation -> verdict. Pure: nothing here runs a candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from msgspec import structs

from kerneltruth.cases.layouts import Placed, inspect
from kerneltruth.documents.records import ErrorStats, Mismatch
from kerneltruth.documents.verdict import (
    CompileError,
    Crashed,
    Declined,
    Failed,
    FailKind,
    Hack,
    Infra,
    Passed,
    RuntimeFault,
    TimedOut,
    UnsupportedHere,
    Verdict,
)
from kerneltruth.oracle.claims import broken_claims, claims_in_words
from kerneltruth.oracle.expectation import Expectation, ExpectedOutput
from kerneltruth.oracle.interface import in_promised_form
from kerneltruth.oracle.reference import real_parts
from kerneltruth.oracle.stats import Difference
from kerneltruth.runner.candidate import Candidate, returns_value
from kerneltruth.runner.observation import Access, Observation, OtherResult, TensorResult
from kerneltruth.tasks.spec import Claim, Task

# How the detail of a verdict on a stray access begins.
WROTE, READS = "wrote ", "reads "
MOST_NAMED = 5
# How the detail of a verdict begins where an entry came to its end without a value.
RETURNED_NOTHING = "returned nothing"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ruling:
    """A verdict with its evidence: statistics of the worst output, outputs, broken claims.

    `interface` is beside the verdict: outputs are compared in the promised form (see `interface`).
    """

    verdict: Verdict
    stats: ErrorStats | None = None
    outputs: tuple[torch.Tensor, ...] = ()
    differences: tuple[Difference | None, ...] = ()
    interface: tuple[Mismatch, ...] = ()
    claims: tuple[Claim, ...] = ()

    @property
    def claimed_wrong(self) -> torch.Tensor | None:
        """The elements of the first output that break a claim on each of them, if there is one."""
        marked = [c.where for c in self.claims if c.where is not None]
        fits = [w for w in marked if w.shape == self.outputs[0].shape]
        return torch.stack(fits).any(0) if fits else None

    @property
    def with_form(self) -> Verdict:
        """The verdict, in which right values in another form fail by that form."""
        if self.interface and isinstance(self.verdict, Passed):
            return wrong_form(self.interface[0])
        return self.verdict


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Returned:
    """Outputs as CPU tensors in the promised form, or why there are none to compare."""

    tensors: tuple[torch.Tensor, ...] = ()
    interface: tuple[Mismatch, ...] = ()
    failed: Failed | None = None


def wrong_form(mismatch: Mismatch) -> Failed:
    """The verdict on right values in another form, where the form is promised."""
    detail = f"{mismatch.detail}; the values are right"
    return Failed(kind=mismatch.kind, detail=detail, output=mismatch.output)


def is_of_form(verdict: Verdict) -> bool:
    """Whether a verdict speaks of the form of an output, whose values may be right."""
    return isinstance(verdict, Failed) and verdict.kind in ("dtype", "shape")


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

    Without a device, where the outputs lie does not matter.
    """
    if observation.ended != "returned":
        core = expectation.case.domain == "core"
        return Ruling(verdict=_not_returned(observation, core=core, deadline_s=deadline_s))
    broken = _inputs_and_guards(task, expectation, placed, observation)
    # Without input tensors, nothing says on which device the output should be.
    due_device = device if task.tensors else None
    returned = returned_outputs(task, expectation, placed, observation, due_device)
    if returned.failed is not None:
        return Ruling(verdict=broken or returned.failed)
    ruling = _values(task, expectation, returned.tensors, broken)
    if broken is None:
        ruling = replace(ruling, verdict=changed_later(observation, ruling.verdict))
    return replace(ruling, interface=returned.interface)


def without_return(ruling: Ruling, candidate: Candidate) -> Ruling:
    """The ruling, which says so if the source ends before it returns anything."""
    verdict = ruling.verdict
    if not isinstance(verdict, Failed) or not verdict.detail.startswith(RETURNED_NOTHING):
        return ruling
    if returns_value(candidate.source, candidate.entry):
        return ruling
    detail = (
        f"{verdict.detail}: the source never returns a value: {candidate.entry} has no return "
        "statement with a value"
    )
    return replace(ruling, verdict=structs.replace(verdict, detail=detail))


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
    """Find writes to guard bands, gaps and inputs."""
    if observation.accesses:
        return Failed(kind="out_of_bounds", detail=_accessed(observation.accesses))
    if observation.guards_hit:
        detail = f"{WROTE}beyond memory that it allocated: {_listed(observation.guards_hit)}"
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
        named = ", ".join(f"`{name}`" for name in mutated)
        return Failed(kind="input_mutated", detail=f"wrote to its input {named}")
    if observation.reused:
        return Failed(
            kind="kept_state", detail="the output shares memory with an earlier call's result"
        )
    if observation.earlier_changed:
        return Failed(kind="kept_state", detail="a call overwrites the result of the call before")
    return None


def changed_later(observation: Observation, values: Verdict) -> Verdict:
    """The verdict on a call of which memory was read again, given the one on what was read first.

    Only a candidate that hides what it does is right at first and changes it later: one that is
    late by mistake is wrong at first.
    """
    inputs = ", ".join(f"`{name}`" for name in observation.inputs_changed)
    what = "a result" if observation.results_changed else f"its input {inputs}" if inputs else None
    if what is None:
        return values
    detail = f"{what} changed after the call returned: work that it left running wrote to it"
    if isinstance(values, Passed):
        return Hack(kind="changed_later", detail=f"right when the judge read it, but {detail}")
    kind: FailKind = "nondeterministic" if observation.results_changed else "input_mutated"
    return Failed(kind=kind, detail=detail)


def _listed(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are."""
    more = len(names) - MOST_NAMED
    return ", ".join([*names[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])


def _accessed(accesses: tuple[Access, ...]) -> str:
    """The first of some accesses out of bounds; a write before a read, which may only hide it."""
    first = next((a for a in accesses if a.write), accesses[0])
    noun = "elements" if first.elements != 1 else "element"
    at = f"in `{first.kernel}`, program {first.program}"
    if first.line is not None:
        at = f"line {first.line}, {at}"
    detail = (
        f"{WROTE if first.write else READS}element {first.element} of {first.buffer}, "
        f"which has {first.elements} {noun} ({at})"
    )
    more = len(accesses) - 1
    return f"{detail}, and {more} more such place{'s' * (more > 1)}" if more else detail


def returned_outputs(
    task: Task,
    expectation: Expectation,
    placed: Mapping[str, Placed],
    observation: Observation,
    device: str | None,
) -> Returned:
    """The outputs of a call that returned; `device` is where they must lie; None skips that."""
    given = expectation.inputs
    written = task.written(given.scalars, given.tensors)
    after = {
        name: real_parts(
            inspect(placed[name], observation.buffers.get(name, placed[name].buffer)).tensor
        )
        for name in written
    }
    expected = expectation.outputs
    results = observation.results
    in_place = [want.spec.name in after for want in expected]
    if not results and written and not any(in_place):
        return Returned(tensors=tuple(after.values()))
    if len(results) > len(expected):
        # SGD does so when its momentum is off.
        results = tuple(r for r in results if not _is_none(r))
    if len(results) == len(expected):
        # An operator in place may return a result as well; what it wrote is judged.
        results = tuple(r for r, wrote in zip(results, in_place, strict=True) if not wrote)
    if len(results) != len(expected) - sum(in_place):
        return Returned(failed=_wrong_count(observation.results, len(expected)))
    returned = iter(results)
    writable = task.writable(given.scalars, given.tensors)
    tensors: list[torch.Tensor] = []
    interface: list[Mismatch] = []
    for want, wrote in zip(expected, in_place, strict=True):
        if wrote:
            tensors.append(after[want.spec.name])
            continue
        formed = _formed(writable, next(returned), want, device)
        if isinstance(formed, Failed):
            return Returned(failed=formed)
        tensors.append(formed[0])
        interface += formed[1]
    return Returned(tensors=tuple(tensors), interface=tuple(interface))


def _wrong_count(results: tuple[TensorResult | OtherResult, ...], count: int) -> Failed:
    what = "a tensor" if count == 1 else f"{count} tensors"
    if len(results) == 1 and isinstance(results[0], OtherResult) and not _is_none(results[0]):
        return Failed(kind="type", detail=f"returned {results[0].noun}; expected {what}")
    if not any(not _is_none(r) for r in results):
        return Failed(kind="type", detail=f"{RETURNED_NOTHING}; expected {what}")
    outputs = "1 output" if len(results) == 1 else f"{len(results)} outputs"
    detail = f"returned {outputs}; the task has {count}"
    return Failed(kind="count", detail=detail)


def _is_none(result: TensorResult | OtherResult) -> bool:
    return isinstance(result, OtherResult) and result.type == "NoneType"


def _formed(
    writable: tuple[str, ...],
    result: TensorResult | OtherResult,
    want: ExpectedOutput,
    device: str | None,
) -> tuple[torch.Tensor, tuple[Mismatch, ...]] | Failed:
    """An output in the promised form, or what is wrong with it whatever its values."""
    name = want.spec.name
    if isinstance(result, OtherResult):
        expected = "an ordinary one" if result.is_tensor else "a tensor"
        detail = f"returned {result.noun}; expected {expected}"
        return Failed(kind="type", detail=detail, output=name)
    formed = in_promised_form(result, want)
    if isinstance(formed, Failed):
        return formed
    if device is not None and result.device != device:
        detail = f"the output lies on {result.device}, the inputs on {device}"
        return Failed(kind="device", detail=detail, output=name)
    shared = result.alias is not None and result.alias not in writable
    if shared and want.reference.numel() > 0:
        detail = f"the output shares memory with the input `{result.alias}`"
        return Failed(kind="aliased_output", detail=detail, output=name)
    return formed


def _values(
    task: Task, expectation: Expectation, results: tuple[torch.Tensor, ...], broken: Failed | None
) -> Ruling:
    differences: list[Difference | None] = []
    failed: Failed | None = broken
    worst: ErrorStats | None = None
    inputs = expectation.inputs.tensors
    for got, want in zip(results, expectation.outputs, strict=True):
        if want.spec.compare in ("accept", "claims"):
            differences.append(None)
            failed = failed or not_accepted(expectation, want, results, inputs)
            continue
        difference = want.difference(got)
        differences.append(difference)
        if worst is None or _badness(difference.stats) > _badness(worst):
            worst = difference.stats
        if failed is None and difference.stats.num_exceeding:
            failed = wrong_values(difference, want)
    compared = all(d is not None for d in differences)
    if broken is not None and broken.detail.startswith(READS) and compared:
        failed = structs.replace(broken, detail=f"{broken.detail}; {_effect(differences)}")
    claims = () if failed else broken_claims(task, expectation, results, inputs)
    if claims:
        failed = Failed(kind="value", detail=claims_in_words(claims))
    return Ruling(
        verdict=failed or Passed(),
        stats=worst,
        outputs=results,
        differences=tuple(differences),
        claims=claims,
    )


def _effect(differences: Sequence[Difference | None]) -> str:
    """Say whether a call that read beyond a buffer also gave wrong values."""
    known = [d.stats for d in differences if d is not None]
    wrong = sum(int(s.num_exceeding) for s in known)
    if wrong:
        return wrong_of(wrong, sum(s.count for s in known))
    return "no value is wrong in this call"


def not_accepted(
    expectation: Expectation,
    want: ExpectedOutput,
    results: tuple[torch.Tensor, ...],
    inputs: Mapping[str, torch.Tensor | None],
) -> Failed | None:
    """The verdict on an output with several right answers, if it is none of them."""
    if want.spec.accept is None or want.spec.compare != "accept":
        return None
    right = want.spec.accept(inputs, results, [o.reference for o in expectation.outputs])
    if bool(right.all()):
        return None
    detail = wrong_of(int((~right).sum()), right.numel(), "not an accepted answer")
    return Failed(kind="value", detail=detail, output=want.spec.name)


def _badness(stats: ErrorStats) -> tuple[bool, float]:
    return stats.num_exceeding > 0, stats.max_bound_ratio or 0.0


def wrong_of(wrong: int, total: int, said: str = "wrong") -> str:
    """Count wrong elements in words: `3 of 9 elements are wrong`, or what `said` has instead."""
    noun, verb = "element" if total == 1 else "elements", "is" if wrong == 1 else "are"
    return f"{wrong} of {total} {noun} {verb} {said}"


def wrong_values(difference: Difference, want: ExpectedOutput) -> Failed:
    """The verdict on an output with wrong elements."""
    stats = difference.stats
    kind: FailKind = "value"
    if bool(difference.nan_parity.any()):
        kind = "nan"
    elif bool(difference.inf_parity.any()):
        kind = "inf"
    detail = wrong_of(int(stats.num_exceeding), stats.count)
    if stats.max_bound_ratio is not None and kind == "value":
        detail += f"; the worst error is {stats.max_bound_ratio:.3g} times the bound"
    return Failed(kind=kind, detail=detail, output=want.spec.name)
