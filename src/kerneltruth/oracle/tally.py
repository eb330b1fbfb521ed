"""Counts of one session."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from msgspec import structs

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import DtypeCount, InterfaceNote, Judgement, Mismatch
from kerneltruth.documents.verdict import (
    Declined,
    Failed,
    Infra,
    Passed,
    Unrefereeable,
    UnsupportedHere,
    Verdict,
    Void,
)

# After this many lost calls nothing is a pass, and each takes a fresh child.
MOST_LOST = 8


@dataclass(slots=True)
class _Noted:
    """Cases in which an output has right values in another form than promised."""

    mismatch: Mismatch
    first: Judgement
    cases: int = 0
    core: Counter[str] = field(default_factory=Counter)

    def add(self, judgement: Judgement, mismatch: Mismatch) -> None:
        self.cases += 1
        if judgement.case.domain == "core":
            if not self.core:
                self.mismatch, self.first = mismatch, judgement
            self.core[judgement.case.dtype] += 1

    def note(self) -> InterfaceNote:
        return InterfaceNote(
            kind=self.mismatch.kind,
            detail=self.mismatch.detail,
            output=self.mismatch.output,
            cases=self.cases,
            core=self.core.total(),
            first=self.first.case,
        )


@dataclass(slots=True)
class Tally:
    """Counts of one session; every case that was generated ends in exactly one of them."""

    cases: int = 0
    failed: int = 0
    declined: list[tuple[Case, str]] = field(default_factory=list)
    unrefereeable: Counter[str] = field(default_factory=Counter)
    void: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    # Cases that the child got and did not answer, by its own account.
    unanswered: list[UnsupportedHere | Infra] = field(default_factory=list)
    noted: dict[tuple[str, str], _Noted] = field(default_factory=dict)
    passed: int = 0
    worst: float | None = None
    dtypes: dict[str, DtypeCount] = field(default_factory=dict)

    @property
    def ended(self) -> str | None:
        """Why no further case is tried, if too many calls were lost to hope for a pass."""
        lost = sum(isinstance(verdict, Infra) for verdict in self.unanswered)
        return f"{lost} calls were lost" if lost >= MOST_LOST else None

    def add(self, judgement: Judgement, *, decides: bool = True) -> None:
        """Count one judged case; a failing one counts where the contract asks what it breaks."""
        verdict = judgement.verdict
        if isinstance(verdict, Declined):
            self.declined.append((judgement.case, verdict.reason))
            return
        if isinstance(verdict, Unrefereeable):
            self.unrefereeable[verdict.reason] += 1
            return
        if isinstance(verdict, Void):
            self.void[verdict.reason] += 1
            return
        if isinstance(verdict, UnsupportedHere | Infra):
            self.skipped[verdict.reason] += 1
            self.unanswered.append(verdict)
            return
        self.cases += 1
        self._count(judgement.case.dtype, verdict)
        ratio = None if judgement.stats is None else judgement.stats.max_bound_ratio
        if isinstance(verdict, Passed):
            self.passed += 1
            self._note(judgement)
            if ratio is not None:
                self.worst = ratio if self.worst is None else max(self.worst, ratio)
            return
        self.failed += decides

    def _note(self, judgement: Judgement) -> None:
        for mismatch in judgement.interface:
            key = (mismatch.kind, mismatch.output)
            noted = self.noted.setdefault(key, _Noted(mismatch=mismatch, first=judgement))
            noted.add(judgement, mismatch)

    def _count(self, dtype: str, verdict: Verdict) -> None:
        before = self.dtypes.get(dtype, DtypeCount())
        self.dtypes[dtype] = DtypeCount(
            cases=before.cases + 1,
            returned=before.returned + isinstance(verdict, Passed | Failed),
            failed=before.failed + (not isinstance(verdict, Passed)),
        )

    def count_form(self) -> None:
        """If no value is wrong: the cases with results of a wrong form, promised ones if any."""
        forms = [n for n in self.noted.values() if n.mismatch.kind != "shape"]
        noted = max(forms, key=lambda n: n.core.total(), default=None)
        if noted is None:
            return
        self.failed = noted.core.total() or noted.cases
        for dtype, failed in noted.core.items():
            self.dtypes[dtype] = structs.replace(self.dtypes[dtype], failed=failed)

    @property
    def put(self) -> int:
        """How many cases were put to the kernel, whatever became of them."""
        return self.cases + len(self.declined) + len(self.unanswered) + self.void.total()
