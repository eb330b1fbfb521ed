"""What an audit found of the built-in corpus: controls that are clean, and bugs that are caught."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltruth.analysis.illusions import rejected
from kerneltruth.analysis.reading import Study

CONTROL, BUG = "control", "bug"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """Counts of kernels. They are chosen, not drawn: a share of them has no interval.

    Attributes:
        kernels: all; those of earlier runs do not say whether they are controls or bugs.
    """

    kernels: int
    controls: int
    controls_clean: int
    bugs: int
    bugs_caught: int


def audited(study: Study) -> Audited | None:
    """The counts of a study of nothing but audits; else None."""
    if not study.of_corpus:
        return None
    controls = [r for r in study.distinct if r.role == CONTROL]
    bugs = [r for r in study.distinct if r.role == BUG]
    return Audited(
        kernels=len(study.distinct),
        controls=len(controls),
        controls_clean=sum(r.correct for r in controls),
        bugs=len(bugs),
        bugs_caught=sum(map(rejected, bugs)),
    )
