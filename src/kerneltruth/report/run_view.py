"""Render `run`: outcomes by stage, passes by category, and what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kerneltruth.documents.runs import RunCandidate, RunDocument
from kerneltruth.report.exit_codes import is_wrong
from kerneltruth.report.figures import several, table
from kerneltruth.report.harmless import visible

MOST_BROKEN = 20
STATUSES = ("held", "broken", "refused", "not_tried")
MOST_FAILING = 20
MOST_REASON = 200
MOST_REASONS = 10
# Verdicts that judge nothing, with an explanation.
_NOT_JUDGED = {
    "unsupported_here": "",
    "unrefereeable": "",
    "infra": ": this machine failed twice at each; this says nothing about them",
}


def run_view(document: RunDocument) -> RenderableType:
    """Return tables of counts, each with its denominator."""
    parts: list[RenderableType] = [_stages(document), _categories(document)]
    if document.obligations:
        parts.append(_obligations(document))
    parts += _failing(document)
    broken = document.broken
    for item in broken[:MOST_BROKEN]:
        parts.append(Text(f"not read: {item.where}: {item.why}", "yellow"))
    if len(broken) > MOST_BROKEN:
        parts.append(Text(f"not read: {len(broken) - MOST_BROKEN} more, all in --json", "yellow"))
    parts += _not_judged(document)
    plain = document.torch_only
    if plain.attempts:
        counts = f"{plain.attempts} of {several(document.attempts, 'attempt')}"
        parts.append(Text(f"{counts} torch-only, without a kernel: {plain.right} right"))
    parts += _second_rounds(document)
    parts += _device_time(document)
    for b in document.no_valid_baseline:
        said = f"{b.task} {b.shape}: {b.baseline} is {visible(b.why)}"
        parts.append(Text(f"{said} ({several(b.candidates, 'candidate')})", "yellow"))
    if document.repeated_sources:
        repeats = "attempt repeats" if document.repeated_sources == 1 else "attempts repeat"
        parts.append(Text(f"{document.repeated_sources} {repeats} the source of another"))
    rate = document.attempts_per_hour
    speed = f" ({rate:,.0f} attempts/hour)" if rate else ""
    parts.append(
        Text(
            f"{several(document.attempts, 'attempt')} in {document.seconds:.1f} s{speed} "
            f"on {document.device}, seed {document.seed}"
        )
    )
    parts.append(Text(f"run: {document.run}"))
    return Group(*parts)


def _device_time(document: RunDocument) -> Iterator[Text]:
    """Count whose kernels take the device's time, of candidates where it is known."""
    known = [c.own_time for c in document.candidates if c.own_time is not None]
    if known:
        own, library = known.count(1.0), known.count(0.0)
        counts = {"own": own, "shared": len(known) - own - library, "library": library}
        said = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
        yield Text(f"the device's time of {several(len(known), 'timed candidate')}: {said}")


def _second_rounds(document: RunDocument) -> Iterator[Text]:
    """Count the right candidates that were judged again, and those that did not pass again."""
    own = [c.second_round for c in document.candidates if c.same_as is None]
    rounds = [round_ for round_ in own if round_ is not None]
    if rounds:
        why, ended = _counted(r.reason for r in rounds), _counted(r.verdict for r in rounds)
        count = several(len(rounds), "right candidate")
        yield Text(f"judged in a second round: {count} ({why}): {ended}")


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{word} {count}" for word, count in Counter(words).most_common())


def _failing(document: RunDocument) -> Iterator[Text]:
    failing = [c for c in document.candidates if is_wrong(c.verdict)]
    if failing:
        yield Text(f"not right: {len(failing)} of {len(document.candidates)} candidates", "bold")
    for c in failing[:MOST_FAILING]:
        name = c.name.rpartition("@")[0] or c.name
        yield Text.assemble(("FAILED ", "red"), visible(f"{name}  {_why(c)}"))
        if c.finding:
            yield Text(visible(f"  {document.run}/findings/{c.finding}"), "dim")
    if len(failing) > MOST_FAILING:
        yield Text(f"and {len(failing) - MOST_FAILING} more; all are in --json, by `candidates`")


def _why(candidate: RunCandidate) -> str:
    """Return the obligation that a candidate loses by, the verdict unless it is `fail`, and why."""
    kind = candidate.kind if candidate.verdict == "fail" else candidate.verdict
    named = kind if candidate.verdict != "fail" or not candidate.reason else None
    plain = "torch-only" if candidate.torch_only else None
    parts = (candidate.obligation, named, plain, candidate.reason[:MOST_REASON])
    return ": ".join(part for part in parts if part)


def _not_judged(document: RunDocument) -> Iterator[Text]:
    """Count the candidates that cannot be judged here by reason, most frequent first."""
    for verdict, meaning in _NOT_JUDGED.items():
        reasons = Counter(
            c.reason[:MOST_REASON] for c in document.candidates if c.verdict == verdict
        )
        if reasons:
            count = f"{reasons.total()} of {len(document.candidates)} candidates"
            yield Text(f"not judged: {count} (`{verdict}`){meaning}", "yellow")
        for reason, n in reasons.most_common(MOST_REASONS):
            yield Text(visible(f"  {n}: {reason}"), "yellow")
        if len(reasons) > MOST_REASONS:
            yield Text(f"  and {len(reasons) - MOST_REASONS} more reasons; all are in --json")


def _stages(document: RunDocument) -> Table:
    rows = table(None, "stage", "outcome", "attempts", words=("outcome",))
    for stage, counts in document.stages.items():
        total = sum(counts.values())
        for outcome, count in sorted(counts.items(), key=lambda item: -item[1]):
            rows.add_row(stage, outcome, f"{count} of {total}")
    return rows


def _categories(document: RunDocument) -> Table:
    rows = table(None, "category", "right")
    for name, counts in document.by_category.items():
        rows.add_row(name, f"{counts.right} of {counts.attempts}")
    return rows


def _obligations(document: RunDocument) -> Table:
    """Count candidates that hold, break and refuse each obligation, among those that have it."""
    rows = table(None, "obligation", *(status.replace("_", " ") for status in STATUSES))
    for name, counts in document.obligations.items():
        own = [getattr(counts, status) for status in STATUSES]
        if any(own):
            rows.add_row(name, *(str(count or "") for count in own))
    return rows
