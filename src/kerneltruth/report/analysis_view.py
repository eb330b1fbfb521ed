"""Render `analyze`: tables that fit 80 columns, each share with its counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from msgspec import UNSET
from rich.console import Group, RenderableType
from rich.text import Text

from kerneltruth.analysis.groups import METHOD
from kerneltruth.analysis.results import TORCH_ONLY
from kerneltruth.documents.analysis import AnalyzeDocument
from kerneltruth.documents.estimates import GroupRecord, RateRecord
from kerneltruth.documents.rates import (
    AuditedKernels,
    FastShare,
    PassAtK,
    SpeedupRow,
    SpendingRow,
    SpentSum,
    StageRates,
)
from kerneltruth.report.analysis_depth import (
    deviance_parts,
    portability_parts,
    trajectory_parts,
)
from kerneltruth.report.figures import (
    UNKNOWN,
    label,
    percent,
    percent_within,
    several,
    share,
    share_within,
    stage_share,
    table,
    times_within,
)
from kerneltruth.report.harmless import visible
from kerneltruth.report.survival_view import survival_parts

# Break-downs shown by default; the others are in --json.
SHOWN = (("category",), ("method", "model"), ("dtype",))
MOST_ROWS = 60
FINDINGS_SHOWN = 5
STAGES = ("call", "exe", "perf")
DTYPE_COLUMNS = {"failed": "fails in it", "exe": "right: at least", "exe_most": "at most"}
EAGER = "eager"
SpeedRow = TypeVar("SpeedRow", FastShare, SpeedupRow)


def analysis_view(
    document: AnalyzeDocument, shown: Sequence[Sequence[str]] = SHOWN
) -> RenderableType:
    """Show everything that was found, most requested first."""
    parts: list[RenderableType] = [*_head(document)]
    if not document.attempts:
        return Group(*parts)
    if document.audit is not None:
        return Group(
            *parts,
            *_audit(document.audit),
            *_illusions(document),
            *survival_parts(document),
            *_exports(document),
        )
    parts += _rates(document, shown)
    parts += _unsolved(document)
    parts += _pass_at_k(document)
    parts += _spending(document)
    parts += _fast_p(document)
    parts += _speedups(document)
    parts += _efficiency(document)
    parts += _illusions(document)
    parts += survival_parts(document)
    parts += deviance_parts(document.deviance)
    parts += trajectory_parts(document.trajectories)
    parts += portability_parts(document.portability)
    parts += _exports(document)
    return Group(*parts)


def _head(document: AnalyzeDocument) -> Iterator[Text]:
    runs = document.runs
    for run in runs:
        yield Text(visible(f"{run.path}: {several(run.attempts, 'attempt')} on {run.device}"))
    if document.audit is None:
        yield _counted(document)
    for note in document.notes:
        yield Text(visible(f"note: {note}"), "yellow")


def _counted(document: AnalyzeDocument) -> Text:
    again = document.attempts - document.distinct
    rounds = document.distinct - document.answers
    said = [f"{several(document.answers, 'answer')} of {several(document.attempts, 'attempt')}"]
    if rounds:
        said.append(f"{rounds} are other rounds than the {document.kept}")
    if again:
        said.append(f"{again} repeat a kernel on another device")
    return Text("; ".join(said), "bold")


def _audit(found: AuditedKernels) -> Iterator[Text]:
    """Show an audit; its kernels are chosen, so their shares have no interval."""
    yield Text(f"{found.kernels} kernels of the built-in corpus", "bold")
    if found.controls or found.bugs:
        yield Text(
            f"{found.controls_clean} of {found.controls} controls are clean; "
            f"{found.bugs_caught} of {found.bugs} bugs are caught"
        )
    else:
        yield Text("an earlier version wrote this run, and did not record which kernels are bugs")


def _rates(document: AnalyzeDocument, shown: Sequence[Sequence[str]]) -> Iterator[RenderableType]:
    overall = document.rates.overall
    made = table("Answers that pass each stage (95% interval)", "", *STAGES)
    made.add_row("all", *(stage_share(getattr(overall, stage)) for stage in STAGES))
    yield made
    if overall.load is not None and overall.compile is not None:
        yield Text(
            f"before the call: {share(overall.load)} load, and the kernels of "
            f"{share(overall.compile)} compile"
        )
    if overall.not_judged:
        yield Text(
            f"{overall.not_judged} of {overall.attempts} could not be judged here; they are "
            "in the denominators"
        )
    plain = document.torch_only
    if plain.answers:
        counts = f"{plain.answers} of {document.answers}"
        yield Text(f"{counts} torch-only, without a kernel: {plain.right} right")
    for stage, missing in overall.not_tried.items():
        if 0 < missing < overall.attempts:
            yield Text(
                f"{stage}: {missing} of {overall.attempts} are of runs without this stage; they "
                "are in its denominator"
            )
    wanted = [tuple(by) for by in shown]
    for breakdown in document.rates.by:
        by = tuple(breakdown.by)
        if by in wanted:
            yield from _breakdown(by, breakdown.rows)


def _breakdown(by: tuple[str, ...], rows: Sequence[StageRates]) -> Iterator[RenderableType]:
    dtypes = "dtype" in by
    kinds = DTYPE_COLUMNS if dtypes else dict(zip(STAGES, STAGES, strict=True))
    made = table(f"By {' and '.join(by)}", " ".join(by), *kinds.values())
    for row in rows[:MOST_ROWS]:
        made.add_row(label(row, by), *(stage_share(_rate(row, kind)) for kind in kinds))
    yield made
    if len(rows) > MOST_ROWS:
        yield Text(f"and {len(rows) - MOST_ROWS} more rows; all are in --json")
    if dtypes:
        stopped = sum(row.stopped_before for row in rows)
        if stopped:
            yield Text(
                f"{several(stopped, 'answer')} only partly tried in a dtype, whose share therefore "
                "has a lower and an upper bound"
            )


def _rate(row: StageRates, kind: str) -> RateRecord:
    rate: RateRecord = getattr(row, kind)
    return rate


def _unsolved(document: AnalyzeDocument) -> Iterator[RenderableType]:
    overall = document.unsolved.overall
    if overall.unsolved.denominator:
        made = table("Tasks that no method solves (95% interval)", "category", "unsolved")
        for row in document.unsolved.by_category:
            if row.unsolved.denominator:
                made.add_row(label(row, ("category",)), share_within(row.unsolved))
        made.add_section()
        made.add_row("all", share_within(overall.unsolved))
        yield made
    if overall.partial:
        yield Text(
            f"{overall.partial} more tasks lack a judged answer of some method and are left out"
        )


def _pass_at_k(document: AnalyzeDocument) -> Iterator[RenderableType]:
    rows = [row for row in document.pass_at_k if row.tasks]
    ks = sorted({row.k for row in rows})
    if not rows or ks == [1]:
        return
    made = table(
        "pass@k: mean over the tasks with k samples (95% interval)",
        "method",
        "tasks",
        *(f"k={k}" for k in ks),
    )
    for name in dict.fromkeys(label(row, METHOD) for row in rows):
        own = {row.k: row for row in rows if label(row, METHOD) == name}
        tasks = dict.fromkeys(str(own[k].tasks) for k in ks if k in own)
        made.add_row(name, ", ".join(tasks), *(_pass_cell(own.get(k)) for k in ks))
    yield made


def _pass_cell(row: PassAtK | None) -> str:
    if row is None:
        return UNKNOWN
    value = row.value
    return percent_within(value.value, value.low, value.high)


def _spending(document: AnalyzeDocument) -> Iterator[RenderableType]:
    """Show what a right answer takes, where anything of it is known."""
    rows = document.spending
    if all(s.total is None for row in rows for s in _takes(row)):
        return
    made = table(
        "What each right answer takes, with all wrong ones and rounds",
        "method",
        "right",
        "attempts",
        "tokens",
        "model's seconds",
        "cost",
        "judge's seconds between rounds",
    )
    for row in rows:
        made.add_row(
            label(row, METHOD), str(row.right), str(row.attempts), *map(_each_takes, _takes(row))
        )
    yield made


def _takes(row: SpendingRow) -> tuple[SpentSum, ...]:
    return row.tokens, row.seconds, row.cost, row.judge_seconds


def _each_takes(part: SpentSum) -> str:
    if part.per_success is not None:
        return f"{part.per_success:,.4g}"
    return f"{part.unknown} unknown" if part.unknown else UNKNOWN


def _by_baseline(rows: Sequence[SpeedRow]) -> Iterator[tuple[str, list[SpeedRow]]]:
    for baseline in dict.fromkeys(row.baseline for row in rows):
        yield baseline, [row for row in rows if row.baseline == baseline]


def _fast_p(document: AnalyzeDocument) -> Iterator[RenderableType]:
    # Show no category: they are in --json, and on the page.
    shown = [row for row in document.fast_p if row.category is UNSET]
    for baseline, rows in _by_baseline(shown):
        ps = sorted({row.p for row in rows})
        made = table(
            f"fast_p against {baseline}: answers that are right and more than p times as fast",
            "method",
            "of",
            *(f"p={p:g}" for p in ps),
        )
        for name in dict.fromkeys(label(row, METHOD) for row in rows):
            own = [row for row in rows if label(row, METHOD) == name]
            total = own[0].share.denominator
            cells = {row.p: row.share for row in own}
            made.add_row(name, str(total), *(_fast_cell(cells[p]) for p in ps))
        yield made
        untimed = rows[0].untimed
        if untimed:
            yield Text(f"{untimed} right answers have no time against {baseline}: not faster")


def _fast_cell(rate: RateRecord) -> str:
    return UNKNOWN if rate.rate is None else f"{rate.numerator} {percent(rate.rate)}"


def _speedups(document: AnalyzeDocument) -> Iterator[RenderableType]:
    for baseline, rows in _by_baseline(document.speedups):
        made = table(
            f"Speedup over {baseline} of right answers (95% interval over tasks)",
            "",
            "timed",
            "geometric mean",
            "below 1x",
            "surely slower / tie / faster",
        )
        for row in rows:
            # Show each category against one baseline only; the others are in --json.
            if row.timed and (row.category is UNSET or baseline == EAGER):
                made.add_row(
                    label(row, _group(row)),
                    f"{row.timed}/{row.correct}",
                    times_within(row.mean),
                    share(row.slower),
                    f"{row.surely_slower} / {row.ties} / {row.surely_faster}",
                )
        if made.row_count:
            yield made


def _group(row: GroupRecord) -> tuple[str, ...]:
    if row.device is not UNSET:
        return ("device",)
    return METHOD if row.method is not UNSET else ("category",)


def _efficiency(document: AnalyzeDocument) -> Iterator[RenderableType]:
    rows = [row for row in document.efficiency if row.category is UNSET]
    if not rows:
        return
    made = table("Share of the device's limit", "", "answers", "geometric mean", "median", "shapes")
    for row in rows:
        mean = row.mean
        made.add_row(
            label(row, _group(row)),
            str(row.known),
            percent_within(mean.value, mean.low, mean.high),
            percent(row.median),
            ", ".join(f"{n} {what}" for what, n in row.bound_by.items()),
        )
    yield made


def _illusions(document: AnalyzeDocument) -> Iterator[RenderableType]:
    found = document.illusions
    if not found.overall:
        return
    made = table(
        "Illusions: wrong kernels that a peer check certifies",
        "check",
        "of certified",
        "of the wrong",
        "right but refused",
    )
    # The kernels of an audit are chosen, not sampled.
    within = share_within if document.audit is None else share
    for row in found.overall:
        made.add_row(
            visible(row.check),
            within(row.illusions),
            share(row.of_wrong),
            share(row.false_alarms),
        )
    yield made
    yield Text(
        f"any peer check: {within(found.any_check)} of the wrong kernels that one decided "
        f"on; of {found.attempts} distinct kernels, every round of each answer among them"
    )
    findings = found.findings
    for illusion in findings[:FINDINGS_SHOWN]:
        kind = f" {illusion.kind}" if illusion.kind else ""
        plain = f", {TORCH_ONLY}" if illusion.torch_only else ""
        said = f"{illusion.verdict}{kind}{plain} ({illusion.place})"
        said += f", certified by {len(illusion.checks)}"
        where = illusion.finding or illusion.key
        yield Text(visible(f"{illusion.task}: {said}: {where}"))
    if len(findings) > FINDINGS_SHOWN:
        yield Text(f"and {len(findings) - FINDINGS_SHOWN} more; all are in --json")


def _exports(document: AnalyzeDocument) -> Iterator[RenderableType]:
    for path in document.exports:
        yield Text(f"written: {path}")
    for missing in document.missing:
        yield Text(f"not written: {missing}", "yellow")
    if document.bibtex:
        yield Text(document.bibtex)
