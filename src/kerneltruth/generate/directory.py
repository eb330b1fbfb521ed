"""The directory of a generation: what was asked, the transcript, and the answers to be judged.

`generation.json` says what it is; `exchanges.jsonl` is the transcript; `answers.jsonl` holds the
submissions that `run --candidates` reads, and `best.jsonl`, of `refine`, only each chain's best.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kerneltruth import __version__
from kerneltruth.documents.generations import GenerateDocument
from kerneltruth.documents.model import dumps
from kerneltruth.engine.run_directory import new_folder
from kerneltruth.errors import UserError
from kerneltruth.runs.files import read_json, write_whole, writing
from kerneltruth.runs.store import now
from kerneltruth.suites.generations import MANIFEST

BEST = "best.jsonl"
SCHEMA = 1


def open_generation(out: Path | None, asked: Mapping[str, Any], identity: str) -> Path:
    """Begin a generation, or go on with the one in `out` if it asks the same.

    Args:
        out: the directory; None makes one.
        asked: what the manifest says of it.
        identity: a hash of what must not differ.

    Raises:
        UserError: `out` holds another generation, or something else.
        EnvironmentFault: it cannot be written.
    """
    path = out or new_folder("generate")
    manifest = path / MANIFEST
    if manifest.exists():
        _refuse_another(path, identity)
        return path
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise UserError(f"--out {path}: it is not empty; name a new directory")
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        _write(path, {**asked, "identity": identity, "started": now()})
    return path


def _refuse_another(path: Path, identity: str) -> None:
    data = read_json(path / MANIFEST)
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise UserError(
            f"{path / MANIFEST}: not a generation that this version knows; name another"
        )
    if data.get("identity") != identity:
        raise UserError(
            f"--out {path}: it holds a generation that asked something else (its suite, method, "
            "model, endpoint, sampling or prompts); name a new directory"
        )


def close_generation(path: Path, document: GenerateDocument) -> None:
    """Note in the manifest what came of it."""
    data = read_json(path / MANIFEST)
    told = ("answers", "unanswered", "stopped", "account", "refine")
    result = {name: getattr(document, name) for name in told}
    with writing(path):
        _write(path, {**data, "ended": now(), "result": result})


def _write(path: Path, data: Mapping[str, Any]) -> None:
    head = {"schema": SCHEMA, "version": __version__}
    write_whole(path / MANIFEST, dumps({**head, **data}, indent=2).encode() + b"\n")


def publish(path: Path, name: str, lines: Iterable[object]) -> int:
    """Write submissions as one whole file; returns how many there are."""
    texts = [dumps(line) for line in lines]
    with writing(path):
        write_whole(path / name, "".join(f"{t}\n" for t in texts).encode())
    return len(texts)


def how_to_go_on(path: Path) -> str:
    """What to do after an interrupt."""
    return f"repeat the command with --out {shlex.quote(str(path))} to go on"
