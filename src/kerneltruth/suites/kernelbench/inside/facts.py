"""Find the facts of a problem that only runs show: its values, and whether it can be judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from kerneltruth.suites.kernelbench.inside.drawn_values import (
    RandomIntegers,
    extent_of,
    extents_of,
    input_facts,
    weight_facts,
)
from kerneltruth.suites.kernelbench.inside.model import (
    Attributes,
    LoadedProblem,
    as_tensor,
    cast,
    described,
    flat,
    is_float,
    name_of,
    seeded,
    state,
)
from kerneltruth.suites.kernelbench.messages import (
    ExtentsAnswer,
    FactsAnswer,
    FactsRequest,
    IgnoredAnswer,
    IgnoresRequest,
    RangesRequest,
    RunsRequest,
)

# Two float64 runs that differ by less than this agree.
_CLOSE = 1e-9
_NEGLIGIBLE = 1e-12
# A float32 run with a larger error, against float64 and relative to the output's size, is useless.
_USELESS = 1e-2
# The same in a narrow dtype, in its epsilons.
_ULPS = 16
_SEEDS = (1, 2, 3)
# Far from the values of inputs.
_FAR = 1e6


def ranges(problem: LoadedProblem, request: RangesRequest) -> ExtentsAnswer:
    """Return the range of the integer inputs, without a run of the model."""
    with RandomIntegers() as integers:
        drawn = seeded(1, lambda: problem.inputs(request.constants))
    return extents_of(drawn, integers)


def runs(problem: LoadedProblem, request: RunsRequest) -> ExtentsAnswer:
    """Run the model in float64, and return the range of its integer inputs."""
    with RandomIntegers() as integers:
        drawn = seeded(1, lambda: problem.inputs(request.constants))
    model = cast(seeded(1, lambda: problem.build(request.constants)), torch.float64)
    with problem.evaluating(torch.float64):
        model(*problem.cast(drawn, torch.float64))
    return extents_of(drawn, integers)


def ignores(problem: LoadedProblem, request: IgnoresRequest) -> IgnoredAnswer:
    """Return whether the outputs depend on nothing that these constants add to the inputs.

    Integers may choose what is read, so with them nothing is known.
    """
    own, larger = (seeded(1, partial(problem.inputs, c)) for c in ("{}", request.constants))
    added = [_added(*pair) for pair in zip(own, larger, strict=True)]
    integers = any(isinstance(v, torch.Tensor) and not v.is_floating_point() for v in larger)
    if integers or not any(a is not None for a in added):
        return IgnoredAnswer(ignored=False)

    def outputs(number: float) -> list[Any]:
        given = [
            v if a is None else v.masked_fill(a, number) for v, a in zip(larger, added, strict=True)
        ]
        model = cast(problem.build(request.constants), torch.float64)
        with problem.evaluating(torch.float64):
            return flat(model(*problem.cast(given, torch.float64)))

    usual = outputs(1.0)
    return IgnoredAnswer(
        ignored=all(all(map(_same, usual, outputs(n))) for n in (_FAR, -_FAR, math.nan))
    )


def _added(own: Any, larger: Any) -> torch.Tensor | None:
    """Return which elements lie beyond the size of another tensor; None if none do."""
    tensors = isinstance(own, torch.Tensor) and isinstance(larger, torch.Tensor)
    if not tensors or own.ndim != larger.ndim or own.shape == larger.shape:
        return None
    beyond = torch.ones(larger.shape, dtype=torch.bool)
    beyond[tuple(slice(0, n) for n in own.shape)] = False
    return beyond if bool(beyond.any()) else None


def facts(problem: LoadedProblem, request: FactsRequest) -> FactsAnswer:
    """Return what runs show; `dtypes` are tried in addition to float32 and float64."""
    constants = request.constants
    with RandomIntegers() as integers:
        drawn = [seeded(seed, lambda: problem.inputs(constants)) for seed in _SEEDS]
    model = _lively(seeded(1, lambda: problem.build(constants)))
    made = {n: t.clone() for n, t in state(model).items()}
    other = state(seeded(2, lambda: problem.build(constants)))
    twice = [_run(model, drawn[0], seed) for seed in (1, 2)]
    random = not all(_alike(a, b, 0.0) for a, b in zip(*twice, strict=True))
    working = name_of(problem.working(drawn[0]))
    numbers = problem.numbers(model, drawn[0])
    inputs = tuple(
        replace(
            input_facts(draws, integers),
            layout=problem.layout(draws[0]),
            example=problem.example(draws[0]),
        )
        for draws in zip(*drawn, strict=True)
    )
    modes = _modes(model, drawn[0], twice[0])
    dtypes = {
        name: _dtypes_of(problem, model, drawn[0], name)
        for name in request.dtypes
        if name != working
    }
    wide = [problem.cast(each, torch.float64) for each in drawn]
    # Random numbers differ in float64.
    double = _in_double(problem, constants, wide, None if random else twice[0])
    return FactsAnswer(
        working=working,
        numbers=numbers,
        inputs=inputs,
        extents=tuple(map(extent_of, drawn[0], inputs)),
        state={n: weight_facts(t, other[n]) for n, t in made.items()},
        outputs=tuple(described(as_tensor(v)) for v in twice[0]),
        dtypes=dtypes,
        random=random,
        training=modes.training,
        modes=modes.differ,
        random_otherwise=modes.random_otherwise,
        updated=modes.updated,
        constant=double.constant,
        positive=double.positive,
        inexact=double.inexact,
    )


def _run(model: Any, inputs: Sequence[Any], seed: int) -> list[Any]:
    """Return the outputs of a call and restore the model's buffers and attributes."""
    before, held = {n: t.clone() for n, t in model.named_buffers()}, Attributes(model)
    outputs = flat(seeded(seed, lambda: model(*inputs)))
    # The model may return a buffer itself.
    outputs = [o.clone() if isinstance(o, torch.Tensor) else o for o in outputs]
    for name, buffer in model.named_buffers():
        if name in before and before[name].shape == buffer.shape:
            buffer.copy_(before[name])
    held.restore()
    return outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Modes:
    """How a model differs in its other mode than the one that its constructor leaves it in."""

    training: bool
    differ: bool
    random_otherwise: bool
    updated: tuple[str, ...]


