"""A command's run directory: a new one or one to go on with, and what it keeps of attempts."""

from __future__ import annotations

import contextlib
import functools
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kerneltruth import tasks
from kerneltruth.cases.materialize import materialize
from kerneltruth.documents.lines import ResultLine, with_attempt
from kerneltruth.documents.model import content_hash, parse, updated
from kerneltruth.documents.records import Attempt, replace
from kerneltruth.documents.stored import Finding, Manifest
from kerneltruth.documents.verdict import Passed
from kerneltruth.engine.devices import device_name, driver_version
from kerneltruth.engine.stages import ListedLine, listed, was_wrong_when_timed
from kerneltruth.errors import Interrupted, UserError
from kerneltruth.oracle.bounds import Policy
from kerneltruth.runs.files import new_folder, read_json
from kerneltruth.runs.findings import environment_fingerprint, finding_of
from kerneltruth.runs.ledger import Keep, L
from kerneltruth.runs.store import RunStore, now
from kerneltruth.suites.origin import origin_of
from kerneltruth.tasks.registry import find

if TYPE_CHECKING:
    from kerneltruth.engine.evaluator import EvaluationRequest


def suite_hash() -> str:
    """Hash every task declaration that a verdict may depend on, in all suites.

    Hash the files, because suites are imported only when one of their tasks is needed.
    """
    folder = Path(tasks.__file__).parent
    files = sorted(folder.rglob("*.py"))
    return content_hash([[str(f.relative_to(folder)), f.read_text("utf-8")] for f in files])


@contextlib.contextmanager
def open_run(
    out: Path | None,
    *,
    command: str,
    identity: str,
    device: str,
    seed: int,
    keep: Keep[L],
) -> Iterator[RunStore[L]]:
    """Begin a run, or go on with the run of the same command in `out`; closed at the end.

    Without `out` the run lies below `runs/`, or in a temporary folder where the working directory
    cannot be written. `identity` is what a resumed run must have been asked for too.

    Raises:
        UserError: `out` holds another run, or something else.
        Interrupted: in place of a Ctrl-C, and says how to go on.
    """
    store = _open(out, command=command, identity=identity, device=device, seed=seed, keep=keep)
    try:
        yield store
    except KeyboardInterrupt as stop:
        kept = len(store.results())
        raise Interrupted(
            f"interrupted; {kept} result{'' if kept == 1 else 's'} kept in {store.path}; repeat "
            f"the command with --out {shlex.quote(str(store.path))} to go on"
        ) from stop
    finally:
        store.close()


def _open(
    out: Path | None, *, command: str, identity: str, device: str, seed: int, keep: Keep[L]
) -> RunStore[L]:
    arguments = (command, identity)
    if out is not None and (out / "run.json").exists():
        store = RunStore.open(out, keep=keep)
        if store.manifest.arguments[:2] != arguments or store.manifest.seed != seed:
            raise UserError(f"--out {out}: it holds a different run; name a new directory")
        return store
    manifest = Manifest(
        arguments=(*arguments, *sys.argv[1:]),
        seed=seed,
        suite_hash=suite_hash(),
        environment=environment(device),
        started=now(),
    )
    return RunStore.create(out or new_folder(command), manifest, keep=keep)


