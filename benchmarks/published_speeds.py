"""How fast the published answers are that the judge finds right.

    python benchmarks/published_speeds.py --folder OUT [--name NAME]

OUT is what `published_survival.py judge OUT --stage perf` left: each right answer timed against
eager PyTorch and `torch.compile`. The answers get the labels of their files. `slower` counts
answers whose ratio is below 1 (KernelBenchX reports 46.6%), `surely slower` those whose interval
is below the noise. An answer without a kernel of its own calls PyTorch, and ties with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import machine
from published_survival import about_rest, labelled

from kerneltruth.analysis.reading import Study, read_study
from kerneltruth.analysis.results import Result
from kerneltruth.analysis.speeds import fast_p, speedups
from kerneltruth.documents.estimates import EstimateRecord
from kerneltruth.documents.rates import SpeedupRow

BASELINES = ("eager", "compile")
PS = (0.5, 0.8, 1.0, 1.5, 2.0)
EXTREMES = 5
HEAD = ("timed", "mean ratio", "slower", "surely slower", "tie", "surely faster")


def of(mean: EstimateRecord) -> str:
    if mean.value is None:
        return "none"
    if mean.low is None or mean.high is None:
        return f"{mean.value:.2f}"
    return f"{mean.value:.2f} ({mean.low:.2f} to {mean.high:.2f})"


def cells(row: SpeedupRow) -> tuple[object, ...]:
    share = row.slower.rate
    slower = str(row.slower.numerator) + ("" if share is None else f" ({share:.0%})")
    return (row.timed, of(row.mean), slower, row.surely_slower, row.ties, row.surely_faster)


def table(answers: Sequence[Result], baseline: str, by: Sequence[str]) -> list[str]:
    rows = [
        (" ".join(str(getattr(row, name)) for name in by), *cells(row))
        for row in speedups(answers, baseline, by)
        if row.timed
    ]
    return list(machine.table((", ".join(by), *HEAD), rows))


def parts(answers: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    yield "all", [*answers]
    yield "with a kernel of their own", [r for r in answers if not r.torch_only]
    yield "torch-only", [r for r in answers if r.torch_only]


def extremes(answers: Sequence[Result]) -> list[str]:
    """The fastest and the slowest right answers against eager PyTorch, by task and file."""
    timed = sorted(
        ((speed, r) for r in answers if r.correct and (speed := r.speedup("eager")) is not None),
        key=lambda pair: -pair[0],
    )
    shown = [*timed[:EXTREMES], *timed[-EXTREMES:]]
    rows = [
        (r.origin, r.task.partition("/")[2], "no" if r.torch_only else "yes", speed)
        for speed, r in shown
    ]
    return list(machine.table(("answer", "task", "own kernel", "ratio to eager"), rows))


def report(study: Study, folder: Path) -> list[str]:
    answers = study.answers
    right = sum(r.correct for r in answers)
    ends: dict[str, int] = {}
    for r in answers:
        if r.timing is not None or r.perf in ("wrong", "failed", "timing_suspect"):
            ends[r.perf] = ends.get(r.perf, 0) + 1
    lines = [
        f"{len(answers)} answers, timed on {study.runs[0].started[:10]}: {right} are right under "
        "the contract core. Ends of the perf stage: "
        + ", ".join(f"{name} {count}" for name, count in sorted(ends.items()))
        + f".{about_rest(folder)}",
    ]
    for baseline in BASELINES:
        rows = [
            (name, *cells(row)) for name, some in parts(answers) for row in speedups(some, baseline)
        ]
        lines += ["", f"Against {baseline}:", "", *machine.table(("answers", *HEAD), rows)]
        lines += ["", *table(answers, baseline, ("model", "method"))]
        lines += ["", *table(answers, baseline, ("category",))]
    lines += ["", "Answers that are right and more than p times as fast (fast_p):", ""]
    lines += machine.table(
        ("baseline", *(f"p = {p:g}" for p in PS)),
        (
            (name, *(f"{row.share.numerator} of {row.share.denominator}" for row in rows))
            for name in BASELINES
            for rows in [fast_p(answers, PS, name)]
        ),
    )
    return [*lines, "", "The fastest and the slowest:", "", *extremes(answers)]


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--name", default="published_speeds")
    options = parser.parse_args()
    about = json.loads((options.folder / "document.json").read_text())["machine"]
    lines = report(read_study([labelled(options.folder)]), options.folder)
    machine.publish(
        options.name,
        "Published answers: how fast right ones are",
        about,
        lines,
        folder=options.results,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
