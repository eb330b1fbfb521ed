"""What the cases of one candidate have shown of each obligation: counts, and the failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Judgement, Obligation
from kerneltruth.documents.verdict import Hack, UnsupportedHere, Verdict
from kerneltruth.oracle.case_status import case_status, reason_of
from kerneltruth.oracle.contract import Contract
from kerneltruth.oracle.decide import Failure, Untried
from kerneltruth.oracle.judge import wrong_form
from kerneltruth.oracle.kinds import Kind, Kinds
from kerneltruth.oracle.obligations import Departure, departures, obligations_of
from kerneltruth.tasks.spec import Task

# Obligations that every case tries, whatever its departures.
ALWAYS_TRIED: frozenset[Obligation] = frozenset({"published", "interface", "memory", "repeatable"})
# Obligations that may be meaningless for an operator, which then rejects all their cases.
OUTSIDE: frozenset[Obligation] = frozenset({"specials", "empty"})
# An obligation whose cases PyTorch's operator rejects this often does not apply.
REJECTIONS = 3


@dataclass(slots=True, kw_only=True)
class CountsByObligation:
    """What the cases of one candidate have shown of each obligation, by its key.

    Attributes:
        published: the case that none departs from.
        kinds: what an obligation asks in several ways.
        is_narrowed: whether the plan leaves out some of what the task has.
        known: the task's obligations, and those that were broken besides.
        held: right cases; after an obligation's first broken case no more are counted.
        refused: refused cases.
        failures: the first broken case of each, or else the first refused one.
        alike: cases that fail without the departure too.
        elsewhere: the obligations that its cases break in its place.
        unjudged: why a case of each was not judged.
        lacking: why the candidate's language cannot have it.
        tried_kinds: the kinds that were tried.
        unjudged_kinds: why a case of each kind was not judged.
        fails_undeparted: whether a case fails that departs in nothing.
    """

    task: Task
    published: Case
    contract: Contract
    kinds: Kinds
    is_narrowed: bool = False
    known: dict[str, Departure] = field(default_factory=dict)
    held: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Judgement] = field(default_factory=dict)
    alike: Counter[str] = field(default_factory=Counter)
    elsewhere: dict[str, Counter[str]] = field(default_factory=dict)
    unjudged: dict[str, Verdict] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)
    tried_kinds: set[Kind] = field(default_factory=set)
    unjudged_kinds: dict[Kind, str] = field(default_factory=dict)
    fails_undeparted: bool = False
    _rejected: Counter[str] = field(default_factory=Counter)
    # With its case, so that no other case can take its id.
    _departing: dict[int, tuple[Case, tuple[Departure, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.known = {d.key: d for d in obligations_of(self.task)}

    def departing(self, case: Case) -> tuple[Departure, ...]:
        """How a case departs from the published one; see `obligations.departures`."""
        if id(case) not in self._departing:
            self._departing[id(case)] = case, departures(self.task, case, self.published)
        return self._departing[id(case)][1]

    def add_right(self, judgement: Judgement, departing: Sequence[Departure]) -> None:
        """Count a case with right values, in the promised form or in another one."""
        self._add_form(judgement, departing)
        self._hold(*({d.key for d in departing} or {"published"}), "memory")

    def _add_form(self, judgement: Judgement, departing: Sequence[Departure]) -> None:
        """Count the form of right values.

        Beyond the prompt another form breaks the dtype, or what else departs there. One element of
        another number of dims is a hazard, and breaks nothing.
        """
        other = next((m for m in judgement.interface if m.kind != "shape"), None)
        if other is None:
            self._hold("interface")
            return
        beyond = sorted((d for d in departing if not d.promised), key=_is_of_no_dtype)
        key = beyond[0].key if beyond else "interface"
        if not (self.is_broken(key) or self.is_broken("interface")):
            self.known.setdefault(key, *beyond[:1])
            self.failures[key] = replace(judgement, verdict=wrong_form(other))

    def add_repeated(self) -> None:
        """Count that right cases gave the same when repeated, or a new draw."""
        self._hold("repeatable")

    def _hold(self, *keys: str) -> None:
        self.held.update({key: 1 for key in keys if not self.is_broken(key)})

    def add_failure(self, key: str, judgement: Judgement) -> None:
        """Count a failing case against an obligation; a proof of deceit takes another's place."""
        if case_status(judgement.verdict) == "refused":
            self.refused[key] += 1
            self.failures.setdefault(key, judgement)
        elif isinstance(judgement.verdict, Hack) or not self.is_broken(key):
            self.failures[key] = judgement

    def leave_out(self, case: Case, reason: Verdict) -> None:
        """Note why a case was not judged."""
        departing = self.departing(case)
        for key in [d.key for d in departing] or ["published"]:
            self.unjudged.setdefault(key, reason)
        for kind in self.kinds.tried(case, departing):
            self.unjudged_kinds.setdefault(kind, reason_of(reason))

    def reject(self, case: Case, reason: str) -> None:
        """Note that PyTorch's operator takes no such case."""
        self.leave_out(case, UnsupportedHere(reason=reason))
        departing = self.departing(case)
        self._rejected.update(d.key for d in departing if d.obligation in OUTSIDE)

    def lacks_dtype(self, dtype: str, reason: str) -> None:
        """Note that the candidate's language has no such dtype; it decides nothing then."""
        self.lacking[f"dtypes.{dtype}"] = reason

    def is_broken(self, key: str) -> bool:
        """Whether a case was silently wrong, crashed or did not end."""
        failure = self.failures.get(key)
        return failure is not None and case_status(failure.verdict) == "broken"

    def is_tried(self, key: str) -> bool:
        """Whether any case held, broke or refused it."""
        return bool(self.held[key]) or key in self.failures

    def is_outside(self, key: str) -> bool:
        """Whether PyTorch's operator rejects its cases, so that it does not apply."""
        return self._rejected[key] >= REJECTIONS and not self.is_tried(key)

    def decides(self, key: str) -> bool:
        """Whether the contract has it decide; what the plan leaves out decides nothing."""
        if key in self.lacking or self.is_outside(key):
            return False
        reached = self.is_tried(key) or key in self.unjudged
        return self.contract.decides(self.known[key]) and (reached or not self.is_narrowed)

    def failed(self) -> tuple[Failure, ...]:
        """What each obligation failed by, in the order in which they first failed."""
        return tuple(Failure(key, j, self.decides(key)) for key, j in self.failures.items())

    def undecided(self) -> Iterator[Untried]:
        """The deciding obligations that were not tried, and why their cases were not judged."""
        for key in self.known:
            if self.decides(key) and not self.is_tried(key):
                yield Untried(key, self.unjudged.get(key))


def _is_of_no_dtype(departure: Departure) -> bool:
    return departure.obligation != "dtypes"
