"""`minimize`: the smallest failing case of a finding, and a standalone script that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from kerneltruth.documents.checks import MinimizeDocument
from kerneltruth.documents.records import Judgement
from kerneltruth.documents.stored import Finding
from kerneltruth.documents.verdict import Failed, Infra, UnsupportedHere, Verdict, is_bad
from kerneltruth.engine.devices import begin, choose_device, new_runner
from kerneltruth.engine.replay import rejudge
from kerneltruth.engine.requests import Events, MinimizeRequest, Step
from kerneltruth.engine.stored_findings import cache_for, candidate_of, finding_at, targets_of
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.explain.diagnosis import Diagnosis, DiagnosisEffort, diagnose
from kerneltruth.explain.reproducer.smallest import script_of
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.eager_checks import EagerChecks
from kerneltruth.runner.host import Runner
from kerneltruth.runs.files import write_whole
from kerneltruth.runs.findings import load_finding
from kerneltruth.suites.origin import for_findings
from kerneltruth.suites.pytorch import unaided_function
from kerneltruth.tasks.registry import find

SECONDS = 120.0


def minimize_finding(request: MinimizeRequest) -> Events[MinimizeDocument]:
    """Shrink a finding, and write its script."""
    path = request.path
    if path.is_dir():
        raise UserError(f"{path} is a directory; name one finding, such as {path}/findings/ID.json")
    with for_findings((load_finding(path),), request.suite):
        return (yield from _minimize(request))


def _minimize(request: MinimizeRequest) -> Events[MinimizeDocument]:
    path, total = request.path, request.evaluations
    finding = finding_at(path)
    with new_runner(choose_device(request.device), targets_of((finding,))) as runner:
        begin(runner)
        yield Step(done=0, total=total, text="running the finding again")
        found = _find_smallest(runner, finding, request)
    script = request.script or path.with_suffix(".py")
    _write(script, found.script)
    yield Step(done=total, total=total, text=f"wrote {script}")
    minimal = replace(found.diagnosis.minimal, strategy="minimized")
    return MinimizeDocument(
        finding=str(path),
        obligations=finding.obligations,
        verdict=found.verdict.word,
        kind=found.verdict.kind if isinstance(found.verdict, Failed) else None,
        case=finding.case,
        minimal=minimal,
        minimal_summary=minimal.summary(),
        minimal_shown=found.diagnosis.shown,
        evaluations=found.diagnosis.evaluations,
        explanation=found.diagnosis.explanation,
        script=str(script),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Smallest:
    """The verdict here, what explains it, and the text of the script."""

    verdict: Verdict
    diagnosis: Diagnosis
    script: str


def _find_smallest(runner: Runner, finding: Finding, request: MinimizeRequest) -> _Smallest:
    task, candidate = find(finding.task), candidate_of(request.path, finding)
    cache = cache_for(finding)
    with CandidateSession(
        task,
        candidate,
        runner,
        cache,
        deadline_s=request.deadline_s,
        eager_checks=EagerChecks(runner, cache, unaided_function),
    ) as session:
        verdict = _failing(session, finding, request.path)
        failure = Judgement(case=finding.case, verdict=verdict, config=finding.config)
        effort = DiagnosisEffort(evaluations=request.evaluations, seconds=SECONDS)
        diagnosis = diagnose(session, failure, (), effort)
        script = script_of(
            session,
            diagnosis.minimal,
            verdict,
            explanation=finding.explanation or diagnosis.explanation,
            explained=finding.case,
            config=finding.config,
        )
    return _Smallest(verdict=verdict, diagnosis=diagnosis, script=script)


def _failing(session: CandidateSession, finding: Finding, path: Path) -> Verdict:
    """Judge the finding's case here.

    Raises:
        EnvironmentFault: it cannot be judged here.
        UserError: it is not bad.
    """
    expectation = session.cache.get(session.task, finding.case)
    verdict = rejudge(session, finding, expectation).verdict
    if isinstance(verdict, UnsupportedHere | Infra):
        raise EnvironmentFault(f"{path} cannot run here: {verdict.reason}")
    if not is_bad(verdict):
        raise UserError(f"{path}: the finding does not fail here ({verdict.word}); see `replay`")
    return verdict


def _write(path: Path, text: str) -> None:
    try:
        # A link that lies there is replaced, not followed.
        write_whole(path, text.encode())
    except OSError as error:
        raise EnvironmentFault(
            f"cannot write {path}: {error.strerror}; name another file with --script"
        ) from error
