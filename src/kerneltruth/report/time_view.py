"""Render `time`: a table of shapes, a plot of ratios, and other observations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from kerneltruth.clock.statistics.summary import Interval, is_wide, outcome
from kerneltruth.documents.timing import BaselineTime, ShapeEnergy, ShapeTimes, TimeDocument
from kerneltruth.report.figures import PLAIN_TORCH
from kerneltruth.report.harmless import visible
from kerneltruth.report.kernel_words import shares

WIDTH = 41
# In narrower terminals a table would lose the columns that tell its rows apart.
NARROW = 72
# What the flags of a shape mean; that of results not graded says its reason itself.
_FLAGS = {
    "repeated_blocks": "something disturbed blocks, which were measured again",
    "disturbed": "something disturbed more blocks than may be measured again",
    "throttled": "heat or the power supply held the clocks down",
    "power_capped": "the device was at its power limit",
    "shared_device": "another process computed on the device",
    "host_bound": "calls wait for the device, and so for their host",
    "processes_differ": "in other processes the outcome was another; it counts as a tie",
    "timing_suspect": "the device's events contradict the judge's clock, which counts",
    "below_floor": "less time than the device's memory and arithmetic need",
    "baseline_hindered": "a baseline ran faster once the candidate had gone",
}
_COLOURS = {"faster": "green", "slower": "red", "tie": ""}


def time_view(document: TimeDocument) -> RenderableType:
    """Show the candidate's time on each shape, and its ratio to each baseline."""
    head = f"{document.task} on {document.device}"
    if document.torch_only:
        head += f", {PLAIN_TORCH}"
    parts: list[RenderableType] = [Text(head, "bold")]
    shapes = document.shapes
    if shapes:
        parts += [_Shapes(shapes), _costs(document)]
    for shape in shapes:
        parts += _remarks(shape)
    if document.not_timed:
        parts.append(Text(f"not timed: {'; '.join(document.not_timed)}", "yellow"))
    if document.kernel:
        parts.append(Text(shares(document.kernel)))
    for seen in document.profile or ():
        parts += [Text(f"{seen.kernel}: {remark}") for remark in seen.remarks]
    if document.outcome != "timed":
        said = visible(document.detail or "") or "times contradict each other; no shape is faster"
        parts.append(Text(f"{document.outcome}: {said}", "red"))
    return Group(*parts)


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Show each shape's times and ratios, as wide as the terminal allows."""

    shapes: Sequence[ShapeTimes]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= NARROW:
            yield _table(self.shapes)
            yield _plot(self.shapes, WIDTH)
            return
        for index, shape in enumerate(self.shapes, 1):
            yield from _lines(index, shape)
        names = max((len(name) for s in self.shapes for name in s.baselines), default=0)
        # An odd number, so that 1 stands in the middle.
        room = (options.max_width - names - 6) // 2 * 2 + 1
        yield _plot(self.shapes, min(max(room, 11), WIDTH))


def _lines(index: int, shape: ShapeTimes) -> Iterator[Text]:
    yield Text(f"{index} {shape.summary}: {duration(shape.candidate_us)}")
    for name, b in shape.baselines.items():
        said = f"  {name} {duration(b.us)}: {b.ratio:.3f}x "
        said += f"({b.low:.3f} to {b.high:.3f}) "
        yield Text(said).append(_word(b), _COLOURS[b.outcome])


def _table(shapes: Sequence[ShapeTimes]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("shape", overflow="fold")
    for name in ("time", "baseline", "its time", "ratio", "95% interval", ""):
        left = name in ("baseline", "")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for shape in shapes:
        first = (shape.summary, duration(shape.candidate_us))
        rows = shape.baselines.items()
        for name, b in rows:
            table.add_row(
                *first,
                name,
                duration(b.us),
                f"{b.ratio:.3f}x",
                f"{b.low:.3f} to {b.high:.3f}",
                Text(_word(b), _COLOURS[b.outcome]),
            )
            first = ("", "")
        if not rows:
            table.add_row(*first, "none", "", "", "", "")
    return table


def _word(b: BaselineTime) -> str:
    """The outcome; a tie of a wide interval does not say that both are equally fast."""
    # Another tie is a difference that a flag withdraws.
    by_interval = outcome(Interval(estimate=b.ratio, low=b.low, high=b.high)) == "tie"
    return "tie, wide" if by_interval and is_wide(b.low, b.high) else b.outcome


def _plot(shapes: Sequence[ShapeTimes], width: int) -> RenderableType:
    """Plot intervals on a logarithmic scale around 1, one line per shape and baseline."""
    bars = [(i, name, b) for i, s in enumerate(shapes, 1) for name, b in s.baselines.items()]
    if not bars:
        return Text("")
    reach = max(max(abs(math.log(max(b.low, 1e-6))), abs(math.log(b.high))) for *_, b in bars)
    reach = max(reach, math.log(1.1)) * 1.05
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_header=False)
    for index, name, b in bars:
        table.add_row(f"{index} {name}", Text(_bar(b, reach, width), _COLOURS[b.outcome]))
    low, high = f"{math.exp(-reach):.2g}x", f"{math.exp(reach):.2g}x"
    half = width // 2
    scale = low + "1x".rjust(half + 1 - len(low)) + high.rjust(width - half - 1)
    table.add_row("", Text(scale, "dim"))
    return table


