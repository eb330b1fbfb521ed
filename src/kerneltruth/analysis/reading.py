"""Read runs for analysis: attempts as `Result`s, and which of them count.

A study may hold several runs. Three sets of attempts matter, each within the one before:

    attempts    every line of every run
    distinct    one of each: the same submission judged again on another device counts once
    answers     one round of each, for methods that work in rounds: the best, or the last

Kernels of the built-in corpus, which `audit` judges, are no model's answers: in a study with runs
of candidates they count as attempts only.

Methods that work in rounds get the judge's verdict and go on from their best round. The best round
is therefore their answer unless `--keep last` is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from kerneltruth.analysis.line_parts import LinePart
from kerneltruth.analysis.lines import result_of
from kerneltruth.analysis.results import NOT_RUN, NOT_TRIED, Result
from kerneltruth.analysis.selection import ALL, Selection, selected
from kerneltruth.documents.analysis import AnalyzedRun
from kerneltruth.documents.facts import ReferenceRecord
from kerneltruth.documents.model import Json
from kerneltruth.errors import UserError
from kerneltruth.runs.store import RunStore
from kerneltruth.runs.tasks_file import read_tasks

# Runs of `audit` from before roles were stored name their kernels only.
UNKNOWN_ROLE = "kernel"

KeptAnswer = Literal["best", "last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One or many runs, read.

    Attributes:
        facts: what is known of the tasks' references, by task; empty of runs that hold none.
        dtypes: likewise, in which dtypes a task is tried.
        notes: what reading them had to report, one line each.
        of_corpus: whether all attempts are of the built-in corpus, so that there are no answers to
            speak of.
    """

    runs: tuple[AnalyzedRun, ...]
    attempts: tuple[Result, ...]
    distinct: tuple[Result, ...]
    answers: tuple[Result, ...]
    kept: KeptAnswer = "best"
    facts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    dtypes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    of_corpus: bool = False

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the devices of the runs, each once, in their order."""
        return tuple(dict.fromkeys(run.device for run in self.runs))

    def answers_on(self, device: str) -> tuple[Result, ...]:
        """Return the answers among what a device judged, also where another one did before."""
        if len(self.devices) == 1:
            return self.answers
        own = [
            r
            for r in self.attempts
            if self.device_of(r) == device and (self.of_corpus or r.role is None)
        ]
        return tuple(answer_of(chain, self.kept) for chain in chains(own))

    def device_of(self, result: Result) -> str:
        """Return the device on which an attempt was judged."""
        return self.runs[result.run].device


def read_study(paths: Sequence[Path], *, kept: KeptAnswer = "best", only: Selection = ALL) -> Study:
    """Read runs; the attempts that `only` selects count.

    Raises:
        UserError: no such obligation, no run at a path, the same one twice, a damaged one, or one
            of a newer schema.
    """
    if not paths:
        raise UserError("no run is named; give the directory of a run")
    seen: dict[Path, Path] = {}
    for path in paths:
        if path.resolve() in seen:
            raise UserError(f"{path} is named twice; name each run once")
        seen[path.resolve()] = path
    runs: list[AnalyzedRun] = []
    attempts: list[Result] = []
    notes: list[str] = []
    tasks: dict[str, ReferenceRecord] = {}
    for path in paths:
        info, results, said = _read_run(path, len(runs))
        runs.append(info)
        attempts += results
        notes += said
        tasks |= read_tasks(path)
    left, narrowed = selected(attempts, only)
    return study_of(runs, left, kept=kept, tasks=tasks, notes=[*narrowed, *notes])


def study_of(
    runs: Sequence[AnalyzedRun],
    attempts: Sequence[Result],
    *,
    kept: KeptAnswer = "best",
    tasks: Mapping[str, ReferenceRecord] | None = None,
    notes: Sequence[str] = (),
) -> Study:
    """Make a study of these attempts; `Result.run` is an index of `runs`."""
    corpus = sum(r.role is not None for r in attempts)
    of_corpus = 0 < corpus == len(attempts)
    own = attempts if of_corpus else [r for r in attempts if r.role is None]
    distinct = _distinct(runs, own)
    suites = sorted({r.suite for r in own})
    more = list(notes)
    if corpus and not of_corpus:
        more.append(
            f"{corpus} attempts are of the built-in corpus, which an audit judged; they are "
            "no model's answers and count in no table"
        )
    if len(distinct) < len(own):
        again = len(own) - len(distinct)
        more.append(f"{again} attempts are of kernels judged on another device too; counted once")
    if len(suites) > 1:
        more.append(f"the runs mix the suites {', '.join(suites)}")
    if not attempts:
        more.append("the runs hold no attempt")
    return Study(
        runs=tuple(runs),
        attempts=tuple(attempts),
        distinct=tuple(distinct),
        answers=tuple(answer_of(chain, kept) for chain in chains(distinct)),
        kept=kept,
        facts={task: said.numbers for task, said in (tasks or {}).items()},
        dtypes={task: said.dtypes for task, said in (tasks or {}).items()},
        notes=tuple(more),
        of_corpus=of_corpus,
    )


def _read_run(path: Path, number: int) -> tuple[AnalyzedRun, list[Result], tuple[str, ...]]:
    def keep(line: LinePart | dict[str, Json]) -> Result:
        try:
            return result_of(line, number)
        except UserError as error:
            key = line["key"] if isinstance(line, dict) else line.key
            raise UserError(
                f"{path / 'results.jsonl'}: the attempt {key!r:.80} is not a result "
                f"({error}); judge it again, or leave this run out"
            ) from error

    store = RunStore.open(path, keep=keep, form=LinePart)
    results, unknown = _resolved([*store.results()])
    results = _never_timed(results)
    if store.manifest.arguments[:1] == ("audit",):
        results = [replace(r, role=r.role or UNKNOWN_ROLE) for r in results]
    notes = list(store.notes)
    if unknown:
        notes.append(f"{path}: {unknown} attempts repeat one that the run does not hold")
    manifest = store.manifest
    if manifest.ended is None:
        notes.append(f"{path}: the run has not ended; it holds {len(results)} attempts so far")
    environment = manifest.environment
    info = AnalyzedRun(
        path=str(path),
        command=manifest.arguments[0] if manifest.arguments else "",
        device=environment.get("device_name") or environment.get("device") or "unknown",
        version=manifest.version,
        suite_hash=manifest.suite_hash,
        seed=manifest.seed,
        started=manifest.started,
        ended=manifest.ended,
        attempts=len(results),
    )
    return info, results, tuple(notes)


def _never_timed(results: list[Result]) -> list[Result]:
    """Mark the perf stage as not tried where a run timed nothing, as on a CPU."""
    if any(r.perf not in (NOT_RUN, NOT_TRIED) for r in results):
        return results
    return [replace(r, perf=NOT_TRIED) for r in results]


def _resolved(results: Sequence[Result]) -> tuple[list[Result], int]:
    """Return the results with what they share with their first, and how many lost it."""
    by_key = {r.key: r for r in results}
    found: list[Result] = []
    unknown = 0
    for result in results:
        first = None if result.same_as is None else by_key.get(result.same_as)
        unknown += result.same_as is not None and first is None
        found.append(result if first is None else _sharing(result, first))
    return found, unknown


def _sharing(result: Result, first: Result) -> Result:
    return replace(
        result,
        language=first.language,
        verdict=first.verdict,
        kind=first.kind,
        quantization=first.quantization,
        detail=first.detail,
        cases=first.cases,
        failed=first.failed,
        dtypes=first.dtypes,
        tags=first.tags,
        finding=first.finding,
        # Peers' recorded results come with each submission; checks that ran here ran once.
        checks={**first.checks, **result.checks},
        profile=first.profile,
        contract=first.contract,
        score=first.score,
        own=first.own,
        launches=first.launches,
        timing=first.timing if result.timing is None else result.timing,
    )


def _distinct(runs: Sequence[AnalyzedRun], attempts: Sequence[Result]) -> list[Result]:
    """Drop attempts whose submission was judged before on another device."""
    devices = {run.device for run in runs}
    if len(devices) < 2:
        return list(attempts)
    first: dict[tuple[object, ...], str] = {}
    found: list[Result] = []
    for r in attempts:
        device = runs[r.run].device
        identity = (r.task, r.origin, r.sha256, r.method, r.model, r.sample, r.round)
        if first.setdefault(identity, device) == device:
            found.append(r)
    return found


def chains(results: Sequence[Result]) -> list[tuple[Result, ...]]:
    """Return the rounds of each answer; an attempt without a round is its own answer.

    If several attempts have the same labels and round, each starts a chain.
    """
    found: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        if result.round is None:
            found[(result.run, result.key)] = [result]
            continue
        labels = (result.run, result.method, result.model, result.task, result.sample)
        twin = 0
        while any(r.round == result.round for r in found.get((*labels, twin), ())):
            twin += 1
        found.setdefault((*labels, twin), []).append(result)
    return [tuple(sorted(chain, key=lambda r: r.round or 0)) for chain in found.values()]


def answer_of(chain: Sequence[Result], kept: KeptAnswer = "best") -> Result:
    """Return the round of a chain that is its answer."""
    if kept == "last" or len(chain) == 1:
        return chain[-1]
    return max(enumerate(chain), key=lambda item: (*_merit(item[1]), item[0]))[1]


def _merit(result: Result) -> tuple[bool, bool, bool, float]:
    """Rank by right, wrong, not judged; then by what ran; then by speed."""
    return result.correct, result.judged, result.called, result.speedup() or 0.0
