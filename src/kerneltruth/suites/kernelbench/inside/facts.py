"""Find the facts of a problem that only runs show: its values, and whether it can be judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

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


def ranges(problem: LoadedProblem, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the range of the integer inputs, without a run of the model."""
    with _RandomIntegers() as integers:
        drawn = seeded(1, lambda: problem.inputs(asked["constants"]))
    return {"inputs": [_input_facts([value], integers) for value in drawn]}


def runs(problem: LoadedProblem, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether the model runs in float64, and the range of its integer inputs."""
    constants = asked["constants"]
    with _RandomIntegers() as integers:
        drawn = seeded(1, lambda: problem.inputs(constants))
    model = cast(seeded(1, lambda: problem.build(constants)), torch.float64)
    with problem.evaluating(torch.float64):
        outputs = flat(model(*problem.cast(drawn, torch.float64)))
    return {
        "inputs": [_input_facts([value], integers) for value in drawn],
        "outputs": [described(as_tensor(v)) for v in outputs],
    }


def ignores(problem: LoadedProblem, asked: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether the outputs depend on nothing that these constants add to the inputs.

    Integers may choose what is read, so with them nothing is known.
    """
    own, larger = (seeded(1, partial(problem.inputs, c)) for c in ("{}", asked["constants"]))
    added = [_added(*pair) for pair in zip(own, larger, strict=True)]
    integers = any(isinstance(v, torch.Tensor) and not v.is_floating_point() for v in larger)
    if integers or not any(a is not None for a in added):
        return {"ignored": False}

    def outputs(number: float) -> list[Any]:
        given = [
            v if a is None else v.masked_fill(a, number) for v, a in zip(larger, added, strict=True)
        ]
        model = cast(problem.build(asked["constants"]), torch.float64)
        with problem.evaluating(torch.float64):
            return flat(model(*problem.cast(given, torch.float64)))

    usual = outputs(1.0)
    return {"ignored": all(all(map(_same, usual, outputs(n))) for n in (_FAR, -_FAR, math.nan))}


def _added(own: Any, larger: Any) -> torch.Tensor | None:
    """Return which elements lie beyond the size of another tensor; None if none do."""
    tensors = isinstance(own, torch.Tensor) and isinstance(larger, torch.Tensor)
    if not tensors or own.ndim != larger.ndim or own.shape == larger.shape:
        return None
    beyond = torch.ones(larger.shape, dtype=torch.bool)
    beyond[tuple(slice(0, n) for n in own.shape)] = False
    return beyond if bool(beyond.any()) else None


def facts(problem: LoadedProblem, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what runs show; `dtypes` are tried in addition to float32 and float64."""
    constants = asked["constants"]
    with _RandomIntegers() as integers:
        drawn = [seeded(seed, lambda: problem.inputs(constants)) for seed in _SEEDS]
    model = _lively(seeded(1, lambda: problem.build(constants)))
    made = {n: t.clone() for n, t in state(model).items()}
    other = state(seeded(2, lambda: problem.build(constants)))
    twice = [_run(model, drawn[0], seed) for seed in (1, 2)]
    random = not all(_alike(a, b, 0.0) for a, b in zip(*twice, strict=True))
    working = name_of(problem.working(drawn[0]))
    found = {
        "working": working,
        "numbers": problem.numbers(model, drawn[0]),
        "inputs": [_input_facts([d[i] for d in drawn], integers) for i in range(len(drawn[0]))],
        "state": {n: _weight_facts(t, other[n]) for n, t in made.items()},
        "random": random,
        "outputs": [described(as_tensor(v)) for v in twice[0]],
        **_modes(model, drawn[0], twice[0]),
        "dtypes": {
            name: _dtypes_of(problem, model, drawn[0], name)
            for name in asked["dtypes"]
            if name != working
        },
    }
    wide = [problem.cast(inputs, torch.float64) for inputs in drawn]
    # Random numbers differ in float64.
    return found | _in_double(problem, constants, wide, None if random else twice[0])


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


def _modes(model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> dict[str, Any]:
    """Return whether the model differs in its other mode, and what a call updates."""
    training = bool(model.training)
    before = {n: t.clone() for n, t in model.named_buffers()}
    seeded(1, lambda: model(*inputs))
    updated = [
        n
        for n, t in model.named_buffers()
        if n in before and is_float(t) and not _alike(t, before[n], 0.0)
    ]
    flags = {module: module.training for module in model.modules()}
    model.train(not training)
    try:
        other = [_run(model, inputs, seed) for seed in (1, 2)]
    except (RuntimeError, ValueError, TypeError):
        other = []
    for module, flag in flags.items():
        module.training = flag
    return {
        "training": training,
        "modes": bool(other) and not all(map(_same, outputs, other[0])),
        "random_otherwise": bool(other) and not all(map(_same, *other)),
        "updated": updated,
    }


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


def _in_double(
    problem: LoadedProblem,
    constants: str,
    inputs: Sequence[list[Any]],
    narrow: Sequence[Any] | None,
) -> dict[str, Any]:
    """Return the facts of a float64 run, with weights as the problem's own constructor draws them.

    Other weights are drawn only while the output looks constant.
    """
    found: dict[str, Any] = {"constant": True}
    for seed in _SEEDS:
        model = cast(_lively(seeded(seed, lambda: problem.build(constants))), torch.float64)
        with problem.evaluating(torch.float64):
            wide = [_run(model, each, 1) for each in inputs]
            shifted = _flat_or_none(model, [_shifted(v) for v in inputs[0]])
        others = [*wide[1:], *([shifted] if shifted is not None else [])]
        pairs = ((a, b) for run in others for a, b in zip(wide[0], run, strict=True))
        if seed == _SEEDS[0]:
            found["positive"] = _only_positive(wide[0], shifted)
            useless = max(_USELESS, _ULPS * torch.finfo(problem.working(inputs[0])).eps)
            found["inexact"] = None if narrow is None else _inexactness(narrow, wide[0], useless)
        if not all(_alike(a, b, _CLOSE) for a, b in pairs):
            return {**found, "constant": False}
    return found


def _dtypes_of(
    problem: LoadedProblem, model: Any, inputs: Sequence[Any], name: str
) -> list[str] | None:
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
    return [described(as_tensor(o)).get("dtype", "") for o in outputs]


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
    for got, due in zip(narrow, wide, strict=True):
        if not is_float(due) or not due.numel():
            continue
        finite = torch.isfinite(due)
        size = float(due[finite].square().mean().sqrt()) if bool(finite.any()) else 0.0
        error = (got.double() - due)[finite]
        off = float(error.square().mean().sqrt()) / size if size else 0.0
        worst = max(worst, off if math.isfinite(off) else math.inf)
    return worst if worst > useless else None


class _RandomIntegers:
    """Records the range of each tensor of random integers."""

    def __enter__(self) -> _RandomIntegers:
        self._original = torch.randint
        self._made: list[tuple[torch.Tensor, tuple[int, int]]] = []

        def recorded(*args: Any, **kwargs: Any) -> torch.Tensor:
            made = self._original(*args, **kwargs)
            numbers = [a for a in args if type(a) is int][:2]
            low, high = (0, *numbers)[-2:] if numbers else (0, 0)
            span = (kwargs.get("low", low), kwargs.get("high", high))
            self._made.append((made, span))
            return made

        torch.randint = recorded
        return self

    def __exit__(self, *_: object) -> None:
        torch.randint = self._original

    def range_of(self, value: torch.Tensor) -> tuple[int, int] | None:
        """Return the range that these integers were drawn from, perhaps in another dtype."""
        for made, span in self._made:
            if made.shape == value.shape and torch.equal(made.to(value.dtype), value):
                return span
        return None


def _input_facts(draws: Sequence[Any], integers: _RandomIntegers) -> dict[str, Any]:
    """Return the common properties of one input's draws."""
    first = draws[0]
    if not isinstance(first, torch.Tensor):
        return {"same": len({repr(v) for v in draws}) == 1}
    if not first.numel():
        return {}
    if not first.is_floating_point():
        known = integers.range_of(first)
        if known is not None:
            return {"low": known[0], "high": known[1] - 1}
        low, high = min(int(d.min()) for d in draws), max(int(d.max()) for d in draws)
        arranged = all(_is_arranged(d, high - low + 1) for d in draws)
        return {"low": low, "high": high, "arranged": arranged}
    forms: dict[str, Callable[[torch.Tensor], Any]] = {
        "sign": lambda t: (t.abs() == 1).all(),
        "stochastic": lambda t: (
            t.ndim > 0
            and t.shape[-1] > 1
            and (t >= 0).all()
            and ((t.sum(-1) - 1).abs() < 1e-4).all()
        ),
        "log_stochastic": lambda t: (
            t.ndim > 0
            and t.shape[-1] > 1
            and (t <= 0).all()
            and (t.double().logsumexp(-1).abs() < 1e-2).all()
        ),
        "normalized": lambda t: (
            t.ndim > 0 and t.shape[-1] > 1 and ((t.double().norm(dim=-1) - 1).abs() < 1e-2).all()
        ),
        "halves": lambda t: _repeats(t) and torch.equal(*t.chunk(2, -1)),
        "pairs": lambda t: _repeats(t) and torch.equal(t[..., ::2], t[..., 1::2]),
        "symmetric": lambda t: _square(t) and torch.equal(t, t.mT),
        "upper": lambda t: _square(t) and torch.equal(t, t.triu()),
        "lower": lambda t: _square(t) and torch.equal(t, t.tril()),
    }
    least, most = min(float(d.min()) for d in draws), max(float(d.max()) for d in draws)
    # One number everywhere, as of a weight that was filled with ones, is no form.
    found = (n for n, holds in forms.items() if least < most and all(bool(holds(d)) for d in draws))
    return {"form": next(found, None), "low": least, "high": most}


def _is_arranged(values: torch.Tensor, count: int) -> bool:
    """Return whether integers are no independent draws of `count` values.

    They ascend, like offsets, or are all different, like a permutation.
    """
    n = values.shape[-1] if values.ndim else 0
    if values.dtype == torch.bool or n < _FEW or count == 1:
        return False
    ascending = bool((values.diff(dim=-1) >= 0).all())
    rows = values.sort(dim=-1).values
    different = bool((rows.diff(dim=-1) > 0).all())
    return ascending or (different and n * n > _LUCK * count)


# Fewer integers ascend by chance; more than this times fewer squares are all different by chance.
_FEW, _LUCK = 3, 16


def _repeats(t: torch.Tensor) -> bool:
    """Return whether rows may repeat half of their elements, and do not hold one number alone."""
    even = t.ndim > 0 and t.shape[-1] >= 2 * _FEW and t.shape[-1] % 2 == 0
    return even and bool((t.amax(-1) > t.amin(-1)).any())


def _square(t: torch.Tensor) -> bool:
    return t.ndim >= 2 and t.shape[-1] == t.shape[-2] and t.shape[-1] > 2


def _weight_facts(made: torch.Tensor, other: torch.Tensor) -> dict[str, Any]:
    """Return how a constructor fills a parameter or buffer: one number, random or fixed ones."""
    dtype = name_of(made.dtype)
    if not made.is_floating_point() or not made.numel():
        return {"dtype": dtype, "random": not torch.equal(made, other)}
    wide = made.double()
    constant = bool((wide == wide.reshape(-1)[0]).all())
    return {
        "dtype": dtype,
        "random": not torch.equal(made, other),
        "constant": float(wide.reshape(-1)[0]) if constant else None,
        "size": float(wide.square().mean().sqrt()),
    }
