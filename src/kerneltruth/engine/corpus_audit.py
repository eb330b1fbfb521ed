"""The built-in corpus judged: from options to the document of `audit --json`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterator

from kerneltruth.corpus import ENTRIES, Entry, source
from kerneltruth.documents.lines import ResultLine, attempt_in, read_line
from kerneltruth.documents.model import content_hash, model_of
from kerneltruth.documents.runs import AuditDocument, AuditKernel, AuditObligation, AuditSummary
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.engine.candidates import local_pools
from kerneltruth.engine.devices import device_name
from kerneltruth.engine.evaluator import (
    BRIEF,
    Evaluation,
    EvaluationRequest,
    Evaluator,
    lost,
)
from kerneltruth.engine.requests import CONTRACT, AuditRequest, Step
from kerneltruth.engine.run_directory import environment, open_run, store_attempt
from kerneltruth.engine.scheduling.scheduler import Lost, Progress
from kerneltruth.errors import UserError
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.contract import contract_named
from kerneltruth.oracle.plan import Plan
from kerneltruth.peers import CHECKS
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runs.store import RunStore
from kerneltruth.tasks.core import TASKS


def audit_corpus(
    options: AuditRequest, runner: Runner, start: float
) -> Generator[Step, None, AuditDocument]:
    """Judge the corpus with a runner that is warming up; `start` is when the command began."""
    entries = _chosen(options.only)
    device = runner.device
    jobs = [_job(entry, options) for entry in entries]
    identity = content_hash(
        [[j.name, j.candidate.sha256] for j in jobs]
        + [device, options.cases, options.peer_checks, options.targets]
    )
    with open_run(
        options.out,
        command="audit",
        identity=identity,
        device=device,
        seed=options.seed,
        keep=read_line,
    ) as store:
        waiting = [j for j in jobs if j.name not in store.done()]
        if waiting:
            yield from _judge(waiting, options, runner, store, total=len(jobs))
        document = _document(store, entries, device, seconds=time.monotonic() - start)
        store.finish()
    return document


def _chosen(only: tuple[str, ...]) -> list[Entry]:
    known = {entry.name: entry for entry in ENTRIES}
    unknown = [name for name in only if name not in known]
    if unknown:
        import difflib

        near = difflib.get_close_matches(unknown[0], known, n=3) or sorted(known)[:3]
        raise UserError(
            f"--only {unknown[0]!r}: none of the {len(known)} kernels of the corpus has that name; "
            f"nearest: {', '.join(near)}"
        )
    return [known[name] for name in dict.fromkeys(only or known)]


def _job(entry: Entry, options: AuditRequest) -> EvaluationRequest:
    candidate = read_candidate(
        source(entry), f"{entry.name}.py", task_names=tuple(TASKS), task=entry.task
    )
    return EvaluationRequest(
        name=entry.name,
        task=entry.task,
        candidate=candidate,
        plan=Plan(
            seed=options.seed,
            cases=options.cases,
            whole=True,
            contract=contract_named(options.contract or CONTRACT).name,
            deadline_s=options.deadline_s,
        ),
        peer_seed=options.seed if options.peer_checks else None,
        effort=BRIEF,
        obligation=entry.breaks,
    )


def _judge(
    jobs: list[EvaluationRequest],
    options: AuditRequest,
    runner: Runner,
    store: RunStore[ResultLine],
    *,
    total: int,
) -> Iterator[Step]:
    evaluator = Evaluator(policy=Policy(), runner=runner)
    fingerprint = environment(runner.device)
    done, cases = total - len(jobs), 0
    # By task, so that a judge finds the expectations of its last job again.
    ordered = sorted(jobs, key=lambda job: job.task)
    for event in local_pools((evaluator,), workers=options.workers).run(ordered):
        if isinstance(event, Progress):
            cases += event.news
            yield Step(done=done, total=total, text=f"{cases} cases")
            continue
        died = event.reason if isinstance(event, Lost) else None
        evaluation = lost(event.job, event.reason) if isinstance(event, Lost) else event.result
        _keep(store, event.job, evaluation, fingerprint)
        done += 1
        text = f"{event.job.name}: {died or evaluation.attempt.verdict.word}"
        yield Step(done=done, total=total, text=text, notable=died is not None)


def _keep(
    store: RunStore[ResultLine],
    job: EvaluationRequest,
    evaluation: Evaluation,
    fingerprint: dict[str, str | None],
) -> None:
    about = ResultLine(
        key=job.name,
        name=job.name,
        peer_checks=evaluation.peer_checks,
        tags=evaluation.tags,
        role=next(e.role for e in ENTRIES if e.name == job.name),
    )
    store_attempt(store, job, evaluation.attempt, fingerprint, about=about)


def _document(
    store: RunStore[ResultLine], entries: list[Entry], device: str, *, seconds: float
) -> AuditDocument:
    results = {line.name: line for line in store.results()}
    kernels = [_kernel(entry, results[entry.name]) for entry in entries if entry.name in results]
    controls = [k for k in kernels if k.role == "control"]
    bugs = [k for k in kernels if k.role == "bug"]
    clean = sum(k.passed and not k.hazards for k in controls)
    caught = sum(k.caught for k in bugs)
    notes: Counter[str] = Counter()
    for kernel in kernels:
        notes["cases declined by the kernel (extended domain)"] += kernel.declined
        notes["cases whose bound accepts a wrong result, replaced"] += kernel.unrefereeable
        notes["cases void, since PyTorch itself fails them, replaced"] += kernel.void
        for reason, count in kernel.skipped.items():
            notes[f"cases not run: {reason}"] += count
        notes["specializations compiled"] += kernel.compiled
    cases = sum(k.cases for k in kernels)
    return AuditDocument(
        kernels=tuple(kernels),
        summary=AuditSummary(
            controls=len(controls),
            controls_clean=clean,
            bugs=len(bugs),
            bugs_caught=caught,
            good=clean == len(controls) and caught == len(bugs),
            illusions={
                check.name: sum(check.name in k.illusion_for for k in bugs) for check in CHECKS
            },
            cases=cases,
            control_cases=sum(k.cases for k in controls),
            seconds=seconds,
            cases_per_second=cases / seconds if seconds else None,
            device=device_name(device),
        ),
        notes={k: v for k, v in notes.items() if v},
        run=str(store.path),
    )


_CAUGHT = ("fail", "hack", "compile_error", "runtime_error", "crash", "timeout")


def _kernel(entry: Entry, line: ResultLine) -> AuditKernel:
    attempt = attempt_in(line)
    verdict = attempt.verdict
    peers = {name: result.verdict for name, result in (line.peer_checks or {}).items()}
    broken = [k for k, e in attempt.profile.items() if e.status in ("broken", "refused")]
    wrong = entry.role == "bug" and bool(broken or verdict.word in _CAUGHT)
    return model_of(
        AuditKernel,
        attempt,
        name=entry.name,
        task=entry.task,
        role=entry.role,
        fault=entry.fault,
        obligation=entry.breaks,
        caught=entry.role == "bug" and entry.breaks in broken,
        passed=isinstance(verdict, Passed),
        verdict=verdict.word,
        kind=verdict.kind if isinstance(verdict, Failed) else None,
        minimal_summary=attempt.minimal.summary() if attempt.minimal else None,
        minimal_shown=attempt.shown,
        finding=line.finding or None,
        hazards=tuple(attempt.hazards.values()),
        profile={key: model_of(AuditObligation, e) for key, e in attempt.profile.items()},
        peer_checks=peers,
        peer_check_reasons={n: r.why for n, r in (line.peer_checks or {}).items() if r.why},
        illusion_for=tuple(n for n, says in peers.items() if wrong and says == "pass"),
        declined=len(attempt.declined),
        unrefereeable=sum(attempt.unrefereeable.values()),
        void=sum(attempt.void.values()),
        compiled=len(attempt.binaries),
    )
