"""Every attempt as a row of columns: what the page's script filters, sorts and counts. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from kerneltruth.analysis.groups import methods_of
from kerneltruth.analysis.illusions import asked, checks_of, illusions, rejected
from kerneltruth.analysis.reading import Study, answer_of, chains
from kerneltruth.analysis.results import NOT_JUDGED, PASSED, Result
from kerneltruth.analysis.speeds import EAGER, efficiency
from kerneltruth.report.page.wording import NO_CATEGORY, label, method_label

# What the flags of an attempt say, as the script reads them. ANSWER: it counts where one round of
# each answer does; OWN: it would, if its run were the only one; RAN_EXE: its run had that stage.
DISTINCT, ANSWER, OWN, ILLUSION, CALLED, CORRECT, TIMED, JUDGED, FINDING, ASKED, WRONG = (
    1 << bit for bit in range(11)
)
RAN_EXE, RAN_PERF = 1 << 11, 1 << 12
STANDINGS = (None, "slower", "tie", "faster")


class Names:
    """The different values of a column, numbered in the order in which they were first met."""

    def __init__(self, known: Iterable[Hashable] = ()) -> None:
        self._numbers: dict[Hashable, int] = {}
        for value in known:
            self.number(value)

    def number(self, value: Hashable) -> int:
        """The number of a value."""
        return self._numbers.setdefault(value, len(self._numbers))

    def values(self) -> list[Any]:
        """The values by number."""
        return list(self._numbers)


class _Numbering:
    """The names that columns refer to by number."""

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
        self.tasks, self.verdicts, self.kinds = Names(), Names(), Names([None])

    def row(self, r: Result) -> dict[str, Any]:
        """What an attempt's own columns hold."""
        eager, light = r.against(EAGER), efficiency(r)
        return {
            "task": self.tasks.number((r.task, self.categories.number(_category(r)))),
            "method": self.methods.number((r.method, r.model)),
            "run": r.run,
            "sample": r.sample,
            "round": r.round,
            "verdict": self.verdicts.number(r.verdict),
            "kind": self.kinds.number(r.kind),
            "cases": r.cases,
            "failed": r.failed,
            "speed": None if eager is None else float(f"{eager.speedup:.6g}"),
            "standing": STANDINGS.index(None if eager is None else eager.standing),
            "light": None if light is None else float(f"{light:.3g}"),
            "dtypes": sum(1 << self.dtypes.number(d) for d in r.dtypes),
            "fooled": sum(1 << self.checks.number(name) for name in certified_by(r)),
            "origin": label(r.origin),
        }

    def names(self) -> dict[str, Any]:
        """The names by number."""
        return {
            "tasks": [[label(task), category] for task, category in self.tasks.values()],
            "categories": [label(c) for c in self.categories.values()],
            "methods": [method_label(*pair) for pair in self.methods.values()],
            "dtypes": [label(d) for d in self.dtypes.values()],
            "verdicts": [label(v) for v in self.verdicts.values()],
            "kinds": [None if k is None else label(k) for k in self.kinds.values()],
            "checks": [label(c) for c in self.checks.values()],
        }


def attempt_table(study: Study, sources: Mapping[str, int], said: Sequence[str]) -> dict[str, Any]:
    """The columns of all attempts, and the names that their numbers stand for.

    Args:
        study: the runs.
        sources: number of each source that the page carries, by hash.
        said: of each attempt, in a few words, what is wrong with it.
    """
    numbering = _Numbering(study)
    flags, before = _flags(study), _before(study.attempts)
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for i, r in enumerate(study.attempts):
        more = {"flags": flags[i], "before": before[i], "said": said[i]}
        row = {**numbering.row(r), **more, "source": sources.get(r.sha256, -1)}
        for name in _COLUMNS:
            columns[name].append(row[name])
    return {
        "count": len(study.attempts),
        **numbering.names(),
        "devices": [label(run.device) for run in study.runs],
        "columns": columns,
    }


_COLUMNS = (
    *("task", "method", "run", "sample", "round", "verdict", "kind", "cases", "failed"),
    *(
        "speed",
        "standing",
        "light",
        "dtypes",
        "flags",
        "source",
        "before",
        "fooled",
        "origin",
        "said",
    ),
)


def certified_by(result: Result) -> list[str]:
    """The checks that pass an attempt."""
    return [name for name, says in result.checks.items() if says == PASSED]


def _category(result: Result) -> str:
    return result.category or NO_CATEGORY


def _flags(study: Study) -> list[int]:
    """What is true of each attempt, as bits."""
    distinct = {(r.run, r.key) for r in study.distinct}
    answers = {(r.run, r.key) for r in study.answers}
    own = {(r.run, r.key) for c in chains(study.attempts) for r in [answer_of(c, study.kept)]}
    fooling = {(i.run, i.key) for i in illusions(study.attempts)}
    found = []
    for r in study.attempts:
        name = (r.run, r.key)
        bits = DISTINCT * (name in distinct) | ANSWER * (name in answers) | OWN * (name in own)
        bits |= ILLUSION * (name in fooling) | CALLED * r.called | CORRECT * r.correct
        bits |= TIMED * r.timed | JUDGED * (r.verdict not in NOT_JUDGED)
        bits |= FINDING * (r.finding is not None) | ASKED * asked(r) | WRONG * rejected(r)
        bits |= RAN_EXE * r.tried("exe") | RAN_PERF * r.tried("perf")
        found.append(bits)
    return found


def _before(attempts: Sequence[Result]) -> list[int]:
    """Number of the attempt that is the previous round of the same answer, or -1."""
    place = {(r.run, r.key): i for i, r in enumerate(attempts)}
    found = [-1] * len(attempts)
    for chain in chains(attempts):
        for earlier, later in pairwise(chain):
            found[place[later.run, later.key]] = place[earlier.run, earlier.key]
    return found
