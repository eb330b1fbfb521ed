"""The right results that an expectation rests on: of all evaluations, or of a quick few.

A case of the exe stage gets every admissible implementation. A timed call, at shapes of the size
that is timed, gets few, on whatever device, and a bound that is wider in turn: it tells work from
no work, since stale, skipped and unfinished results are wrong by far more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from kerneltruth.cases.materialize import Inputs
from kerneltruth.documents.case import Case
from kerneltruth.oracle.admissible import (
    Implementation,
    beyond_range,
    compute_dtype,
    implementations,
    overflowing,
)
from kerneltruth.oracle.bounds import has_smaller_rows, terms_summed
from kerneltruth.oracle.dtypes import epsilon, is_float
from kerneltruth.oracle.reference import Scalars, Tensors, cast, outputs_of
from kerneltruth.tasks.spec import Task

# From this many elements of inputs and outputs on, one evaluation of a foreign program takes a good
# part of a second.
LARGE = 2**20
# How many ulps of its input a result may be off: a kernel reduces or scales the input first.
MOVED_ULPS = 2.0
# Spreads the elements that are changed over rows and columns.
_SCATTERING = 2654435761
# How much wider a bound of few evaluations is; the spread of all of them is a few times larger.
SLACK = 4.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RightResults:
    """A reference and other right results.

    Attributes:
        truth: the float64 outputs.
        implementations: admissible results; none where no bound is made of them.
        overflowing: see `admissible.overflowing` and `admissible.beyond_range`.
        conditioning: where each element depends on its own input alone, how far the truth moves if
            the input moves by some ulps, infinite where that is not measured; None elsewhere.
        few: whether these are too few for a bound of the usual width.
        timed: whether they are of a timed call.
    """

    truth: tuple[torch.Tensor, ...]
    implementations: tuple[Implementation, ...] = ()
    overflowing: tuple[torch.Tensor, ...] | None = None
    conditioning: torch.Tensor | None = None
    few: bool = False
    timed: bool = False


def all_right_results(
    task: Task, case: Case, inputs: Inputs, *, bounded: bool, tf32: bool
) -> RightResults:
    """Evaluate a case in every admissible way, or in few where a foreign program is large.

    To be called within `reference.quietly`.

    `bounded` says whether a bound is made of what is admissible.

    Raises:
        Exception: whatever torch raises where the operator does not accept the inputs.
    """
    both = with_spread(task, case, inputs, tf32=tf32) if bounded else None
    truth = both[0] if both else _truth(task, inputs.tensors, inputs.scalars)
    if not bounded:
        return RightResults(truth=truth)
    working = task.asked_dtype(inputs.scalars) or case.dtype
    given = (task, working, inputs.tensors, inputs.scalars)
    few = both is not None or (task.foreign and count_elements(inputs, truth) > LARGE)
    shown = (
        [both[1]]
        if both
        else [
            *implementations(*given, seed=case.seed, tf32=tf32, few=few),
            *_beside(task, case, inputs, tf32=tf32),
        ]
    )
    return RightResults(
        truth=truth,
        implementations=tuple(shown),
        overflowing=overflowing(*given) or _beyond(task, case, working, truth),
        conditioning=None if few else _conditioning(task, working, inputs, truth),
        few=few,
    )


def _beyond(
    task: Task, case: Case, working: str, truth: tuple[torch.Tensor, ...]
) -> tuple[torch.Tensor, ...] | None:
    return beyond_range(truth, working) if terms_summed(task, case) > 1 else None


def _conditioning(
    task: Task, working: str, inputs: Inputs, truth: tuple[torch.Tensor, ...]
) -> torch.Tensor | None:
    """How far a pointwise function moves with its input; see `RightResults`.

    If all rows are of one scale, and no result exceeds 1, a row's scale is the element's own, so
    nothing is evaluated. It is infinite where there are several tensors, or a foreign program: only
    that the function is pointwise counts then.
    """
    given = {name: t for name, t in inputs.tensors.items() if t is not None}
    # What a foreign program does is not declared.
    combines = not task.foreign and (task.narrowed or task.sums() or task.contracted())
    if task.random or combines:
        return None
    if not given or len(truth) != 1 or not is_float(compute_dtype(working)):
        return None
    (result,) = truth
    if any(not t.is_floating_point() or t.shape != result.shape for t in (*given.values(), result)):
        return None
    moves = not task.foreign and len(given) == 1 and bool((result.abs() > 1).any())
    if not moves and not has_smaller_rows(result):
        return None

    def at(values: Mapping[str, torch.Tensor]) -> torch.Tensor:
        (moved,) = outputs_of(task, {**inputs.tensors, **values}, inputs.scalars)
        return moved.to(torch.float64)

    exact = {name: t.to(torch.float64) for name, t in given.items()}
    places = torch.arange(result.numel(), device=result.device)
    kept = (places * _SCATTERING % 7 < 3).view(result.shape)
    others = {name: t.flatten().flip(0).view(t.shape) for name, t in exact.items()}
    beside = at({name: torch.where(kept, t, others[name]) for name, t in exact.items()})
    if not torch.equal(beside[kept].nan_to_num(), result.to(torch.float64)[kept].nan_to_num()):
        return None
    if not moves:
        return torch.full_like(result, torch.inf, dtype=torch.float64)
    step = MOVED_ULPS * epsilon(compute_dtype(working))
    ((name, x),) = exact.items()
    moved = [(at({name: x * (1 + s)}) - result).abs() for s in (step, -step)]
    return torch.maximum(*moved).nan_to_num(nan=torch.inf)


def few_right_results(
    task: Task, case: Case, inputs: Inputs, *, bounded: bool, device: str
) -> RightResults:
    """Evaluate a timed call in few ways on `device`, where the results stay.

    To be called within `reference.quietly`.

    Raises:
        Exception: whatever torch raises where the operator does not accept the inputs.
    """
    both = with_spread(task, case, inputs, tf32=True) if bounded else None
    if both is not None:
        truth, farthest = both
        there = replace(farthest, outputs=tuple(o.to(device) for o in farthest.outputs))
        on_device = tuple(o.to(device) for o in truth)
        return RightResults(truth=on_device, implementations=(there,), few=True, timed=True)
    tensors = {n: None if t is None else t.to(device) for n, t in inputs.tensors.items()}
    truth = _truth(task, tensors, inputs.scalars)
    shown = tuple(_few(task, case, tensors, inputs.scalars)) if bounded else ()
    return RightResults(truth=truth, implementations=shown, few=True, timed=True)


def _truth(task: Task, tensors: Tensors, scalars: Scalars) -> tuple[torch.Tensor, ...]:
    return outputs_of(task, cast(tensors, torch.float64), scalars)


def _few(task: Task, case: Case, tensors: Tensors, scalars: Scalars) -> Iterator[Implementation]:
    """Other formulas and precisions, and all inputs an ulp larger and an ulp smaller."""
    seed = case.seed
    yield from implementations(task, case.dtype, tensors, scalars, seed=seed, tf32=True, few=True)
    inner = compute_dtype(case.dtype)
    if not is_float(inner):
        return
    for name, factor in (("up", 1 + epsilon(inner)), ("down", 1 - epsilon(inner))):
        moved = {
            n: t.to(torch.float64) * factor if t is not None and t.is_floating_point() else t
            for n, t in tensors.items()
        }
        outputs = outputs_of(task, moved, scalars)
        yield Implementation(name=name, outputs=outputs, settles=False)


def _beside(task: Task, case: Case, inputs: Inputs, *, tf32: bool) -> Iterator[Implementation]:
    """Right results that only the judging device can show."""
    found = with_spread(task, case, inputs, tf32=tf32, beside=True)
    if found is not None:
        yield found[1]


def with_spread(
    task: Task, case: Case, inputs: Inputs, *, tf32: bool, beside: bool = False
) -> tuple[tuple[torch.Tensor, ...], Implementation] | None:
    """The reference and the farthest that right results stray from it.

    None unless the task gives both at once: for large inputs, or `beside` runs one by one.
    """
    if task.with_spread is None:
        return None
    working = task.asked_dtype(inputs.scalars) or case.dtype
    given = {n: t for n, t in inputs.tensors.items() if t is not None} | inputs.scalars
    promised = tuple(
        o.parts_at(working) for o in task.promised_outputs(inputs.scalars, inputs.tensors)
    )
    found = task.with_spread(given, working=working, promised=promised, tf32=tf32, beside=beside)
    if found is None:
        return None
    truth, spread = found
    # Deviations are added to 0 there; an unsettled element gives NaN.
    farthest = tuple(t.to(torch.float64) + s for t, s in zip(truth, spread, strict=True))
    return truth, Implementation(name="farthest", outputs=farthest, settles=True)


def count_elements(inputs: Inputs, outputs: Sequence[torch.Tensor]) -> int:
    """Elements of all inputs and outputs."""
    given = (t for t in inputs.tensors.values() if t is not None)
    return sum(t.numel() for t in (*given, *outputs))
