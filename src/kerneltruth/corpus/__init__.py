"""The corpus: correct kernels that must never be flagged, and wrong ones that must be caught."""

from __future__ import annotations

from kerneltruth.corpus import (
    pointwise,
    published,
    reductions,
    rows_and_matrices,
    selection,
    structured,
)
from kerneltruth.corpus.entry import Entry, source

ENTRIES: tuple[Entry, ...] = (
    *published.ENTRIES,
    *rows_and_matrices.ENTRIES,
    *pointwise.ENTRIES,
    *reductions.ENTRIES,
    *structured.ENTRIES,
)

_CHOSEN = {e.name for e in published.ENTRIES} | {*selection.CONTROLS, *selection.BUGS}
SELECTED: tuple[Entry, ...] = tuple(e for e in ENTRIES if e.name in _CHOSEN)

__all__ = ["ENTRIES", "SELECTED", "Entry", "source"]
