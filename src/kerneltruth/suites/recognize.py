"""Find which task a kernel file is for: by name, else by its entry or its file name."""

from __future__ import annotations

import ast
from pathlib import Path

from kerneltruth.errors import CandidateError, UserError
from kerneltruth.runner.bundle import parsed
from kerneltruth.runner.candidate import (
    GENERIC_ENTRIES,
    Candidate,
    above_tests,
    public_functions,
    read_candidate,
    read_source,
)
from kerneltruth.suites import kernelbench_runs
from kerneltruth.suites.catalog import open_tasks, takes_any_name
from kerneltruth.suites.kernelbench.problem import KERNELBENCH_FUNCTIONS
from kerneltruth.suites.kernelbench.tasks import ENTRY
from kerneltruth.tasks.registry import by_entry, called, find, listed_of, suites
from kerneltruth.tasks.spec import Task


def recognize(
    file: Path,
    name: str | None,
    suite: str | None,
    *,
    source: str | None = None,
    entry: str | None = None,
) -> tuple[Candidate, Task]:
    """Return the candidate in a file and its task: by name, else by entry.

    Where several tasks have such an entry, that of the suite `core` comes first.

    Args:
        file: of the candidate.
        name: of the task.
        suite: where to look for the task.
        source: the text of the file, where it is not read from the disk.
        entry: the function to call; None finds it by its name.

    Raises:
        UserError: the file cannot be read, or there is no such task.
        CandidateError: as in `read_candidate`, for the first suite if none has such an entry.
    """
    text = above_tests(read_source(file) if source is None else source)
    known = open_tasks(suite)
    given = None if known is None else known.suite.submission(file, text, name)
    if given is not None:
        text, name = given.source, name or given.name
    if name is None and known is not None and not known.suite.by_entry:
        name = _task_of_file(file, known.name)
    if name is None:
        try:
            return _by_entry(text, file, suite, entry)
        except CandidateError:
            if suite is None or not takes_any_name(suite):
                raise
        name = _task_of_file(file, suite)
    task = find(name, suite)
    if takes_any_name(suite):
        candidate = for_own(text, str(file), task.entry, entry)
        _check_parameters(candidate, task)
    else:
        candidate = _read_named(text, file, name, entry or task.entry)
    return candidate, task


def _read_named(text: str, file: Path, task: str, entry: str) -> Candidate:
    """Return the candidate for the task of that name.

    A task name given by the user may be the function's name in another benchmark's file.
    """
    short_name = task.rpartition("/")[2]
    return read_candidate(text, str(file), task_names=(short_name,), task=short_name, entry=entry)


def for_own(source: str, path: str, named: str, entry: str | None = None) -> Candidate:
    """Return the candidate for a task of the user's own: any public function of its file.

    Args:
        source: of the candidate.
        path: its name in messages.
        named: the entry of the task; `ModelNew` where the reference is a model.
        entry: the function to call; None finds it.

    Raises:
        CandidateError: there is none or there are several, or the source is not Python.
    """
    chosen = entry or _only_public(source, path, named)
    found = read_candidate(source, path, task_names=(chosen,), task=chosen)
    if found.entry != chosen:
        raise CandidateError(f"{path} defines no {chosen!r}; define it, or name another by --entry")
    return found


def _check_parameters(candidate: Candidate, task: Task) -> None:
    """Refuse a function that no call of the reference's arguments can fit.

    Raises:
        CandidateError: it has too few parameters, or needs more.
    """
    tree = parsed(candidate.source)
    functions = {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef)}
    function = functions.get(candidate.entry)
    # In place of a model, only the call itself shows which weights a function takes.
    if function is None or function.decorator_list or task.entry == ENTRY:
        return
    given, own = task.call_order(), function.args
    every = [*own.posonlyargs, *own.args, *own.kwonlyargs]
    free = len(own.defaults) + sum(d is not None for d in own.kw_defaults)
    tensors = {s.member_of or s.name for s in task.tensors if not s.may_be_absent}
    open_ended = own.vararg is not None or own.kwarg is not None
    if len(every) - free > len(given) or (len(every) < len(tensors) and not open_ended):
        called = f"{candidate.entry}({ast.unparse(own)})"
        raise CandidateError(
            f"{candidate.path}:{function.lineno}: {called} does not fit "
            f"the arguments {', '.join(given)} of the reference; give it a parameter for each"
        )


def _only_public(source: str, path: str, named: str) -> str:
    """Return the function with the task's name, else the only public one."""
    names = public_functions(source, path)
    if named in names or _defines(source, path, named):
        return named
    if named == ENTRY:
        # A function in place of a model often brings its model and what makes its inputs.
        names = tuple(n for n in names if n not in KERNELBENCH_FUNCTIONS)
    generic = (name for name in GENERIC_ENTRIES if name in names)
    found = names[0] if len(names) == 1 else next(generic, None)
    if found is None and names:
        raise CandidateError(
            f"{path} has several public functions: {', '.join(names)}; pass --entry NAME, or begin "
            "the names of helpers with _"
        )
    return found or named


def _defines(source: str, path: str, name: str) -> bool:
    """Return whether a source defines the name at all, as by `name = torch.compile(function)`."""
    try:
        return read_candidate(source, path, task_names=(name,), task=name).entry == name
    except CandidateError:
        return False


def _by_entry(
    text: str, file: Path, suite: str | None, entry: str | None
) -> tuple[Candidate, Task]:
    refusal: UserError | None = None
    for each in suites() if suite is None else (suite,):
        known = by_entry(each)
        names = [name for name in known if entry in (None, name)]
        try:
            candidate = read_candidate(text, str(file), task_names=names)
        except UserError as error:
            refusal = refusal or error
            continue
        return candidate, known[candidate.entry]
    assert refusal is not None
    raise refusal


def _task_of_file(file: Path, suite: str) -> str:
    """Return the task of a user's suite that a file is for: by its name, or the only one.

    Raises:
        UserError: the suite has several tasks, and the file's name matches none of them.
    """
    listed = listed_of(suite)
    stem = kernelbench_runs.names_problem(file) or file.stem
    meant = listed.get(stem) or called(stem, listed)
    if meant is None and len(listed) == 1:
        (meant,) = listed.values()
    if meant is None:
        some = ", ".join(list(listed)[:3])
        raise UserError(
            f"{file.name!r} does not say which of the {len(listed)} tasks of {suite} it is for: "
            f"pass --task NAME, such as {some}"
        )
    return meant.name
