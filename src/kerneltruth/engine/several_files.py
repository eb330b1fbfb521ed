"""Judge several files in one run; a fault of one path does not affect the others."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kerneltruth.documents.checks import CheckCounts, CheckDocument, ChecksDocument, RefusedFile
from kerneltruth.documents.lines import ResultLine
from kerneltruth.documents.verdict import NOT_JUDGED
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.engine.one_file import job_of, judge_into, learned, run_of
from kerneltruth.engine.policy import choose_policy
from kerneltruth.engine.requests import (
    CheckRequest,
    ChecksRequest,
    Events,
    FileEnded,
    Step,
)
from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import STDIN, STDIN_NAME, standard_input
from kerneltruth.runner.host import Runner
from kerneltruth.runner.packages import names_module, read_package
from kerneltruth.runs.store import RunStore
from kerneltruth.suites.catalog import opened
from kerneltruth.suites.reading import is_passed_over

FileResult = CheckDocument | RefusedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToJudge:
    """A file that holds a candidate: how it is judged, and its job."""

    options: CheckRequest
    job: EvaluationRequest


def judge_files(request: ChecksRequest, runner: Runner, start: float) -> Events[ChecksDocument]:
    """Judge the files with a runner that is warming up; `start` is when the command began.

    Raises:
        UserError: no path has anything to judge, all for the same reason.
    """
    with opened(request.each.suite, runner) as suite:
        each = replace(request.each, suite=suite)
        evaluator = Evaluator(policy=choose_policy(each.bounds, tf32=each.tf32), runner=runner)
        left_out = Path((request.each.suite or "").partition(":")[2]).resolve()
        found = list(_found(request.paths, each, evaluator, left_out))
        files = [file for file in found if isinstance(file, FileToJudge)]
        reasons = {file.reason for file in found if isinstance(file, RefusedFile)}
        if not files and len(reasons) == 1:
            raise UserError(reasons.pop())
        if not files:
            return _document((yield from _judged_in(None, found, evaluator)), start, None)
        yield from learned(suite)
        with run_of(each, evaluator, [file.job for file in files]) as store:
            ended = yield from _judged_in(store, found, evaluator)
        return _document(ended, start, store.path)


def _judged_in(
    store: RunStore[ResultLine] | None, found: list[FileToJudge | RefusedFile], evaluator: Evaluator
) -> Generator[Step, None, list[FileResult]]:
    ended: list[FileResult] = []
    for file in found:
        result: FileResult
        if isinstance(file, RefusedFile):
            path, result = file.path, file
        else:
            path, start = str(file.options.file), time.monotonic()
            assert store is not None
            try:
                judged = yield from judge_into(store, file.options, evaluator, file.job, start)
                result = judged.document
            except UserError as error:
                result = RefusedFile(path=path, reason=str(error))
        ended.append(result)
        yield FileEnded(done=len(ended), total=len(found), text=path, path=path, ended=result)
    return ended


def _found(
    paths: tuple[Path, ...], each: CheckRequest, evaluator: Evaluator, left_out: Path
) -> Iterator[FileToJudge | RefusedFile]:
    """Yield the files of the paths in turn, and what is wrong with a path.

    `left_out` is no candidate where a folder holds it: the reference, or the file of tasks.
    """
    seen: set[Path] = set()
    for path in paths:
        try:
            inner = (path,) if names_module(each.entry) else _files(path, left_out)
            if len(inner) == 1 and inner[0].resolve() in seen:
                raise UserError(f"{path}: it is named twice; name it once")
        except UserError as error:
            yield RefusedFile(path=str(path), reason=str(error))
            continue
        for file in inner:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                yield _file(file, each, evaluator)


def _files(path: Path, left_out: Path) -> tuple[Path, ...]:
    """Return the file, or the Python files below a folder in the order of their names.

    Raises:
        UserError: there is no such path, or the folder has no such files.
    """
    if str(path) == STDIN or path.is_file():
        return (path,)
    if not path.exists():
        raise UserError(f"cannot read {str(path)!r}: there is no such file; name a Python file")
    kernels = tuple(file for file in _below(path) if file.resolve() != left_out)
    if not kernels:
        raise UserError(f"{path}: the folder has no Python files; name one that has")
    return kernels


def _below(folder: Path) -> Iterator[Path]:
    if (folder / "run.json").is_file():
        # The candidates of a run are judged already.
        return
    for path in sorted(folder.iterdir(), key=lambda p: p.name):
        if is_passed_over(path.name) or path.name.startswith("test_"):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)
        elif path.is_file() and path.suffix == ".py":
            yield path


def _file(file: Path, each: CheckRequest, evaluator: Evaluator) -> FileToJudge | RefusedFile:
    try:
        options = replace(each, file=file)
        if each.entry is not None and names_module(each.entry):
            options = replace(options, source=read_package(file, each.entry), entry=None)
        elif str(file) == STDIN:
            options = replace(each, file=Path(STDIN_NAME), source=standard_input())
        job = job_of(options, evaluator.cache.policy)
    except UserError as error:
        return RefusedFile(path=str(file), reason=str(error))
    # In one run, files of several folders may have one name.
    return FileToJudge(options=options, job=replace(job, name=str(options.file)))


def _document(ended: list[FileResult], start: float, run: Path | None) -> ChecksDocument:
    checks = tuple(each for each in ended if isinstance(each, CheckDocument))
    refused = tuple(each for each in ended if isinstance(each, RefusedFile))
    passed = sum(each.passed for each in checks)
    not_judged = sum(each.verdict in NOT_JUDGED for each in checks)
    return ChecksDocument(
        checks=checks,
        refused=refused,
        counts=CheckCounts(
            passed=passed,
            failed=len(checks) - passed - not_judged,
            not_judged=not_judged,
            refused=len(refused),
        ),
        seconds=time.monotonic() - start,
        run=None if run is None else str(run),
    )
