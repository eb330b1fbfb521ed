"""What a check may be told, and the message that it becomes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast, get_args

from kerneltruth.documents.model import parse, plain
from kerneltruth.engine.requests import CONTRACT, Explain
from kerneltruth.errors import UserError
from kerneltruth.library.candidates import Source
from kerneltruth.library.messages import CheckMessage

if TYPE_CHECKING:
    from kerneltruth.tasks.model import Task

# As of the command: a day, and more cases than any task has.
MOST_S = 86_400.0
MOST_CASES = 10**6


class CheckOptions(TypedDict, total=False):
    """What a check may be told; the command `check` has the same options.

    Attributes:
        task: what the kernel must compute, such as `softmax`; or what `kt.task` returned in a file;
            by default the function's name says it.
        suite: where the task is looked for, such as `core` or `kernelbench:PATH`.
        reference: a file of the user's own with a function and `inputs()`, which is the task.
        tasks: a file of the user's own that declares tasks.
        entry: the function to call, by its name; by default it is found. Of a folder or an
            installed package it is `MODULE:FUNCTION`, such as `pkg.ops:softmax`.
        contract: what decides: `published`, `core` (the default) or `torch`.
        cases: how many cases are judged; by default 48, or more where the task promises more.
        seed: of all cases; by default one that is drawn when the Judge is made.
        dtypes: only these, such as `float16`.
        strategies: only these makers of cases.
        require_kernel: whether a right result must be the work of the candidate's own kernels.
        timeout: seconds allowed for one call of the kernel; 20 by default.
        explain: what a failure's smallest case may cost: `brief` (up to a second, the default),
            `full` (up to 20 seconds) or `none`.
        out: a folder that is made to hold the run; by default nothing is written.

    Examples:
        >>> few: kt.CheckOptions = {"task": "relu", "cases": 4, "contract": "published"}
        >>> kt.check(relu, device="cpu", **few).document.contract
        'published'
    """

    task: str | Task | None
    suite: str | None
    reference: str | os.PathLike[str] | None
    tasks: str | os.PathLike[str] | None
    entry: str | None
    contract: str
    cases: int | None
    seed: int | None
    dtypes: Sequence[str]
    strategies: Sequence[str]
    require_kernel: bool
    timeout: float
    explain: Explain
    out: str | os.PathLike[str] | None


def message_of(source: Source, options: CheckOptions, seed: int) -> CheckMessage:
    """Return the question that a check asks.

    Args:
        source: of the candidate.
        options: as the caller gives them.
        seed: where the caller gives none.

    Raises:
        UserError: there is no such option, or two name a suite.
    """
    unknown = [name for name in options if name not in CheckOptions.__annotations__]
    if unknown:
        known = ", ".join(CheckOptions.__annotations__)
        raise UserError(f"check: there is no option {unknown[0]!r}; the options are {known}")
    task, tasks = named_in(options.get("task"), options.get("tasks"))
    source = source.with_entry(options.get("entry"))
    given = options.get("seed")
    out = options.get("out")
    message = CheckMessage(
        file=source.file,
        source=source.text,
        entry=source.entry,
        task=source.task or task,
        suite=suite_in(options.get("suite"), options.get("reference"), tasks),
        contract=options.get("contract", CONTRACT),
        cases=options.get("cases"),
        seed=seed if given is None else given,
        dtypes=several(options.get("dtypes", ())),
        strategies=several(options.get("strategies", ())),
        require_kernel=options.get("require_kernel", False),
        deadline_s=options.get("timeout", 20.0),
        explain=options.get("explain", "brief"),
        out=None if out is None else str(Path(out).absolute()),
    )
    _require_valid(message)
    return message


def several(names: Sequence[str]) -> tuple[str, ...]:
    """Return names as text; one name may stand for a list of one, and a torch.device for a name."""
    return (names,) if isinstance(names, str) else tuple(str(name) for name in names)


def _require_valid(message: CheckMessage) -> None:
    """Refuse what the server could not read, or the command would not take."""
    if message.explain not in get_args(Explain):
        known = ", ".join(get_args(Explain))
        raise UserError(f"explain={message.explain!r}: must be one of {known}")
    try:
        parse(CheckMessage, plain(message))
    except UserError as error:
        raise UserError(f"check: {str(error).partition(': ')[2]}; see CheckOptions") from error
    for name, value, (least, most) in (
        ("cases", message.cases, (1, MOST_CASES)),
        ("seed", message.seed, (0, 2**64 - 1)),
        ("timeout", message.deadline_s, (0.1, MOST_S)),
    ):
        if value is not None and not least <= value <= most:
            raise UserError(f"{name}={value!r}: must be from {least} to {most}")


def named_in(
    task: str | Task | None, tasks: str | os.PathLike[str] | None
) -> tuple[str | None, str | os.PathLike[str] | None]:
    """Return a task's name and its file of declarations; the server runs that file.

    Raises:
        UserError: the task is declared in no file.
    """
    if not hasattr(task, "reference"):
        return task, tasks
    task = cast("Task", task)
    code = getattr(task.reference, "__code__", None)
    if code is None or not Path(code.co_filename).is_file():
        raise UserError(
            f"task {task.name!r}: its reference stands in no file; declare it in a file, and give "
            "tasks=FILE"
        )
    return task.name, code.co_filename if tasks is None else tasks


def suite_in(
    suite: str | None,
    reference: str | os.PathLike[str] | None = None,
    tasks: str | os.PathLike[str] | None = None,
) -> str | None:
    """Return the suite that arguments name, with an absolute path: the server has its own folder.

    Raises:
        UserError: two of them are given.
    """
    given = {"suite": suite, "reference": reference, "tasks": tasks}
    named = [(name, os.fspath(value)) for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise UserError(f"{named[0][0]} and {named[1][0]}: each is a suite; give one of them")
    if suite is not None:
        name, colon, path = suite.partition(":")
        return f"{name}:{Path(path).absolute()}" if colon else suite
    return f"{named[0][0]}:{Path(named[0][1]).absolute()}" if named else None
