"""Write an attempt to a run: its source, its finding with inputs, its result line."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs
from msgspec.structs import replace

from kerneltruth.cases.materialize import materialize
from kerneltruth.documents.lines import ResultLine
from kerneltruth.documents.records import Attempt
from kerneltruth.engine.evaluator import EvaluationRequest
from kerneltruth.oracle.bounds import Policy
from kerneltruth.runs.findings import finding_of
from kerneltruth.runs.ledger import L
from kerneltruth.runs.store import RunStore
from kerneltruth.suites.foreign import origin_of
from kerneltruth.tasks.registry import find


def store_attempt(
    store: RunStore[L],
    job: EvaluationRequest,
    attempt: Attempt,
    environment: Mapping[str, str | None],
    *,
    about: ResultLine | None = None,
    policy: Policy | None = None,
) -> tuple[Attempt, str | None]:
    """Store an attempt. The result line comes last: it promises that the rest is there.

    Args:
        store: the run.
        job: the job that made the attempt.
        attempt: what came of it.
        environment: of the machine.
        about: what else the line says; the attempt and its finding are added.
        policy: of the bounds; None takes the usual one.

    Returns:
        The attempt with the findings of what it breaks beside what decides, and the name of the
        file of the finding that decides, if it failed.
    """
    store.write_source(job.candidate.source)
    used = policy or Policy()
    where = {**environment, **origin_of(job.task)}
    name = None
    if attempt.failure is not None:
        finding = finding_of(attempt, where, bounds=used.method, tf32=used.tf32)
        inputs = materialize(find(job.task), finding.case).tensors
        name = store.write_finding(finding, inputs).name
    profile = dict(attempt.profile)
    for key, entry in attempt.profile.items():
        if entry.status == "broken" and entry.failure == attempt.failure:
            profile[key] = replace(entry, finding=name)
        elif entry.status == "broken" and entry.failure is not None:
            failed = replace(
                attempt,
                failure=entry.failure,
                minimal=None,
                explanation="",
                error_map=None,
                shown="",
            )
            other = finding_of(failed, where, bounds=used.method, tf32=used.tf32)
            # Its inputs follow from its seed: most of these are never looked at.
            profile[key] = replace(entry, finding=store.write_finding(other, {}).name)
    slim = replace(attempt, error_map=None, profile=profile)
    line = about or ResultLine(key=job.name, name=job.name)
    store.append(job.name, structs.replace(line, attempt=slim, finding=name))
    return slim, name
