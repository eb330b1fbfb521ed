"""The run directory: a manifest, append-only results, findings with their inputs, sources.

Everything is written so that a crash, an interrupt or a full disk leaves it readable: whole files
appear by rename, results are one flushed line each, and a line that was cut short is dropped when
the run is next read, so that its attempt is made again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerneltruth.codec import build, dumps
from kerneltruth.errors import EnvironmentFault, InternalError, UserError
from kerneltruth.runs.files import read_json, write_all, write_whole, writing
from kerneltruth.runs.records import (
    Finding,
    Manifest,
    record_to_json,
    refuse_newer,
)

if TYPE_CHECKING:
    import torch

Keep = Callable[[dict[str, Any]], dict[str, Any]]

FOLDERS = ("findings", "inputs", "candidates")
SNAPSHOT_LIMIT = 16 * 2**20


class RunStore:
    """One run's directory. Make one with `create` or `open`; close it, or use it in a `with`.

    Attributes:
        path: the directory.
        manifest: what the run is.
        notes: what reading it had to report, one line each.
    """

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        lines: list[dict[str, Any]],
        *,
        size: int,
        notes: tuple[str, ...] = (),
        keep: Keep = dict,
    ) -> None:
        self.path = path
        self.manifest = manifest
        self.notes = notes
        self._keep = keep
        self._lines = lines
        self._done = {str(line["key"]) for line in lines}
        # Bytes of results.jsonl that hold whole lines; what lies beyond is cut before appending.
        self._size = size
        self._log: int | None = None

    @classmethod
    def create(cls, path: Path, manifest: Manifest, *, keep: Keep = dict) -> RunStore:
        """Begin a run in a directory that does not exist or is empty.

        Args:
            path: the directory.
            manifest: what the run is.
            keep: what of each result line stays in memory, and `results` gives; it must hold the
                line's key. All of it unless told otherwise; on disk it is always all.

        Raises:
            UserError: something is there already.
            EnvironmentFault: it cannot be written.
        """
        if path.exists() and not (path.is_dir() and _barely_begun(path)):
            what = "already holds a run" if (path / "run.json").exists() else "is not empty"
            raise UserError(f"--out {path}: it {what}; name a new directory")
        with writing(path):
            for folder in FOLDERS:
                (path / folder).mkdir(parents=True, exist_ok=True)
            write_whole(path / "run.json", dumps(manifest, indent=2).encode() + b"\n")
        return cls(path, manifest, [], size=0, keep=keep)

    @classmethod
    def open(cls, path: Path, *, keep: Keep = dict) -> RunStore:
        """Read a run, to look at it or to go on with it; `keep` as in `create`.

        Raises:
            UserError: no run there, a damaged one, or one of a newer schema.
        """
        if not (path / "run.json").is_file():
            raise UserError(f"{path} is not a run: it has no run.json; give the directory of a run")
        data = read_json(path / "run.json")
        if not isinstance(data, Mapping):
            raise UserError(f"{path / 'run.json'} is damaged: not an object; make the run again")
        refuse_newer(data, f"the run {path}")
        known = {k: v for k, v in data.items() if k in Manifest.__dataclass_fields__}
        try:
            manifest = build(Manifest, known)
        except UserError as error:
            raise UserError(f"{path / 'run.json'}: {error}; make the run again") from error
        lines, size, notes = _read_results(path / "results.jsonl", keep)
        return cls(path, manifest, lines, size=size, notes=notes, keep=keep)

    def __enter__(self) -> RunStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the result log."""
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def done(self) -> frozenset[str]:
        """Keys of the attempts that have their verdict, so that a resumed run leaves them out."""
        return frozenset(self._done)

    def results(self) -> tuple[dict[str, Any], ...]:
        """The result lines in the order of writing."""
        return tuple(self._lines)

    def append(self, key: str, line: Mapping[str, Any]) -> None:
        """Add one attempt's result, on disk when this returns.

        Args:
            key: names the attempt within the run; each has exactly one result.
            line: its JSON form.

        Raises:
            EnvironmentFault: no space, or the run is being written by another process.
        """
        if key in self._done:
            raise InternalError(f"the attempt {key!r} has a result already")
        record = {"key": key, **line}
        data = dumps(record).encode() + b"\n"
        with writing(self.path / "results.jsonl"):
            log = self._opened_log()
            try:
                write_all(log, data)
                os.fsync(log)
            except BaseException:
                # Half a line must not be glued to the next one.
                with contextlib.suppress(OSError):
                    os.ftruncate(log, self._size)
                raise
        self._size += len(data)
        self._done.add(key)
        self._lines.append(self._keep(json.loads(data)))

    def _opened_log(self) -> int:
        if self._log is None:
            path = self.path / "results.jsonl"
            log = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._cut(log)
            except BlockingIOError as error:
                os.close(log)
                raise EnvironmentFault(
                    f"{self.path} is being written by another process; wait for it, or name "
                    "another directory with --out"
                ) from error
            except BaseException:
                os.close(log)
                raise
            self._log = log
        return self._log

    def _cut(self, log: int) -> None:
        """Drop what follows the last whole line, and end that line."""
        os.ftruncate(log, self._size)
        if self._size and os.pread(log, 1, self._size - 1) != b"\n":
            write_all(log, b"\n")
            self._size += 1

    def write_finding(
        self,
        finding: Finding,
        inputs: Mapping[str, torch.Tensor | None],
        *,
        limit_bytes: int = SNAPSHOT_LIMIT,
    ) -> Path:
        """Store a finding and, unless they are larger than the limit, its exact inputs.

        Inputs are stored first: a finding that is there has all that it will have.

        Args:
            finding: what was found; stored again, it replaces its former self.
            inputs: logical inputs by name; None for an absent one.
            limit_bytes: above it only seed and digests remain, from which replay makes the inputs.

        Returns:
            The finding's file.
        """
        path = self.path / "findings" / f"{finding.id}.json"
        present = {n: t for n, t in inputs.items() if t is not None}
        with writing(path):
            if sum(t.numel() * t.element_size() for t in present.values()) <= limit_bytes:
                # Here, since `report` and `analyze` read runs without torch.
                from safetensors.torch import save

                owned = {n: t.detach().cpu().contiguous().clone() for n, t in present.items()}
                write_whole(self.path / "inputs" / f"{finding.id}.safetensors", save(owned))
            write_whole(path, dumps(record_to_json(finding), indent=2).encode() + b"\n")
        return path

    def write_source(self, source: str) -> Path:
        """Store a candidate's source by its content."""
        data = source.encode()
        path = self.path / "candidates" / f"{hashlib.sha256(data).hexdigest()}.py"
        if not path.exists():
            with writing(path):
                write_whole(path, data)
        return path

    def finish(self) -> None:
        """Note the end in the manifest, and release the result log."""
        self.manifest = replace(self.manifest, ended=now())
        with writing(self.path / "run.json"):
            text = dumps(self.manifest, indent=2)
            write_whole(self.path / "run.json", text.encode() + b"\n")
        self.close()


