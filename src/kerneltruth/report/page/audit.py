"""The page's part on an audit: which bugs the judge caught, and which controls it flagged. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kerneltruth.analysis.illusions import is_caught, silently_broken
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import Result
from kerneltruth.analysis.selection import failed_obligations
from kerneltruth.corpus import ENTRIES, Entry
from kerneltruth.report.page.cells import PageTable, TableRow, column, row, table, text, whole
from kerneltruth.report.page.wording import DASH, count, label

JudgedEntry = tuple[Entry, Result]
_KERNELS = {entry.name: entry for entry in ENTRIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPart:
    """What an audit found, in words and tables.

    Attributes:
        said: the result in a sentence.
        tables: by obligation, bug, control that is flagged, and peer check.
    """

    said: str
    tables: Sequence[PageTable]


def audit_part(study: Study) -> AuditPart | None:
    """Make the part; None unless the runs are audits of the built-in corpus alone."""
    if not study.of_corpus:
        return None
    known = [(_KERNELS[r.key], r) for r in study.attempts if r.key in _KERNELS]
    bugs = [(e, r) for e, r in known if e.role == "bug"]
    controls = [(e, r) for e, r in known if e.role == "control"]
    flagged = [(e, r) for e, r in controls if _flags(r)]
    missed = [each for each in bugs if not _is_caught(each)]
    caught = len(bugs) - len(missed)
    return AuditPart(
        said=(
            f"{count(caught)} of {count(len(bugs))} planted bugs are caught by the obligation that "
            f"they break; {count(len(controls) - len(flagged))} of {count(len(controls))} "
            "controls, which are right, are clean."
        ),
        tables=[
            *([_by_obligation(bugs)] if bugs else []),
            *([_missed(missed)] if missed else []),
            *([_flagged(flagged)] if flagged else []),
            *([_by_check(bugs, controls)] if any(r.checks for _, r in known) else []),
            *([_bugs(bugs)] if bugs else []),
        ],
    )


def _is_caught(judged: JudgedEntry) -> bool:
    return is_caught(judged[1])


def _flags(result: Result) -> str:
    """Return what a control is flagged for: its verdict, or what is silently wrong beyond it."""
    if not result.correct:
        return result.verdict_in_words
    return ", ".join(silently_broken(result))


def _by_obligation(bugs: Sequence[JudgedEntry]) -> PageTable:
    rows = []
    for obligation in sorted({e.breaks or "" for e, _ in bugs}):
        own = [each for each in bugs if each[0].breaks == obligation]
        hits = sum(map(_is_caught, own))
        rows.append(row(obligation, [whole(len(own)), whole(hits), whole(len(own) - hits)]))
    columns = [column("obligation", number=False), *map(column, ("bugs", "caught", "missed"))]
    return table("audit-obligations", "Planted bugs by the obligation they break.", columns, rows)


def _missed(missed: Sequence[JudgedEntry]) -> PageTable:
    return table(
        "audit-missed", "Bugs that were missed.", _BUG_COLUMNS, list(map(_bug_row, missed))
    )


def _bugs(bugs: Sequence[JudgedEntry]) -> PageTable:
    rows = [_bug_row(each) for each in sorted(bugs, key=lambda each: each[0].name)]
    return table("audit-bugs", "All planted bugs.", _BUG_COLUMNS, rows)


_BUG_COLUMNS = [
    column(name, number=False)
    for name in (
        "bug",
        "what is wrong",
        "breaks",
        "caught",
        "what the judge says",
        "peers' checks that pass it",
    )
]


def _bug_row(judged: JudgedEntry) -> TableRow:
    entry, result = judged
    checks = [*result.checks.values()]
    passed = f"{checks.count('pass')} of {len(checks)}" if checks else DASH
    verdict, broken = result.verdict_in_words, ", ".join(failed_obligations(result))
    return row(
        entry.name,
        [
            text(entry.fault or ""),
            text(entry.breaks or ""),
            text("yes" if _is_caught(judged) else "no"),
            text(f"{verdict}; breaks {broken}" if broken else verdict),
            text(passed, value=checks.count("pass")),
        ],
    )


def _flagged(flagged: Sequence[JudgedEntry]) -> PageTable:
    rows = [row(e.name, [text(_flags(r)), text(label(r.detail) or DASH)]) for e, r in flagged]
    columns = [column(name, number=False) for name in ("control", "flagged for", "reason")]
    return table("audit-controls", "Controls that were flagged.", columns, rows)


def _by_check(bugs: Sequence[JudgedEntry], controls: Sequence[JudgedEntry]) -> PageTable:
    """Count, for each peer check, the bugs that it fails and the controls that it does not pass."""
    rows = []
    for check in sorted({name for _, r in (*bugs, *controls) for name in r.checks}):
        of_bugs = [r.checks[check] for _, r in bugs if check in r.checks]
        of_controls = [r.checks[check] for _, r in controls if check in r.checks]
        passed = of_bugs.count("pass")
        cells = [len(of_bugs), len(of_bugs) - passed, passed, of_controls.count("fail")]
        rows.append(row(label(check), list(map(whole, cells))))
    names = ("bugs", "not passed", "passed", "controls failed")
    columns = [column("peer check", number=False), *map(column, names)]
    return table("audit-checks", "The same kernels under peers' checks.", columns, rows)
