"""Record the suite of a finding's task, and find it again for a replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kerneltruth.documents.stored import Finding
from kerneltruth.errors import UserError
from kerneltruth.suites.catalog import is_at_hand, open_tasks, opened, suite_class
from kerneltruth.tasks.registry import is_suite, listed_of

# Keys of a finding's environment for a task that no suite at hand has: how the command line named
# its suite, and its problem's hash.
FROM_SUITE = "suite"
PROBLEM = "problem_sha256"
# The text of a user's own reference, with which a finding replays where the file is not.
SOURCE = "reference_source"


def origin_of(task: str) -> dict[str, str | None]:
    """Return the facts that a finding stores about a task of an open suite; nothing for others."""
    suite, _, name = task.partition("/")
    known = open_tasks(suite)
    if known is None:
        return {}
    listed = known.listed()[name]
    found = {FROM_SUITE: known.option, PROBLEM: listed.sha256}
    statement = known.suite.statement(name) if known.suite.any_name else None
    return found if statement is None else {**found, SOURCE: statement.source}


def needed_suite(finding: Finding) -> str | None:
    """Return the user's suite that a replay of the finding needs beside it; None if it needs none.

    A finding holds the text of a reference of the user's own.
    """
    environment = finding.environment
    return None if environment.get(SOURCE) is not None else environment.get(FROM_SUITE)


def _is_one_file(option: str) -> bool:
    """Return whether an option names a file of the user's own."""
    return suite_class(option.partition(":")[0]).any_name


@contextmanager
def for_findings(findings: Iterable[Finding], option: str | None) -> Iterator[None]:
    """Open the suite of findings: the given one, else the one they were made with.

    Raises:
        UserError: it is not there any more, or a problem in it has changed.
    """
    brought = [f for f in findings if _is_brought(f)]
    if not brought:
        yield
        return
    said = option or brought[0].environment.get(FROM_SUITE)
    if said is None or is_at_hand(said):
        name = brought[0].task.partition("/")[0]
        named = f"{name}:PATH" if is_suite(name) else "tasks:FILE"
        raise UserError(
            f"task {brought[0].task!r} belongs to a suite of yours: pass --suite {named}"
        )
    with _there(said, brought[0]) as there, opened(there) as suite:
        known = listed_of(suite or "")
        for finding in brought:
            name = finding.task.partition("/")[2]
            now = known[name].sha256 if name in known else None
            if finding.environment.get(PROBLEM) not in (None, now):
                raise UserError(_changed(finding, there))
        yield


@contextmanager
def _there(option: str, finding: Finding) -> Iterator[str]:
    """Return the suite; a reference that is no file here is written from its finding."""
    kind, _, path = option.partition(":")
    source = finding.environment.get(SOURCE)
    if source is None or not _is_one_file(option) or Path(path).exists():
        yield option
        return
    with TemporaryDirectory(prefix="kerneltruth-") as folder:
        file = Path(folder) / Path(path).name
        file.write_text(source, "utf-8")
        yield f"{kind}:{file}"


def _changed(finding: Finding, option: str) -> str:
    kind, _, path = option.partition(":")
    if _is_one_file(option):
        return (
            f"{path} is not the file that {finding.task} was judged by; name that one "
            f"with --{kind}, or judge the kernel again"
        )
    return (
        f"{finding.task} in {option} is not the problem that was judged; "
        "name its checkout with --suite, or judge the kernel again"
    )


def _is_brought(finding: Finding) -> bool:
    suite, slash, _ = finding.task.partition("/")
    stored = finding.environment.get(FROM_SUITE) is not None
    return stored or (bool(slash) and not is_at_hand(suite) and is_suite(suite))