def _barely_begun(path: Path) -> bool:
    """Whether a directory is empty, or holds only what `create` makes before the manifest."""
    return all(
        entry.name.startswith(".run.json.")
        or (entry.name in FOLDERS and entry.is_dir() and not any(entry.iterdir()))
        for entry in path.iterdir()
    )


def now() -> str:
    """The time in UTC, to the second, as manifests hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def load_snapshot(finding_path: Path) -> dict[str, torch.Tensor] | None:
    """The exact inputs stored beside a finding, or None if they were too large to keep.

    Raises:
        UserError: the file is damaged.
    """
    path = finding_path.parent.parent / "inputs" / f"{finding_path.stem}.safetensors"
    if not path.exists():
        return None
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        inputs: dict[str, torch.Tensor] = load(path.read_bytes())
    except (OSError, SafetensorError, ValueError) as error:
        raise UserError(
            f"cannot read {path}: {str(error).splitlines()[0]}; replay without --from-snapshot"
        ) from error
    return inputs


def _read_results(path: Path, keep: Keep) -> tuple[list[dict[str, Any]], int, tuple[str, ...]]:
    """The whole lines, how many bytes they take, and what to report.

    Raises:
        UserError: a line before the last is damaged, so that results are missing.
    """
    try:
        data = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check its permissions") from error
    lines: list[dict[str, Any]] = []
    position = 0
    for number, raw in enumerate(data.splitlines(keepends=True), start=1):
        line = _parsed(raw)
        if line is None and position + len(raw) < len(data):
            raise UserError(
                f"{path}: line {number} is damaged; restore it, or delete it to make that "
                "attempt again"
            )
        if line is None:
            note = f"{path}: line {number} was cut short and is dropped; its attempt is made again"
            return lines, position, (note,)
        lines.append(keep(line))
        position += len(raw)
    return lines, position, ()


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and isinstance(line.get("key"), str) else None
