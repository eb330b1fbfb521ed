"""`minimize`: the smallest failing case of a finding, and a standalone script that shows it."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from msgspec.structs import replace

from kerneltruth.documents.records import Judgement
from kerneltruth.documents.verdicts import MinimizeDocument
from kerneltruth.engine.devices import choose_device
from kerneltruth.engine.evaluator import Evaluator
from kerneltruth.engine.events import Step
from kerneltruth.engine.replay import cache_for, candidate_of, finding_at, judge_again, targets_of
from kerneltruth.engine.runners import cache_root
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.explain.diagnosis import DiagnosisEffort, diagnose
from kerneltruth.explain.reproducer.script import script as standalone_script
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.controls import Controls
from kerneltruth.oracle.verdict import (
    OF_SEVERAL_CALLS,
    Failed,
    Infra,
    UnsupportedHere,
    Verdict,
    is_bad,
    word,
)
from kerneltruth.runs.findings import load_finding
from kerneltruth.suites.foreign import for_findings
from kerneltruth.suites.pytorch import control_of
from kerneltruth.tasks.registry import find

SECONDS = 120.0


def run_minimize(
    path: Path,
    *,
    script: Path | None,
    device: str,
    evaluations: int,
    deadline_s: float,
    suite: str | None = None,
) -> Generator[Step, None, MinimizeDocument]:
    """Shrink a finding and write its script; returns the document of `minimize --json`."""
    if path.is_dir():
        raise UserError(f"{path} is a directory; name one finding, such as {path}/findings/ID.json")
    with for_findings((load_finding(path),), suite):
        return (yield from _minimize(path, script, device, evaluations, deadline_s))


def _minimize(
    path: Path, script: Path | None, device: str, evaluations: int, deadline_s: float
) -> Generator[Step, None, MinimizeDocument]:
    finding = finding_at(path)
    candidate = candidate_of(path, finding)
    task = find(finding.task)
    here = choose_device(device)
    cache = cache_for(finding)
    evaluator = Evaluator(
        device=here, targets=targets_of((finding,)), policy=Policy(), cache_root=cache_root()
    )
    try:
        evaluator.start()
        yield Step(done=0, total=evaluations, text="running the finding again")
        controls = Controls(evaluator.runner, cache, control_of)
        with CandidateSession(
            task, candidate, evaluator.runner, cache, deadline_s=deadline_s, controls=controls
        ) as session:
            expectation = cache.get(task, finding.case)
            verdict, _ = judge_again(session, finding, expectation)
            if isinstance(verdict, UnsupportedHere | Infra):
                raise EnvironmentFault(f"{path} cannot run here: {verdict.reason}")
            if not is_bad(verdict):
                raise UserError(
                    f"{path}: the finding does not fail here ({word(verdict)}); see `replay`"
                )
            failure = Judgement(case=finding.case, verdict=verdict, config=finding.config)
            effort = DiagnosisEffort(evaluations=evaluations, seconds=SECONDS)
            diagnosis = diagnose(session, failure, (), effort)
            small = cache.get(task, diagnosis.minimal)
            ruling, _, placed = session.call(small, config=finding.config)
            text = standalone_script(
                task=task,
                candidate=candidate,
                expectation=small,
                placed=placed,
                verdict=_shown(verdict, ruling.verdict),
                explanation=finding.explanation or diagnosis.explanation,
                config=finding.config,
            )
        target = script or path.with_suffix(".py")
        _write(target, text)
        yield Step(done=evaluations, total=evaluations, text=f"wrote {target}")
    finally:
        evaluator.close()
    minimal = replace(diagnosis.minimal, strategy="minimized")
    return MinimizeDocument(
        finding=str(path),
        verdict=verdict.word,
        kind=verdict.kind if isinstance(verdict, Failed) else None,
        case=finding.case,
        minimal=minimal,
        minimal_summary=minimal.summary(),
        minimal_shown=diagnosis.shown,
        evaluations=diagnosis.evaluations,
        explanation=diagnosis.explanation,
        script=str(target),
    )


def _shown(verdict: Verdict, smaller: Verdict) -> Verdict:
    """The verdict that a script shows: on the smallest case, if one call of that shows it."""
    several = isinstance(verdict, Failed) and verdict.kind in OF_SEVERAL_CALLS
    return smaller if is_bad(smaller) and not several else verdict


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise EnvironmentFault(
            f"cannot write {path}: {error.strerror}; name another file with --script"
        ) from error
