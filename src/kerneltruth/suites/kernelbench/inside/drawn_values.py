"""What draws of an input have in common, and how a constructor fills weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from kerneltruth.suites.kernelbench.inside.model import name_of
from kerneltruth.suites.kernelbench.messages import ExtentsAnswer
from kerneltruth.suites.kernelbench.schema import InputFacts, WeightFacts


class RandomIntegers:
    """Records the range of each tensor of random integers."""

    def __enter__(self) -> RandomIntegers:
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


def extents_of(drawn: Sequence[Any], integers: RandomIntegers) -> ExtentsAnswer:
    """Return the largest integer of each input, drawn once."""
    found = (extent_of(value, input_facts([value], integers)) for value in drawn)
    return ExtentsAnswer(extents=tuple(found))


def extent_of(value: Any, found: InputFacts) -> int | None:
    """Return the largest integer that an input holds; None for other inputs."""
    holds = isinstance(value, torch.Tensor) and not value.is_floating_point()
    return int(found.high) if holds and found.high is not None else None


def input_facts(draws: Sequence[Any], integers: RandomIntegers) -> InputFacts:
    """Return the common properties of one input's draws."""
    first = draws[0]
    if not isinstance(first, torch.Tensor) or not first.numel():
        return InputFacts()
    if not first.is_floating_point():
        known = integers.range_of(first)
        if known is not None:
            return InputFacts(low=known[0], high=known[1] - 1)
        low, high = min(int(d.min()) for d in draws), max(int(d.max()) for d in draws)
        arranged = all(_is_arranged(d, high - low + 1) for d in draws)
        return InputFacts(low=low, high=high, arranged=arranged)
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
        "ascending": lambda t: _ranked(t) and (t.diff(dim=-1) >= 0).all(),
        # As sums of logarithms of decays are.
        "descending": lambda t: _ranked(t) and (t <= 0).all() and (t.diff(dim=-1) <= 0).all(),
        # As logarithms of decays are, and no usual draw; positive numbers may be any draw.
        "negative": lambda t: t.numel() >= _MANY and (t <= 0).all(),
    }
    least, most = min(float(d.min()) for d in draws), max(float(d.max()) for d in draws)
    # One number everywhere, as of a weight that was filled with ones, is no form.
    found = (n for n, holds in forms.items() if least < most and all(bool(holds(d)) for d in draws))
    return InputFacts(form=next(found, None), low=least, high=most)


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
# Fewer numbers are all negative, and rows of fewer are sorted, by chance.
_MANY, _RANKED = 16, 6


def _ranked(t: torch.Tensor) -> bool:
    """Return whether rows may be sorted by design, and do not hold one number alone.

    The numbers 0, 1, 2, ... of `arange` are an example of any values.
    """
    if t.ndim == 0 or t.shape[-1] < _RANKED or not bool((t.amax(-1) > t.amin(-1)).all()):
        return False
    return bool((t.flatten().diff() != 1).any())


def _repeats(t: torch.Tensor) -> bool:
    """Return whether rows may repeat half of their elements, and do not hold one number alone."""
    even = t.ndim > 0 and t.shape[-1] >= 2 * _FEW and t.shape[-1] % 2 == 0
    return even and bool((t.amax(-1) > t.amin(-1)).any())


def _square(t: torch.Tensor) -> bool:
    return t.ndim >= 2 and t.shape[-1] == t.shape[-2] and t.shape[-1] > 2


def weight_facts(made: torch.Tensor, other: torch.Tensor) -> WeightFacts:
    """Return how a constructor fills a parameter or buffer: one number, random or fixed ones."""
    dtype = name_of(made.dtype)
    if not made.is_floating_point() or not made.numel():
        return WeightFacts(dtype=dtype, random=not torch.equal(made, other))
    wide = made.double()
    constant = bool((wide == wide.reshape(-1)[0]).all())
    return WeightFacts(
        dtype=dtype,
        random=not torch.equal(made, other),
        constant=float(wide.reshape(-1)[0]) if constant else None,
        size=float(wide.square().mean().sqrt()),
    )
