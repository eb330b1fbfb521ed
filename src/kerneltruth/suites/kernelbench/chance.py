"""Judge random results: could the model have drawn what the candidate returned?

The problem's own model runs many times. A right result is one more draw, as far from the others as
they are from each other. How far each draw departs from the others says how far a right result may.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import Tensor

from kerneltruth.cases.materialize import flat_bytes
from kerneltruth.tasks.spec import Claim, Evidence

_RUNS = 40
# A right result departs by more than this, in standard deviations of the draws, less than once in
# 1e9, even if their distribution is not normal.
_FAR = 12.0
_LEAST = 0.3
# The most elements of an output that are examined.
_MOST = 2**11
_TF32_EPS = 2.0**-10


class Drawing(Protocol):
    """A reference that can be run several times."""

    def runs(self, count: int, *, _sizes: str, _mode: str | None = None, **given: Any) -> Any:
        """Return the outputs of `count` runs, each stacked."""


def claims_of(reference: Drawing, random: tuple[str, ...]) -> Callable[[Evidence], Iterator[Claim]]:
    """Return the claims of a problem that is random in these modes; none without modes."""
    known: dict[str, list[_Drawn]] = {}

    def claims(evidence: Evidence) -> Iterator[Claim]:
        mode = evidence.scalars.get("_mode")
        if mode is not None and mode not in random:
            return
        key = _key(evidence)
        if key not in known:
            # The decoys of a case, and its candidates, come one after the other.
            known.clear()
            known[key] = _drawn(reference, evidence)
        for out, drawn in zip(evidence.outputs, known[key], strict=False):
            if out.is_floating_point() and out.numel():
                yield from drawn.claims(_rows(out.double()))

    return claims


def _key(evidence: Evidence) -> str:
    tensors = [t for t in evidence.inputs.values() if t is not None]
    digest = hashlib.sha256(repr((evidence.dtype, sorted(evidence.scalars.items()))).encode())
    for tensor in tensors:
        digest.update(flat_bytes(tensor).numpy().tobytes())
    return digest.hexdigest()


def _drawn(reference: Drawing, evidence: Evidence) -> list[_Drawn]:
    scalars = {n: v for n, v in evidence.scalars.items() if n.isidentifier()}
    found = reference.runs(_RUNS, **{**evidence.inputs, **scalars})
    draws = [torch.stack([_rows(one) for one in each.double()]) for each in found]
    return [_Drawn(each, _slack(each, evidence)) for each in draws]


def _rows(output: Tensor) -> Tensor:
    """Return the first rows of an output, as a matrix."""
    rows = output.reshape(-1, output.shape[-1] if output.ndim else 1)
    return rows[: max(_MOST // max(rows.shape[1], 1), 1)]


def _slack(draws: Tensor, evidence: Evidence) -> Tensor:
    """Return how much rounding may change an element: float32 products may use TF32."""
    eps = max(evidence.eps, _TF32_EPS) if evidence.dtype == "float32" else 4 * evidence.eps
    sizes = torch.nan_to_num(draws.abs(), posinf=0.0).amax(0)
    return 2 * eps * sizes + eps * sizes.amax(-1, keepdim=True)


class _Drawn:
    """The draws of one output, and how far each departs from the others."""

    def __init__(self, draws: Tensor, slack: Tensor) -> None:
        self._draws = draws
        self._slack = slack
        self._finite = bool(torch.isfinite(draws).all())
        rest = [torch.cat((draws[:k], draws[k + 1 :])) for k in range(len(draws))]
        seen = [self._departures(one, others) for one, others in zip(draws, rest, strict=True)]
        self._usual = {
            name: torch.tensor([each[name] for each in seen], dtype=torch.float64)
            for name in seen[0]
        }

    def claims(self, out: Tensor) -> Iterator[Claim]:
        """Return the claims about a result that is like one more draw."""
        if not self._finite:
            return
        lost = int((~torch.isfinite(out)).sum())
        yield Claim("elements that are not finite", float(lost), 0.0)
        for name, value in self._departures(out, self._draws).items():
            usual = self._usual[name]
            # Rare events may be in none of the draws, and few elements show little.
            spread = max(float(usual.std()), _LEAST / math.sqrt(out.numel()))
            off = abs(value - float(usual.mean())) / spread
            yield Claim(f"{name}, in deviations from what is drawn", off, _FAR)

    def _departures(self, one: Tensor, others: Tensor) -> dict[str, float]:
        """Describe where a draw lies among others, in a few numbers."""
        slack = self._slack
        below, above = (others < one - slack).sum(0), (others > one + slack).sum(0)
        place = (below - above).double() / len(others)
        middle = others.mean(0)
        middle = middle - middle.mean(-1, keepdim=True)
        size = float(middle.square().mean().sqrt()) or 1.0
        beyond = (one < others.amin(0) - slack) | (one > others.amax(0) + slack)
        mine, theirs = float(one.abs().mean()), float(others.abs().mean())
        found = {
            "the size of the output": mine / (mine + theirs) if mine + theirs else 0.5,
            "the mean place of an element": float(place.mean()),
            "the spread of places": float(place.square().mean()),
            "how places follow sizes": float((place * middle / size).mean()),
            "the share of elements beyond all draws": float(beyond.double().mean()),
        }
        for dim in (-1, -2):
            # A choice that many elements share does not average out.
            found[f"how alike lines along dim {dim} are"] = float(
                place.mean(dim).square().mean().sqrt()
            )
        return found
