"""Which obligation a failing case breaks: the departure without which the candidate is right."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from kerneltruth.cases.materialize import Inputs
from kerneltruth.cases.promised import domain_of
from kerneltruth.cases.published import elements_in
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Judgement, Obligation
from kerneltruth.documents.verdict import (
    OF_SEVERAL_CALLS,
    Failed,
    FailKind,
    Hack,
    TimedOut,
    Verdict,
)
from kerneltruth.oracle.case_status import case_status
from kerneltruth.oracle.counts_by_obligation import CountsByObligation
from kerneltruth.oracle.obligations import Departure, departures, most_ordinary, without
from kerneltruth.tasks.model import OUT
from kerneltruth.tasks.spec import Task

# Published inputs of more elements are not written out.
MOST = 2**14
# Published inputs of more elements are called with no other departure: they are of a GPU.
LARGE = 2**20
# Verdicts that break an obligation, whatever the inputs.
OF_KIND: Mapping[FailKind, Obligation] = {
    "count": "interface",
    "type": "interface",
    "shape": "interface",
    "dtype": "interface",
    "device": "interface",
    "input_mutated": "memory",
    "out_of_bounds": "memory",
    "uninitialized": "memory",
    "aliased_output": "memory",
    "nondeterministic": "repeatable",
    "kept_state": "repeatable",
    "same_draw": "repeatable",
    "other_bits": "repeatable",
    "changed_later": "memory",
    "kept_result": "repeatable",
    "false_claim": "interface",
}


def blamed(verdict: Verdict, causes: Sequence[Departure]) -> Departure:
    """The obligation that a failing case breaks.

    What fails beyond the prompt only is placed there, whatever its kind. Within it a stray write is
    a matter of `memory`, a missing output one of `interface`.

    `causes` are the departures that it takes; see `obligations.most_ordinary`.
    """
    beyond = next((d for d in causes if not d.promised), None)
    if beyond is not None:
        return beyond
    if isinstance(verdict, Failed) and verdict.kind in OF_KIND:
        return Departure(obligation=OF_KIND[verdict.kind])
    return causes[0] if causes else Departure(obligation="published")


@dataclass(slots=True, kw_only=True)
class Blame:
    """Counts the judged cases of one candidate, each failing one against what it breaks.

    Attributes:
        fails: calls the candidate on a simpler case: whether it ends as a judged one did.
        held: whether a case is known to be right, under the configuration of a judged one.
    """

    counts: CountsByObligation
    fails: Callable[[Judgement, Case], bool]
    held: Callable[[Judgement, Case], bool]

    def add(self, judgement: Judgement, dealt: Case, simplest: Case) -> bool:
        """Count a judged case, and find the obligation that it breaks or refuses.

        Where `dealt`, the case that was to be tried, fails, `simplest` is the most ordinary case
        that fails alike; the judgement is of either.

        Returns:
            Whether it breaks or refuses what the contract asks.
        """
        counts, status = self.counts, case_status(judgement.verdict)
        if status is None:
            counts.leave_out(dealt, judgement.verdict)
            return False
        departing = counts.departing(dealt)
        counts.tried_kinds.update(counts.kinds.tried(dealt, departing))
        if status == "held":
            counts.add_right(judgement, departing)
            return False
        broken = self._count(judgement, departing, self._causes(judgement, simplest))
        return isinstance(judgement.verdict, Hack) or counts.contract.decides(broken)

    def simplest(self, judgement: Judgement, inputs: Inputs) -> Case:
        """The failing case with the departures without any of which it does not fail.

        `inputs` are those of the judged case.
        """
        task, published = self.counts.task, self.counts.published
        found = self._least_departing(judgement)
        same = _everywhere(task, published, judgement, found, inputs)
        if same is not None and self.fails(judgement, same):
            found = same
        return replace(found, domain=domain_of(task, found))

    def _least_departing(self, judgement: Judgement) -> Case:
        counts, verdict, case = self.counts, judgement.verdict, judgement.case
        if _takes_several_calls(verdict):
            return counts.published
        if isinstance(verdict, TimedOut):
            return self._simplest_that_hangs(judgement)
        fails = partial(self._fails_alike, judgement)
        kept = {d.key for d in self._helping(judgement, case)}
        # At large published sizes a reference takes many seconds.
        costly = ("shapes",) if elements_in(counts.task, counts.published) > LARGE else ()
        simplest = most_ordinary(
            counts.task, case, counts.published, fails, kept=kept, costly=costly
        )
        left = {d.key for d in counts.departing(simplest)}
        if not kept or left - kept:
            return simplest
        # Nothing else is needed for it to fail, as the published inputs do.
        return replace(counts.published, seed=case.seed)

    def _simplest_that_hangs(self, judgement: Judgement) -> Case:
        """Blame the sizes if a call without them returns, and else what never held.

        Each other call might not return either, so there is one at most.
        """
        counts, case = self.counts, judgement.case
        cause = next((d for d in counts.departing(case)[1:] if d.obligation == "shapes"), None)
        usual = cause and without(counts.task, case, cause, counts.published)
        if usual and self._fails_alike(judgement, usual):
            case, cause = usual, None
        for departure in counts.departing(case):
            if counts.held[departure.key] if cause is None else departure != cause:
                case = without(counts.task, case, departure, counts.published) or case
        return case

    def failure_as_published(
        self, judgement: Judgement, *, any_config: bool = False
    ) -> Judgement | None:
        """The failure of the published inputs, if they are wrong, or refused, as this case is.

        A kernel may be wrong under one of its configurations, and right under the others.
        """
        known = self.counts.failures.get("published")
        if known is None or case_status(known.verdict) != case_status(judgement.verdict):
            return None
        return known if any_config or known.config == judgement.config else None

    def _helping(self, judgement: Judgement, case: Case) -> list[Departure]:
        """Departures that held where the published inputs fail alike: without them it fails too."""
        if self.failure_as_published(judgement) is None:
            return []
        return [d for d in self.counts.departing(case) if self.counts.held[d.key]]

    def _fails_alike(self, judgement: Judgement, case: Case) -> bool:
        """Call the candidate, but not on a further draw of published inputs that failed alike."""
        if not self.counts.departing(case) and self.failure_as_published(judgement):
            return True
        return self.fails(judgement, case)

    def _causes(self, judgement: Judgement, simplest: Case) -> Sequence[Departure]:
        """The departures that a failure takes; none where no single call shows it."""
        if _takes_several_calls(judgement.verdict):
            return ()
        causes = self.counts.departing(simplest)
        helping = self._helping(judgement, simplest)
        causes = tuple(d for d in causes if d not in helping) or causes
        # Without another it may be refused, which says less.
        return sorted(causes, key=lambda d: not self._right_without(judgement, simplest, d))

    def _right_without(self, judgement: Judgement, case: Case, departure: Departure) -> bool:
        usual = without(self.counts.task, case, departure, self.counts.published)
        return usual is not None and self.held(judgement, usual)

    def _count(
        self, judgement: Judgement, departing: Sequence[Departure], causes: Sequence[Departure]
    ) -> Departure:
        """Count a failure that takes these causes; return the obligation that it breaks."""
        counts, broken = self.counts, blamed(judgement.verdict, causes)
        undeparted = not causes and broken.key != "repeatable"
        counts.fails_undeparted |= undeparted
        counts.known.setdefault(broken.key, broken)
        elsewhere = bool(causes) and broken.key not in {d.key for d in causes}
        if elsewhere:
            for cause in causes:
                counts.elsewhere.setdefault(cause.key, Counter())[broken.key] += 1
        known = broken.key in counts.failures and broken not in departing
        known = known and not isinstance(judgement.verdict, Hack)
        if known and not (elsewhere and not counts.fails_undeparted):
            # It fails without its departures too, so nothing is known of them.
            counts.alike.update([d.key for d in departing if not counts.held[d.key]][:1])
            return broken
        if not known:
            counts.add_failure(broken.key, judgement)
        if undeparted:
            # The same fault shows on the published inputs.
            counts.add_failure("published", judgement)
        elif elsewhere and broken.obligation == "memory" and _has_wrong_values(judgement):
            # Wrong values that come with a stray access where the case departs, too.
            counts.add_failure(causes[0].key, judgement)
        return broken


def _takes_several_calls(verdict: Verdict) -> bool:
    return isinstance(verdict, Failed) and verdict.kind in OF_SEVERAL_CALLS


def _has_wrong_values(judgement: Judgement) -> bool:
    return judgement.stats is not None and judgement.stats.num_exceeding > 0


def _everywhere(
    task: Task, published: Case, judgement: Judgement, simplest: Case, inputs: Inputs
) -> Case | None:
    """The published inputs with those of the worst element in every place.

    `inputs` are those of the judged case. This tells a wrong value from a wrong size: if it fails
    too, no other size is to blame. A larger result has a rare value more often, and a smaller one
    hides less beside its largest element. None where more than the size departs, or where no
    element of each input belongs to the worst.
    """
    departing = [d.obligation for d in departures(task, simplest, published)]
    is_value = isinstance(judgement.verdict, Failed) and judgement.verdict.kind == "value"
    index = None if judgement.stats is None else judgement.stats.worst_index
    if departing != ["shapes"] or not is_value or index is None:
        return None
    given = {n: t for n, t in inputs.tensors.items() if t is not None and n != OUT}
    shape, *others = {t.shape for t in given.values()}
    fits = len(index) == len(shape) and all(i < n for i, n in zip(index, shape, strict=True))
    if others or not fits or any(t.is_complex() for t in given.values()):
        return None
    specs = {spec.name: spec for spec in task.tensors}
    sizes, settings = published.sizes, published.settings
    counts = {n: math.prod(task.shape(specs[n], sizes, settings)) for n in given}
    if sum(counts.values()) > MOST:
        return None
    literals = tuple((n, (float(t[index]),) * counts[n]) for n, t in given.items())
    return replace(published, seed=judgement.case.seed, literals=literals)
