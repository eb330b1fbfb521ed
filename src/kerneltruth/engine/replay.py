"""`replay`: a finding's inputs made again, its kernel run again, everything compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from kerneltruth.cases.strategies import generate
from kerneltruth.documents import records
from kerneltruth.documents.checks import ReplayDocument, ReplayResult
from kerneltruth.documents.records import OBLIGATIONS
from kerneltruth.documents.stored import Finding
from kerneltruth.documents.verdict import CompileError, Failed, FailKind, Verdict, is_bad
from kerneltruth.engine.devices import begin, choose_device, new_runner
from kerneltruth.engine.requests import Events, ReplayRequest, Step
from kerneltruth.engine.run_directory import environment
from kerneltruth.engine.stored_findings import cache_for, candidate_of, finding_at, targets_of
from kerneltruth.engine.written_errors import write_errors
from kerneltruth.errors import UserError
from kerneltruth.oracle.attempt import load_verdict
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation import Expectation, tensors_digest
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.judge import Ruling, is_of_form
from kerneltruth.oracle.probes import probe
from kerneltruth.oracle.repeated_calls import reproduced
from kerneltruth.runner.host import Runner
from kerneltruth.runs.findings import load_finding
from kerneltruth.runs.store import load_snapshot
from kerneltruth.suites.origin import for_findings
from kerneltruth.tasks.registry import find

# Cases that are called before one that is wrong only after others.
_IN_BETWEEN = 8


def replay_findings(request: ReplayRequest) -> Events[ReplayDocument]:
    """Run findings again; yields a step for each."""
    files = _files_of(request)
    with for_findings((load_finding(path) for path in files), request.suite):
        return (yield from _replay_all(files, request))


def _replay_all(files: Iterable[Path], request: ReplayRequest) -> Events[ReplayDocument]:
    found = [(path, finding_at(path)) for path in files]
    here = choose_device(request.device)
    results: list[ReplayResult] = []
    with new_runner(here, targets_of(finding for _, finding in found)) as runner:
        begin(runner)
        now = environment(here)
        for path, finding in found:
            result = _replay(runner, path, finding, now, request)
            results.append(result)
            said = f"{finding.id}: {'reproduced' if result.reproduced else result.reason}"
            yield Step(done=len(results), total=len(found), text=said)
    return ReplayDocument(
        findings=len(results),
        reproduced=sum(r.reproduced for r in results),
        device=here,
        results=tuple(results),
    )


def _files_of(request: ReplayRequest) -> list[Path]:
    """Return the finding files that a request names, of one obligation if it asks for one."""
    wanted = request.obligation
    if wanted is not None and wanted.partition(".")[0] not in OBLIGATIONS:
        raise UserError(f"--obligation {wanted!r}: must be one of {', '.join(OBLIGATIONS)}")
    files = _files(request.paths)
    if wanted is None:
        return files
    found = {path: load_finding(path).obligations for path in files}
    # `dtypes` stands for each of its parts.
    chosen = [
        path
        for path, broken in found.items()
        if any(wanted in (key, key.partition(".")[0]) for key in broken)
    ]
    if not chosen:
        others = ", ".join(dict.fromkeys(key for broken in found.values() for key in broken))
        known = f"they break {others}" if others else "an earlier version recorded none"
        raise UserError(f"--obligation {wanted}: no finding breaks it; {known}")
    return chosen


def _files(paths: Sequence[Path]) -> list[Path]:
    """Return the finding files that the arguments name: themselves, or those of a run."""
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        if not (path / "findings").is_dir():
            raise UserError(
                f"{path} is neither a finding nor a run: it has no folder `findings`; name a run's "
                "own directory, a file of its `findings`, or a finding's ID"
            )
        files += sorted((path / "findings").glob("*.json"))
    if not files:
        named = ", ".join(map(str, paths))
        raise UserError(
            f"{named}: no findings there, as after a run without failures; name another run"
        )
    return files


def _replay(
    runner: Runner,
    path: Path,
    finding: Finding,
    now: Mapping[str, str | None],
    request: ReplayRequest,
) -> ReplayResult:
    task, candidate = find(finding.task), candidate_of(path, finding)
    cache = cache_for(finding)
    expectation = cache.get(task, finding.case)
    result = _not_run(path, finding, expectation)
    if request.from_snapshot:
        expectation = _from_snapshot(cache, path, finding, expectation)
    elif finding.digests.inputs and result.inputs == "differ":
        return records.replace(result, reason=_what_differs(finding, expectation))
    with CandidateSession(task, candidate, runner, cache, deadline_s=request.deadline_s) as session:
        rejudged = rejudge(session, finding, expectation)
    verdict, output = rejudged.verdict, _output(finding, rejudged.digest, now)
    reason = _why_not_reproduced(finding, verdict, output)
    folder = request.errors
    errors = folder and write_errors(folder, finding, expectation, rejudged.ruling)
    return records.replace(
        result,
        verdict=verdict.word,
        kind=_kind(verdict),
        output=output,
        reproduced=not reason,
        reason=reason,
        errors=errors,
    )


def _not_run(path: Path, finding: Finding, expectation: Expectation) -> ReplayResult:
    """Return what is known of a finding before its candidate runs."""
    same = expectation.inputs.digests() == finding.digests.inputs
    return ReplayResult(
        finding=str(path),
        id=finding.id,
        obligations=finding.obligations,
        inputs="same" if same else "differ",
        reference=_same(expectation.digest(), finding.digests.reference),
        recorded=finding.verdict.word,
        recorded_kind=_kind(finding.verdict),
        verdict=None,
        kind=None,
        output="not compared",
        reproduced=False,
        reason="",
    )


def _what_differs(finding: Finding, expectation: Expectation) -> str:
    digests, recorded = expectation.inputs.digests(), finding.digests.inputs
    names = sorted(n for n, d in digests.items() if recorded.get(n) != d)
    return (
        f"the inputs made from the seed differ in {', '.join(names)}; "
        "use --from-snapshot to run on the stored ones"
    )


def _why_not_reproduced(finding: Finding, verdict: Verdict, output: str) -> str:
    """Empty where the verdict is the recorded one, and so are the output's bytes."""
    recorded = finding.verdict
    if (verdict.word, _kind(verdict)) != (recorded.word, _kind(recorded)):
        return f"the verdict is {verdict.word} {_kind(verdict) or ''}".strip()
    if output == "differ" and not _restless(recorded):
        return "same verdict, but other output bytes"
    return ""


