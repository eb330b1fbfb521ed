"""Store a run: a manifest, append-only results, findings with their inputs, sources.

A crash, an interrupt or a full disk leaves the directory readable. Whole files appear by rename;
each result is one flushed line. A line that was cut short is dropped when the run is next read, and
its attempt is repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from kerneltruth.documents.model import dumps, parse, updated
from kerneltruth.documents.records import replace
from kerneltruth.documents.stored import Finding, Manifest
from kerneltruth.errors import UserError
from kerneltruth.runs.files import read_json, write_whole, writing
from kerneltruth.runs.ledger import Keep, L, Ledger
from kerneltruth.runs.parts import load_inputs

if TYPE_CHECKING:
    import torch

FOLDERS = ("findings", "inputs", "candidates")
RESULTS = "results.jsonl"
SNAPSHOT_LIMIT = 16 * 2**20


class RunStore(Generic[L]):
    """One run's directory. Make one with `create` or `open`; close it, or use it in a `with`.

    Attributes:
        notes: what reading it reported, one line each.
    """

    def __init__(self, path: Path, manifest: Manifest, ledger: Ledger[L]) -> None:
        self.path = path
        self.manifest = manifest
        self.notes = ledger.notes
        self._ledger = ledger

    @classmethod
    def create(cls, path: Path, manifest: Manifest, *, keep: Keep[L]) -> RunStore[L]:
        """Begin a run in a directory that does not exist or is empty.

        `keep` returns the part of a result line that stays in memory, for `results`; the disk holds
        the whole line.

        Raises:
            UserError: the directory is not empty.
            EnvironmentFault: it cannot be written.
        """
        if path.exists() and not (path.is_dir() and _barely_begun(path)):
            what = "already holds a run" if (path / "run.json").exists() else "is not empty"
            raise UserError(f"--out {path}: it {what}; name a new directory")
        with writing(path):
            for folder in FOLDERS:
                (path / folder).mkdir(parents=True, exist_ok=True)
            write_whole(path / "run.json", dumps(manifest, indent=2).encode() + b"\n")
        return cls(path, manifest, Ledger(path / RESULTS, keep=keep))

    @classmethod
    def open(cls, path: Path, *, keep: Keep[L], form: Any = Any) -> RunStore[L]:
        """Open a run to read or continue it; `keep` as in `create`, `form` as in `Ledger`.

        Raises:
            UserError: there is no run, it is damaged, or its schema is newer.
        """
        if not (path / "run.json").is_file():
            raise UserError(f"{path} is not a run: it has no run.json; give the directory of a run")
        data = read_json(path / "run.json")
        if not isinstance(data, Mapping):
            raise UserError(f"{path / 'run.json'} is damaged: not an object; repeat the run")
        present = updated(data, f"the run {path}")
        try:
            manifest = parse(Manifest, present)
        except UserError as error:
            raise UserError(f"{path / 'run.json'}: {error}; repeat the run") from error
        return cls(path, manifest, Ledger(path / RESULTS, keep=keep, form=form))

    def __enter__(self) -> RunStore[L]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the result log."""
        self._ledger.close()

    def done(self) -> frozenset[str]:
        """Return the keys of attempts with a verdict, which a resumed run skips."""
        return self._ledger.keys()

    def results(self) -> tuple[L, ...]:
        """Return the result lines in the order of writing."""
        return self._ledger.lines()

    def append(self, key: str, line: object) -> None:
        """Append one attempt's result; it is on disk when this returns.

        The key names the attempt within the run; each has exactly one result.

        Raises:
            EnvironmentFault: the disk is full, or another process is writing the run.
        """
        self._ledger.append(key, line)

    def write_finding(
        self,
        finding: Finding,
        inputs: Mapping[str, torch.Tensor | None],
        *,
        limit_bytes: int = SNAPSHOT_LIMIT,
    ) -> Path:
        """Store a finding and, unless they exceed the limit, its exact inputs.

        Inputs come first, so that a stored finding is complete.

        It replaces an earlier finding with the same id. For inputs over the limit, replay makes
        them from the seed and compares digests.

        Returns:
            The finding's file.
        """
        path = self._place("findings", f"{finding.id}.json")
        present = {n: t for n, t in inputs.items() if t is not None}
        with writing(path):
            if sum(t.numel() * t.element_size() for t in present.values()) <= limit_bytes:
                # Imported here, because `report` and `analyze` read runs without torch.
                from kerneltruth.runs.tensors import to_bytes

                inputs_path = self._place("inputs", f"{finding.id}.safetensors")
                write_whole(inputs_path, to_bytes(present))
            write_whole(path, dumps(finding, indent=2).encode() + b"\n")
        return path

    def write_source(self, source: str) -> Path:
        """Store a candidate's source, named by its content."""
        data = source.encode("utf-8", "surrogatepass")
        path = self._place("candidates", f"{hashlib.sha256(data).hexdigest()}.py")
        if not path.exists():
            with writing(path):
                write_whole(path, data)
        return path

    def _place(self, folder: str, name: str) -> Path:
        """Return where a file of the run goes; a run that was copied or tidied may lack folders."""
        path = self.path / folder / name
        with writing(path):
            path.parent.mkdir(exist_ok=True)
        return path

    def finish(self) -> None:
        """Record the end in the manifest, and release the result log."""
        self.manifest = replace(self.manifest, ended=now())
        with writing(self.path / "run.json"):
            text = dumps(self.manifest, indent=2)
            write_whole(self.path / "run.json", text.encode() + b"\n")
        self.close()


def _barely_begun(path: Path) -> bool:
    """Return whether a directory holds at most what `create` makes before the manifest."""
    return all(
        entry.name.startswith(".run.json.")
        or (entry.name in FOLDERS and entry.is_dir() and not any(entry.iterdir()))
        for entry in path.iterdir()
    )


def now() -> str:
    """Return the time in UTC, to the second, as in manifests."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def load_snapshot(finding_path: Path) -> dict[str, torch.Tensor] | None:
    """Return the exact inputs stored with a finding, or None if they were too large to store.

    Raises:
        UserError: the file is damaged, or holds a dtype that is unknown here.
    """
    try:
        data = load_inputs(finding_path)
        if data is None:
            return None
        from kerneltruth.runs.tensors import from_bytes

        return from_bytes(data)
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot read the inputs of {finding_path}: {str(error).splitlines()[0]}; replay "
            "without --from-snapshot"
        ) from error
