"""One file judged: from options to the document of `check --json`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from kerneltruth.cases.published import published_dtype
from kerneltruth.cases.strategies import dtypes_of, generate
from kerneltruth.documents.case import Domain
from kerneltruth.documents.checks import (
    CheckDocument,
    DeclinedCase,
    InterfaceDocument,
    ObligationDocument,
)
from kerneltruth.documents.lines import ResultLine, attempt_in, read_line
from kerneltruth.documents.model import content_hash, model_of, plain
from kerneltruth.documents.records import Attempt, ProfileEntry
from kerneltruth.documents.verdict import Failed, Passed, Unrefereeable, said_of
from kerneltruth.engine.evaluator import (
    BRIEF,
    FULL,
    CandidateJudged,
    DiagnosisBegun,
    EvaluationRequest,
    Evaluator,
    detail_of_attempt,
    judge_and_diagnose,
)
from kerneltruth.engine.policy import bounded_dtypes, choose_policy
from kerneltruth.engine.requests import (
    CASES_OF_FILE,
    SHORT_DTYPES,
    CheckRequest,
    Explain,
    Judged,
    Step,
)
from kerneltruth.engine.run_directory import (
    AttemptFindings,
    environment,
    findings_in,
    open_run,
    store_attempt,
)
from kerneltruth.errors import UserError
from kerneltruth.explain.diagnosis import DiagnosisEffort
from kerneltruth.explain.reproducer.smallest import script_of
from kerneltruth.oracle.attempt import CaseJudged
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.contract import contract_named
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.second_round import SecondRoundBegun
from kerneltruth.runner.host import Runner
from kerneltruth.runs.findings import load_finding
from kerneltruth.runs.store import RunStore
from kerneltruth.suites.catalog import open_tasks, opened, under_rules
from kerneltruth.suites.recognize import recognize
from kerneltruth.tasks.registry import elsewhere, find
from kerneltruth.tasks.spec import Task

EFFORTS: Final[dict[Explain, DiagnosisEffort | None]] = {"full": FULL, "brief": BRIEF, "none": None}


def judge_file(
    options: CheckRequest, runner: Runner, start: float
) -> Generator[Step, None, CheckDocument]:
    """Judge the file with a runner that is warming up; `start` is when the command began."""
    with opened(options.suite, runner) as suite:
        options = replace(options, suite=suite)
        policy = choose_policy(options.bounds, tf32=options.tf32)
        evaluator = Evaluator(policy=policy, runner=runner)
        return (yield from judge(options, evaluator, start)).document


def judge(
    options: CheckRequest, evaluator: Evaluator, start: float
) -> Generator[Step, None, Judged]:
    """Judge a candidate of an open suite, with the policy of the request.

    `start` is when the command began, on the monotonic clock.

    Raises:
        CandidateError: the source is no candidate for the task.
        UserError: an option is wrong.
    """
    job = job_of(options, evaluator.cache.policy)
    yield from learned(options.suite)
    if options.keep:
        with run_of(options, evaluator, [job]) as store:
            return (yield from judge_into(store, options, evaluator, job, start))
    attempt, script = yield from _attempt(evaluator, job, options)
    found = findings_in(
        attempt, environment(evaluator.runner.device), policy=evaluator.cache.policy
    )
    return _judged(options, found, None, start, script)


def learned(suite: str | None) -> Iterator[Step]:
    """Yield what was learned of a reference of the user's own, if the suite is one."""
    known = open_tasks(suite)
    names = known.listed() if known is not None and len(known) == 1 else ()
    for name in names:
        text = known.suite.declaration(name, short=True) if known is not None else None
        if text is not None:
            yield Step(done=0, total=1, text=text, notable=True)


@contextlib.contextmanager
def run_of(
    options: CheckRequest, evaluator: Evaluator, jobs: Sequence[EvaluationRequest]
) -> Iterator[RunStore[ResultLine]]:
    """Begin the run of these jobs, or go on with it; it is finished once anything was judged."""
    policy, runner = evaluator.cache.policy, evaluator.runner
    each = [
        [job.candidate.sha256, plain(job.plan), plain(policy), runner.device, runner.targets]
        for job in jobs
    ]
    with open_run(
        options.out,
        command="check",
        identity=content_hash(each[0] if len(each) == 1 else each),
        device=runner.device,
        seed=options.seed,
        keep=read_line,
    ) as store:
        known = store.done()
        yield store
        if not known.issuperset(job.name for job in jobs):
            store.finish()


