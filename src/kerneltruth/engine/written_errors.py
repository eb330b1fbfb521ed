"""Write the error of each element of a replayed finding's outputs to a folder."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from kerneltruth.documents.stored import Finding
from kerneltruth.explain.errors_by_element import errors_by_element, heat_map
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.judge import Ruling
from kerneltruth.runs.files import write_whole, writing


def write_errors(
    folder: Path, finding: Finding, expectation: Expectation, ruling: Ruling | None
) -> tuple[str, ...]:
    """Write the arrays of all outputs into one file, and a picture of each; return the files.

    Raises:
        EnvironmentFault: they cannot be written.
    """
    found = () if ruling is None else errors_by_element(expectation, ruling)
    if not found:
        return ()
    arrays: dict[str, Any] = {name: a for each in found for name, a in each.arrays().items()}
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    files = {f"{finding.id}.npz": packed.getvalue()}
    for each in found:
        picture = heat_map(each, finding.task, finding.case.summary())
        if picture is not None:
            files[f"{finding.id}.{each.name}.svg"] = picture.encode()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            write_whole(folder / name, data)
    return tuple(str(folder / name) for name in files)
