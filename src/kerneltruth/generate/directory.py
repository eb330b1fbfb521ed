"""Manage the directory of a generation: the request, the transcript, and the answers.

`generation.json` describes it; `exchanges.jsonl` is the transcript; `answers.jsonl` holds the
submissions that `run --candidates` reads; `best.jsonl` holds each chain's best answer
for methods that ask the judge.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from msgspec import structs

from kerneltruth import __version__
from kerneltruth.documents.generations import (
    GenerateDocument,
    GenerationManifest,
    GenerationResult,
)
from kerneltruth.documents.model import Json, content_hash, dumps, model_of, parse, plain, updated
from kerneltruth.errors import UserError
from kerneltruth.runs.files import new_folder, read_json, write_whole, writing
from kerneltruth.runs.store import now
from kerneltruth.suites.generations import MANIFEST

BEST = "best.jsonl"
_MAY_DIFFER = ("schema", "version", "samples", "rounds")


def open_generation(out: Path | None, manifest: GenerationManifest) -> Path:
    """Begin a generation, or continue the one in `out` if its request is the same.

    Raises:
        UserError: `out` holds another generation, or something else.
        EnvironmentFault: it cannot be written.
    """
    path, identity = out or new_folder("generate"), _identity(manifest)
    if (path / MANIFEST).exists():
        _refuse_another(path, identity)
        return path
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise UserError(f"--out {path}: it is not empty; name a new directory")
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        _write(path, structs.replace(manifest, identity=identity, started=now()))
    return path


def _identity(manifest: GenerationManifest) -> str:
    """Hash what a resumed generation must share; counts may differ."""
    said = cast(dict[str, Json], plain(manifest))
    return content_hash({name: value for name, value in said.items() if name not in _MAY_DIFFER})


def _refuse_another(path: Path, identity: str) -> None:
    if _read(path).identity != identity:
        raise UserError(
            f"--out {path}: it holds a generation of another request (its suite, method, "
            "model, endpoint, sampling or prompts); name a new directory"
        )


def _read(path: Path) -> GenerationManifest:
    data = read_json(path / MANIFEST)
    if not isinstance(data, Mapping):
        raise UserError(f"{path / MANIFEST} is damaged: not an object; name another directory")
    return parse(GenerationManifest, updated(data, f"the generation {path}"))


def close_generation(path: Path, document: GenerateDocument) -> None:
    """Write the account into the manifest."""
    result = model_of(GenerationResult, document)
    # Whichever version began the generation, this one has ended it.
    ended = structs.replace(_read(path), version=__version__, ended=now(), result=result)
    with writing(path):
        _write(path, ended)


def _write(path: Path, manifest: GenerationManifest) -> None:
    write_whole(path / MANIFEST, dumps(manifest, indent=2).encode() + b"\n")


def publish(path: Path, name: str, lines: Iterable[object]) -> int:
    """Write submissions as one whole file; return how many there are."""
    texts = [dumps(line) for line in lines]
    with writing(path):
        write_whole(path / name, "".join(f"{t}\n" for t in texts).encode())
    return len(texts)


def how_to_go_on(path: Path) -> str:
    """Return how to resume after an interrupt."""
    return f"repeat the command with --out {shlex.quote(str(path))} to go on"
