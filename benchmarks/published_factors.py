"""What the correctness of published answers depends on: category, model, method, and contract.

    python benchmarks/published_factors.py --folder OUT [--name NAME]

OUT is what `published_answers.py judge` or `published_survival.py judge` left. The answers get the
labels of their files. Each table counts an answer as right in three ways: it is right on the
benchmark's own inputs (published), it passes (core), it breaks nothing that was tried (everything).
An answer of which `published` was not tried counts as not judged there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import machine
from published_survival import about_rest, labelled

from kerneltruth.analysis.deviance import deviance_of
from kerneltruth.analysis.groups import grouped
from kerneltruth.analysis.illusions import place_of
from kerneltruth.analysis.metrics import rates, unsolved
from kerneltruth.analysis.ranks import complexity
from kerneltruth.analysis.reading import Study, read_study
from kerneltruth.analysis.results import NOT_TRIED, PASSED, TORCH_ONLY, Result
from kerneltruth.documents.estimates import RateRecord
from kerneltruth.runs.tasks_file import read_tasks


def published(result: Result) -> Result:
    """The answer as the benchmark's own inputs find it."""
    if not result.called:
        return result
    end = result.profile.get("published")
    held = {"held": PASSED, "broken": "fail", "refused": "fail"}
    exe = NOT_TRIED if end is None else held.get(end.status, NOT_TRIED)
    return replace(result, exe=exe)


def everything(result: Result) -> Result:
    """The answer as all that was tried finds it."""
    return replace(result, exe=PASSED if result.correct and place_of(result) is None else "fail")


VIEWS: dict[str, Callable[[Result], Result]] = {
    "published": published,
    "core": lambda result: result,
    "everything": everything,
}
# By which labels answers are kept apart, and what is left out for that.
FACTORS: dict[str, Callable[[Result], Result]] = {
    "model and method": lambda r: r,
    "model": lambda r: replace(r, method=None),
    "method": lambda r: replace(r, model=None),
}


def within(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return ""
    ends = "" if low is None or high is None else f" ({low:.1%} to {high:.1%})"
    return f"{value:.1%}{ends}"


def counted(rate: RateRecord) -> str:
    return f"{rate.numerator} of {rate.denominator}: {within(rate.rate, rate.low, rate.high)}"


def deviances(answers: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """A row for each view, labels and model of the deviance."""
    for view, seen in VIEWS.items():
        for labels, kept in FACTORS.items():
            found = deviance_of([kept(seen(r)) for r in answers])
            for term in found.terms or ():
                if term.model == "category * method":
                    continue
                if term.model == "category" and labels != "model and method":
                    continue
                p = term.p_permutation
                yield (
                    view,
                    term.model.replace("method", labels),
                    f"{found.right} of {found.answers}",
                    str(term.df),
                    within(term.explained, term.low, term.high),
                    "" if term.adjusted is None else f"{term.adjusted:.1%}",
                    "" if term.by_chance is None else f"{term.by_chance:.1%}",
                    "" if p is None else f"{p:.3f}",
                )


def by_category(answers: Sequence[Result]) -> Iterator[tuple[object, ...]]:
    """Answers by stage of each category, and the tasks that nobody solves under each view."""
    seen = {name: [view(r) for r in answers] for name, view in VIEWS.items()}
    open_tasks = [
        {row.category: row.unsolved for row in unsolved(found, CATEGORY)} for found in seen.values()
    ]
    right = {
        name: {row.category: row.exe.numerator for row in rates(found, CATEGORY)}
        for name, found in seen.items()
    }
    for row in rates(answers, CATEGORY):
        yield (
            row.category,
            row.tasks,
            row.attempts,
            row.call.numerator,
            *(right[name][row.category] for name in VIEWS),
            *(f"{u.numerator} of {u.denominator}" for u in (o[row.category] for o in open_tasks)),
        )


CATEGORY = ("category",)
METHOD = ("model", "method")


def by_method(answers: Sequence[Result]) -> Iterator[tuple[object, ...]]:
    for group, members in grouped(answers, METHOD).items():
        right = (sum(view(r).correct for r in members) for view in VIEWS.values())
        plain = sum(r.language == TORCH_ONLY for r in members)
        yield *group, len(members), sum(r.called for r in members), *right, plain


def report(study: Study, folder: Path) -> list[str]:
    answers = study.answers
    plain = [r for r in answers if r.language == TORCH_ONLY]
    nobody = {name: unsolved([v(r) for r in answers])[0].unsolved for name, v in VIEWS.items()}
    facts = {task: said.numbers for task, said in read_tasks(folder).items()}
    started = study.runs[0].started[:10]
    passing = sum(r.correct for r in plain)
    return [
        f"{len(answers)} answers, judged on {started}. {sum(r.loaded for r in answers)} load, "
        f"the kernels of {sum(r.compiled for r in answers)} compile, and "
        f"{sum(r.called for r in answers)} return from a call. "
        f"{len(plain)} are torch-only, of which {passing} pass. "
        "Columns `published`, `core` and `everything` count answers that are right on the "
        "benchmark's own inputs, under the contract core, and in all that was tried."
        f"{about_rest(folder.parent)}",
        "",
        *machine.table(
            (
                *("category", "tasks", "answers", "call", *VIEWS),
                *(f"solved by nobody, {name}" for name in VIEWS),
            ),
            by_category(answers),
        ),
        "",
        *(f"- tasks solved by nobody, {name}: {counted(rate)}" for name, rate in nobody.items()),
        "",
        *machine.table(
            ("model", "method", "answers", "call", *VIEWS, "torch-only"), by_method(answers)
        ),
        "",
        "Explained share of the null deviance of correctness (McFadden's R2, since each answer is "
        "one trial), with the 95% interval over tasks; adjusted for degrees of freedom; by chance, "
        "where the factor's labels are shuffled; and how often a shuffle explains as much:",
        "",
        *machine.table(
            ("right if", "model", "right", "df", "explained", "adjusted", "by chance", "p"),
            deviances(answers),
        ),
        "",
        "Rank correlation over tasks of the reference's complexity with the share of answers that "
        "do not run, and that are not right (core):",
        "",
        *machine.table(
            ("proxy", "tasks", "call fails", "exe fails"),
            (
                (
                    row.proxy,
                    row.exe.pairs,
                    *(
                        f"{c.value:+.2f} ({c.low:+.2f} to {c.high:+.2f})"
                        for c in (row.call, row.exe)
                    ),
                )
                for row in complexity(answers, facts)
            ),
        ),
    ]


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--name", default="published_factors")
    options = parser.parse_args()
    about = json.loads((options.folder / "document.json").read_text())["machine"]
    study = read_study([labelled(options.folder)])
    lines = report(study, options.folder / "run")
    title = "Published answers: what their correctness depends on"
    machine.publish(options.name, title, about, lines, folder=options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
