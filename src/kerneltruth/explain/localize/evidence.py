"""The evidence on a wrong result, and the parts of an explanation. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Judgement
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.oracle.dtypes import DTYPES

# A pattern is claimed only if chance would show it less often than this.
CHANCE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Values:
    """One output compared: float64 CPU tensors of one shape, and which elements are wrong.

    `several`: an element may have several right values, of which the reference is only one.
    `dtype`: the output's; empty for the case's. `claims`: the task's broken claims in words.
    """

    output: Tensor
    reference: Tensor
    wrong: Tensor
    name: str = "out"
    several: bool = False
    dtype: str = ""
    claims: str = ""

    def __post_init__(self) -> None:
        if not self.output.shape == self.reference.shape == self.wrong.shape:
            raise ValueError(f"shapes differ: {self.output.shape}, {self.reference.shape}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """Another case of the same candidate, its result, and its worst error over the bound.

    `sought`: it was chosen because of earlier results, so chance says nothing about it.
    """

    case: Case
    failed: bool
    ratio: float | None = None
    sought: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FailureEvidence:
    """The evidence that an explanation may use.

    Attributes:
        case: the failing case; the larger its tensors, the more a pattern in them says.
        values: the wrong output, if there was one of the right form.
        inputs: by name, as float64 CPU tensors of their logical shape.
        reduced: symbols of the dims that the operator sums or contracts over.
        output: the wrong output's name, if there are several.
    """

    case: Case
    verdict: Failed
    values: Values | None = None
    inputs: Mapping[str, Tensor] = field(default_factory=dict)
    blocks: tuple[int, ...] = ()
    reduced: tuple[str, ...] = ()
    siblings: tuple[Sibling, ...] = ()
    output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A true statement about the wrong elements: a machine's tag, and a clause for people.

    `everywhere`: it is true of every element; some errors are only too small to count as wrong, so
    the place of the wrong elements says nothing.
    """

    tag: str
    clause: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalizedFault:
    """Where and how an output is wrong: tags, most telling first, and one or two sentences."""

    tags: tuple[str, ...]
    sentence: str

    @property
    def tag(self) -> str:
        """Return the most telling tag."""
        return self.tags[0]


def siblings_of(judgements: Iterable[Judgement]) -> tuple[Sibling, ...]:
    """Return the judged cases; refusals and faults on our side say nothing here."""
    return tuple(
        Sibling(
            case=j.case,
            failed=isinstance(j.verdict, Failed),
            ratio=None if j.stats is None else j.stats.max_bound_ratio,
        )
        for j in judgements
        if isinstance(j.verdict, Failed | Passed)
    )


def epsilon(dtype: str) -> float:
    """Return the spacing of the dtype's values at 1; 0 for integers."""
    kind = DTYPES[dtype]
    return float(torch.finfo(kind).eps) if kind.is_floating_point or kind.is_complex else 0.0


def number(value: float) -> str:
    """Format a number for a reader."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.4g}"


def ratio(value: float) -> str:
    """Format a factor with enough digits to tell it from 1."""
    digits = next((d for d in range(4, 12) if float(f"{value:.{d}g}") != 1.0), 12)
    return number(value) if digits == 4 else f"{value:.{digits + 1}g}"


def place(index: Iterable[int]) -> str:
    """Format an index as code does."""
    return f"[{', '.join(str(i) for i in index)}]"


def luck(*, chosen: int, offered: int, total: int) -> float:
    """Return the chance that `chosen` of `total` things, drawn blindly, all lie in `offered`."""
    if chosen > offered:
        return 0.0
    log = (
        math.lgamma(offered + 1)
        - math.lgamma(offered - chosen + 1)
        - math.lgamma(total + 1)
        + math.lgamma(total - chosen + 1)
    )
    return math.exp(log)


def matches(
    wrong: Tensor, condition: Tensor, *, least: float = 0.5, chance: float = CHANCE
) -> bool:
    """Return whether "only where the condition holds" is true and more than chance.

    All wrong elements meet the condition; at least the share `least` of the elements that meet it
    are wrong; some elements do not meet it; and luck would show this less often than `chance`.
    """
    chosen, offered, total = int(wrong.sum()), int(condition.sum()), wrong.numel()
    if not 0 < chosen <= offered < total or chosen < least * offered:
        return False
    if bool((wrong & ~condition).any()):
        return False
    return luck(chosen=chosen, offered=offered, total=total) <= chance


def worst_index(output: Tensor, reference: Tensor, wrong: Tensor) -> tuple[int, ...]:
    """Return the wrong element that matters most: a NaN or infinity, else the largest error."""
    error = (output.to(torch.float64) - reference.to(torch.float64)).abs()
    error = torch.where(wrong, error.nan_to_num(torch.inf, torch.inf), -1.0)
    return tuple(map(int, np.unravel_index(int(error.reshape(-1).argmax()), error.shape)))
