"""The corpus: correct kernels that must never be flagged, and wrong ones that must be caught."""

from __future__ import annotations

from kerneltruth.corpus import (
    indexing_and_pooling,
    network_layers,
    pointwise,
    published,
    reductions,
)
from kerneltruth.corpus.entry import Entry, filename, source, with_tasks

ENTRIES: tuple[Entry, ...] = with_tasks(
    (
        *published.ENTRIES,
        *network_layers.ENTRIES,
        *pointwise.ENTRIES,
        *reductions.ENTRIES,
        *indexing_and_pooling.ENTRIES,
    )
)

__all__ = ["ENTRIES", "Entry", "filename", "source"]
