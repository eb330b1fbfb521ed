"""Judge dropout, where two right results differ.

A task with dropout declares its formula as a *chain*: a function of the task's tensors, its named
attributes and `keep`, the factor of a kept element (see `scaled`). Each element of a result must be
what the chain gives for a kept or for a dropped element. The number and choice of dropped elements
must be plausible.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from kerneltruth.tasks.spec import Claim, Evidence, Output

DropoutFormula = Callable[..., Tensor]

# Each claim about chance rejects a right result once in 10^9 calls.
SURPRISE = math.log(2e9)


def keep(p: float, training: bool) -> float:
    """Return the factor of a kept element; 0 if none is kept."""
    if not training:
        return 1.0
    return 0.0 if p == 1 else 1 / (1 - p)


def scaled(x: Tensor, keep: float) -> Tensor:
    """Keep all elements; with `keep` 0 drop all, also NaN and infinities."""
    return x * keep if keep else torch.zeros_like(x)


def outputs(p: str = "p") -> tuple[Output, ...]:
    """Return the one output: judged by claims if elements are dropped, else by its bound."""
    random = f"training and {p} > 0"
    # A run of zeros at the end may be chance.
    chance = Output(compare="claims", when=random, spared=("last tile zeroed",))
    return chance, Output(when=f"not ({random})")


def claims(chain: DropoutFormula, *, p: str = "p") -> Callable[[Evidence], Iterator[Claim]]:
    """Return the claims of a task that drops elements.

    Args:
        chain: the task's formula.
        p: name of the attribute that holds the probability.
    """
    names = tuple(inspect.signature(chain).parameters)

    def made(evidence: Evidence) -> Iterator[Claim]:
        scalars = evidence.scalars
        training = bool(scalars.get("training", True))
        share = float(scalars[p]) if training else 0.0
        settings = {n: scalars[n] for n in names if n in scalars}
        assert evidence.bounded is not None
        kept, slack = evidence.bounded(chain, settings | {"keep": keep(share, training)})
        dropped, other_slack = evidence.bounded(chain, settings | {"keep": 0.0})
        # A finite value beyond the dtype's range may become infinite before or after it is dropped.
        limit = torch.finfo(getattr(torch, evidence.dtype)).max
        settled = slack.isfinite() & ~(kept.isfinite() & (kept.abs() > limit))
        out = evidence.outputs[0].double()
        is_kept = _matches(out, kept, slack)
        is_dropped = _matches(out, dropped, other_slack) | (out.isnan() & ~kept.isfinite())
        right = is_kept if share == 0 else is_kept | is_dropped
        wrong = settled & ~right
        count = float(wrong.sum())
        yield Claim("elements neither kept nor dropped", count, 0.0, where=wrong)
        if 0 < share < 1:
            decidable = settled & ((kept - dropped).abs() > slack + other_slack)
            yield from _chance(is_dropped & ~is_kept, decidable, share)

    return made


def _chance(dropped: Tensor, decidable: Tensor, share: float) -> Iterator[Claim]:
    """Return how surprising the choice of dropped elements is, in nats."""
    count, total = int((dropped & decidable).sum()), int(decidable.sum())
    value = surprise(count, total, share)
    yield Claim(name="surprise at the share of dropped elements", value=value, limit=SURPRISE)
    alike = share**2 + (1 - share) ** 2
    for dim in range(1, min(decidable.ndim, 2) + 1):
        pairs = decidable.shape[-dim] // 2
        first = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
        one, other = (dropped.movedim(-dim, 0)[s] for s in first)
        both = decidable.movedim(-dim, 0)[first[0]] & decidable.movedim(-dim, 0)[first[1]]
        value = surprise(int(((one == other) & both).sum()), int(both.sum()), alike)
        yield Claim(name=f"surprise at neighbours in dim -{dim}", value=value, limit=SURPRISE)


def surprise(count: int, total: int, share: float) -> float:
    """Bound the tail of a binomial count by Chernoff: minus the log of its chance."""
    if total == 0:
        return 0.0
    seen = count / total
    parts = ((seen, share), (1 - seen, 1 - share))
    return total * sum(a * math.log(a / b) for a, b in parts if a > 0)


def _matches(out: Tensor, target: Tensor, slack: Tensor) -> Tensor:
    return ((out - target).abs() <= slack) | (out == target) | (out.isnan() & target.isnan())
