"""A candidate's profile: what became of each obligation, grown case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, cast

from msgspec.structs import replace

from kerneltruth.cases import shapes
from kerneltruth.cases.values import FLOAT_KINDS
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Judgement, ProfileEntry
from kerneltruth.oracle.judge import wrong_form
from kerneltruth.oracle.obligations import (
    BEYOND,
    OBLIGATIONS,
    Departure,
    Obligation,
    blame,
    departures,
    most_ordinary,
    without,
)
from kerneltruth.oracle.verdict import (
    OF_SEVERAL_CALLS,
    CompileError,
    Crashed,
    Declined,
    Failed,
    Passed,
    RuntimeFault,
    TimedOut,
    Verdict,
    word,
)
from kerneltruth.tasks.model import BACKWARD, CALL
from kerneltruth.tasks.spec import Task

Outcome = Literal["held", "broken", "refused"]
# An obligation whose cases are refused this often, and never held, is asked no more.
REFUSALS = 3
UNREACHED = "none of the cases that the budget allows tries it"
SAME_WITHOUT = "fails alike without it"
WRONG_AS_PUBLISHED = "wrong on the published inputs"
UNPROMISED_GRADIENTS = "the task's prompt does not promise gradients"


def outcome_of(verdict: Verdict) -> Outcome | None:
    """What a case says of the obligations that it tries; None where it was not judged."""
    match verdict:
        case Passed():
            return "held"
        case Failed() | Crashed() | TimedOut():
            return "broken"
        case CompileError() | RuntimeFault() | Declined():
            return "refused"
        case _:
            return None


@dataclass(slots=True, kw_only=True)
class ProfileBuilder:
    """The obligations of one candidate while its cases are judged.

    Attributes:
        task: of the candidate.
        published: the case that none departs from.
        fails: asks the candidate about a simpler case: whether it ends as a judged one did.
    """

    task: Task
    published: Case
    fails: Callable[[Judgement, Case], bool]
    _held: Counter[str] = field(default_factory=Counter)
    _refused: Counter[str] = field(default_factory=Counter)
    _failures: dict[str, Judgement] = field(default_factory=dict)
    _broken: set[str] = field(default_factory=set)
    _masked: set[str] = field(default_factory=set)
    _promised: dict[str, bool] = field(default_factory=dict)
    _everywhere: bool = False

    def __post_init__(self) -> None:
        self._promised = {d.key: d.promised for d in obligations_of(self.task)}

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be learned: published inputs and others fail alike."""
        return self._everywhere and bool(self._masked)

    def open_part(self, case: Case) -> Case | None:
        """The case without what is decided already; None where nothing is left to try."""
        found: Case | None = case
        while found is not None:
            departing = departures(self.task, found, self.published)
            closed = next((d for d in departing if self._is_closed(d.key)), None)
            if closed is None:
                return found
            found = without(self.task, found, closed, self.published)
        return None

    def _is_closed(self, key: str) -> bool:
        given_up = self._refused[key] >= REFUSALS and not self._held[key]
        return key in self._broken or key in self._masked or given_up

    def add(self, judgement: Judgement) -> Case | None:
        """Count a judged case, and find the obligation that it breaks or refuses.

        Returns:
            The most ordinary case that fails alike; None where the case did not fail.
        """
        outcome = outcome_of(judgement.verdict)
        if outcome == "held":
            departing = departures(self.task, judgement.case, self.published)
            self._held.update({d.key for d in departing} or {"published"})
            self._held["memory"] += 1
            self._interface(judgement)
        if outcome in (None, "held"):
            return None
        simplest = self._simplest(judgement)
        self._blame(judgement, simplest, refused=outcome == "refused")
        return simplest

    def _interface(self, judgement: Judgement) -> None:
        """Count right values in the promised form, or in another one."""
        if not judgement.interface:
            self._held["interface"] += 1
        elif judgement.case.domain == "core":
            wrong = replace(judgement, verdict=wrong_form(judgement.interface[0]))
            self._failures.setdefault("interface", wrong)
            self._broken.add("interface")

    def add_repeated(self, calls: int) -> None:
        """Count calls of right cases that gave the same again, or a new draw."""
        self._held["repeatable"] += calls

    def _simplest(self, judgement: Judgement) -> Case:
        """The case with the departures without any of which it does not fail."""
        verdict, case = judgement.verdict, judgement.case
        if isinstance(verdict, Failed) and verdict.kind in OF_SEVERAL_CALLS:
            return self.published
        if not isinstance(verdict, TimedOut):
            fails = partial(self._fails_alike, judgement)
            return most_ordinary(self.task, case, self.published, fails)
        # To ask again would take as long: what never held is the cause.
        for departure in departures(self.task, case, self.published):
            if self._held[departure.key]:
                case = without(self.task, case, departure, self.published) or case
        return case

    def _fails_alike(self, judgement: Judgement, case: Case) -> bool:
        """Ask the candidate, but not for a further draw of published inputs that failed alike."""
        departing = departures(self.task, case, self.published)
        known = None if departing else self._failures.get("published")
        if known is not None and outcome_of(known.verdict) == outcome_of(judgement.verdict):
            return True
        return self.fails(judgement, case)

    def _blame(self, judgement: Judgement, simplest: Case, *, refused: bool) -> None:
        departing = departures(self.task, judgement.case, self.published)
        causes = departures(self.task, simplest, self.published)
        blamed = blame(judgement.verdict, causes)
        self._everywhere |= not causes and blamed.key != "repeatable"
        self._promised.setdefault(blamed.key, blamed.promised)
        if blamed.key in self._failures and blamed not in departing:
            # It fails without its departures too, so nothing is known of them.
            self._masked |= {d.key for d in departing[:1]}
            return
        self._refused[blamed.key] += refused
        if refused:
            self._failures.setdefault(blamed.key, judgement)
        elif blamed.key not in self._broken:
            self._failures[blamed.key] = judgement
            self._broken.add(blamed.key)

    def profile(self, ended: str | None = None) -> dict[str, ProfileEntry]:
        """Every obligation of the task in order; `ended` is why no case was judged."""
        entries = {key: self._entry(key, ended or UNREACHED) for key in self._promised}
        known = {key.partition(".")[0] for key in entries}
        lacking = ProfileEntry(status="not_applicable", promised=False)
        entries |= {obligation: lacking for obligation in OBLIGATIONS if obligation not in known}
        return {key: entries[key] for key in sorted(entries, key=_place)}

    def _entry(self, key: str, reason: str) -> ProfileEntry:
        promised, held = self._promised[key], self._held[key]
        if key in self._broken:
            return ProfileEntry(
                status="broken", promised=promised, cases=held, failure=self._failures[key]
            )
        if self._refused[key]:
            refused = self._failures[key]
            return ProfileEntry(
                status="refused",
                promised=promised,
                cases=held,
                reason=_line(refused.verdict),
                failure=refused,
            )
        if held:
            return ProfileEntry(status="held", promised=promised, cases=held)
        return ProfileEntry(
            status="not_tried", promised=promised, reason=self._why_not(key, reason)
        )

    def _why_not(self, key: str, reason: str) -> str:
        if key in self._masked:
            return SAME_WITHOUT
        if key == "gradients" and not self._promised[key]:
            return UNPROMISED_GRADIENTS
        return WRONG_AS_PUBLISHED if self.is_over else reason


