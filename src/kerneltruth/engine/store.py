"""An attempt written to a run: its source, its finding with inputs, its result line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kerneltruth.cases.materialize import materialize
from kerneltruth.engine.evaluator import EvaluationRequest
from kerneltruth.oracle.attempt import Attempt
from kerneltruth.oracle.bounds import Policy
from kerneltruth.runs.records import attempt_record, finding_of
from kerneltruth.runs.store import RunStore
from kerneltruth.suites.foreign import origin_of
from kerneltruth.tasks.registry import find


def store_attempt(
    store: RunStore,
    job: EvaluationRequest,
    attempt: Attempt,
    environment: Mapping[str, str | None],
    more: Mapping[str, Any] | None = None,
    *,
    policy: Policy | None = None,
) -> str | None:
    """Store an attempt; the result line comes last, since it says that the rest is there.

    Returns:
        The finding's file name, if the attempt failed.
    """
    store.write_source(job.candidate.source)
    name = None
    if attempt.failure is not None:
        used = policy or Policy()
        where = {**environment, **origin_of(job.task)}
        finding = finding_of(attempt, where, bounds=used.method, tf32=used.tf32)
        inputs = materialize(find(job.task), finding.case).tensors
        name = store.write_finding(finding, inputs).name
    told = attempt_record(replace(attempt, error_map=None))
    line = {"name": job.name, "attempt": told, "finding": name, **(more or {})}
    store.append(job.name, line)
    return name
