"""The page as one document: all that templates and the script show. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kerneltruth.analysis.groups import METHOD, methods_of
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.study import CATEGORY, tables
from kerneltruth.documents.analysis import AnalyzedRun
from kerneltruth.report.page.attempts import PageData, page_data
from kerneltruth.report.page.audit import AuditPart, audit_part
from kerneltruth.report.page.beside import BesidePart, beside_part
from kerneltruth.report.page.cells import PageTable
from kerneltruth.report.page.charts import StepChart
from kerneltruth.report.page.deviance import DeviancePart, deviance_part
from kerneltruth.report.page.devices import DevicesPart, devices_part
from kerneltruth.report.page.embed import Packed, packed
from kerneltruth.report.page.endings import endings_table
from kerneltruth.report.page.findings import AttemptDetail, attempt_detail
from kerneltruth.report.page.illusions import illusion_tables
from kerneltruth.report.page.leaderboard import best_part, leaderboard_part
from kerneltruth.report.page.material import PageMaterial
from kerneltruth.report.page.rates import (
    DTYPES,
    Tile,
    budget_curve,
    budgets,
    by_category,
    by_dtype,
    funnel,
    pass_at,
    tiles,
)
from kerneltruth.report.page.rounds import RoundsPart, rounds_part
from kerneltruth.report.page.sentences import sentences
from kerneltruth.report.page.speed import SpeedPart, efficiency_table, speed_parts
from kerneltruth.report.page.survival import SurvivalPart, places_table, survival_part
from kerneltruth.report.page.techniques import techniques_table
from kerneltruth.report.page.verdict_map import VerdictMap, verdict_map
from kerneltruth.report.page.wording import count, label, shortened, visible

# Together with the rest of a page of 10,000 attempts these stay under 15 MB.
MOST_DETAIL_BYTES = 4 * 10**6
MOST_SOURCE_BYTES = 7 * 10**6
MOST_SOURCE_CHARACTERS = 60_000
MOST_SAID = 140
MOST_NOTE = 600
KEPT = {"best": "best round of each answer", "last": "last round of each answer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCounts:
    """How much of everything there is."""

    runs: int
    attempts: int
    distinct: int
    answers: int
    tasks: int
    categories: int
    methods: int
    findings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything that the page's template shows; text is visible and cut to length.

    Attributes:
        audit: None unless the runs are audits of the built-in corpus alone.
        survival: None where no peer check certifies a kernel.
        beside: None if runs are not set side by side.
        leaderboard: None if methods are not ranked; likewise `best`.
        details: compressed parts, which the script unpacks as they are needed; likewise `sources`.
    """

    kind: str
    title: str
    counts: PageCounts
    corpus: bool
    kept: str
    runs: Sequence[AnalyzedRun]
    notes: Sequence[str]
    audit: AuditPart | None
    sentences: Sequence[str]
    endings: PageTable | None
    survival: SurvivalPart | None
    tiles: Sequence[Tile]
    heat: VerdictMap
    by_category: PageTable
    by_dtype: PageTable
    funnel: PageTable
    pass_at: PageTable | None
    budget: StepChart | None
    speeds: Sequence[SpeedPart]
    efficiency: PageTable | None
    rounds: RoundsPart | None
    illusions: Sequence[PageTable]
    deviance: DeviancePart
    devices: DevicesPart | None
    beside: BesidePart | None
    leaderboard: Sequence[PageTable] | None
    best: Sequence[PageTable] | None
    data: PageData
    details: Packed
    sources: Packed


