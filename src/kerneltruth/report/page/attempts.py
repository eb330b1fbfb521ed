"""Every attempt in columns, which the page's script filters and counts. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from kerneltruth.analysis.groups import methods_of
from kerneltruth.analysis.illusions import checks_of, decided_on, is_illusion, rejected
from kerneltruth.analysis.reading import Study, answer_of, chains
from kerneltruth.analysis.results import PASSED, Result
from kerneltruth.analysis.selection import failed_obligations
from kerneltruth.analysis.speeds import EAGER, efficiency
from kerneltruth.documents.records import OBLIGATIONS
from kerneltruth.documents.verdict import NOT_JUDGED
from kerneltruth.report.page.verdict_map import MARKS
from kerneltruth.report.page.wording import NO_CATEGORY, label, method_label

# What the flags of an attempt say, as the script reads them. ANSWER: it counts where one round of
# each answer does; OWN: it would, if its run were the only one; RAN_EXE: its run had that stage;
# PLAIN: it has no kernel of its own.
DISTINCT, ANSWER, OWN, ILLUSION, CALLED, CORRECT, TIMED, JUDGED, FINDING, CHECKED, WRONG = (
    1 << bit for bit in range(11)
)
RAN_EXE, RAN_PERF, PLAIN = 1 << 11, 1 << 12, 1 << 13
OUTCOMES = (None, "slower", "tie", "faster")


T = TypeVar("T", bound=Hashable)


class Names(Generic[T]):
    """The distinct values of a column, numbered in order of appearance."""

    def __init__(self, known: Iterable[T] = ()) -> None:
        self._numbers: dict[T, int] = {}
        for value in known:
            self.number(value)

    def number(self, value: T) -> int:
        """Return the number of a value."""
        return self._numbers.setdefault(value, len(self._numbers))

    def values(self) -> list[T]:
        """Return the values by number."""
        return list(self._numbers)


class AttemptRow(NamedTuple):
    """What the columns hold of an attempt: numbers of names, and figures.

    Attributes:
        dtypes: a bit for each; likewise `fooled`, of checks that pass it, and `failed_obligations`.
        flags: what is true of it, as bits.
        source: number of its source on the page, or -1.
        before: number of the attempt that is the previous round of the same answer, or -1.
        said: what is wrong with it, in a few words.
    """

    task: int
    method: int
    run: int
    sample: int | None
    round: int | None
    verdict: int
    kind: int
    cases: int
    failed: int
    speed: float | None
    outcome: int
    efficiency: float | None
    own_time: float | None
    dtypes: int
    flags: int
    source: int
    before: int
    fooled: int
    failed_obligations: int
    origin: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageData:
    """What the page's script reads: columns of all attempts, and the names by number.

    Attributes:
        tasks: each with the number of its category.
        marks: of verdicts, in the map.
        details: number of the first attempt of each compressed part; likewise `sources`.
    """

    count: int
    tasks: Sequence[tuple[str, int]]
    categories: Sequence[str]
    methods: Sequence[str]
    dtypes: Sequence[str]
    verdicts: Sequence[str]
    kinds: Sequence[str | None]
    checks: Sequence[str]
    obligations: Sequence[str]
    devices: Sequence[str]
    columns: Mapping[str, Sequence[int | float | str | None]]
    marks: Mapping[str, str]
    details: Sequence[int]
    sources: Sequence[int]


class _Numbering:
    def __init__(self, study: Study) -> None:
        # Numbered as tables number their rows and columns, which are made of the answers.
        self.methods = Names((*methods_of(study.answers), *methods_of(study.attempts)))
        self.categories = Names(
            c
            for some in (study.answers, study.attempts)
            for c in sorted({_category(r) for r in some})
        )
        self.dtypes = Names(sorted({d for r in study.attempts for d in r.dtypes}))
        self.checks = Names(checks_of(study.attempts))
        self.tasks: Names[tuple[str, int]] = Names()
        self.verdicts: Names[str] = Names()
        self.kinds: Names[str | None] = Names([None])

    def row(self, r: Result, *, flags: int, source: int, before: int, said: str) -> AttemptRow:
        """Make the row of an attempt."""
        eager, share = r.against(EAGER), efficiency(r)
        return AttemptRow(
            task=self.tasks.number((r.task, self.categories.number(_category(r)))),
            method=self.methods.number((r.method, r.model)),
            run=r.run,
            sample=r.sample,
            round=r.round,
            verdict=self.verdicts.number(r.verdict),
            kind=self.kinds.number(r.kind),
            cases=r.cases,
            failed=r.failed,
            speed=None if eager is None else float(f"{eager.speedup:.6g}"),
            outcome=OUTCOMES.index(None if eager is None else eager.outcome),
            efficiency=None if share is None else float(f"{share:.3g}"),
            own_time=None if r.own_time is None else float(f"{r.own_time:.3g}"),
            dtypes=sum(1 << self.dtypes.number(d) for d in r.dtypes),
            flags=flags,
            source=source,
            before=before,
            fooled=sum(1 << self.checks.number(name) for name in certified_by(r)),
            failed_obligations=sum(1 << OBLIGATIONS.index(o) for o in failed_obligations(r)),
            origin=label(r.origin),
            said=said,
        )


def page_data(
    study: Study,
    said: Sequence[str],
    *,
    numbers: Mapping[str, int],
    details: Sequence[int] = (),
    sources: Sequence[int] = (),
) -> PageData:
    """Put all attempts into columns.

    `said` is what is wrong with each attempt, in a few words; `numbers` has the number of each
    source that the page carries, by hash; `details` and `sources` the number of the first item of
    each part.
    """
    names = _Numbering(study)
    flags, before = _flags(study), _before(study.attempts)
    rows = [
        names.row(
            r, flags=flags[i], source=numbers.get(r.sha256, -1), before=before[i], said=said[i]
        )
        for i, r in enumerate(study.attempts)
    ]
    return PageData(
        count=len(rows),
        tasks=[(label(task), category) for task, category in names.tasks.values()],
        categories=[label(c) for c in names.categories.values()],
        methods=[method_label(*pair) for pair in names.methods.values()],
        dtypes=[label(d) for d in names.dtypes.values()],
        verdicts=[label(v) for v in names.verdicts.values()],
        kinds=[None if k is None else label(k) for k in names.kinds.values()],
        checks=[label(c) for c in names.checks.values()],
        obligations=OBLIGATIONS,
        devices=[label(run.device) for run in study.runs],
        columns={name: [row[i] for row in rows] for i, name in enumerate(AttemptRow._fields)},
        marks=MARKS,
        details=details,
        sources=sources,
    )


def certified_by(result: Result) -> list[str]:
    """Return the peer checks that pass an attempt."""
    return [name for name, says in result.checks.items() if says == PASSED]


def _category(result: Result) -> str:
    return result.category or NO_CATEGORY


def _flags(study: Study) -> list[int]:
    distinct = {(r.run, r.key) for r in study.distinct}
    answers = {(r.run, r.key) for r in study.answers}
    own = {(r.run, r.key) for c in chains(study.attempts) for r in [answer_of(c, study.kept)]}
    found = []
    for r in study.attempts:
        name = (r.run, r.key)
        bits = DISTINCT * (name in distinct) | ANSWER * (name in answers) | OWN * (name in own)
        bits |= ILLUSION * is_illusion(r) | CALLED * r.called | CORRECT * r.correct
        bits |= TIMED * r.timed | JUDGED * (r.verdict not in NOT_JUDGED)
        bits |= FINDING * (r.finding is not None) | CHECKED * decided_on(r) | WRONG * rejected(r)
        bits |= PLAIN * r.torch_only
        bits |= RAN_EXE * r.tried("exe") | RAN_PERF * r.tried("perf")
        found.append(bits)
    return found


def _before(attempts: Sequence[Result]) -> list[int]:
    """Return the number of the previous round of the same answer, or -1."""
    place = {(r.run, r.key): i for i, r in enumerate(attempts)}
    found = [-1] * len(attempts)
    for chain in chains(attempts):
        for earlier, later in pairwise(chain):
            found[place[later.run, later.key]] = place[earlier.run, earlier.key]
    return found