@functools.cache
def environment(device: str) -> dict[str, str | None]:
    """Return the fingerprint of this machine for results on `device`."""
    return environment_fingerprint(
        device, name=device_name(device), driver=None if device == "cpu" else driver_version()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFindings:
    """An attempt and its findings.

    Attributes:
        attempt: names, for each obligation that is broken, its finding.
        deciding: the finding of the case that decides; None if the attempt did not fail.
        others: of what it breaks beside what decides.
    """

    attempt: Attempt
    deciding: Finding | None
    others: tuple[Finding, ...]

    @property
    def name(self) -> str | None:
        """The name of the file of the finding that decides."""
        return f"{self.deciding.id}.json" if self.deciding else None

    @property
    def all(self) -> tuple[Finding, ...]:
        """All findings, the one that decides first."""
        return (*((self.deciding,) if self.deciding else ()), *self.others)


def findings_in(
    attempt: Attempt, environment: Mapping[str, str | None], *, policy: Policy | None = None
) -> AttemptFindings:
    """Return the findings of an attempt; nothing is written."""
    used = policy or Policy()
    where = {**environment, **origin_of(attempt.task)}

    def found(failing: Attempt) -> Finding:
        return finding_of(failing, where, bounds=used.method, tf32=used.tf32)

    deciding = found(attempt) if attempt.failure is not None else None
    others: list[Finding] = []
    profile = dict(attempt.profile)
    for key, entry in attempt.profile.items():
        if entry.status != "broken" or entry.failure is None:
            continue
        if deciding is not None and entry.failure == attempt.failure:
            profile[key] = replace(entry, finding=deciding.id)
        else:
            failing = replace(
                attempt,
                failure=entry.failure,
                minimal=None,
                explanation="",
                error_map=None,
                shown="",
                quantization=None,
            )
            others.append(found(failing))
            profile[key] = replace(entry, finding=others[-1].id)
    named = {key: entry.finding for key, entry in profile.items()}
    hazards = {key: _named(said, named.get(key)) for key, said in attempt.hazards.items()}
    slim = replace(attempt, error_map=None, profile=profile, hazards=hazards)
    return AttemptFindings(attempt=slim, deciding=deciding, others=tuple(others))


def _named(hazard: str, finding: str | None) -> str:
    return f"{hazard} (finding {finding})" if finding else hazard


def store_attempt(
    store: RunStore[L],
    job: EvaluationRequest,
    attempt: Attempt,
    environment: Mapping[str, str | None],
    *,
    about: ResultLine | None = None,
    policy: Policy | None = None,
) -> AttemptFindings:
    """Store an attempt. The result line comes last: it promises that the rest is there.

    `about` is what else the line says; the attempt and its finding are added.
    """
    store.write_source(job.candidate.source)
    found = findings_in(attempt, environment, policy=policy)
    if found.deciding is not None:
        inputs = materialize(find(job.task), found.deciding.case).tensors
        store.write_finding(found.deciding, inputs)
    for other in found.others:
        # Its inputs follow from its seed: most of these are never looked at.
        store.write_finding(other, {})
    line = about or ResultLine(key=job.name, name=job.name)
    passed = isinstance(attempt.verdict, Passed) and not was_wrong_when_timed(line.stages)
    whole = with_attempt(line, found.attempt, passed=passed, finding=found.name)
    store.append(job.name, whole)
    return found


def last_failed(candidates: Path, folder: Path = Path("runs")) -> frozenset[str]:
    """Return the origins of candidates that did not pass in the newest run of these candidates.

    Raises:
        UserError: there is no such run.
    """
    found = max(_runs_of(candidates, folder), default=None)
    if found is None:
        raise UserError(f"--lf: there is no run of {candidates} in {folder}/; run without --lf")
    with RunStore.open(found[1], keep=ListedLine.of) as run:
        failed = [c.name for c in listed(run.results()) if c.verdict != "pass"]
    return frozenset(name.rpartition("@")[0] for name in failed)


def _runs_of(candidates: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    wanted = candidates.resolve()
    for path in folder.glob("*/run.json"):
        manifest = _manifest(path)
        if manifest is None or manifest.arguments[:1] != ("run",):
            continue
        if any(Path(argument).resolve() == wanted for argument in manifest.arguments[2:]):
            yield manifest.started, path.parent


def _manifest(path: Path) -> Manifest | None:
    """Return a run's manifest; None for one that this version cannot read."""
    try:
        data = read_json(path)
        return parse(Manifest, updated(data, str(path))) if isinstance(data, dict) else None
    except UserError:
        return None
