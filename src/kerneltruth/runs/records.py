"""What a run stores: verdicts, result lines, findings and the manifest, and their JSON forms."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kerneltruth import __version__
from kerneltruth.cases.case import Case
from kerneltruth.codec import build, content_hash, plain
from kerneltruth.errors import InternalError, UserError
from kerneltruth.oracle.attempt import (
    Attempt,
    CandidateRef,
    ErrorMap,
    ErrorStats,
    Judgement,
)
from kerneltruth.oracle.verdict import (
    FAIL_KINDS,
    CompileError,
    Crashed,
    Declined,
    Failed,
    Infra,
    Passed,
    RuntimeFault,
    TimedOut,
    Unrefereeable,
    UnsupportedHere,
    Verdict,
    Void,
    word,
)
from kerneltruth.runs.files import read_json

SCHEMA = 1
_SHA256 = re.compile(r"[0-9a-f]{64}")

_VERDICTS: dict[str, type[Verdict]] = {
    "pass": Passed,
    "fail": Failed,
    "compile_error": CompileError,
    "runtime_error": RuntimeFault,
    "declined": Declined,
    "crash": Crashed,
    "timeout": TimedOut,
    "unrefereeable": Unrefereeable,
    "void": Void,
    "unsupported_here": UnsupportedHere,
    "infra": Infra,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a run is: `run.json`. Times are ISO 8601 in UTC; `ended` is None while it lasts."""

    arguments: tuple[str, ...]
    seed: int
    suite_hash: str
    environment: dict[str, str | None]
    started: str
    ended: str | None = None
    version: str = __version__
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """Sha256 over logical elements in row-major order: by input, and of all outputs in order."""

    inputs: dict[str, str]
    reference: str | None
    output: str | None

    def __post_init__(self) -> None:
        named = {**self.inputs, "reference": self.reference, "output": self.output}
        for name, digest in named.items():
            if digest is not None and not _SHA256.fullmatch(digest):
                raise ValueError(f"the digest of {name} is not 64 hex digits: {digest!r:.80}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A failing verdict with everything needed to replay it.

    Attributes:
        config: which configuration the autotuned kernels took, modulo their number.
        poison_seed: which pattern of the case filled uninitialized memory.
        bounds: which method gave the bounds.
        tf32: whether they admit TF32.
        error_map: where the output is wrong; None where there was none of the right form.
        shown: the smallest case in a line, with what is expected and what came.
    """

    id: str
    task: str
    candidate: CandidateRef
    case: Case
    verdict: Verdict
    stats: ErrorStats | None
    digests: Digests
    minimal: Case | None
    explanation: str
    environment: dict[str, str | None]
    config: int = 0
    poison_seed: int = 0
    bounds: str = "spread"
    tf32: bool = True
    error_map: ErrorMap | None = None
    shown: str = ""
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        if self.case.task != self.task:
            raise ValueError(
                f"the case is of task {self.case.task!r}, the finding of {self.task!r}"
            )


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict's word, and its fields beside it."""
    return {"verdict": word(verdict), **plain(verdict)}


def verdict_from_json(data: Any) -> Verdict:
    """Read what `verdict_to_json` wrote.

    Raises:
        UserError: no verdict of this version.
    """
    if not isinstance(data, Mapping) or data.get("verdict") not in _VERDICTS:
        raise UserError(f"not a verdict: {data!r:.80}; known are {', '.join(_VERDICTS)}")
    own = {k: v for k, v in data.items() if k != "verdict"}
    verdict: Verdict = build(_VERDICTS[data["verdict"]], own)
    if isinstance(verdict, Failed) and verdict.kind not in FAIL_KINDS:
        raise UserError(
            f"not a kind of failure: {verdict.kind!r}; known are {', '.join(FAIL_KINDS)}"
        )
    return verdict


def record_to_json(record: Attempt | Judgement | Finding) -> dict[str, Any]:
    """The JSON form of a record that holds a verdict."""
    return {f.name: _field_to_json(getattr(record, f.name)) for f in fields(record)}


def _field_to_json(value: Any) -> Any:
    if isinstance(value, Verdict):
        return verdict_to_json(value)
    if isinstance(value, Judgement):
        return record_to_json(value)
    return plain(value)


def judgement_from_json(data: Any) -> Judgement | None:
    """Read a judgement, or null."""
    if data is None:
        return None
    return build(Judgement, data, {"verdict": verdict_from_json})


def attempt_from_json(data: Any) -> Attempt:
    """Read an attempt, as a result line holds it."""
    parse = {"verdict": verdict_from_json, "failure": judgement_from_json}
    return build(Attempt, data, parse)


def finding_from_json(data: Any) -> Finding:
    """Read a finding; keys that a later version of the same schema added are left out.

    Raises:
        UserError: another schema, a missing key, or a value of the wrong form.
    """
    if not isinstance(data, Mapping):
        raise UserError(f"not a finding: {data!r:.80}")
    refuse_newer(data, "the finding")
    optional = {"config", "poison_seed", "bounds", "tf32", "error_map", "shown"}
    known = [f.name for f in fields(Finding)]
    missing = [name for name in known if name not in data and name not in optional]
    if missing:
        raise UserError(f"not a finding: it has no {', '.join(missing)}")
    own = {k: v for k, v in data.items() if k in known}
    return build(Finding, own, {"verdict": verdict_from_json})


def load_finding(path: Path) -> Finding:
    """Read a finding from its file.

    Raises:
        UserError: the file cannot be read, is damaged, or is of another schema; one line.
    """
    data = read_json(path)
    try:
        return finding_from_json(data)
    except UserError as error:
        raise UserError(
            f"{path}: {error}; give a file of RUN/findings, or judge the kernel again"
        ) from error


def refuse_newer(data: Mapping[str, Any], what: str) -> None:
    """Stop at a schema that this version does not know.

    Raises:
        UserError: no schema number, or a newer one; names it, and the next step.
    """
    schema = data.get("schema")
    if type(schema) is not int or schema < 1:
        raise UserError(f"{what} has no schema number (found {schema!r:.40})")
    if schema > SCHEMA:
        writer = data.get("version")
        by = f" by kerneltruth {writer}" if isinstance(writer, str) else ""
        raise UserError(
            f"{what} was written{by} with schema {schema}, and kerneltruth {__version__} reads up "
            f"to {SCHEMA}; upgrade kerneltruth"
        )


def finding_of(
    attempt: Attempt,
    environment: Mapping[str, str | None],
    *,
    bounds: str = "spread",
    tf32: bool = True,
) -> Finding:
    """The finding of a failed attempt; its id is the same whenever the same failure is found."""
    failure = attempt.failure
    if failure is None:
        raise InternalError(f"no failure to store for {attempt.candidate.path}")
    identity = [attempt.candidate.sha256, failure.case.identity, failure.config]
    return Finding(
        id=f"{attempt.task.replace('/', '-')}-{content_hash(identity)[:12]}",
        task=attempt.task,
        candidate=attempt.candidate,
        case=failure.case,
        verdict=failure.verdict,
        stats=failure.stats,
        digests=Digests(
            inputs=dict(failure.digests),
            reference=failure.reference_digest,
            output=failure.output_digest,
        ),
        minimal=attempt.minimal,
        explanation=attempt.explanation,
        environment=dict(environment),
        config=failure.config,
        bounds=bounds,
        tf32=tf32,
        error_map=attempt.error_map,
        shown=attempt.shown,
    )


def environment_fingerprint(
    device: str = "cpu", *, name: str | None = None, driver: str | None = None
) -> dict[str, str | None]:
    """What a result may depend on; null where this machine has none or it was not asked.

    Args:
        device: "cpu" or "cuda:N".
        name: what people call the device; asking it needs a process of its own on CUDA.
        driver: version of the device's driver.
    """
    cuda: str | None = None
    if device != "cpu":
        import torch

        cuda = torch.version.cuda or torch.version.hip
    return {
        "python": platform.python_version(),
        "torch": _version("torch"),
        "triton": _version("triton"),
        "device": device,
        "device_name": name,
        "driver": driver,
        "cuda": cuda,
        "machine": f"{platform.system()} {platform.machine()}",
        "isolation": "process",
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
