"""A candidate's profile: what became of each obligation, grown case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from msgspec.structs import replace

from kerneltruth.cases.published import reduction
from kerneltruth.documents.case import Case
from kerneltruth.documents.profiles import NO_TURN
from kerneltruth.documents.records import OBLIGATIONS, Judgement, Obligation, ProfileEntry
from kerneltruth.documents.verdict import (
    OF_SEVERAL_CALLS,
    Failed,
    Hack,
    TimedOut,
    UnsupportedHere,
    Verdict,
)
from kerneltruth.oracle.contract import Contract
from kerneltruth.oracle.decide import Failure, Untried
from kerneltruth.oracle.judge import wrong_form
from kerneltruth.oracle.kinds import Kind, Kinds
from kerneltruth.oracle.obligations import (
    BEYOND,
    Departure,
    blame,
    departures,
    fixed_numbers,
    most_ordinary,
    obligations_of,
    without,
)
from kerneltruth.oracle.outcome import UNREACHED, outcome_of, reason_of
from kerneltruth.tasks.spec import Task

# An obligation whose cases are refused this often, and never held, is not tried again.
REFUSALS = 3
# After this many cases that fail alike without their departure, it is not tried alone again.
ALIKE = 2
# No other departure's cases differ as much, so it takes two to tell whether a kernel fails always.
VARIED: frozenset[Obligation] = frozenset({"shapes"})
# Obligations that every case tries, whatever its departures.
ALWAYS_TRIED: frozenset[Obligation] = frozenset({"published", "interface", "memory", "repeatable"})
# An obligation whose cases PyTorch's operator rejects this often does not apply.
REJECTIONS = 3
# Obligations that may be meaningless for an operator, which then rejects all their cases.
OUTSIDE: frozenset[Obligation] = frozenset({"specials", "empty"})
LEFT_OUT = "left out by the chosen dtypes or strategies"
SAME_WITHOUT = "fails in the same way without it"
REFUSED_WITHOUT = "refused in the same way without it"
WRONG_AS_PUBLISHED = "wrong on the published inputs"
REFUSED_AS_PUBLISHED = "refused on the published inputs"
UNPROMISED_GRADIENTS = "the task's prompt does not promise gradients"


@dataclass(slots=True, kw_only=True)
class ProfileBuilder:
    """The obligations of one candidate while its cases are judged.

    Attributes:
        published: the case that none departs from.
        fails: calls the candidate on a simpler case: whether it ends as a judged one did.
        kinds: what an obligation asks in several ways.
        is_narrowed: whether the plan leaves out some of what the task has.
    """

    task: Task
    published: Case
    contract: Contract
    fails: Callable[[Judgement, Case], bool]
    kinds: Kinds
    is_narrowed: bool = False
    _held: Counter[str] = field(default_factory=Counter)
    _refused: Counter[str] = field(default_factory=Counter)
    _failures: dict[str, Judgement] = field(default_factory=dict)
    _broken: set[str] = field(default_factory=set)
    _alike: Counter[str] = field(default_factory=Counter)
    _elsewhere: dict[str, Counter[str]] = field(default_factory=dict)
    _unjudged: dict[str, Verdict] = field(default_factory=dict)
    _lacking: dict[str, str] = field(default_factory=dict)
    _rejected: Counter[str] = field(default_factory=Counter)
    _known: dict[str, Departure] = field(default_factory=dict)
    # With its case, so that no other case can take its id.
    _departing: dict[int, tuple[Case, tuple[Departure, ...]]] = field(default_factory=dict)
    _met: set[Kind] = field(default_factory=set)
    _unmet: dict[Kind, str] = field(default_factory=dict)
    _everywhere: bool = False

    def __post_init__(self) -> None:
        self._known = {d.key: d for d in obligations_of(self.task)}

    def departing(self, case: Case) -> tuple[Departure, ...]:
        """How a case departs from the published one; see `obligations.departures`."""
        if id(case) not in self._departing:
            self._departing[id(case)] = case, departures(self.task, case, self.published)
        return self._departing[id(case)][1]

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be learned: all that departs fails as published inputs do."""
        return (
            self._everywhere
            and all(
                self._is_closed(key) or self._alike[key] >= (ALIKE if d.obligation in VARIED else 1)
                for key, d in self._known.items()
                if self._may_be_tried(d) and not self._held[key]
            )
            and not self._helps(self._known.values())
        )

    def _may_be_tried(self, departure: Departure) -> bool:
        unasked = departure.obligation == "gradients" and not departure.promised
        lacking = departure.key in self._lacking or self._is_outside(departure.key)
        # An empty result is right whatever a kernel computes.
        return not (unasked or lacking or departure.obligation in ALWAYS_TRIED | {"empty"})

    def _helps(self, departing: Iterable[Departure]) -> bool:
        """Whether a case is right with one of these; an empty or NaN result may be by chance."""
        telling = (d.key for d in departing if d.obligation not in ALWAYS_TRIED | OUTSIDE)
        return self._everywhere and any(self._held[key] for key in telling)

    def open_part(self, case: Case) -> Case | None:
        """The case without what is decided already; None where nothing is left to try.

        Where the published inputs fail, it departs in one way that has not held, beside those that
        have: what else it departed in would be blamed for the same failure.
        """
        found: Case | None = case
        while found is not None:
            departing = self.departing(found)
            helped = self._helps(departing)
            closed = next((d for d in departing if self._is_closed(d.key, helped=helped)), None)
            closed = closed or self._beside_the_least_tried(departing)
            if closed is None:
                return found if departing or not self._everywhere else None
            found = without(self.task, found, closed, self.published)
        return None

    def _beside_the_least_tried(self, departing: Sequence[Departure]) -> Departure | None:
        if not self._everywhere:
            return None
        untried = [d for d in reversed(departing) if not self._held[d.key]]
        least = min(untried, key=lambda d: self._alike[d.key], default=None)
        # A size of 0 is a size.
        needed = {"shapes"} if least is not None and least.obligation == "empty" else set()
        return next((d for d in untried if d != least and d.obligation not in needed), None)

    def _is_closed(self, key: str, *, helped: bool = False) -> bool:
        given_up = self._refused[key] >= REFUSALS and not self._held[key]
        spent = key in self._broken or given_up or self._breaks_another(key)
        return spent or (self._is_masked(key) and not helped)

    def _is_masked(self, key: str) -> bool:
        return self._alike[key] >= ALIKE and not self._held[key]

    def _breaks_another(self, key: str) -> bool:
        """Whether its cases break another obligation, as stray writes of odd sizes do.

        Cases that depart in other ways, too, would all fail by it, and tell nothing of those.
        """
        return self._elsewhere.get(key, Counter()).total() >= ALIKE and not self._held[key]

    def add(self, judgement: Judgement, dealt: Case, simplest: Case) -> bool:
        """Count a judged case, and find the obligation that it breaks or refuses.

        Where `dealt`, the case that was to be tried, fails, `simplest` is the most ordinary case
        that fails alike; the judgement is of either.

        Returns:
            Whether it breaks or refuses what the contract asks.
        """
        outcome = outcome_of(judgement.verdict)
        if outcome is None:
            self.leave_out(dealt, judgement.verdict)
            return False
        departing = self.departing(dealt)
        self._met.update(self.kinds.tried(dealt, departing))
        if outcome == "held":
            self._interface(judgement, departing)
            self._hold(*({d.key for d in departing} or {"published"}), "memory")
            return False
        blamed = self._blame(judgement, dealt, simplest)
        return isinstance(judgement.verdict, Hack) or self.contract.decides(blamed)

    def leave_out(self, case: Case, reason: Verdict) -> None:
        """Note why a case was not judged."""
        departing = self.departing(case)
        for key in [d.key for d in departing] or ["published"]:
            self._unjudged.setdefault(key, reason)
        for kind in self.kinds.tried(case, departing):
            self._unmet.setdefault(kind, reason_of(reason))

    def reject(self, case: Case, reason: str) -> None:
        """Note that PyTorch's operator takes no such case."""
        self.leave_out(case, UnsupportedHere(reason=reason))
        departing = self.departing(case)
        self._rejected.update(d.key for d in departing if d.obligation in OUTSIDE)

    def _is_outside(self, key: str) -> bool:
        tried = self._held[key] or key in self._failures
        return self._rejected[key] >= REJECTIONS and not tried

    def lacks_dtype(self, dtype: str, reason: str) -> None:
        """Note that the candidate's language has no such dtype; it decides nothing then."""
        self._lacking[f"dtypes.{dtype}"] = reason

    def _interface(self, judgement: Judgement, departing: Sequence[Departure]) -> None:
        """Count right values in the promised form, or in another one.

        Beyond the prompt another form breaks the dtype, or what else departs there. One element of
        another number of dims is a hazard, and breaks nothing.
        """
        other = next((m for m in judgement.interface if m.kind != "shape"), None)
        if other is None:
            self._hold("interface")
            return
        beyond = sorted((d for d in departing if not d.promised), key=_is_of_no_dtype)
        key = beyond[0].key if beyond else "interface"
        if not self._broken & {key, "interface"}:
            self._known.setdefault(key, *beyond[:1])
            self._failures[key] = replace(judgement, verdict=wrong_form(other))
            self._broken.add(key)

    def add_repeated(self, calls: int) -> None:
        """Count calls of right cases that gave the same again, or a new draw."""
        self._hold("repeatable", calls=calls)

    def _hold(self, *keys: str, calls: int = 1) -> None:
        """Count right calls; those after an obligation's first broken case earn nothing."""
        self._held.update({key: calls for key in keys if key not in self._broken})

    def simplest(self, judgement: Judgement) -> Case:
        """The failing case with the departures without any of which it does not fail."""
        verdict, case = judgement.verdict, judgement.case
        if isinstance(verdict, Failed) and verdict.kind in OF_SEVERAL_CALLS:
            return self.published
        if not isinstance(verdict, TimedOut):
            fails = partial(self._fails_alike, judgement)
            kept = {d.key for d in self._helping(judgement, case)}
            simplest = most_ordinary(self.task, case, self.published, fails, kept=kept)
            left = {d.key for d in self.departing(simplest)}
            if not kept or left - kept:
                return simplest
            # Nothing else is needed for it to fail, as the published inputs do.
            return replace(self.published, seed=case.seed)
        return self._simplest_that_hangs(judgement, case)

    def _simplest_that_hangs(self, judgement: Judgement, case: Case) -> Case:
        """Blame the sizes if a call without them returns, and else what never held.

        Each other call might not return either, so there is one at most.
        """
        departing = self.departing(case)
        blamed = next((d for d in departing[1:] if d.obligation == "shapes"), None)
        usual = blamed and without(self.task, case, blamed, self.published)
        if usual and self._fails_alike(judgement, usual):
            case, blamed = usual, None
        for departure in self.departing(case):
            if self._held[departure.key] if blamed is None else departure != blamed:
                case = without(self.task, case, departure, self.published) or case
        return case

    def _helping(self, judgement: Judgement, case: Case) -> list[Departure]:
        """Departures that held where the published inputs fail alike: without them it fails too."""
        if self.failure_as_published(judgement) is None:
            return []
        departing = self.departing(case)
        return [d for d in departing if self._held[d.key]]

    def failure_as_published(
        self, judgement: Judgement, *, any_config: bool = False
    ) -> Judgement | None:
        """The failure of the published inputs, if they are wrong, or refused, as this case is.

        A kernel may be wrong under one of its configurations, and right under the others.
        """
        known = self._failures.get("published")
        if known is None or outcome_of(known.verdict) != outcome_of(judgement.verdict):
            return None
        return known if any_config or known.config == judgement.config else None

    def _fails_alike(self, judgement: Judgement, case: Case) -> bool:
        """Call the candidate, but not on a further draw of published inputs that failed alike."""
        departing = self.departing(case)
        if not departing and self.failure_as_published(judgement):
            return True
        return self.fails(judgement, case)

    def _blame(self, judgement: Judgement, dealt: Case, simplest: Case) -> Departure:
        departing = self.departing(dealt)
        causes = self.departing(simplest)
        helping = self._helping(judgement, simplest)
        causes = tuple(d for d in causes if d not in helping) or causes
        verdict = judgement.verdict
        if isinstance(verdict, Failed) and verdict.kind in OF_SEVERAL_CALLS:
            causes = ()
        blamed = blame(verdict, causes)
        self._everywhere |= not causes and blamed.key != "repeatable"
        self._known.setdefault(blamed.key, blamed)
        elsewhere = bool(causes) and blamed.key not in {d.key for d in causes}
        if elsewhere:
            for cause in causes:
                self._elsewhere.setdefault(cause.key, Counter())[blamed.key] += 1
        if blamed.key in self._failures and blamed not in departing:
            if elsewhere and not self._everywhere:
                self._count_wrong_values(judgement, blamed, causes[0])
                return blamed
            # It fails without its departures too, so nothing is known of them.
            self._alike.update([d.key for d in departing if not self._held[d.key]][:1])
            return blamed
        self._count_failure(blamed.key, judgement)
        if not causes and blamed.key != "repeatable":
            # The same fault shows on the published inputs.
            self._count_failure("published", judgement)
        elif elsewhere:
            self._count_wrong_values(judgement, blamed, causes[0])
        return blamed

    def _count_wrong_values(
        self, judgement: Judgement, blamed: Departure, cause: Departure
    ) -> None:
        """Count wrong values that come with a stray access where the case departs, too."""
        wrong = judgement.stats is not None and judgement.stats.num_exceeding
        if wrong and blamed.obligation == "memory":
            self._count_failure(cause.key, judgement)

    def _count_failure(self, key: str, judgement: Judgement) -> None:
        if outcome_of(judgement.verdict) == "refused":
            self._refused[key] += 1
            self._failures.setdefault(key, judgement)
        elif key not in self._broken:
            self._failures[key] = judgement
            self._broken.add(key)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What each obligation failed by, in the order in which they first failed."""
        return tuple(
            Failure(key, judgement, self._decides(key)) for key, judgement in self._failures.items()
        )

    def undecided(self) -> Iterator[Untried]:
        """The deciding obligations that were not tried, and why their cases were not judged.

        What the plan leaves out decides nothing.
        """
        for key in self._known:
            if self._decides(key) and not (self._held[key] or key in self._failures):
                yield Untried(key, self._unjudged.get(key))

    def _decides(self, key: str) -> bool:
        if key in self._lacking or self._is_outside(key):
            return False
        tried = self._held[key] or key in self._failures or key in self._unjudged
        return self.contract.decides(self._known[key]) and bool(tried or not self.is_narrowed)

    def profile(self, ended: str | None = None) -> dict[str, ProfileEntry]:
        """Every obligation of the task in order; `ended` is why no case was judged."""
        unreached = LEFT_OUT if self.is_narrowed else UNREACHED
        entries = {key: self._entry(key, ended or unreached) for key in self._known}
        known = {key.partition(".")[0] for key in entries}
        lacking = ProfileEntry(status="not_applicable", promised=False)
        entries |= {obligation: lacking for obligation in OBLIGATIONS if obligation not in known}
        return {key: entries[key] for key in sorted(entries, key=_place)}

    def _entry(self, key: str, reason: str) -> ProfileEntry:
        found = ProfileEntry(
            status="held",
            promised=self._known[key].promised,
            decisive=self._decides(key),
            cases=self._held[key],
            failure=self._failures.get(key),
        )
        if key in self._lacking:
            return replace(found, status="not_applicable", reason=self._lacking[key])
        if self._is_outside(key):
            reason = self._why_not(key, reason)
            return replace(found, status="not_applicable", reason=reason)
        if key in self._broken:
            return replace(found, status="broken")
        if found.failure is not None:
            return replace(found, status="refused", reason=reason_of(found.failure.verdict))
        if found.cases:
            size = reduction(self.task, self.published) if key == "published" else None
            return replace(found, reason=size, untried=self._untried(key))
        return replace(found, status="not_tried", reason=self._why_not(key, reason))

    def _untried(self, key: str) -> dict[str, str]:
        """The kinds within an obligation that no case tried, and why."""
        kinds = (Kind(key, name) for name in self.kinds.within(key))
        return {k.name: self._unmet.get(k, NO_TURN) for k in kinds if k not in self._met}

    def _why_not(self, key: str, reason: str) -> str:
        refused = "published" in self._failures and "published" not in self._broken
        if self._breaks_another(key):
            return f"its cases break `{self._elsewhere[key].most_common(1)[0][0]}`"
        if self._alike[key]:
            return REFUSED_WITHOUT if refused else SAME_WITHOUT
        if key in self._unjudged:
            return reason_of(self._unjudged[key])
        if key == "gradients" and not self._known[key].promised:
            return UNPROMISED_GRADIENTS
        if key == "attributes" and not self._known[key].promised:
            return f"the task lists only one value of {', '.join(fixed_numbers(self.task))}"
        if not self.is_over:
            return reason
        return REFUSED_AS_PUBLISHED if refused else WRONG_AS_PUBLISHED


def _is_of_no_dtype(departure: Departure) -> bool:
    return departure.obligation != "dtypes"


def _place(key: str) -> tuple[int, bool]:
    obligation, _, part = key.partition(".")
    return OBLIGATIONS.index(cast(Obligation, obligation)), part == BEYOND
