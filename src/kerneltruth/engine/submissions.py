"""Many submissions judged: from options to the document of `run --json`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence

from msgspec import UNSET, UnsetType, structs

from kerneltruth.cases.strategies import strategies_of
from kerneltruth.clock.integrity.valid_baselines import NOT_VALID
from kerneltruth.documents.lines import ResultLine, StagesRecord, with_attempt
from kerneltruth.documents.model import content_hash
from kerneltruth.documents.records import Attempt, CandidateRef
from kerneltruth.documents.runs import NotRead, NoValidBaseline, RunCandidate, RunDocument
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.documents.verdict import CompileError, Infra
from kerneltruth.engine.benchmark.baselines import check_baselines
from kerneltruth.engine.candidates import scheduler_of
from kerneltruth.engine.devices import device_name
from kerneltruth.engine.evaluator import (
    BRIEF,
    Evaluation,
    EvaluationRequest,
    Evaluator,
    lost,
    not_timed,
)
from kerneltruth.engine.requests import CASES, CONTRACT, STAGES, TWICE_OF_MANY, RunRequest, Step
from kerneltruth.engine.run_directory import environment, last_failed, open_run, store_attempt
from kerneltruth.engine.scheduling.scheduler import Done, Lost, Progress, judges_at_once
from kerneltruth.engine.stages import (
    NOT_RUN,
    ListedLine,
    by_obligation,
    listed,
    right_of,
    stages_of,
)
from kerneltruth.errors import UserError
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.contract import contract_named
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.host import Runner
from kerneltruth.runs.store import RunStore
from kerneltruth.suites.catalog import on_device, opened, submissions_at, under_rules
from kerneltruth.suites.entries import Entry, candidate_of, match_tasks
from kerneltruth.suites.reference_facts import store_facts
from kerneltruth.suites.submission import Broken
from kerneltruth.tasks.registry import accepted_by


def judge_submissions(
    options: RunRequest, runners: Sequence[Runner], start: float
) -> Generator[Step, None, RunDocument]:
    """Judge with a warming runner for each device; `start` is when the command began."""
    with opened(options.suite, runners[0], judges=judges_at_once(options.workers)) as suite:
        return (yield from _judge(options, suite or options.suite, runners, start))


def _judge(
    options: RunRequest, suite: str, runners: Sequence[Runner], start: float
) -> Generator[Step, None, RunDocument]:
    # Refuse wrong options before anything begins.
    check_baselines(options.against)
    chosen = strategies_of(options.strategies)
    if contract_named(options.contract).name == "published" and "default" not in chosen:
        raise UserError(
            "--strategy: it leaves out the published inputs (strategy default), which alone decide "
            "under --contract published; add it or leave out one option"
        )
    tasks = accepted_by(suite)
    entries: list[Entry] = []
    broken: list[Broken] = []
    submissions = submissions_at(options.candidates, suite)
    for item in match_tasks(submissions, tasks, options.labels):
        (broken if isinstance(item, Broken) else entries).append(item)  # type: ignore[arg-type]
    if not entries:
        raise UserError(_nothing(options, broken))
    wanted = last_failed(options.candidates) if options.last_failed else frozenset()
    # As with tests: where nothing failed, all of them are judged.
    entries = [e for e in entries if e.submission.origin in wanted] or entries
    identifying: list[object] = [options.suite, options.cases, options.strategies, options.stages]
    identifying += [options.device if len(runners) > 1 else runners[0].device]
    identifying += [["contract", options.contract]] if options.contract != CONTRACT else []
    identifying += ["baselines"] if options.peer_checks else []
    identifying += [["against", *sorted({*options.against})]] if options.against else []
    identifying += [["last_failed", *sorted(wanted)]] if wanted else []
    identifying += ["kernels"] if options.kernels else []
    identifying += ["require_kernel"] if options.require_kernel else []
    identifying += ["twice"] if options.twice else []
    identity = content_hash(identifying)
    with open_run(
        options.out,
        command="run",
        identity=identity,
        device=runners[0].device,
        seed=options.seed,
        keep=ListedLine.of,
    ) as store:
        store_facts(store.path, {entry.task.key for entry in entries})
        evaluators = [
            Evaluator(policy=Policy(), runner=runner, suite=on_device(suite, runner))
            for runner in runners
        ]
        run = _Run(options, evaluators, store, entries)
        yield from run.judge()
        document = run.document(broken, seconds=time.monotonic() - start)
        store.finish()
    return document


def _nothing(options: RunRequest, broken: list[Broken]) -> str:
    first = f"; {broken[0].origin}: {broken[0].reason}" if broken else ""
    return (
        f"--candidates {options.candidates}: no submission for the suite {options.suite} "
        f"among {len(broken)} items{first}"
    )


class _Run:
    """A run in progress: what remains to be judged, and the results so far."""

    def __init__(
        self,
        options: RunRequest,
        evaluators: Sequence[Evaluator],
        store: RunStore[ListedLine],
        entries: list[Entry],
    ) -> None:
        self._options = options
        self._store = store
        self._evaluators = evaluators
        self._device = evaluators[0].runner.device
        self._compares = options.peer_checks and "exe" in options.stages
        self._entries = entries
        self._fingerprint: dict[str, str | None] = {}
        self._began = time.monotonic()
        self._before = len(store.done())
        self._counts = _counts(store.results())

    def judge(self) -> Iterator[Step]:
        """Judge what has no line yet; at the end, retry once what the machine spoilt."""
        done = self._store.done()
        # Submissions of one task follow each other, because they share expectations.
        firsts, same = _without_repeats(sorted(self._entries, key=lambda e: e.task.key))
        waiting = [e for e in firsts if e.key not in done]
        if waiting:
            self._fingerprint = environment(self._device)
            spoilt: list[Entry] = []
            yield from self._pass(waiting, spoilt)
            if spoilt:
                yield self._step(f"{len(spoilt)} attempts failed on this machine; trying again")
                yield from self._pass(spoilt, None)
        yield from self._repeats([(e, key) for e, key in same if e.key not in done])

    def _pass(self, entries: list[Entry], spoilt: list[Entry] | None) -> Iterator[Step]:
        by_key = {entry.key: entry for entry in entries}
        for event in scheduler_of(self._options, self._evaluators).run(self._jobs(entries)):
            match event:
                case Progress():
                    continue
                case Done(job=job, result=evaluation):
                    pass
                case Lost(job=job, reason=reason):
                    evaluation = lost(job, reason)
            entry = by_key[job.name]
            if isinstance(evaluation.attempt.verdict, Infra) and spoilt is not None:
                spoilt.append(entry)
                continue
            self._keep(entry, job, evaluation)
            yield self._step(entry.key)

    def _jobs(self, entries: list[Entry]) -> Iterator[EvaluationRequest]:
        """Yield jobs as schedulers take them; a submission that cannot run gets a line."""
        options = self._options
        only_call = options.stages == ("call",)
        plan = Plan(
            seed=options.seed,
            strategies=options.strategies,
            cases=1 if only_call else options.cases or CASES,
            whole=not only_call,
            promises=options.cases is None and not only_call,
            contract=contract_named("published" if only_call else options.contract).name,
            deadline_s=options.deadline_s,
            require_kernel=options.require_kernel,
            twice=1.0 if options.twice else 0.0 if only_call else TWICE_OF_MANY,
        )
        for entry in entries:
            try:
                candidate = candidate_of(entry)
            except UserError as error:
                self._refuse(entry, str(error))
                continue
            yield EvaluationRequest(
                name=entry.key,
                task=entry.task.key,
                candidate=candidate,
                plan=plan if only_call else under_rules(plan, entry.task.key),
                peer_seed=options.seed if self._compares else None,
                effort=BRIEF if options.explain else None,
                timed="perf" in options.stages,
            )

    def _refuse(self, entry: Entry, reason: str) -> None:
        ref = CandidateRef(
            sha256=entry.sha256, path=entry.submission.origin, language="unknown", entry=""
        )
        attempt = Attempt(
            task=entry.task.key,
            candidate=ref,
            verdict=CompileError(detail=reason),
            contract=contract_named(self._options.contract).name,
            cases=0,
            failed=0,
            explanation=reason,
            score=0.0,
        )
        self._store.write_source(entry.submission.source)
        perf = not_timed(attempt, self._device) if "perf" in self._options.stages else None
        line = _about(entry, attempt, self._options.stages, perf)
        self._store.append(entry.key, with_attempt(line, attempt, passed=False, finding=None))
        self._count(line.stages)

    def _keep(self, entry: Entry, job: EvaluationRequest, evaluation: Evaluation) -> None:
        peers = evaluation.peer_checks
        about = structs.replace(
            _about(entry, evaluation.attempt, self._options.stages, evaluation.perf),
            tags=evaluation.tags,
            peer_checks=peers if peers else UNSET,
        )
        store_attempt(self._store, job, evaluation.attempt, self._fingerprint, about=about)
        self._count(about.stages)

    def _count(self, stages: StagesRecord | UnsetType) -> None:
        for stage, counter in self._counts.items():
            counter[(stages and stages.outcome(stage)) or NOT_RUN] += 1

    def _repeats(self, same: list[tuple[Entry, str]]) -> Iterator[Step]:
        """Give repeated submissions their own lines, with the verdict on the original."""
        known = {line.key: line for line in self._store.results()}
        for entry, key in same:
            if key not in known:
                continue
            line = structs.replace(
                _about_entry(entry),
                same_as=key,
                stages=known[key].stages,
                torch_only=known[key].torch_only or UNSET,
                passed=known[key].verdict == "pass",
            )
            self._store.append(entry.key, line)
            self._count(known[key].stages)
            yield self._step(entry.key)

    def _step(self, text: str) -> Step:
        done, total = len(self._store.done()), len(self._entries)
        made = done - self._before
        spent = time.monotonic() - self._began
        left = f"; about {spent / made * (total - done) / 60:.0f} min left" if made >= 8 else ""
        said = " ".join(f"{stage} {_short(c)}" for stage, c in self._counts.items())
        return Step(done=done, total=total, text=f"{said}{left}: {text}")

    def _on(self) -> str:
        name, others = device_name(self._device), len(self._evaluators) - 1
        return name if not others else f"{name} and {others} more"

    def document(self, broken: list[Broken], *, seconds: float) -> RunDocument:
        """Build the document that the command returns."""
        lines = self._store.results()
        made = len(lines) - self._before
        candidates = listed(lines)
        of_category: dict[str, list[RunCandidate]] = {}
        for line, candidate in zip(lines, candidates, strict=True):
            of_category.setdefault(line.category, []).append(candidate)
        return RunDocument(
            suite=self._options.suite,
            contract=self._options.contract,
            seed=self._options.seed,
            attempts=len(lines),
            stages={stage: dict(c) for stage, c in self._counts.items()},
            by_category={name: right_of(own) for name, own in sorted(of_category.items())},
            torch_only=right_of([c for c in candidates if c.torch_only]),
            obligations=by_obligation(candidates),
            no_valid_baseline=not_valid(lines),
            repeated_sources=sum(line.same_as is not None for line in lines),
            infra=sum(candidate.verdict == "infra" for candidate in candidates),
            candidates=tuple(candidates),
            broken=tuple(NotRead(where=b.origin, why=b.reason) for b in broken),
            seconds=seconds,
            attempts_per_hour=3600 * made / seconds if made and seconds else None,
            device=self._on(),
            run=str(self._store.path),
        )


def not_valid(lines: Iterable[ListedLine]) -> tuple[NoValidBaseline, ...]:
    """List invalid baselines with reasons: their candidates count, but have no ratio."""
    reasons: dict[tuple[str, str, str], str] = {}
    counts: Counter[tuple[str, str, str]] = Counter()
    for line in lines:
        perf = line.stages.perf
        for shape in (perf and perf.shapes) or ():
            for name, why in shape.baselines_failed.items():
                if why.startswith(NOT_VALID):
                    about = (line.task, shape.summary, name)
                    reasons.setdefault(about, why)
                    counts[about] += 1
    return tuple(
        NoValidBaseline(task=task, shape=shape, baseline=name, why=why, candidates=count)
        for ((task, shape, name), count), why in zip(counts.items(), reasons.values(), strict=True)
    )


def _without_repeats(entries: list[Entry]) -> tuple[list[Entry], list[tuple[Entry, str]]]:
    """Return the first entry of each source and task, and for the others the key of their first."""
    firsts: dict[tuple[str, str], Entry] = {}
    same: list[tuple[Entry, str]] = []
    for entry in entries:
        first = firsts.setdefault(entry.identity, entry)
        if first is not entry:
            same.append((entry, first.key))
    return list(firsts.values()), same


def _about_entry(entry: Entry) -> ResultLine:
    peer, spent = entry.submission.peer, entry.submission.spent
    return ResultLine(
        key=entry.key,
        name=entry.key,
        task=entry.task.key,
        category=entry.task.category,
        origin=entry.submission.origin,
        sha256=entry.sha256,
        labels=entry.labels,
        peer=UNSET if peer is None else peer,
        spent=UNSET if spent is None else spent,
    )


def _about(
    entry: Entry, attempt: Attempt, stages: Sequence[str], perf: CandidateTimes | None
) -> ResultLine:
    """Return what a line says about its entry, and the stages that the run has."""
    return structs.replace(
        _about_entry(entry),
        torch_only=attempt.torch_only or UNSET,
        headers=UNSET if attempt.headers is None else attempt.headers,
        own_weights=UNSET if attempt.own_weights is None else attempt.own_weights,
        stages=stages_of(attempt, stages, perf),
    )


def _counts(lines: Iterable[ListedLine]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {stage: Counter() for stage in STAGES}
    for line in lines:
        for stage, counter in counts.items():
            counter[line.stages.outcome(stage) or NOT_RUN] += 1
    return counts


def _short(counts: Counter[str]) -> str:
    run = {k: n for k, n in counts.items() if k != NOT_RUN}
    return f"{run.get('pass', 0)}/{sum(run.values())}"
