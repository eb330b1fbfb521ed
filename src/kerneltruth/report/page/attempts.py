"""Every attempt as a row of columns: what the page's script filters, sorts and counts. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from kerneltruth.analysis.groups import methods_of
from kerneltruth.analysis.illusions import checks_of, illusions
from kerneltruth.analysis.reading import Study, answer_of, chains
from kerneltruth.analysis.results import PASSED, Result
from kerneltruth.analysis.speeds import EAGER, efficiency
from kerneltruth.report.page.wording import NO_CATEGORY, label, method_label

# What the flags of an attempt say, as the script reads them. ANSWER: it counts where one round of
# each answer does; OWN: it would, if its run were the only one.
DISTINCT, ANSWER, OWN, ILLUSION, CALLED, CORRECT, TIMED, JUDGED, FINDING, ASKED, WRONG = (
    1 << bit for bit in range(11)
)
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


def attempt_table(study: Study, sources: Mapping[str, int], said: Sequence[str]) -> dict[str, Any]:
    """The columns of all attempts, and the names that their numbers stand for.

    Args:
        study: the runs.
        sources: number of each source that the page carries, by hash.
        said: of each attempt, in a few words, what is wrong with it.
    """
    # Numbered as the tables number their rows and columns, which are made of the answers.
    methods = Names((*methods_of(study.answers), *methods_of(study.attempts)))
    categories = Names(
        c for some in (study.answers, study.attempts) for c in sorted({_category(r) for r in some})
    )
    dtypes = Names(sorted({d for r in study.attempts for d in r.dtypes}))
    tasks, outcomes, kinds = Names(), Names(), Names([None])
    checks = Names(checks_of(study.attempts))
    flags = _flags(study)
    before = _before(study.attempts)
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for i, r in enumerate(study.attempts):
        eager, light = r.against(EAGER), efficiency(r)
        row = (
            tasks.number((r.task, categories.number(_category(r)))),
            methods.number((r.method, r.model)),
            r.run,
            r.sample,
            r.round,
            outcomes.number(r.verdict),
            kinds.number(r.kind),
            r.cases,
            r.failed,
            None if eager is None else float(f"{eager.speedup:.6g}"),
            STANDINGS.index(None if eager is None else eager.standing),
            None if light is None else float(f"{light:.3g}"),
            sum(1 << dtypes.number(d) for d in r.dtypes),
            flags[i],
            sources.get(r.sha256, -1),
            before[i],
            sum(1 << checks.number(name) for name in certified_by(r)),
            label(r.origin),
            said[i],
        )
        for name, value in zip(_COLUMNS, row, strict=True):
            columns[name].append(value)
    return {
        "count": len(study.attempts),
        "tasks": [[label(task), category] for task, category in tasks.values()],
        "categories": [label(c) for c in categories.values()],
        "methods": [method_label(*pair) for pair in methods.values()],
        "dtypes": [label(d) for d in dtypes.values()],
        "verdicts": [label(o) for o in outcomes.values()],
        "kinds": [None if k is None else label(k) for k in kinds.values()],
        "checks": [label(c) for c in checks.values()],
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
        bits |= TIMED * r.timed | JUDGED * r.judged | FINDING * (r.finding is not None)
        asked = any(said in ("pass", "fail") for said in r.checks.values())
        bits |= ASKED * asked | WRONG * (r.judged and not r.correct)
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