def _output(finding: Finding, digest: str | None, now: Mapping[str, str | None]) -> str:
    """Compare the output's bytes with the recorded ones; say so if made elsewhere."""
    if finding.digests.output is None or digest is None:
        return "not compared"
    same_device = all(
        now.get(k) == finding.environment.get(k) for k in ("device_name", "torch", "triton")
    )
    elsewhere = "" if same_device else " (another device or library version)"
    return _same(digest, finding.digests.output) + elsewhere


def _kind(verdict: Verdict) -> FailKind | None:
    return verdict.kind if isinstance(verdict, Failed) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rejudged:
    """A finding's case judged again; `ruling` is of its call, None where there was none."""

    verdict: Verdict
    ruling: Ruling | None = None

    @property
    def digest(self) -> str | None:
        """The output's digest; None without one."""
        outputs = self.ruling.outputs if self.ruling else ()
        return tensors_digest(outputs) if outputs else None


def rejudge(session: CandidateSession, finding: Finding, expectation: Expectation) -> Rejudged:
    """Judge a finding's case as the session gave it."""
    not_loaded = load_verdict(session)
    if not_loaded is not None:
        return Rejudged(verdict=not_loaded)
    ruling, observation, _ = session.call(expectation, config=finding.config)
    verdict = ruling.with_form if is_of_form(finding.verdict) else ruling.verdict
    if isinstance(finding.verdict, CompileError) and session.runner.targets:
        refused = session.compile(expectation, observation.launches, finding.config)
        verdict = refused or verdict
    if isinstance(verdict, Failed):
        probes = probe(session, expectation, ruling, config=finding.config)
        verdict = probes.refine(verdict)
    if not is_bad(verdict):
        cases = generate(session.task, seed=0, count=_IN_BETWEEN, device=session.runner.device)
        others = (session.cache.get(session.task, case) for case in cases)
        late = session.changed_later()
        verdict = late[1] if late else verdict
        verdict = reproduced(session, finding.verdict, expectation, others) or verdict
    return Rejudged(verdict=verdict, ruling=ruling)


def _from_snapshot(
    cache: ExpectationCache, path: Path, finding: Finding, made: Expectation
) -> Expectation:
    stored = load_snapshot(path)
    if stored is None:
        raise UserError(f"{path}: its inputs were too large to store; replay from the seed")
    from kerneltruth.oracle.expectation_builder import expect_on

    tensors = {name: stored.get(name) for name in made.inputs.tensors}
    return expect_on(
        find(finding.task), finding.case, replace(made.inputs, tensors=tensors), cache.policy
    )


def _restless(verdict: Verdict) -> bool:
    if not isinstance(verdict, Failed):
        return False
    kinds = {verdict.kind, *(cause.kind for cause in verdict.causes)}
    return "nondeterministic" in kinds


def _same(one: str, other: str | None) -> Literal["same", "differ", "not compared"]:
    if other is None:
        return "not compared"
    return "same" if one == other else "differ"
