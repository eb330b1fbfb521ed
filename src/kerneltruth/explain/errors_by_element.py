"""The error of each element of an output, as arrays and as a picture. Pure over tensors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np
import torch
from numpy.typing import NDArray

from kerneltruth.explain.localize.error_map import parts_of
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.judge import Ruling

# A case may have two billion elements, whose arrays would fill the disk.
MOST_ELEMENTS = 2**24
MOST_DOWN, MOST_ACROSS = 48, 96
# In pixels: the map, the height of a cell, and the heading.
_WIDTH, _DOWN, _TOP = 864, 8, 88
# From the least: up to which error over bound, its colour and its name.
_SHADES = (
    (0.0, "#f3f4f2", "none"),
    (0.1, "#d8e3ea", "up to 0.1"),
    (1.0, "#9dbfd3", "up to 1, which is right"),
    (10.0, "#f2b57e", "up to 10"),
    (1000.0, "#d9682f", "up to 1000"),
    (np.inf, "#86210f", "more, or not finite"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorsByElement:
    """One output compared, element by element; a complex one has its parts in a last dim of 2.

    Attributes:
        error: the absolute one in float64; NaN where a side is not finite.
        bound: the largest error of a right result; None where only equal values are right, or
            several.
        wrong: as the judge counted; None where a bound or equality does not decide.
    """

    name: str
    output: NDArray[np.generic]
    reference: NDArray[np.generic]
    error: NDArray[np.float64]
    bound: NDArray[np.float64] | None
    wrong: NDArray[np.bool_] | None

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what was measured, by `output name.what it is`."""
        named = {name: getattr(self, name) for name in ("output", "reference", "error")}
        named |= {n: a for n in ("bound", "wrong") if (a := getattr(self, n)) is not None}
        return {f"{self.name}.{name}": array for name, array in named.items()}

    def over_bound(self) -> NDArray[np.float64] | None:
        """Return each error over its bound, infinite where it is wrong without a finite error."""
        if self.wrong is None:
            return None
        bound = np.zeros(self.error.shape) if self.bound is None else self.bound
        ratio = np.divide(self.error, bound, out=np.zeros(self.error.shape), where=bound > 0)
        # A quotient such as 0 / 0 says nothing of what the judge found right.
        return np.where(self.wrong, np.where(ratio > 1, ratio, np.inf), np.nan_to_num(ratio))


def errors_by_element(expectation: Expectation, ruling: Ruling) -> tuple[ErrorsByElement, ...]:
    """Compare the outputs of a call; those of another form than expected are left out."""
    found = []
    compared = zip(expectation.outputs, ruling.outputs, ruling.differences, strict=False)
    for want, got, difference in compared:
        if got.shape != want.reference.shape or got.numel() > MOST_ELEMENTS:
            continue
        error = (got.to(torch.float64) - want.reference.to(torch.float64)).abs()
        error[~torch.isfinite(error)] = torch.nan
        bound = None if want.bound is None else want.bound.to(torch.float64).expand(got.shape)
        found.append(
            ErrorsByElement(
                name=want.spec.name,
                output=_array(got),
                reference=_array(want.reference),
                error=error.numpy(),
                bound=None if bound is None else bound.numpy(),
                wrong=None if difference is None else difference.wrong.numpy(),
            )
        )
    return tuple(found)


def _array(tensor: torch.Tensor) -> NDArray[np.generic]:
    """Return integers as they are, and floats of any width without loss."""
    exact = tensor.to(torch.float64) if tensor.is_floating_point() else tensor
    array: NDArray[np.generic] = exact.numpy()
    return array


def heat_map(errors: ErrorsByElement, title: str, case: str) -> str | None:
    """Draw the worst error over its bound by place, as SVG; None where none is wrong or right.

    All dims but the last are folded into rows. If there are more rows or columns than cells,
    several share a cell.
    """
    ratios = errors.over_bound()
    if ratios is None or not ratios.size:
        return None
    columns = ratios.shape[-1] if ratios.ndim else 1
    rows = ratios.reshape(-1, columns)
    down, across = parts_of(len(rows), MOST_DOWN), parts_of(columns, MOST_ACROSS)
    worst = np.maximum.reduceat(np.maximum.reduceat(rows, down[:-1], 0), across[:-1], 1)
    shades = np.searchsorted([top for top, _, _ in _SHADES], worst)
    lines = (
        case,
        f"{errors.name} of shape {list(ratios.shape)}: {len(rows):,} rows of {columns:,} elements "
        f"in {len(shades)} rows of {shades.shape[1]} cells, each of its worst error over the bound",
    )
    return "\n".join(_drawing(shades.tolist(), title, lines)) + "\n"


def _drawing(shades: Sequence[Sequence[int]], title: str, lines: Sequence[str]) -> Iterator[str]:
    height = _TOP + _DOWN * len(shades) + 10
    across = min(_WIDTH // len(shades[0]), 4 * _DOWN)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {_WIDTH + 20} {height}" '
        f'width="{_WIDTH + 20}" height="{height}" font-family="sans-serif" font-size="11">'
    )
    yield f"<title>{escape(title)}</title><desc>{escape(' '.join(lines))}</desc>"
    yield f'<rect width="{_WIDTH + 20}" height="{height}" fill="#ffffff"/>'
    yield f'<text x="10" y="18" font-size="13" font-weight="bold">{escape(title)}</text>'
    for number, line in enumerate(lines):
        yield f'<text x="10" y="{34 + 15 * number}">{escape(line)}</text>'
    for number, (_, colour, name) in enumerate(_SHADES):
        x, y = 10 + _WIDTH // len(_SHADES) * number, _TOP - 20
        yield f'<rect x="{x}" y="{y}" width="10" height="10" fill="{colour}" stroke="#888888"/>'
        yield f'<text x="{x + 15}" y="{y + 9}">{escape(name)}</text>'
    for row, cells in enumerate(shades):
        at = 0
        for shade, run in itertools.groupby(cells):
            count = len(list(run))
            yield (
                f'<rect x="{10 + across * at}" y="{_TOP + _DOWN * row}" width="{across * count}" '
                f'height="{_DOWN}" fill="{_SHADES[shade][1]}"/>'
            )
            at += count
    yield "</svg>"
