"""Read a data set's definitions, and the peer's verdicts on solutions in its traces."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from kerneltruth.documents.lines import PublishedVerdict
from kerneltruth.suites.flashinfer.definition import FOLDER, Definition, read_definitions
from kerneltruth.suites.flashinfer.trace import read_traces
from kerneltruth.suites.submission import Broken


class ReferenceSurroundings:
    """Definitions and traces, read at the first solution, so that other submissions cost nothing.

    Attributes:
        broken: lines of traces that could not be read.
    """

    def __init__(self, path: Path, definitions: Mapping[str, Definition] | None) -> None:
        self._path = path
        self._given = definitions
        self.broken: list[Broken] = []

    @cached_property
    def _root(self) -> Path | None:
        """Return the data set that contains the path, if there is one."""
        path = self._path.resolve()
        return next((p for p in (path, *path.parents) if (p / FOLDER).is_dir()), None)

    @cached_property
    def definitions(self) -> Mapping[str, Definition]:
        """Return the given definitions, else the data set's; its suite reports broken ones."""
        if self._given is not None:
            return self._given
        return read_definitions(self._root)[0] if self._root is not None else {}

    @cached_property
    def verdicts(self) -> Mapping[tuple[str, str], PublishedVerdict]:
        """Return the peer's verdicts by definition and solution."""
        if self._root is None:
            return {}
        found, broken = read_traces(self._root)
        self.broken += broken
        return found
