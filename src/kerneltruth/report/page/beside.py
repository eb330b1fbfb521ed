"""The page's part on runs side by side: what got better, and what broke. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kerneltruth.analysis.beside import RunsBeside, beside
from kerneltruth.analysis.metrics import rates
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import Result
from kerneltruth.analysis.speeds import EAGER, speedups
from kerneltruth.documents.runs import EditEffect
from kerneltruth.report.page.cells import (
    Cell,
    KernelsCell,
    ListedKernel,
    PageTable,
    column,
    factor,
    number,
    row,
    share,
    table,
    text,
    whole,
)
from kerneltruth.report.page.wording import count, label, times

MOST_KERNELS = 200
NOT_TRIED = "not tried"
KernelNumbers = Mapping[tuple[int, str], int]
# What changed first.
_ORDER: tuple[EditEffect | None, ...] = ("broken", "fixed", "still wrong", "still right", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BesidePart:
    """What changes from the first run to the last, in words and tables."""

    said: str
    tables: Sequence[PageTable]


def beside_part(study: Study) -> BesidePart:
    """Make the part.

    Raises:
        UserError: there are fewer than two runs.
    """
    found = beside(study)
    numbers = {(r.run, r.key): i for i, r in enumerate(study.attempts)}
    names = [f"{number} {label(run.path)}" for number, run in enumerate(study.runs, 1)]
    return BesidePart(
        said=_said(found),
        tables=[
            _totals(found, names),
            _verdicts(found, names, numbers),
            *_speeds(found, names, numbers),
        ],
    )


def _said(found: RunsBeside) -> str:
    became = Counter(kernel.became for kernel in found.kernels)
    said = ", ".join(f"{count(became[word])} {word}" for word in _ORDER if word)
    more = [f"{count(became[None])} not judged in one of these"] if became[None] else []
    if found.missing:
        more.append(f"not in every run: {count(found.missing)}")
    return "; ".join(
        [f"Kernels in every run: {count(len(found.kernels))}; from first to last, {said}", *more]
    )


def _totals(found: RunsBeside, names: Sequence[str]) -> PageTable:
    rows = []
    for number_, name in enumerate(names):
        own = [kernel.results[number_] for kernel in found.kernels]
        rows.append(row(name, _rates(own) if own else [whole(0)]))
    columns = [
        column("run", number=False),
        column("kernels"),
        column("loads and runs", hint="call"),
        column("is right", hint="exe"),
        column("is timed", hint="perf"),
        column("speedup over eager", hint="geometric mean of right ones"),
    ]
    return table("beside-totals", "The kernels of every run, by run.", columns, rows)


def _rates(own: Sequence[Result]) -> list[Cell]:
    (found,), (speed,) = rates(own), speedups(own, EAGER)
    stages = (found.call, found.exe, found.perf)
    return [
        whole(len(own)),
        *(share(each, unknown=NOT_TRIED) for each in stages),
        factor(speed.mean),
    ]


def _verdicts(found: RunsBeside, names: Sequence[str], numbers: KernelNumbers) -> PageTable:
    other = [
        k for k in found.kernels if k.changed or len({r.verdict_in_words for r in k.results}) > 1
    ]
    other.sort(key=lambda k: (_ORDER.index(k.became), k.results[0].task, k.name))
    rows = [
        row(
            label(k.results[0].task),
            [
                text(label(k.results[-1].origin)),
                text(k.became or "not judged"),
                *(_link(r, r.verdict_in_words, numbers) for r in k.results),
                text(", ".join(map(label, k.changed))),
            ],
        )
        for k in other[:MOST_KERNELS]
    ]
    columns = [
        column("task", number=False),
        column("file", number=False),
        column("became", number=False, hint="the last run beside the first"),
        *(column(name, number=False) for name in names),
        column("obligations that end otherwise", number=False),
    ]
    caption = f"Kernels that end otherwise: {_shown(len(rows), len(other))}."
    return table("beside-verdicts", caption, columns, rows)


def _speeds(found: RunsBeside, names: Sequence[str], numbers: KernelNumbers) -> list[PageTable]:
    timed = [(k, k.speed) for k in found.kernels if k.speed is not None]
    if not timed:
        return []
    apart = sorted((p for p in timed if p[1].differs), key=lambda p: -p[1].spread)
    rows = [
        row(
            label(kernel.results[0].task),
            [
                text(label(kernel.results[-1].origin)),
                *(
                    text("") if s is None else _link(r, times(s.ratio), numbers, value=s.ratio)
                    for r, s in zip(kernel.results, speed.speedups, strict=True)
                ),
                number(speed.spread, times),
                text("yes" if speed.flips else ""),
            ],
        )
        for kernel, speed in apart[:MOST_KERNELS]
    ]
    columns = [
        column("task", number=False),
        column("file", number=False),
        *(column(name) for name in names),
        column("spread", hint="the largest speedup over the smallest"),
        column("flips", number=False, hint="faster in one run, slower in another"),
    ]
    caption = (
        "Speedups over eager that differ beyond their intervals, of kernels that are right and "
        f"timed on the same shapes in two runs or more: {_shown(len(rows), len(apart))}, "
        f"of {count(len(timed))} in all."
    )
    return [table("beside-speeds", caption, columns, rows)]


def _shown(shown: int, of: int) -> str:
    return count(of) if shown == of else f"{count(shown)} of {count(of)}"


def _link(
    result: Result, said: str, numbers: KernelNumbers, *, value: float | None = None
) -> KernelsCell:
    kernel = ListedKernel(
        who=label(said), speed="", tied=False, attempt=numbers[result.run, result.key]
    )
    return KernelsCell(kernels=[kernel], more=0, value=said if value is None else value)