def judge_into(
    store: RunStore[ResultLine],
    options: CheckRequest,
    evaluator: Evaluator,
    job: EvaluationRequest,
    start: float,
) -> Generator[Step, None, Judged]:
    """Judge a job of a run, or return what the run holds of it already."""
    done = [line for line in store.results() if line.key == job.name]
    if done:
        return _read_stored(options, done[0], store.path)
    attempt, script = yield from _attempt(evaluator, job, options)
    here = environment(evaluator.runner.device)
    found = store_attempt(store, job, attempt, here, policy=evaluator.cache.policy)
    return _judged(options, found, store.path, start, script)


def _judged(
    options: CheckRequest, found: AttemptFindings, run: Path | None, start: float, script: str
) -> Judged:
    seconds = time.monotonic() - start
    document = check_document(options, found.attempt, finding=found.name, run=run, seconds=seconds)
    return Judged(document=document, findings=found.all, script=script)


def _read_stored(options: CheckRequest, line: ResultLine, run: Path) -> Judged:
    """Return what a run holds already."""
    attempt, deciding = attempt_in(line), line.finding or None
    document = check_document(options, attempt, finding=deciding, run=run, seconds=attempt.seconds)
    # An earlier version named the files of findings in a profile.
    others = (
        e.finding and f"{e.finding.removesuffix('.json')}.json" for e in attempt.profile.values()
    )
    names = dict.fromkeys(name for name in (deciding, *others) if name)
    return Judged(
        document=document, findings=tuple(load_finding(run / "findings" / name) for name in names)
    )


def job_of(options: CheckRequest, policy: Policy) -> EvaluationRequest:
    """Return the job that a request means.

    Raises:
        CandidateError: the source is no candidate for the task.
        UserError: an option is wrong.
    """
    candidate, task = recognize(
        options.file, options.task, options.suite, source=options.source, entry=options.entry
    )
    contract = contract_named(options.contract)
    domain: Domain = "core" if options.domain == "core" else "extended"
    if domain == "core" and contract.name == "torch":
        raise UserError(
            "--domain core: it leaves out what --contract torch decides by; leave out one of them"
        )
    plan = Plan(
        seed=options.seed,
        strategies=options.strategies,
        cases=options.cases or CASES_OF_FILE,
        whole=True,
        promises=options.cases is None,
        dtypes=_dtypes(options.dtypes, task, domain) or bounded_dtypes(task, policy),
        domain=domain,
        contract=contract.name,
        deadline_s=options.deadline_s,
        require_kernel=options.require_kernel,
        twice=float(options.twice),
        large=options.keep,
    )
    # Says what is wrong with the strategies before anything is begun.
    generate(
        task,
        strategies=plan.strategies,
        seed=plan.seed,
        count=0,
        dtypes=plan.dtypes,
        domain=plan.domain,
    )
    _check_published_is_asked(plan, task)
    # By its name alone: the same file lies elsewhere on another machine.
    plan = under_rules(plan, task.key)
    return EvaluationRequest(
        name=options.file.name,
        task=task.key,
        candidate=candidate,
        plan=plan,
        effort=EFFORTS[options.explain],
    )


def _check_published_is_asked(plan: Plan, task: Task) -> None:
    """Refuse options that leave nothing to decide by, which anything would pass."""
    dtype = published_dtype(task)
    if plan.contract != "published" or plan.tries_published(dtype):
        return
    left_out = "--strategy" if plan.strategies and "default" not in plan.strategies else "--dtype"
    raise UserError(
        f"{left_out}: it leaves out the published inputs of {task.name} (strategy default, "
        f"{dtype}), which alone decide under --contract published; add them or leave out one option"
    )


