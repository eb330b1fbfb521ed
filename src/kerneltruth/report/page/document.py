"""The page as one plain document: everything that templates and the script show. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from kerneltruth.analysis.groups import methods_of
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import TORCH_ONLY
from kerneltruth.documents.analysis import AnalyzedRun
from kerneltruth.report.page.attempts import attempt_table
from kerneltruth.report.page.best import best_part, standings_part
from kerneltruth.report.page.embed import Packed, packed
from kerneltruth.report.page.explained import explained_part, portability_part
from kerneltruth.report.page.findings import attempt_detail
from kerneltruth.report.page.fooled import illusion_tables
from kerneltruth.report.page.gather import Gathered
from kerneltruth.report.page.heat import LEGEND, MARKS, heat_map
from kerneltruth.report.page.rates import by_category, by_dtype, funnel, pass_at, tiles
from kerneltruth.report.page.rounds import rounds_part
from kerneltruth.report.page.speed import light, speed_parts
from kerneltruth.report.page.wording import count, label, shortened, visible

SCHEMA = 1
# Together with the rest of a page of 10,000 attempts these stay under 15 MB.
MOST_DETAIL_BYTES = 4 * 10**6
MOST_SOURCE_BYTES = 7 * 10**6
MOST_SOURCE_CHARACTERS = 60_000
MOST_SAID = 140
MOST_NOTE = 600
KEPT = {"best": "best round of each answer", "last": "last round of each answer"}


def page_document(
    gathered: Gathered, *, title: str | None = None, ranks: bool = False, seed: int = 0
) -> dict[str, Any]:
    """The document of the page on runs.

    Args:
        gathered: what was read of them.
        title: None names the runs.
        ranks: whether methods are ranked, and the best kernels of each task shown.
        seed: of the resampling behind the deviance.
    """
    study = gathered.study
    details = packed(_details(gathered), most_bytes=MOST_DETAIL_BYTES)
    sources = packed(map(_source, gathered.sources.values()), most_bytes=MOST_SOURCE_BYTES)
    numbers = {sha: i for i, sha in enumerate(gathered.sources) if i < sources.count}
    return {
        "schema": SCHEMA,
        "kind": "leaderboard" if ranks else "report",
        "title": label(title or _title(study.runs)),
        "counts": counts(study),
        "corpus": study.of_corpus,
        "kept": KEPT[study.kept],
        "runs": [run_facts(run) for run in study.runs],
        "notes": _notes(gathered, details, sources),
        **_sections(study, seed),
        "standings": standings_part(study) if ranks else None,
        "best": best_part(study) if ranks else None,
        "data": {
            **attempt_table(study, numbers, _said(gathered)),
            "marks": MARKS,
            "details": list(details.starts),
            "sources": list(sources.starts),
        },
        "parts": {"details": list(details.parts), "sources": list(sources.parts)},
    }


def _sections(study: Study, seed: int) -> dict[str, Any]:
    answers = study.answers
    return {
        "tiles": tiles(study),
        "heat": heat_map(answers),
        "legend": [{"mark": MARKS[word], "word": word, "said": said} for word, said in LEGEND],
        "by_category": by_category(answers),
        "by_dtype": by_dtype(study),
        "funnel": funnel(answers),
        "pass_at": None if study.of_corpus else pass_at(answers),
        "speeds": speed_parts(answers),
        "light": light(answers),
        "rounds": rounds_part(study),
        "illusions": illusion_tables(study),
        "explained": explained_part(study, seed=seed),
        "portability": portability_part(study),
    }


def counts(study: Study) -> dict[str, int]:
    """How much of everything there is."""
    return {
        "runs": len(study.runs),
        "attempts": len(study.attempts),
        "distinct": len(study.distinct),
        "answers": len(study.answers),
        "tasks": len({r.task for r in study.answers}),
        "categories": len({r.category for r in study.answers}),
        "methods": len(methods_of(study.answers)),
        "findings": sum(r.finding is not None for r in study.attempts),
    }


def run_facts(run: AnalyzedRun) -> dict[str, Any]:
    """What a run says of itself, as text."""
    return {name: None if value is None else label(str(value)) for name, value in _of(run)}


def _of(run: AnalyzedRun) -> list[tuple[str, Any]]:
    facts = asdict(run)
    return [(name, count(value) if name == "attempts" else value) for name, value in facts.items()]


def _title(runs: Sequence[AnalyzedRun]) -> str:
    names = [Path(run.path).name or run.path for run in runs]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _details(gathered: Gathered) -> Iterator[dict[str, Any]]:
    study = gathered.study
    for r in study.attempts:
        finding = gathered.findings.get((r.run, r.finding or ""))
        yield attempt_detail(r, study.runs[r.run].path, finding)


def _said(gathered: Gathered) -> list[str]:
    """Of each attempt what is wrong with it, in a few words; and that it has no kernel."""
    found = []
    for r in gathered.study.attempts:
        finding = gathered.findings.get((r.run, r.finding or ""))
        text = (finding.explanation if finding else "") or r.detail
        wrong = "" if r.correct else shortened(visible(text.partition("\n")[0]), MOST_SAID)
        plain = r.language == TORCH_ONLY
        found.append(": ".join(filter(None, [TORCH_ONLY if plain else "", wrong])))
    return found


def _source(text: str) -> str:
    """A source as it is, but for its length; the script spells out what cannot be seen."""
    if len(text) <= MOST_SOURCE_CHARACTERS:
        return text
    left = len(text) - MOST_SOURCE_CHARACTERS
    return text[:MOST_SOURCE_CHARACTERS] + f"\n# ... {left} more characters, left out here"


def _notes(gathered: Gathered, details: Packed, sources: Packed) -> list[str]:
    notes = [*gathered.study.notes, *gathered.notes]
    left = len(gathered.study.attempts) - details.count
    if left:
        notes.append(f"details of {count(left)} attempts are left out to keep the page small")
    left = len(gathered.sources) - sources.count
    if left:
        notes.append(
            f"{count(left)} of {count(len(gathered.sources))} sources are left out to keep the "
            "page small; they are in the runs' folders `candidates`"
        )
    return [shortened(visible(note), MOST_NOTE) for note in notes]
