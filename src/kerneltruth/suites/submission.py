"""What every importer yields: submissions, and what could not be read, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from kerneltruth.documents.lines import Labels, PublishedVerdict

MAX_SOURCE_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One candidate as it was handed in.

    Attributes:
        origin: where it stands, relative to what was given: a file, or a file and a line.
        name: what it calls its task, in its own suite's words.
        entry: the function that its prompt asks for, where that is known and is not `name`; ""
            where the prompt names none, so that any function may stand for it.
        source: the code alone, without fences and prose.
        peer: what the peer's own evaluation said of it, where the format holds that.
    """

    origin: str
    name: str
    source: str
    entry: str | None = None
    labels: Labels = field(default_factory=Labels)
    peer: PublishedVerdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A file or line that is no submission, and why; the rest is read nevertheless."""

    origin: str
    reason: str


Read = Submission | Broken
