"""Fit requested sizes to a task: near them, allowed, and of ordinary cost."""

from __future__ import annotations

from kerneltruth.cases import shapes
from kerneltruth.cases.shapes import AttributeSettings, Axis, Device, DimSizes
from kerneltruth.tasks.spec import Task


def fit(
    task: Task,
    axes: tuple[Axis, ...],
    device: Device,
    sizes: DimSizes,
    settings: AttributeSettings,
    *,
    keep: str | None = None,
    exact: bool = False,
    odd: bool = True,
) -> DimSizes | None:
    """Return sizes near the given ones that the task allows with these attributes, or None.

    Args:
        task: constrains them.
        axes: its dims as sources of sizes.
        device: limits the cost of an ordinary case.
        sizes: the requested ones; 0 stays 0.
        settings: every attribute's value.
        keep: the dim whose size matters most.
        exact: whether sizes stay at any cost.
        odd: whether they are shrunk to odd sizes.
    """

    def affordable(s: DimSizes) -> bool:
        return shapes.within(task, axes, s, settings, shapes.LIMITS[device])

    if 0 in sizes.values():
        ordinary = {s: n or 1 for s, n in sizes.items()}
        fitted = shapes.shrink(ordinary, axes, keep, affordable)
        return _emptied(task, fitted, sizes, settings) or _emptied(
            task, shapes.repair(task, axes, fitted, settings, keep), sizes, settings
        )
    if not exact:
        sizes = shapes.shrink(sizes, axes, keep, affordable, odd=odd)
    return shapes.repair(task, axes, sizes, settings, keep)


def _emptied(
    task: Task, fitted: DimSizes | None, sizes: DimSizes, settings: AttributeSettings
) -> DimSizes | None:
    """Return the fitted sizes with the requested dims of 0; None if the task has no such case."""
    if fitted is None:
        return None
    fitted = fitted | {s: 0 for s, n in sizes.items() if n == 0}
    return None if shapes.violations(task, fitted, settings, empty=True) else fitted


def fit_anywhere(
    task: Task, axes: tuple[Axis, ...], device: Device, settings: AttributeSettings
) -> DimSizes | None:
    """Return sizes at which the attributes have a meaning: ordinary ones, else some larger ones."""
    for size, rows in ((17, 17), (9, 2), (17, 1)):
        sizes = {
            a.symbol: min(max(rows if a.kind == "batch" else size, a.low), a.cap) for a in axes
        }
        found = fit(task, axes, device, sizes, settings, exact=rows < size)
        if found is not None:
            return found
    return None
