"""Render `check`, `replay` and `minimize`."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kerneltruth.documents.checks import (
    CheckDocument,
    ChecksDocument,
    DeclinedCase,
    MinimizeDocument,
    ObligationDocument,
    RefusedFile,
    ReplayDocument,
)
from kerneltruth.documents.profiles import said_of_untried
from kerneltruth.report.figures import PLAIN_TORCH, pairs, several
from kerneltruth.report.kernel_words import whose_work

DECLINED_SHOWN = 3
READS_SHOWN = 6
_STYLES = {"pass": "bold green", "unsupported_here": "yellow", "infra": "yellow"}
OWN_WEIGHTS = "drawn by its constructor, at the reference's seed"


def check_view(document: CheckDocument) -> RenderableType:
    """Show the verdict first, then its evidence."""
    table = pairs()
    _verdict(table, document)
    _failure(table, document)
    _contract(table, document)
    _task(table, document)
    table.add_row("cases", f"{document.cases} judged, {document.failed} failed")
    _profile(table, {k: e for k, e in document.profile.items() if k != "kernel"})
    _work(table, document)
    _second_round(table, document)
    _declined(table, document.declined)
    _noted(table, document)
    _not_judged(table, document)
    _figures(table, document)
    if document.finding:
        table.add_row("finding", document.finding)
    table.add_row("took", f"{document.seconds:.1f} s, seed {document.seed}")
    if not document.finding:
        return table
    # On a line of its own, which no terminal breaks, so that it can be copied.
    following = f"kerneltruth minimize {shlex.quote(document.finding)}"
    return Group(
        table, Text.assemble(("next:", "bold"), f" {following}", no_wrap=True, overflow="ignore")
    )


def file_view(path: str, ended: CheckDocument | RefusedFile) -> RenderableType:
    """Show one of several files: its path, then its verdict or why there is none."""
    head = Text(path, style="bold")
    if isinstance(ended, RefusedFile):
        # A reason begins with the path, where it can.
        said = ended.reason.removeprefix(f"{path}: ")
        return Group(Text.assemble(head, (": refused: ", "bold red"), said, overflow="fold"))
    return Group(head, check_view(ended))


def counts_view(document: ChecksDocument) -> RenderableType:
    """Return the last line of several files: how many ended in which way."""
    counts = document.counts
    named = {
        "passed": (counts.passed, "bold green"),
        "failed": (counts.failed, "bold red"),
        "not judged": (counts.not_judged, "yellow"),
        "refused": (counts.refused, "bold red"),
    }
    parts = [(f"{count} {name}", style) for name, (count, style) in named.items() if count]
    between = [piece for part in parts for piece in (", ", part)][1:]
    return Text.assemble(*between, f" in {document.seconds:.1f} s")


def _second_round(table: Table, document: CheckDocument) -> None:
    """Say how a second round ended, on which cases, and why there was one."""
    round_ = document.second_round
    if round_ is None:
        return
    ended = "passed again" if round_.verdict == "pass" else f"{round_.verdict} after a pass"
    facts = "; ".join(suspicion.detail for suspicion in document.suspicions)
    words = {"asked": "--twice", "drawn": "drawn at random", "suspect": f"suspect: {facts}"}
    why = words[round_.reason]
    cases = several(round_.cases, "other case")
    table.add_row("again", f"{ended}: {cases} of seed {round_.seed} ({why})")


def _some(files: Sequence[str]) -> str:
    shown = ", ".join(files[:READS_SHOWN])
    return shown if len(files) <= READS_SHOWN else f"{shown}, and {len(files) - READS_SHOWN} more"


def _verdict(table: Table, document: CheckDocument) -> None:
    verdict = document.verdict + (f" ({document.kind})" if document.kind else "")
    if document.torch_only:
        verdict += f", {PLAIN_TORCH}"
    table.add_row("verdict", Text(verdict, style=_STYLES.get(document.verdict, "bold red")))


def _failure(table: Table, document: CheckDocument) -> None:
    """Say what is wrong, on which case, why, and on which smallest case."""
    if document.detail:
        table.add_row("", document.detail.strip())
    if document.failing_summary:
        table.add_row("on", f"{document.failing_summary} ({document.domain} domain)")
    if document.explanation and document.explanation != document.detail:
        table.add_row("because", document.explanation.strip())
    _smallest(table, document)


def _task(table: Table, document: CheckDocument) -> None:
    table.add_row("task", document.task)
    if document.also_in:
        others = ", ".join(document.also_in)
        table.add_row("", f"this name also means {others}; choose with --task")


def _not_judged(table: Table, document: CheckDocument) -> None:
    """Count the cases that say nothing of the kernel, by reason."""
    for reason, count in document.void.items():
        table.add_row("void", f"{count}: {reason}")
    for reason, count in (*document.unrefereeable.items(), *document.skipped.items()):
        table.add_row("not judged", f"{count}: {reason}")


def _figures(table: Table, document: CheckDocument) -> None:
    if document.worst_ratio is not None and document.verdict == "pass":
        table.add_row("margin", f"largest error is {document.worst_ratio:.2f} of its bound")
    if document.score is not None:
        table.add_row("score", f"{document.score:.3f}")
    if document.binaries:
        built = sum(b.ok for b in document.binaries)
        targets = ", ".join(sorted({b.target for b in document.binaries}))
        table.add_row("compiled", f"{built} specializations for {targets}")


def _contract(table: Table, document: CheckDocument) -> None:
    if document.contract:
        table.add_row("contract", document.contract)
    for hazard in document.hazards:
        table.add_row("hazard", Text(hazard, style="yellow"))


def _smallest(table: Table, document: CheckDocument | MinimizeDocument) -> None:
    if document.minimal_summary:
        table.add_row("smallest", document.minimal_summary)
        if document.minimal_shown:
            table.add_row("", document.minimal_shown)


def _profile(table: Table, profile: Mapping[str, ObligationDocument]) -> None:
    """List held obligations in a row, broken and refused ones with a case, the rest by reason."""
    by_status: defaultdict[str, dict[str, ObligationDocument]] = defaultdict(dict)
    for key, entry in profile.items():
        by_status[entry.status][key] = entry
    if by_status["held"]:
        table.add_row("held", ", ".join(by_status["held"]))
    for key, entry in by_status["held"].items():
        notes = [entry.reason] if entry.reason else []
        if entry.untried:
            notes += [several(entry.cases, "case"), said_of_untried(entry.untried)]
        if notes:
            table.add_row("", f"{key}: {'; '.join(notes)}")
    for status in ("broken", "refused"):
        for key, entry in by_status[status].items():
            if status == "broken" and not entry.decisive:
                continue
            said = entry.kind or entry.reason or entry.detail
            table.add_row(status, f"{key}: {said} on {entry.case_summary}")
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for key, entry in by_status["not_tried"].items():
        reasons[entry.reason or ""].append(key)
    for reason, keys in reasons.items():
        table.add_row("not tried", f"{', '.join(keys)}: {reason}")


def _work(table: Table, document: CheckDocument) -> None:
    if document.kernel is not None:
        table.add_row("kernel", whose_work(document.kernel))


def _noted(table: Table, document: CheckDocument) -> None:
    if document.candidate.reads:
        table.add_row("reads", _some(document.candidate.reads))
    if document.own_weights:
        table.add_row("weights", f"{OWN_WEIGHTS}: {document.own_weights}")
    for note in document.interface:
        where = f"{note.cases} cases, {note.core} of the core, first {note.first_summary}"
        table.add_row("form", f"{note.output}: {note.detail}; values right ({where})")


def _declined(table: Table, declined: Sequence[DeclinedCase]) -> None:
    if not declined:
        return
    table.add_row("declined", f"{len(declined)} cases of the extended domain, not counted as wrong")
    for entry in declined[:DECLINED_SHOWN]:
        table.add_row("", f"{entry.case}: {entry.reason.splitlines()[0]}")
    if len(declined) > DECLINED_SHOWN:
        table.add_row("", f"and {len(declined) - DECLINED_SHOWN} more; see --json")


def replay_view(document: ReplayDocument) -> RenderableType:
    """Return a line per finding, then the count."""
    table = pairs()
    for result in document.results:
        state = "reproduced" if result.reproduced else "NOT REPRODUCED"
        style = "green" if result.reproduced else "bold red"
        said = f"inputs {result.inputs}, output {result.output}"
        if result.verdict:
            kind = f" {result.kind}" if result.kind else ""
            said = f"{result.verdict}{kind}, {said}"
        if result.obligations:
            said = f"{', '.join(result.obligations)}: {said}"
        if result.reason:
            said += f": {result.reason}"
        table.add_row(result.id, Text(state, style=style), said)
        if result.errors is not None:
            files = ", ".join(result.errors)
            table.add_row("", "", files or "no errors: no output of the right form came back")
    count = f"{document.reproduced} of {document.findings} reproduced on {document.device}"
    table.add_row("", "", count)
    return table


def minimize_view(document: MinimizeDocument) -> RenderableType:
    """Show the smallest case and the script."""
    table = pairs()
    verdict = document.verdict + (f" ({document.kind})" if document.kind else "")
    table.add_row("verdict", verdict)
    if document.obligations:
        table.add_row("breaks", ", ".join(document.obligations))
    _smallest(table, document)
    table.add_row("because", document.explanation)
    table.add_row("tried", f"{document.evaluations} cases")
    table.add_row("script", document.script)
    return table