def page_document(
    material: PageMaterial,
    *,
    title: str | None = None,
    ranks: bool = False,
    compare: bool = False,
    seed: int = 0,
    most_detail_bytes: int = MOST_DETAIL_BYTES,
    most_source_bytes: int = MOST_SOURCE_BYTES,
) -> Page:
    """Make the document of the page on runs.

    Methods are ranked, and the best kernels of each task shown, with `ranks`; with `compare` the
    runs are set side by side. Details and sources that take more bytes, compressed, are left out.

    Raises:
        UserError: `compare` has fewer than two runs.
    """
    study, answers = material.study, material.study.answers
    found = tables(study, crossings=(CATEGORY, METHOD, DTYPES), ks=budgets(answers), seed=seed)
    details = packed(_details(material), most_bytes=most_detail_bytes)
    sources = packed(map(_source, material.sources.values()), most_bytes=most_source_bytes)
    numbers = {sha: i for i, sha in enumerate(material.sources) if i < sources.count}
    return Page(
        kind="audit" if study.of_corpus else "leaderboard" if ranks else "report",
        title=label(title or _title(study.runs)),
        counts=counts(study),
        corpus=study.of_corpus,
        kept=KEPT[study.kept],
        runs=study.runs,
        notes=_notes(material, details, sources),
        audit=audit_part(study),
        sentences=sentences(found, answers),
        endings=endings_table(found, answers),
        survival=survival_part(found),
        tiles=tiles(found, answers),
        heat=verdict_map(answers),
        by_category=by_category(found),
        by_dtype=by_dtype(found),
        funnel=funnel(found, answers),
        pass_at=pass_at(found),
        budget=budget_curve(answers),
        speeds=speed_parts(found, study),
        efficiency=efficiency_table(found.efficiency),
        rounds=rounds_part(found.trajectories),
        illusions=[*places_table(found.illusion_places), *illusion_tables(found.illusions)],
        deviance=deviance_part(found.deviance),
        devices=devices_part(found.portability),
        beside=beside_part(study) if compare else None,
        leaderboard=leaderboard_part(study) if ranks else None,
        best=[*best_part(study), *techniques_table(study, material.sources)] if ranks else None,
        data=page_data(
            study,
            _said(material),
            numbers=numbers,
            details=details.starts,
            sources=sources.starts,
        ),
        details=details,
        sources=sources,
    )


def counts(study: Study) -> PageCounts:
    """Count runs, attempts, answers and what they are of."""
    return PageCounts(
        runs=len(study.runs),
        attempts=len(study.attempts),
        distinct=len(study.distinct),
        answers=len(study.answers),
        tasks=len({r.task for r in study.answers}),
        categories=len({r.category for r in study.answers}),
        methods=len(methods_of(study.answers)),
        findings=sum(r.finding is not None for r in study.attempts),
    )


def _title(runs: Sequence[AnalyzedRun]) -> str:
    names = [Path(run.path).name or run.path for run in runs]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _details(material: PageMaterial) -> Iterator[AttemptDetail]:
    study = material.study
    for r in study.attempts:
        name = (r.run, r.finding or "")
        finding, script = material.findings.get(name), material.scripts.get(name)
        yield attempt_detail(r, study.runs[r.run].path, finding, script=script)


def _said(material: PageMaterial) -> list[str]:
    found = []
    for r in material.study.attempts:
        finding = material.findings.get((r.run, r.finding or ""))
        text = (finding.explanation if finding else "") or r.detail
        wrong = "" if r.correct else shortened(visible(text.partition("\n")[0]), MOST_SAID)
        found.append(wrong)
    return found


def _source(text: str) -> str:
    """Cut a source to length; the script spells out what cannot be seen."""
    if len(text) <= MOST_SOURCE_CHARACTERS:
        return text
    left = len(text) - MOST_SOURCE_CHARACTERS
    return text[:MOST_SOURCE_CHARACTERS] + f"\n# ... {left} more characters, left out here"


def _notes(material: PageMaterial, details: Packed, sources: Packed) -> list[str]:
    notes = [*material.study.notes, *material.notes]
    left = len(material.study.attempts) - details.count
    if left:
        notes.append(f"details of {count(left)} attempts are left out to keep the page small")
    left = len(material.sources) - sources.count
    if left:
        notes.append(
            f"{count(left)} of {count(len(material.sources))} sources are left out to keep the "
            "page small; they are in the runs' folders `candidates`"
        )
    return [shortened(visible(note), MOST_NOTE) for note in notes]
