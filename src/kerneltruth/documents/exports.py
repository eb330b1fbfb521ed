"""Define the file of an exported finding, and the JSON of `export`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal, TypeGuard

from kerneltruth import __version__
from kerneltruth.documents.model import SCHEMA, Model, Stored, content_hash, parse, updated
from kerneltruth.documents.stored import Finding
from kerneltruth.errors import UserError


class ExportedFinding(Stored, frozen=True, kw_only=True):
    """A finding with all that a replay needs, wherever the file lies.

    Attributes:
        form: distinguishes the file from a finding within a run.
        finding: as its run holds it.
        source: of the candidate, with all its files where it has several.
        inputs: of the call, as the bytes of a safetensors file in base64; None where the run holds
            none, or the file would be too large: they follow from the seed.
        sha256: of all other keys (see `seal_of`).
    """

    form: Literal["exported finding"] = "exported finding"
    finding: Finding
    source: str
    inputs: str | None
    sha256: str
    version: str = __version__
    schema: int = SCHEMA


class ExportDocument(Model, frozen=True, kw_only=True):
    """`export --json`.

    Attributes:
        finding: ID of the finding.
        file: that was written.
        bytes: its size.
        inputs: whether the file holds the inputs; without them they follow from the seed.
        needs: the suite of the user's own that has the finding's task, which a replay needs beside
            the file; None where it needs nothing.
    """

    schema: Literal[1] = 1
    finding: str
    file: str
    bytes: int
    inputs: bool
    needs: str | None


def is_exported(data: object) -> TypeGuard[Mapping[str, object]]:
    """Return whether a JSON document is of the form that `export` writes."""
    return isinstance(data, Mapping) and data.get("form") == "exported finding"


def unsealed(data: Mapping[str, object]) -> ExportedFinding:
    """Read an exported finding from JSON's own types.

    Raises:
        UserError: another schema, damage, or content that is not what was written.
    """
    try:
        seal = seal_of(data)
    except RecursionError:
        seal = None
    if seal is None or seal != data.get("sha256"):
        raise UserError("its content is not what `kerneltruth export` wrote; ask for it again")
    document = updated(data, "the exported finding")
    finding = document.get("finding")
    if isinstance(finding, Mapping):
        document["finding"] = updated(finding, "the finding")
    return parse(ExportedFinding, document)


def seal_of(data: Mapping[str, object]) -> str:
    """Return the sha256 of an exported finding, given as JSON's own types.

    It covers the canonical JSON of all keys but `sha256`. Texts are replaced by their own sha256,
    since sources and inputs are long.
    """
    return content_hash({name: _digest(data[name]) for name in data if name != "sha256"})


def _digest(value: object) -> object:
    # JSON may hold half of a surrogate pair, which UTF-8 cannot.
    text = value.encode(errors="replace") if isinstance(value, str) else None
    return value if text is None else hashlib.sha256(text).hexdigest()
