"""What a run stores, in the judge's own types: made from documents, and turned into them."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kerneltruth.cases.case import Case
from kerneltruth.documents.model import SCHEMA, content_hash, model_of, parse, updated
from kerneltruth.documents.records import (
    AttemptRecord,
    CandidateRef,
    CaseRecord,
    Digests,
    Environment,
    ErrorMap,
    ErrorStats,
    FindingRecord,
    Verdict,
)
from kerneltruth.errors import InternalError, UserError
from kerneltruth.oracle.attempt import Attempt
from kerneltruth.runs.files import read_json


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
    environment: Environment
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


def attempt_record(attempt: Attempt) -> AttemptRecord:
    """The attempt as a result line holds it."""
    return model_of(AttemptRecord, attempt)


def finding_record(finding: Finding) -> FindingRecord:
    """The finding as its file holds it."""
    return model_of(FindingRecord, finding)


def case_of(record: CaseRecord) -> Case:
    """The case that a document holds.

    Raises:
        InternalError: it has a seed, a size or a domain that no case can have.
    """
    return Case(**msgspec.structs.asdict(record))


def finding_from(data: object) -> Finding:
    """Read a finding; keys that a later version of the same schema added are left out.

    Raises:
        UserError: another schema, a missing key, or a value of the wrong form.
    """
    if not isinstance(data, Mapping):
        raise UserError(f"not a finding: {data!r:.80}")
    record = parse(FindingRecord, updated(data, "the finding"))
    own = {name: getattr(record, name) for name in record.__struct_fields__}
    try:
        own["case"] = case_of(record.case)
        own["minimal"] = record.minimal and case_of(record.minimal)
        return Finding(**own)
    except (InternalError, ValueError) as error:
        raise UserError(f"not a finding: {error}") from error


def load_finding(path: Path) -> Finding:
    """Read a finding from its file.

    Raises:
        UserError: the file cannot be read, is damaged, or is of another schema; one line.
    """
    data = read_json(path)
    try:
        return finding_from(data)
    except UserError as error:
        raise UserError(
            f"{path}: {error}; give a file of RUN/findings, or judge the kernel again"
        ) from error


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
