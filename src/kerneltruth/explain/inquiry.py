"""Run further cases of one candidate to explain a failure; each case runs once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from msgspec import structs

from kerneltruth.cases.layouts import LAYOUTS, Placed, effective_layout
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Judgement
from kerneltruth.documents.verdict import (
    CompileError,
    Crashed,
    Failed,
    Passed,
    RuntimeFault,
    Verdict,
)
from kerneltruth.explain.localize.evidence import Sibling
from kerneltruth.explain.minimize.cases import domain
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.judge import Ruling, is_of_form
from kerneltruth.oracle.probes import CAUSES, SYMPTOMS, depends, needs_contiguous, probe
from kerneltruth.runner.observation import Observation

HALVINGS = 4


class Called(NamedTuple):
    """One call, and what it rests on: what was expected, the ruling, where arguments lay."""

    expectation: Expectation
    ruling: Ruling
    observation: Observation
    placed: dict[str, Placed]


@dataclass(slots=True, kw_only=True)
class Inquiry:
    """The further runs of a candidate, and their results.

    Attributes:
        until: `time.monotonic()` after which only indispensable cases run.
        siblings: every case judged on the way.
    """

    session: CandidateSession
    failure: Judgement
    until: float
    siblings: list[Sibling] = field(default_factory=list)
    # Kept for the first failing case and for the smallest one: an explanation needs both.
    _rulings: dict[str, Ruling] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = self.session.examined
        if found is not None and found[0] == (self.failure.case.identity, self.failure.config):
            self._rulings[self.failure.case.identity] = found[1]

    @property
    def late(self) -> bool:
        """Return whether only indispensable cases may still run."""
        return time.monotonic() >= self.until

    @property
    def _of_a_target(self) -> bool:
        """Return whether the candidate runs here, instead of only compiling for a GPU."""
        verdict = self.failure.verdict
        return isinstance(verdict, CompileError) and verdict.target is not None

    def ask(self, case: Case) -> tuple[Expectation, Ruling] | None:
        """Judge a case as the failure was judged; None if it cannot be judged."""
        case = structs.replace(case, domain=domain(case, self.session.task))
        expectation = self.session.cache.get(self.session.task, case)
        if expectation.invalid is not None or expectation.unrefereeable is not None:
            return None
        ruling = self._rulings.get(case.identity)
        if ruling is None:
            ruling, observation, _ = self.session.call(expectation, config=self.failure.config)
            if self._of_a_target:
                launches, config = observation.launches, self.failure.config
                refused = self.session.compile(expectation, launches, config)
                ruling = ruling if refused is None else replace(ruling, verdict=refused)
        if is_of_form(self.failure.verdict):
            ruling = replace(ruling, verdict=ruling.with_form)
        if isinstance(ruling.verdict, Failed | Passed):
            ratio = None if ruling.stats is None else ruling.stats.max_bound_ratio
            failed = isinstance(ruling.verdict, Failed)
            self.siblings.append(Sibling(case=case, failed=failed, ratio=ratio, sought=True))
        return expectation, ruling

    def observe(self, case: Case) -> Called | None:
        """Call the candidate on a case; None if it cannot be judged."""
        case = structs.replace(case, domain=domain(case, self.session.task))
        expectation = self.session.cache.get(self.session.task, case)
        if expectation.invalid is not None or expectation.unrefereeable is not None:
            return None
        return Called(expectation, *self.session.call(expectation, config=self.failure.config))

    def fails(self, case: Case) -> bool:
        """Return whether a case fails with the verdict and reason of the failure.

        A case on which PyTorch's own function fails too shows nothing about the candidate.
        """
        answer = self.ask(case)
        if answer is None or not self._alike(*answer):
            return False
        expectation, ruling = answer
        if self.session.objection(expectation, ruling.verdict) is not None:
            return False
        first = self.failure.case.identity
        self._rulings = {k: r for k, r in self._rulings.items() if k == first}
        self._rulings[case.identity] = ruling
        return True

    def _alike(self, expectation: Expectation, ruling: Ruling) -> bool:
        wanted, found = self.failure.verdict, ruling.verdict
        if not isinstance(wanted, Failed) or not isinstance(found, Failed):
            return _alike(wanted, found)
        if wanted.kind == "assumes_contiguous":
            placed = self.session.cache.layouts.of(
                self.session.task, expectation.case, expectation.inputs
            ).placed
            config = self.failure.config
            return bool(needs_contiguous(self.session, expectation, placed, config=config))
        if found.kind in SYMPTOMS and wanted.kind in CAUSES:
            config = self.failure.config
            return depends(self.session, expectation, ruling, wanted.kind, config=config)
        if wanted.causes and found.kind in SYMPTOMS:
            # The kind is that of most wrong elements; a few may be wrong in another way.
            probes = probe(self.session, expectation, ruling, config=self.failure.config)
            refined = probes.refine(found)
            return isinstance(refined, Failed) and refined.kind == wanted.kind
        return found.kind == wanted.kind

    def ask_relatives(self, small: Case) -> None:
        """Run the failure in other dtypes and layouts: does the fault need this one?

        A case that passes in another dtype at `small`, a smaller failing case with drawn values,
        also runs at the failure's size, where it may fail.
        """
        case = structs.replace(self.failure.case, literals=())
        for dtype in self.session.task.dtypes:
            if dtype == case.dtype or self.late:
                continue
            if small.identity == case.identity or self._passes(structs.replace(small, dtype=dtype)):
                self._passes(structs.replace(case, dtype=dtype))
        for symbol, size in case.dims:
            if size <= 1:
                self._ask_larger(case, symbol)
        if case.layout == "contiguous":
            return
        for other in self._laid_otherwise(case):
            if not self.late:
                self._passes(other)

    def _laid_otherwise(self, case: Case) -> Iterator[Case]:
        """Return the case in each other layout; a rank without that layout gets another one."""
        tensors = self.session.cache.get(self.session.task, case).inputs.tensors.values()
        seen = set()
        for layout in (case.layout, *LAYOUTS):
            lies = tuple(effective_layout(layout, t.shape) for t in tensors if t is not None)
            if lies not in seen and layout not in (case.layout, "expanded"):
                yield structs.replace(case, layout=layout)
            seen.add(lies)

    def _ask_larger(self, case: Case, symbol: str) -> None:
        """Try dims that are larger than 0 or 1, until one fails."""
        for size in (2, 3, 5):
            larger = case.with_dims(**{symbol: size})
            if self.late or not self.session.task.allows(larger.sizes, larger.settings):
                return
            if not self._passes(larger):
                return

    def ask_at(self, symbol: str, size: int) -> None:
        """Run the failure with one dim of another size, since a claim about rows may hold for all.

        Runs however late it is, because a claim depends on it.
        """
        case = structs.replace(self.failure.case, literals=()).with_dims(**{symbol: size})
        if self.session.task.allows(case.sizes, case.settings):
            self._passes(case)

    def ask_smaller(self, symbols: Sequence[str]) -> None:
        """Run the failure at halves of a dim, so that growth of the error with it shows."""
        case = structs.replace(self.failure.case, literals=())
        for symbol in symbols:
            size = case.sizes[symbol]
            for k in range(1, HALVINGS + 1):
                smaller = case.with_dims(**{symbol: size >> k})
                if self.late or not self.session.task.allows(smaller.sizes, smaller.settings):
                    break
                if size >> k >= 1:
                    self._passes(smaller)

    def _passes(self, case: Case) -> bool:
        known = next((s for s in self.siblings if s.case.identity == case.identity), None)
        if known is not None:
            return not known.failed
        answer = self.ask(case)
        return answer is not None and isinstance(answer[1].verdict, Passed)


def _alike(one: Verdict, other: Verdict) -> bool:
    match one, other:
        case RuntimeFault(error=before), RuntimeFault(error=now):
            return before == now
        case Crashed(signal=before), Crashed(signal=now):
            return before == now
        case _:
            return one.word == other.word