def _modes(model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> _Modes:
    """Return whether the model differs in its other mode, and what a call updates."""
    training = bool(model.training)
    before = {n: t.clone() for n, t in model.named_buffers()}
    seeded(1, lambda: model(*inputs))
    updated = tuple(
        n
        for n, t in model.named_buffers()
        if n in before and is_float(t) and not _alike(t, before[n], 0.0)
    )
    flags = {module: module.training for module in model.modules()}
    model.train(not training)
    try:
        other = [_run(model, inputs, seed) for seed in (1, 2)]
    except (RuntimeError, ValueError, TypeError):
        other = []
    for module, flag in flags.items():
        module.training = flag
    return _Modes(
        training=training,
        differ=bool(other) and not all(map(_same, outputs, other[0])),
        random_otherwise=bool(other) and not all(map(_same, *other)),
        updated=updated,
    )


def _same(one: Any, other: Any) -> bool:
    return _alike(one, other, 0.0)


def _lively(model: Any) -> Any:
    """Scale the model's random matrices so that a deep one does not lose its input.

    Parameters that a constructor fills with one number stay: a problem is constant if it is so with
    them.
    """
    for parameter in model.parameters():
        if parameter.ndim >= 2 and parameter.numel() and parameter.is_floating_point():
            size = float(parameter.double().square().mean().sqrt())
            fan_in = parameter[0].numel()
            if size and not bool((parameter == parameter.reshape(-1)[0]).all()):
                parameter.mul_(math.sqrt(2.0 / fan_in) / size)
    return model


@dataclass(frozen=True, slots=True, kw_only=True)
class _InDouble:
    """What runs in float64 show; see `FactsAnswer`."""

    constant: bool
    positive: bool
    inexact: float | None


def _in_double(
    problem: LoadedProblem,
    constants: str,
    inputs: Sequence[list[Any]],
    narrow: Sequence[Any] | None,
) -> _InDouble:
    """Return the facts of a float64 run, with weights as the problem's own constructor draws them.

    Other weights are drawn only while the output looks constant.
    """
    positive, inexact = False, None
    for seed in _SEEDS:
        model = cast(_lively(seeded(seed, lambda: problem.build(constants))), torch.float64)
        with problem.evaluating(torch.float64):
            wide = [_run(model, each, 1) for each in inputs]
            shifted = _flat_or_none(model, [_shifted(v) for v in inputs[0]])
        others = [*wide[1:], *([shifted] if shifted is not None else [])]
        pairs = ((a, b) for run in others for a, b in zip(wide[0], run, strict=True))
        if seed == _SEEDS[0]:
            positive = _only_positive(wide[0], shifted)
            useless = max(_USELESS, _ULPS * torch.finfo(problem.working(inputs[0])).eps)
            inexact = None if narrow is None else _inexactness(narrow, wide[0], useless)
        if not all(_alike(a, b, _CLOSE) for a, b in pairs):
            return _InDouble(constant=False, positive=positive, inexact=inexact)
    return _InDouble(constant=True, positive=positive, inexact=inexact)


def _dtypes_of(
    problem: LoadedProblem, model: Any, inputs: Sequence[Any], name: str
) -> tuple[str, ...] | None:
    """Return the output dtypes if everything is in a narrow dtype; None if torch cannot do it.

    As in KernelBench, plain attributes of the model keep their dtype.
    """
    dtype = getattr(torch, name)
    try:
        with problem.evaluating(dtype):
            outputs = _run(model.to(dtype), problem.cast(inputs, dtype), 1)
    except (RuntimeError, TypeError, ValueError):
        return None
    finally:
        model.to(torch.float32)
    return tuple(described(as_tensor(o)).dtype or "" for o in outputs)


def _flat_or_none(model: Any, inputs: Sequence[Any]) -> list[Any] | None:
    try:
        return _run(model, inputs, 1)
    except (RuntimeError, ValueError, IndexError):
        return None


def _shifted(value: Any) -> Any:
    """Return real inputs of both signs and larger sizes, and others in another order."""
    if isinstance(value, torch.Tensor) and not is_float(value):
        return value.flip(tuple(range(value.ndim)))
    return (value - 0.4) * 5 if is_float(value) else value


def _only_positive(drawn: Sequence[Any], shifted: Sequence[Any] | None) -> bool:
    """Return whether negative inputs are outside of the model's domain."""
    if shifted is None:
        return True
    pairs = [(a, b) for a, b in zip(drawn, shifted, strict=True) if is_float(a)]
    return any(bool(b.isnan().any()) and not bool(a.isnan().any()) for a, b in pairs)


def _alike(one: Any, other: Any, within: float) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return bool(one == other)
    if one.shape != other.shape:
        return False
    a, b = (
        torch.nan_to_num(t.double(), nan=1e300, posinf=2e300, neginf=-2e300) for t in (one, other)
    )
    if not a.numel():
        return True
    limit = within * float(a.abs().max()) + (_NEGLIGIBLE if within else 0.0)
    return float((a - b).abs().max()) <= limit


def _inexactness(
    narrow: Sequence[Any], wide: Sequence[Any], useless: float = _USELESS
) -> float | None:
    """Return the float32 run's error relative to the size of the output, if it is too large."""
    worst = 0.0
    for got, expected in zip(narrow, wide, strict=True):
        if not is_float(expected) or not expected.numel():
            continue
        finite = torch.isfinite(expected)
        size = float(expected[finite].square().mean().sqrt()) if bool(finite.any()) else 0.0
        error = (got.double() - expected)[finite]
        off = float(error.square().mean().sqrt()) / size if size else 0.0
        worst = max(worst, off if math.isfinite(off) else math.inf)
    return worst if worst > useless else None
