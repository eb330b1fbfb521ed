"""Run `generate --method import`: turn existing submissions into a generation."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator

from msgspec import UNSET

from kerneltruth.documents.generations import GenerateDocument, GenerationManifest, ImportedLine
from kerneltruth.documents.lines import Labels
from kerneltruth.documents.runs import NotRead
from kerneltruth.engine.requests import Step
from kerneltruth.errors import UserError
from kerneltruth.generate.account import Account
from kerneltruth.generate.assignments import tasks_chosen
from kerneltruth.generate.directory import (
    close_generation,
    open_generation,
    publish,
)
from kerneltruth.generate.requests import IMPORT, GenerateRequest
from kerneltruth.suites.catalog import absolute, opened, submissions_at
from kerneltruth.suites.entries import Entry, match_tasks
from kerneltruth.suites.generations import ANSWERS
from kerneltruth.suites.submission import Broken
from kerneltruth.tasks.registry import accepted_by


def import_submissions(
    options: GenerateRequest, start: float
) -> Generator[Step, None, GenerateDocument]:
    """Read submissions of any known form; yield steps and return the command's document."""
    source = options.source
    if source is None or not source.exists():
        raise UserError(f"--from {source}: there is no such file or folder; name one")
    with opened(options.suite) as named:
        suite = named or options.suite
        entries: list[Entry] = []
        broken: list[Broken] = []
        for item in _enrolled(options, suite):
            if isinstance(item, Broken):
                broken.append(item)
            else:
                entries.append(item)
            text = f"{len(entries)} read, {len(broken)} not"
            yield Step(done=len(entries), total=len(entries) + len(broken), text=text)
        if not entries:
            first = f"; {broken[0].origin}: {broken[0].reason}" if broken else ""
            raise UserError(f"--from {source}: no submission for the suite {suite}{first}")
        manifest = GenerationManifest(
            suite=absolute(options.suite),
            method=IMPORT,
            model=options.model,
            source=str(source.absolute()),
        )
        path = open_generation(options.out, manifest)
        publish(path, ANSWERS, (_line(entry, suite) for entry in entries))
    document = GenerateDocument(
        suite=options.suite,
        method=IMPORT,
        tasks=len({e.task.key for e in entries}),
        chains=len(entries),
        answers=len(entries),
        finishes={},
        unanswered=(),
        not_asked=0,
        stopped=None,
        account=Account().document(None),
        refine=None,
        broken=tuple(NotRead(where=b.origin, why=b.reason) for b in broken),
        seconds=time.monotonic() - start,
        run=str(path),
        candidates=str(path / ANSWERS),
    )
    close_generation(path, document)
    return document


def _enrolled(options: GenerateRequest, suite: str) -> Iterator[Entry | Broken]:
    assert options.source is not None
    chosen = {t.key for t in tasks_chosen(suite, options.asking)}
    defaults = Labels(method=IMPORT, model=options.model)
    submissions = submissions_at(options.source, suite)
    for item in match_tasks(submissions, accepted_by(suite), defaults):
        if isinstance(item, Broken) or item.task.key in chosen or not options.asking.restricts:
            yield item


def _line(entry: Entry, suite: str) -> ImportedLine:
    peer, spent = entry.submission.peer, entry.submission.spent
    return ImportedLine(
        task=entry.task.key.removeprefix(f"{suite}/"),
        suite=suite,
        method=entry.labels.method,
        model=entry.labels.model,
        sample=entry.labels.sample,
        round=entry.labels.round,
        origin=entry.submission.origin,
        code=entry.submission.source,
        peer=UNSET if peer is None else peer,
        spent=UNSET if spent is None else spent,
    )