def _place(key: str) -> tuple[int, bool]:
    obligation, _, part = key.partition(".")
    return OBLIGATIONS.index(cast(Obligation, obligation)), part == BEYOND


def _line(verdict: Verdict) -> str:
    for name in ("detail", "reason", "error"):
        said = str(getattr(verdict, name, "") or "").strip()
        if said:
            return said.splitlines()[0]
    return word(verdict)


def obligations_of(task: Task) -> Iterator[Departure]:
    """The obligations that a task has, with its parts of them; what is missing does not apply."""
    yield Departure(obligation="published")
    yield Departure(obligation="shapes")
    if task.tensors:
        yield Departure(obligation="values")
    yield from _of_attributes(task)
    first = task.promised_dtypes[:1]
    for dtype in dict.fromkeys((*task.promised_dtypes, *task.dtypes, *task.extended_dtypes)):
        if dtype not in first:
            promised = dtype in task.promised_dtypes
            yield Departure(obligation="dtypes", part=dtype, promised=promised)
    if task.layouts and task.tensors:
        known = task.promises.layouts
        yield Departure(obligation="layouts", promised=bool(known))
        if known:
            yield Departure(obligation="layouts", part=BEYOND, promised=False)
    if any(spec.kind in FLOAT_KINDS for spec in task.tensors):
        yield Departure(obligation="specials", promised=False)
        gradients = not task.random and task.is_core({CALL: BACKWARD}) and task.promises.gradients
        yield Departure(obligation="gradients", promised=gradients)
    if any(axis.may_be_empty for axis in shapes.axes(task, "cpu")):
        yield Departure(obligation="empty", promised=task.promises.empty)
    yield Departure(obligation="interface")
    yield Departure(obligation="memory")
    yield Departure(obligation="repeatable")


def _of_attributes(task: Task) -> Iterator[Departure]:
    chosen = [a for a in task.attributes if len(a.values) > 1 and (not a.hidden or a.name == CALL)]
    calls = {v for a in chosen if a.name == CALL for v in a.values} - {BACKWARD}
    plain = [a for a in chosen if a.name != CALL]
    if plain or len(calls) > 1 or any(spec.optional for spec in task.tensors):
        yield Departure(obligation="attributes")
    names = {a.name for a in plain} & task.extended.keys()
    if any(task.extended[name] for name in names):
        yield Departure(obligation="attributes", part=BEYOND, promised=False)