def _bar(b: BaselineTime, reach: float, width: int) -> str:
    def place(ratio: float) -> int:
        share = (math.log(max(ratio, 1e-9)) / reach + 1) / 2
        return min(max(round(share * (width - 1)), 0), width - 1)

    cells = [" "] * width
    cells[width // 2] = "|"
    for i in range(place(b.low), place(b.high) + 1):
        cells[i] = "-"
    cells[place(b.ratio)] = "o"
    return "".join(cells)


def _costs(document: TimeDocument) -> Text:
    parts = [
        f"compile {document.compile_s or 0:.2f} s",
        f"first call {document.first_call_s or 0:.2f} s",
    ]
    if isinstance(document.import_s, float):
        parts.append(f"import {document.import_s:.2f} s")
    if isinstance(document.launch_us, float):
        parts.append(f"launch {document.launch_us:.1f} us")
    if document.shapes[0].regime != "cpu":
        # On a CPU neither is measured.
        parts.append(f"peak memory {memory(document.peak_bytes)}")
        for name, peak in document.baseline_peak_bytes.items():
            parts.append(f"{name} {memory(peak)}")
        parts.append(f"noise of this machine {document.noise_floor:.2%}")
    graded = sum(shape.graded.calls for shape in document.shapes)
    parts.append(f"results of {graded:,} timed calls graded")
    return Text("; ".join(parts))


def _remarks(shape: ShapeTimes) -> list[RenderableType]:
    found: list[RenderableType] = []
    words = []
    if shape.bound_by:
        words.append(f"bound by {shape.bound_by}")
    if shape.efficiency is not None:
        words.append(f"{shape.efficiency:.0%} of the device's limit")
    if shape.warm_us is not None and shape.regime == "cold":
        words.append(f"{duration(shape.warm_us)} with warm caches, launches included")
    if words:
        found.append(Text(f"{shape.summary}: {', '.join(words)}"))
    if shape.strides:
        lie = ", ".join(f"{name} {list(strides)}" for name, strides in shape.strides.items())
        found.append(Text(f"{shape.summary}: not contiguous, as in the example: strides of {lie}"))
    for remark in shape.advice.remarks[1:] if shape.advice else ():
        found.append(Text(f"{shape.summary}: {remark.text}"))
    for flag in (f for f in shape.flags if f != "not_graded"):
        meant = f": {_FLAGS[flag]}" if flag in _FLAGS else ""
        found.append(Text(f"{shape.summary}: {flag}{meant}", "yellow"))
    found += _of_baselines(shape)
    graded = shape.graded
    if graded.not_graded:
        found.append(Text(f"{shape.summary}: not graded: {graded.not_graded}", "yellow"))
    if shape.energy:
        found += [Text(f"{shape.summary}: {said}") for said in _energy(shape.energy)]
    return found


def _of_baselines(shape: ShapeTimes) -> Iterator[Text]:
    for name, b in shape.baselines.items():
        said = [] if b.efficiency is None else [f"{b.efficiency:.0%} of the device's limit"]
        said += [b.remark] if b.remark else []
        if said:
            yield Text(f"{shape.summary}: {name}: {', '.join(said)}")
    for name, why in shape.baselines_failed.items():
        yield Text(f"{shape.summary}: no baseline {name}: {why}", "yellow")


def _energy(energy: ShapeEnergy) -> Iterator[str]:
    if energy.idle_watts is None:
        yield f"energy not read: {energy.reason}"
        return
    known = [
        f"{name} {joules(side.joules)} ({side.watts:.0f} W)"
        for name, side in energy.sides.items()
        if side.joules is not None and side.watts is not None
    ]
    yield "energy of a call: " + ", ".join([*known, f"idle {energy.idle_watts:.0f} W"])
    for name, side in energy.sides.items():
        if side.reason is not None:
            yield f"energy of {name} not reported: {side.reason}"


def joules(value: float) -> str:
    """Format joules for people."""
    for unit, factor in (("J", 1.0), ("mJ", 1e3)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} uJ"


def duration(us: float) -> str:
    """Format microseconds for people."""
    if us < 1000:
        return f"{us:.3g} us"
    return f"{us / 1000:.3g} ms" if us < 1e6 else f"{us / 1e6:.3g} s"


def memory(count: int) -> str:
    """Format bytes for people."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GiB"
