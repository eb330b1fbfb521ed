"""The corpus: correct kernels that must never be flagged, and wrong ones that must be caught."""

from __future__ import annotations

from kerneltruth.corpus import pointwise, published, reductions, rows_and_matrices, structured
from kerneltruth.corpus.entry import Entry, source

ENTRIES: tuple[Entry, ...] = (
    *published.ENTRIES,
    *rows_and_matrices.ENTRIES,
    *pointwise.ENTRIES,
    *reductions.ENTRIES,
    *structured.ENTRIES,
)

__all__ = ["ENTRIES", "Entry", "source"]
