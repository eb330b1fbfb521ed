"""`export`: a finding with all that a replay needs, as one file."""

from __future__ import annotations

from pathlib import Path

from kerneltruth.documents.exports import ExportDocument
from kerneltruth.errors import UserError
from kerneltruth.runs.files import write_whole, writing
from kerneltruth.runs.parts import export_of
from kerneltruth.suites.origin import needed_suite


def export_finding(path: Path, out: Path | None = None) -> ExportDocument:
    """Write the finding in a file into one that a replay takes alone.

    Args:
        path: the finding's, within its run.
        out: the file to write, which is replaced; a folder gets a file named by the finding's ID,
            and so does the working directory by default.

    Raises:
        UserError: the finding cannot be read, or `out` is no place for it.
        EnvironmentFault: it cannot be written.
    """
    made, data = export_of(path)
    folder = Path() if out is None else out
    file = folder / f"{made.finding.id}.finding.json" if folder.is_dir() else folder
    if file.exists() and (not file.is_file() or file.samefile(path)):
        what = "the finding itself" if file.is_file() else "no regular file"
        raise UserError(f"--out {file}: it is {what}; name another file")
    if not file.absolute().parent.is_dir():
        raise UserError(f"--out {file}: there is no folder {file.parent}; make it first")
    with writing(file):
        write_whole(file.resolve(), data)
    return ExportDocument(
        finding=made.finding.id,
        file=str(file),
        bytes=len(data),
        inputs=made.inputs is not None,
        needs=needed_suite(made.finding),
    )
