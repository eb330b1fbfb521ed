"""Counts of an audit: clean controls, and caught bugs."""

from __future__ import annotations

from kerneltruth.analysis.illusions import rejected
from kerneltruth.analysis.reading import Study
from kerneltruth.documents.rates import AuditedKernels

CONTROL, BUG = "control", "bug"


def audit_counts(study: Study) -> AuditedKernels | None:
    """Count the kernels of a study of audits alone; None for others."""
    if not study.of_corpus:
        return None
    controls = [r for r in study.distinct if r.role == CONTROL]
    bugs = [r for r in study.distinct if r.role == BUG]
    return AuditedKernels(
        kernels=len(study.distinct),
        controls=len(controls),
        controls_clean=sum(r.correct for r in controls),
        bugs=len(bugs),
        bugs_caught=sum(map(rejected, bugs)),
    )
