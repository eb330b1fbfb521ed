"""What every importer yields: submissions, and what could not be read, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from kerneltruth.documents.lines import PublishedVerdict

MAX_SOURCE_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Where a candidate comes from, as rates are later broken down; None where unknown.

    Attributes:
        sample: which of several independent answers.
        round: which revision of an answer, from 0.
    """

    method: str | None = None
    model: str | None = None
    sample: int | None = None
    round: int | None = None

    def over(self, defaults: Labels) -> Labels:
        """These labels, with the defaults where they say nothing."""
        return Labels(
            method=self.method if self.method is not None else defaults.method,
            model=self.model if self.model is not None else defaults.model,
            sample=self.sample if self.sample is not None else defaults.sample,
            round=self.round if self.round is not None else defaults.round,
        )


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
