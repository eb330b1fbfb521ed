"""A suite of one's own: each Python file of a folder is a problem.

A file has a docstring, `SIGNATURE`, `DIMS`, perhaps `PERF`, and a function `reference`.
"""

import runpy
from collections.abc import Iterator
from pathlib import Path

import kerneltruth as kt


class Problems(kt.Suite):
    """The problems of a folder: `--suite problems:PATH`."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files

    @classmethod
    def open(cls, path: Path, opening: kt.Opening) -> "Problems":
        files = sorted(path.glob("*.py"))
        if not files:
            raise kt.UserError(
                f"--suite {opening.option}: no .py file there; name a folder of them"
            )
        return cls(files)

    def tasks(self) -> Iterator:
        for file in self.files:
            problem = runpy.run_path(str(file))
            yield kt.task(
                problem["SIGNATURE"],
                dims=problem["DIMS"],
                reference=problem["reference"],
                description=problem["__doc__"],
                perf=problem.get("PERF", ()),
            )