def _dtypes(names: tuple[str, ...], task: Task, domain: Domain) -> tuple[str, ...]:
    known = dtypes_of(task, domain)
    for name in names:
        if SHORT_DTYPES.get(name, name) not in known:
            raise UserError(
                f"--dtype {name!r}: {task.name} has, in its {domain} domain, {', '.join(known)}"
            )
    return tuple(dict.fromkeys(SHORT_DTYPES.get(name, name) for name in names))


def _attempt(
    evaluator: Evaluator, job: EvaluationRequest, options: CheckRequest
) -> Generator[Step, None, tuple[Attempt, str]]:
    """Judge the job; return the attempt, and the script of its failure."""
    task = find(job.task)
    total = evaluator.cache.deals.planned_cases(task, job.plan, evaluator.runner.device)
    script, done = "", 0
    with CandidateSession(
        task,
        job.candidate,
        evaluator.runner,
        evaluator.cache,
        deadline_s=job.plan.deadline_s,
        eager_checks=evaluator.eager_checks,
    ) as session:
        for event in judge_and_diagnose(session, job):
            match event:
                case CaseJudged(judgement=judgement):
                    done = min(done + 1, total)
                    text = f"{judgement.verdict.word}: {judgement.case.summary()}"
                    yield Step(done=done, total=total, text=text)
                case SecondRoundBegun():
                    text = "right; judging it again in a fresh process"
                    yield Step(done=total, total=total, text=text)
                case DiagnosisBegun():
                    text = "looking for the smallest failing case"
                    yield Step(done=total, total=total, text=text)
                case CandidateJudged(attempt=attempt, cases=cases, diagnosis=found):
                    failure = attempt.failure
                    if found is not None and failure is not None and not options.keep:
                        script = script_of(
                            session,
                            found.minimal,
                            failure.verdict,
                            explanation=found.explanation,
                            explained=failure.case,
                            config=failure.config,
                        )
    if not (cases or attempt.skipped) and isinstance(attempt.verdict, Unrefereeable):
        raise UserError(
            f"no case of {task.name} fits these --strategy, --dtype and --domain; drop one of them"
        )
    return attempt, script


def check_document(
    options: CheckRequest,
    attempt: Attempt,
    *,
    finding: str | None,
    run: Path | None,
    seconds: float,
) -> CheckDocument:
    """Return the document of a judged file.

    `finding` is the file name of the one that decides, within the directory `run`, if one is
    written.
    """
    verdict = attempt.verdict
    failed = verdict if isinstance(verdict, Failed) else None
    failure = attempt.failure
    failing = failure.case if failure else None
    chosen = options.task is not None or options.suite is not None or not attempt.task
    return model_of(
        CheckDocument,
        attempt,
        also_in=() if chosen else tuple(elsewhere(find(attempt.task))),
        passed=isinstance(verdict, Passed),
        verdict=verdict.word,
        hazards=tuple(attempt.hazards.values()),
        declined=tuple(DeclinedCase(case=c.summary(), reason=why) for c, why in attempt.declined),
        kind=failed.kind if failed else None,
        output=failed.output if failed else None,
        causes=failed.causes if failed else (),
        inputs=failed.inputs if failed else (),
        detail=detail_of_attempt(attempt),
        profile={key: _obligation(entry) for key, entry in attempt.profile.items()},
        interface=tuple(
            model_of(InterfaceDocument, note, first_summary=note.first.summary())
            for note in attempt.interface
        ),
        finding=_path(finding, run) if finding else None,
        failing=failing,
        failing_summary=failing.summary() if failing else None,
        domain=failing.domain if failing else None,
        minimal_summary=attempt.minimal.summary() if attempt.minimal else None,
        minimal_shown=attempt.shown,
        stats=failure.stats if failure else None,
        seed=options.seed,
        seconds=seconds,
        run=str(run) if run else None,
    )


def _path(finding: str, run: Path | None) -> str:
    return str(run / "findings" / finding) if run else finding


def _obligation(entry: ProfileEntry) -> ObligationDocument:
    failure = entry.failure
    verdict = failure.verdict if failure else None
    return model_of(
        ObligationDocument,
        entry,
        kind=verdict.kind if isinstance(verdict, Failed) else None,
        detail="" if verdict is None else said_of(verdict),
        case=failure.case if failure else None,
        case_summary=failure.case.summary() if failure else None,
    )
