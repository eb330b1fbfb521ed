"""The findings of an attempt, and how they and the attempt are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import structs

from kerneltruth.cases.materialize import materialize
from kerneltruth.documents.lines import ResultLine
from kerneltruth.documents.records import Attempt, Finding, replace
from kerneltruth.documents.verdict import Passed
from kerneltruth.engine.evaluator import EvaluationRequest
from kerneltruth.engine.outcomes import was_wrong_when_timed
from kerneltruth.oracle.bounds import Policy
from kerneltruth.runs.findings import finding_of
from kerneltruth.runs.ledger import L
from kerneltruth.runs.store import RunStore
from kerneltruth.suites.foreign import origin_of
from kerneltruth.tasks.registry import find


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFindings:
    """An attempt and its findings.

    Attributes:
        attempt: names, for each obligation that is broken, its finding.
        deciding: the finding of the case that decides; None if the attempt did not fail.
        others: of what it breaks beside what decides.
    """

    attempt: Attempt
    deciding: Finding | None
    others: tuple[Finding, ...]

    @property
    def name(self) -> str | None:
        """The name of the file of the finding that decides."""
        return f"{self.deciding.id}.json" if self.deciding else None

    @property
    def all(self) -> tuple[Finding, ...]:
        """All findings, the one that decides first."""
        return (*((self.deciding,) if self.deciding else ()), *self.others)


def findings_in(
    attempt: Attempt, environment: Mapping[str, str | None], *, policy: Policy | None = None
) -> AttemptFindings:
    """Return the findings of an attempt; nothing is written."""
    used = policy or Policy()
    where = {**environment, **origin_of(attempt.task)}

    def found(failing: Attempt) -> Finding:
        return finding_of(failing, where, bounds=used.method, tf32=used.tf32)

    deciding = found(attempt) if attempt.failure is not None else None
    others: list[Finding] = []
    profile = dict(attempt.profile)
    for key, entry in attempt.profile.items():
        if entry.status != "broken" or entry.failure is None:
            continue
        if deciding is not None and entry.failure == attempt.failure:
            profile[key] = replace(entry, finding=deciding.id)
        else:
            failing = replace(
                attempt,
                failure=entry.failure,
                minimal=None,
                explanation="",
                error_map=None,
                shown="",
            )
            others.append(found(failing))
            profile[key] = replace(entry, finding=others[-1].id)
    hazards = {key: _named(said, profile[key].finding) for key, said in attempt.hazards.items()}
    slim = replace(attempt, error_map=None, profile=profile, hazards=hazards)
    return AttemptFindings(attempt=slim, deciding=deciding, others=tuple(others))


def _named(hazard: str, finding: str | None) -> str:
    return f"{hazard} (finding {finding})" if finding else hazard


def store_attempt(
    store: RunStore[L],
    job: EvaluationRequest,
    attempt: Attempt,
    environment: Mapping[str, str | None],
    *,
    about: ResultLine | None = None,
    policy: Policy | None = None,
) -> AttemptFindings:
    """Store an attempt. The result line comes last: it promises that the rest is there.

    `about` is what else the line says; the attempt and its finding are added.
    """
    store.write_source(job.candidate.source)
    found = findings_in(attempt, environment, policy=policy)
    if found.deciding is not None:
        inputs = materialize(find(job.task), found.deciding.case).tensors
        store.write_finding(found.deciding, inputs)
    for other in found.others:
        # Its inputs follow from its seed: most of these are never looked at.
        store.write_finding(other, {})
    line = about or ResultLine(key=job.name, name=job.name)
    passed = isinstance(attempt.verdict, Passed) and not was_wrong_when_timed(line.stages)
    whole = structs.replace(line, attempt=found.attempt, passed=passed, finding=found.name)
    store.append(job.name, whole)
    return found
