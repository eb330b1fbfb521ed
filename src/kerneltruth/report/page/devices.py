"""The page's part on kernels that were judged on several devices. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kerneltruth.documents.effects import PortabilityTables
from kerneltruth.report.page.cells import (
    PageTable,
    column,
    correlation,
    number,
    row,
    table,
    text,
    whole,
)
from kerneltruth.report.page.wording import count, method_label, times, visible

MOST_KERNELS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesPart:
    """What changes from device to device."""

    said: str
    tables: Sequence[PageTable]


def devices_part(found: PortabilityTables | None) -> DevicesPart | None:
    """Make the part on devices; None if all runs are from one."""
    if found is None:
        return None
    same = found.same_verdict
    return DevicesPart(
        said=(
            f"{count(same.numerator)} of {count(same.denominator)} kernels judged on several "
            f"devices have the same verdict on all. {count(found.timed)} are right and timed on "
            f"several: their largest speedup over their smallest is "
            f"{times(found.median_spread)} in the median and {times(found.largest)} at most. "
            f"{count(found.flips.numerator)} are significantly faster than eager on one device "
            "and significantly slower on another."
        ),
        tables=[_pairs(found), _kernels(found)],
    )


def _pairs(found: PortabilityTables) -> PageTable:
    rows = [
        row(
            visible(p.one),
            [text(visible(p.other)), whole(p.correlation.pairs), *correlation(p.correlation)],
        )
        for p in found.pairs
    ]
    columns = [
        column("device", number=False),
        column("and", number=False),
        column("kernels"),
        column("rank correlation"),
        column("interval"),
    ]
    return table("device-pairs", "Rank correlation of speedups between two devices.", columns, rows)


def _kernels(found: PortabilityTables) -> PageTable:
    rows = [
        row(
            visible(k.task),
            [
                text(method_label(k.method, k.model)),
                *(number(k.speedups.get(d), times) for d in found.devices),
                number(k.spread, times),
                text("yes" if k.flips else ""),
            ],
        )
        for k in found.kernels[:MOST_KERNELS]
    ]
    columns = [
        column("task", number=False),
        column("method", number=False),
        *(column(visible(device)) for device in found.devices),
        column("spread", hint="the largest speedup over the smallest"),
        column("flips", number=False, hint="faster on one, slower on another"),
    ]
    shown = min(MOST_KERNELS, len(found.kernels))
    caption = f"Kernels by spread, largest first: {count(shown)} of {count(len(found.kernels))}."
    return table("devices", caption, columns, rows)
