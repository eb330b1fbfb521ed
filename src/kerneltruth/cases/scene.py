"""Define a strategy's view of a task, and its requests before they are fitted to the task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kerneltruth.cases.philox import derive
from kerneltruth.cases.shapes import Axis, Device, DimSizes
from kerneltruth.cases.singles import Single
from kerneltruth.tasks.spec import Scalar, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The task and settings that drafts are made for; `attributes` tries `departures` first."""

    task: Task
    seed: int
    device: Device
    axes: tuple[Axis, ...]
    dtypes: tuple[str, ...]
    extended_dtypes: tuple[str, ...]
    departures: tuple[Single, ...]
    blocks: tuple[int, ...]
    thresholds: tuple[int, ...] = ()

    def pick(self, n: int, *purpose: str | int) -> int:
        """Return a number in [0, n) that depends on the seed, the task and the purpose."""
        return derive(self.seed, self.task.name, *(str(p) for p in purpose)) % n

    def forms(self, strategy: str, k: int) -> dict[str, Scalar]:
        """Return the hidden attributes' values: each strategy goes through all of them in turn."""
        found = {}
        hidden = (a for a in self.task.attributes if a.hidden)
        for a in (a for a in hidden if a.name not in self.task.further):
            deck = self.shuffled(range(len(a.values)), "form", a.name)
            start = self.pick(len(deck), "form", a.name, strategy)
            found[a.name] = a.values[deck[(start + k) % len(deck)]]
        return found

    def shuffled(self, items: Sequence[int], *purpose: str) -> list[int]:
        """Return the items in an order that depends on the seed and the purpose."""
        return sorted(items, key=lambda n: derive(self.seed, self.task.name, *purpose, str(n)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A strategy's request; `keep` is the dim whose size matters most.

    `dtype` is a dtype, or an index into those in rotation; None lets the count choose. `exact`
    sizes are never shrunk; others are, to odd sizes or by halves.
    """

    sizes: DimSizes
    keep: str | None = None
    recipe: str = "uniform"
    layout: str = "contiguous"
    dtype: int | str | None = None
    settings: dict[str, Scalar] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    exact: bool = False
    odd: bool = True
