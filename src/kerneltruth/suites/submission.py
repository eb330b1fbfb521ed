"""The items that every reader yields: submissions, and unreadable items with reasons."""

from __future__ import annotations

from dataclasses import dataclass, field

from kerneltruth.documents.lines import Labels, PublishedVerdict, SpentRecord

MAX_SOURCE_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One candidate as it was submitted.

    Attributes:
        origin: its place, relative to the given path: a file, or a file and a line.
        name: its task, in its own suite's words.
        entry: the function that its prompt asks for, if known and different from `name`; "" if the
            prompt names none, so that any function may be the entry.
        source: the code alone, without fences and prose.
        peer: the verdict of the peer's own evaluation, if the format contains it.
        spent: what the model's answer took, if the format contains it.
    """

    origin: str
    name: str
    source: str
    entry: str | None = None
    labels: Labels = field(default_factory=Labels)
    peer: PublishedVerdict | None = None
    spent: SpentRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A file or line that is not a submission, and why; the rest is still read."""

    origin: str
    reason: str


Read = Submission | Broken
