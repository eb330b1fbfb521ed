"""Read the parts of a finding, from its run or from the one file that `export` writes."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

from msgspec.structs import replace

from kerneltruth.documents.exports import ExportedFinding, is_exported, seal_of, unsealed
from kerneltruth.documents.model import dumps, plain
from kerneltruth.errors import InternalError, UserError
from kerneltruth.runner.regular_file import MOST_BYTES, read_regular
from kerneltruth.runs.files import read_json
from kerneltruth.runs.findings import load_finding


def load_source(path: Path, sha256: str) -> str:
    """Return the source of a finding's candidate.

    Raises:
        UserError: the source is not there, or is not the one that was judged.
    """
    exported = _exported(path)
    # Absolute: a bare file name inside `findings` has no parent.
    source = path.absolute().parent.parent / "candidates" / f"{sha256}.py"
    try:
        text = None if exported is None else exported.source
        data = read_regular(source) if text is None else text.encode(errors="replace")
    except OSError as error:
        raise UserError(
            f"{path}: its candidate is not at {source}; keep findings inside their run directory, "
            "or send what `kerneltruth export` writes"
        ) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        where = source if exported is None else path
        raise UserError(f"{where} was changed after it was judged; judge it again with `check`")
    return data.decode()


def load_inputs(path: Path) -> bytes | None:
    """Return a finding's inputs as the bytes of a safetensors file; None if none are stored.

    Raises:
        UserError: the finding cannot be read.
        OSError: the inputs cannot be read.
        ValueError: they are damaged.
    """
    exported = _exported(path)
    if exported is not None:
        inputs = exported.inputs
        return None if inputs is None else base64.b64decode(inputs, validate=True)
    stored = path.absolute().parent.parent / "inputs" / f"{path.stem}.safetensors"
    return read_regular(stored) if stored.exists() else None


def export_of(path: Path, *, most_bytes: int = MOST_BYTES) -> tuple[ExportedFinding, bytes]:
    """Return a finding with all that a replay needs, and the file that holds it.

    Inputs with which the file would be too large to be read again are left out.

    Raises:
        UserError: the finding, its source or its inputs cannot be read, or the source is too large.
    """
    finding = load_finding(path)
    source = load_source(path, finding.candidate.sha256)
    try:
        stored = load_inputs(path)
        inputs = stored if stored and _holds_tensors(stored) else None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: its inputs cannot be read: {error}; judge it again") from error
    packed = None if inputs is None else base64.b64encode(inputs).decode()
    for kept in dict.fromkeys((packed, None)):
        bare = ExportedFinding(finding=finding, source=source, inputs=kept, sha256="")
        made = replace(bare, sha256=_seal(bare))
        data = dumps(made, indent=1).encode() + b"\n"
        if len(data) <= most_bytes:
            return made, data
    raise UserError(
        f"{path}: the source of its candidate takes over {most_bytes >> 20} MiB; send its run"
    )


def _seal(made: ExportedFinding) -> str:
    data = plain(made)
    if not isinstance(data, dict):
        raise InternalError(f"no object: {data!r:.80}")
    return seal_of(data)


def _exported(path: Path) -> ExportedFinding | None:
    """Return the content of an exported finding; None of a finding within a run."""
    data = read_json(path)
    return unsealed(data) if is_exported(data) else None


def _holds_tensors(data: bytes) -> bool:
    """Return whether a safetensors file names tensors; its first 8 bytes are the header's size."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return bool(set(header) - {"__metadata__"})
