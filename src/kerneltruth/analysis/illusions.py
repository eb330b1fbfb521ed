"""Illusions: kernels that a peer's check certifies and the judge rejects. Pure.

All distinct attempts of a study count, in every round. Answers alone would be biased: the judge's
verdict chooses the round that counts, which leaves out the very kernels in question.
"""

from __future__ import annotations

from collections.abc import Sequence

from kerneltruth.analysis.groups import grouped, labels
from kerneltruth.analysis.intervals import clustered_rate
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import PASSED, Result
from kerneltruth.analysis.selection import failed_obligations
from kerneltruth.corpus import ENTRIES
from kerneltruth.documents.contracts import TEXTS, ContractText
from kerneltruth.documents.estimates import RateRecord
from kerneltruth.documents.model import model_of
from kerneltruth.documents.rates import AuditedKernels, IllusionRates, IllusionRecord, Place


def checks_of(results: Sequence[Result]) -> tuple[str, ...]:
    """Return the peer checks that decided on any result."""
    return tuple(sorted({name for r in results for name in r.checks}))


def rejected(result: Result) -> bool:
    """Return whether the judge found the kernel wrong, or it did not return."""
    return result.judged and not result.correct


def decided_on(result: Result, check: str | None = None) -> bool:
    """Return whether a peer check, or any, decided on the kernel."""
    said = result.checks.values() if check is None else (result.checks.get(check),)
    return any(word in _DECIDED for word in said)


_DECIDED = (PASSED, "fail")


def illusion_rates(study: Study, by: Sequence[str] = ()) -> tuple[IllusionRates, ...]:
    """Count for each peer check and group the share of certified kernels that are wrong."""
    rows = []
    groups = grouped((r for r in study.distinct if r.checks), by)
    for check in checks_of(study.distinct):
        for group, members in groups.items():
            decided = [r for r in members if decided_on(r, check)]
            certified = [r for r in decided if r.checks[check] == PASSED]
            refused = [r for r in decided if r.checks[check] != PASSED]
            wrong = [r for r in decided if rejected(r)]
            if decided:
                rows.append(
                    IllusionRates(
                        check=check,
                        **labels(by, group),
                        illusions=clustered_rate((r.task, rejected(r)) for r in certified),
                        of_wrong=clustered_rate((r.task, r.checks[check] == PASSED) for r in wrong),
                        false_alarms=clustered_rate((r.task, r.correct) for r in refused),
                        not_judged=sum(not r.judged for r in certified),
                    )
                )
    return tuple(rows)


def illusion_share(study: Study) -> RateRecord:
    """Return the share of wrong kernels that any peer check certifies, of those decided on."""
    wrong = [r for r in study.distinct if rejected(r) and decided_on(r)]
    return clustered_rate((r.task, PASSED in r.checks.values()) for r in wrong)


def is_illusion(result: Result) -> bool:
    """Return whether a peer check certifies a kernel that the judge rejects."""
    return PASSED in result.checks.values() and rejected(result)


def place_of(result: Result) -> Place | None:
    """Return where a kernel is wrong, the place that promises most first; None for nowhere."""
    published = result.profile.get("published")
    if published is not None and published.status in ("broken", "refused"):
        return "published"
    parts = result.profile.values()
    if any(p.promised and p.status in ("broken", "refused") for p in parts):
        return "core"
    if any(p.status == "broken" for name, p in result.profile.items() if name != "kernel"):
        return "beyond"
    return "unknown" if rejected(result) else None


def illusions(study: Study) -> tuple[IllusionRecord, ...]:
    """List every illusion among the distinct kernels, in the order of the results."""
    return tuple(_illusion(r, study) for r in study.distinct if is_illusion(r))


def contracts_of(study: Study) -> dict[str, ContractText]:
    """Return the contracts that decided, by name, each with its reason and source."""
    named: set[str] = {r.contract for r in study.distinct}
    return {name: text for name, text in TEXTS.items() if name in named}


def _illusion(result: Result, study: Study) -> IllusionRecord:
    run = study.runs[result.run].path
    return model_of(
        IllusionRecord,
        result,
        run=run,
        checks=tuple(sorted(name for name, says in result.checks.items() if says == PASSED)),
        obligations=failed_obligations(result),
        place=place_of(result),
        finding=None if result.finding is None else f"{run}/findings/{result.finding}",
    )


CONTROL, BUG = "control", "bug"
_BREAKS = {entry.name: entry.breaks for entry in ENTRIES}


def audit_counts(study: Study) -> AuditedKernels | None:
    """Count the kernels of a study of audits alone; None for others."""
    if not study.of_corpus:
        return None
    controls = [r for r in study.distinct if r.role == CONTROL]
    bugs = [r for r in study.distinct if r.role == BUG]
    return AuditedKernels(
        kernels=len(study.distinct),
        controls=len(controls),
        controls_clean=sum(r.correct and not silently_broken(r) for r in controls),
        bugs=len(bugs),
        bugs_caught=sum(map(is_caught, bugs)),
    )


def is_caught(bug: Result) -> bool:
    """Return whether a planted bug fails by the obligation that it was planted against.

    One that this version does not know, or that has no profile, must be rejected.
    """
    breaks = _BREAKS.get(bug.key)
    if breaks is None or not bug.profile:
        return rejected(bug)
    end = bug.profile.get(breaks)
    return end is not None and end.status in ("broken", "refused")


def silently_broken(result: Result) -> tuple[str, ...]:
    """Return the obligations that a kernel breaks silently, whatever the contract asks.

    That a result comes from libraries (`kernel`) makes nothing wrong.
    """
    parts = result.profile.items()
    return tuple(name for name, end in parts if end.status == "broken" and name != "kernel")
