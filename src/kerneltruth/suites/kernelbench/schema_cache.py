"""Keep the schemas of problems between processes: deriving one takes many calls."""

from __future__ import annotations

import contextlib
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from kerneltruth.documents.model import content_hash, dumps, parse
from kerneltruth.errors import UserError
from kerneltruth.runner.child.pretrained import SMALL_MODELS
from kerneltruth.runner.host import Runner
from kerneltruth.runs.files import write_whole
from kerneltruth.suites.kernelbench.child_session import INSIDE, ProblemSession
from kerneltruth.suites.kernelbench.derive import derive_schema
from kerneltruth.suites.kernelbench.problem import Problem
from kerneltruth.suites.kernelbench.schema import Schema


def schema_of(problem: Problem, runner: Runner, cache: Path | None = None) -> Schema:
    """Return the schema of a problem, from the cache if it was derived before.

    Args:
        problem: as its file states it.
        runner: for its child, on the CPU.
        cache: a folder; None always derives.
    """
    path = cache / f"{_cache_key(problem)}.json" if cache else None
    kept = _read(path) if path else None
    if kept is not None:
        return kept
    session = ProblemSession(problem, runner)
    try:
        schema = derive_schema(problem, session)
    finally:
        session.close()
    if path is not None:
        _write(path, schema)
    return schema


def _cache_key(problem: Problem) -> str:
    """Hash everything that a schema follows from."""
    beside = (
        *(
            "constants",
            "derive",
            "extremes",
            "facts_of_runs",
            "forms",
            "messages",
            "prober",
            "schema",
        ),
        "search",
    )
    files = (*sorted(INSIDE.glob("*.py")), *(INSIDE.parent / f"{name}.py" for name in beside))
    rules = [p.read_text("utf-8") for p in files]
    models = _models() if problem.pretrained else []
    return content_hash([problem.source, rules, torch.__version__, *models])


def _models() -> list[str]:
    """Return what the schema of a pretrained model follows from, too."""
    try:
        installed = version("transformers")
    except PackageNotFoundError:
        installed = ""
    return [installed, SMALL_MODELS.read_text("utf-8")]


def _read(path: Path) -> Schema | None:
    with contextlib.suppress(OSError, ValueError, UserError):
        return parse(Schema, json.loads(path.read_text("utf-8")))
    return None


def _write(path: Path, schema: Schema) -> None:
    """Write whole or not at all; a cache that cannot be written is skipped."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, dumps(schema).encode())
