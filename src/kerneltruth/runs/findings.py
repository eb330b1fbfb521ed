"""Make and read findings, and record what a result may depend on."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from pathlib import Path

from kerneltruth.documents.exports import is_exported, unsealed
from kerneltruth.documents.model import content_hash, parse, updated
from kerneltruth.documents.profiles import failing_with
from kerneltruth.documents.records import Attempt
from kerneltruth.documents.stored import Digests, Finding
from kerneltruth.errors import InternalError, UserError
from kerneltruth.runner.containment import levels
from kerneltruth.runner.device_memory import why_not
from kerneltruth.runs.files import read_json


def finding_from(data: object) -> Finding:
    """Read a finding; keys that a later version of the same schema added are left out.

    Raises:
        UserError: another schema, a missing key, or a value of the wrong form.
    """
    if not isinstance(data, Mapping):
        raise UserError(f"not a finding: {data!r:.80}")
    return parse(Finding, updated(data, "the finding"))


def load_finding(path: Path) -> Finding:
    """Read a finding from its file, within a run or exported.

    Raises:
        UserError: the file is none of a finding, cannot be read, is damaged, or is of another
            schema; one line.
    """
    other = _other_than_finding(path)
    if other is not None:
        raise UserError(
            f"{path} is {other[0]}, not a finding (a file of RUN/findings, or one that "
            f"`kerneltruth export` wrote); {other[1]}"
        )
    data = read_json(path)
    try:
        return unsealed(data).finding if is_exported(data) else finding_from(data)
    except UserError as error:
        raise UserError(
            f"{path}: {error}; give a file of RUN/findings, or judge the kernel again"
        ) from error


def _other_than_finding(path: Path) -> tuple[str, str] | None:
    """Return what a path names that is plainly no finding, and what to do; None for others."""
    judge = f"`kerneltruth check {path}` judges a kernel"
    if path.parts[:1] in (("http:",), ("https:",)):
        return "an address", "download it, and give the file"
    if path.is_dir():
        return "a directory", "name a file of the `findings` of a run"
    if path.name == "run.json" or path.suffix == ".jsonl":
        return "the record of a whole run", f"name a file of {path.parent / 'findings'}"
    if path.suffix == ".py":
        return "a Python file", f"run it with python if it is a finding's script; {judge}"
    if path.suffix in (".cu", ".cuh", ".cpp"):
        return "a source", judge
    if path.is_file() and not path.stat().st_size:
        return "an empty file", "restore it, or judge the kernel again"
    return None


def finding_of(
    attempt: Attempt,
    environment: Mapping[str, str | None],
    *,
    bounds: str = "spread",
    tf32: bool = True,
) -> Finding:
    """Return the finding of a failed attempt; the same failure always gets the same id."""
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
        obligations=failing_with(attempt.profile, failure),
        quantization=attempt.quantization,
    )


def environment_fingerprint(
    device: str = "cpu", *, name: str | None = None, driver: str | None = None
) -> dict[str, str | None]:
    """Return what a result may depend on; null if this machine has none or it was not requested.

    Reading a device's common name needs a separate process on CUDA.
    """
    cuda: str | None = None
    if device != "cpu":
        import torch

        cuda = torch.version.cuda or torch.version.hip
    return {
        "python": platform.python_version(),
        "torch": installed_version("torch"),
        "triton": installed_version("triton"),
        "device": device,
        "device_name": name,
        "driver": driver,
        "cuda": cuda,
        "machine": f"{platform.system()} {platform.machine()}",
        "isolation": levels.chosen(device=device),
        "memory": _keeper_of(device),
    }


def _keeper_of(device: str) -> str:
    """Return which process owns the memory that a child works in, and reads results there."""
    why = None if device == "cpu" else why_not(device)
    return "judge" if why is None else f"child: {why}"


def installed_version(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
