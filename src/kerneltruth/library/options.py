"""The options of a check, and the message that they become."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast, get_args

from kerneltruth.documents.model import parse, plain
from kerneltruth.engine.requests import CONTRACT, Explain
from kerneltruth.errors import UserError
from kerneltruth.library.candidates import Source
from kerneltruth.library.functions import source_of_statement
from kerneltruth.library.messages import CheckMessage, TimeMessage

if TYPE_CHECKING:
    from kerneltruth.tasks.model import Task

# As of the command: a day, and more cases than any task has.
MOST_S = 86_400.0
MOST_CASES = 10**6
# The name of an argument, its value, and the least and the most of it.
ArgumentRange: TypeAlias = tuple[str, float | None, tuple[float, float]]


class CheckOptions(TypedDict, total=False):
    """Options of a check. The command has `--bounds`, `--tf32`, `--domain` and `--target` besides.

    Attributes:
        task: what the kernel must compute, such as `softmax`; or what `kt.task` returned in a file;
            by default the function's name says it.
        suite: where the task is looked for, such as `core` or `kernelbench:PATH`.
        reference: a file of the user's own with a function and `inputs()`, which is the task.
        tasks: a file of the user's own that declares tasks.
        entry: the function to call, by its name; by default it is found. In a folder or an
            installed package it is `MODULE:FUNCTION`, such as `pkg.ops:softmax`.
        contract: what decides: `published`, `core` (the default) or `torch`.
        cases: how many cases are judged; by default 48, or more where the task promises more.
        seed: of all cases; by default one that is drawn when the Judge is made.
        dtypes: only these, such as `float16`.
        strategies: only these makers of cases.
        require_kernel: whether a right result must be the work of the candidate's own kernels.
        twice: whether a right kernel is judged again, in a fresh process on other cases.
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
    twice: bool
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
    source = source.with_entry(options.get("entry"))
    task, suite = asked_of(
        source.task or options.get("task"),
        options.get("suite"),
        options.get("reference"),
        options.get("tasks"),
    )
    given = options.get("seed")
    out = options.get("out")
    message = CheckMessage(
        file=source.file,
        source=source.text,
        entry=source.entry,
        task=task,
        suite=suite,
        contract=options.get("contract", CONTRACT),
        cases=options.get("cases"),
        seed=seed if given is None else given,
        dtypes=several(options.get("dtypes", ())),
        strategies=several(options.get("strategies", ())),
        require_kernel=options.get("require_kernel", False),
        twice=options.get("twice", False),
        deadline_s=options.get("timeout", 20.0),
        explain=options.get("explain", "brief"),
        out=None if out is None else str(Path(out).absolute()),
    )
    require_valid(message)
    return message


def several(names: Sequence[str]) -> tuple[str, ...]:
    """Return names as text; one name may stand for a list of one, and a torch.device for a name."""
    return (names,) if isinstance(names, str) else tuple(str(name) for name in names)


def require_valid(message: CheckMessage | TimeMessage) -> None:
    """Refuse values that the server could not read or the command would not take.

    Raises:
        UserError: it is such.
    """
    called = "check" if isinstance(message, CheckMessage) else "time"
    if isinstance(message, CheckMessage) and message.explain not in get_args(Explain):
        known = ", ".join(get_args(Explain))
        raise UserError(f"explain={message.explain!r}: must be one of {known}")
    try:
        parse(type(message), plain(message))
    except UserError as error:
        said = str(error).partition(": ")[2]
        raise UserError(f"{called}: {said}; see the arguments of `{called}`") from error
    except TypeError as error:
        raise UserError(f"{called}: {error}; give text, numbers and paths") from error
    if isinstance(message, TimeMessage):
        limits: tuple[ArgumentRange, ...] = (("budget", message.budget_s, (0, MOST_S)),)
    else:
        limits = (("cases", message.cases, (1, MOST_CASES)), ("seed", message.seed, (0, 2**64 - 1)))
    for name, value, (least, most) in (*limits, ("timeout", message.deadline_s, (0.1, MOST_S))):
        if value is not None and not least <= value <= most:
            raise UserError(f"{name}={value!r}: must be from {least} to {most}")


def asked_of(
    task: str | Task | None,
    suite: str | None,
    reference: str | os.PathLike[str] | None,
    tasks: str | os.PathLike[str] | None,
) -> tuple[str | None, str | None]:
    """Return the name of a task and its suite; arguments may give either.

    Raises:
        UserError: two suites are given, or a task is declared where no server can read it.
    """
    if not hasattr(task, "reference"):
        return task, _suite_in(suite, reference, tasks)
    declared = cast("Task", task)
    return declared.name, _suite_in(suite, reference, tasks or _file_of(declared))


def _file_of(task: Task) -> str:
    """Return the file that declares a task; the server runs it.

    Raises:
        UserError: the task is declared in no file.
    """
    code = getattr(task.reference, "__code__", None)
    place, line = task.declared_at or ("", 0)
    for file in (code.co_filename if code is not None else place, place):
        if Path(file).is_file():
            return file
    names = getattr(task.reference, "__globals__", sys.modules["__main__"].__dict__)
    return _kept(source_of_statement(task.name, place, line, names))


def _kept(text: str) -> str:
    """Return a file with a text, for a server to read; it is there until this process ends."""
    pid = os.getpid()
    if pid not in _folders:
        folder = _folders[pid] = Path(tempfile.mkdtemp(prefix="kerneltruth-"))
        atexit.register(_remove, folder, pid)
    path = _folders[pid] / hashlib.sha256(text.encode()).hexdigest()[:16] / "notebook.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return str(path)


def _remove(folder: Path, owner: int) -> None:
    # A forked child ends with this, too, and must leave its parent's files alone.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


# By process: where what notebooks declare is kept.
_folders: dict[int, Path] = {}


def _suite_in(
    suite: str | None,
    reference: str | os.PathLike[str] | None,
    tasks: str | os.PathLike[str] | None,
) -> str | None:
    """Return the suite that arguments name, with an absolute path: the server has its own folder.

    Raises:
        UserError: two of them are given, or one is no path.
    """
    given = {"suite": suite, "reference": reference, "tasks": tasks}
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) > 1:
        one, other, *_ = named
        raise UserError(f"{one} and {other}: each is a suite; give one of them")
    for name, value in named.items():
        if not isinstance(value, str | os.PathLike):
            raise UserError(
                f"{name}={value!r:.60}: it is a {type(value).__name__}; give the path of a file"
            )
        path = os.fspath(value)
        if name != "suite":
            return f"{name}:{Path(path).absolute()}"
        kind, colon, path = path.partition(":")
        return f"{kind}:{Path(path).absolute()}" if colon else kind
    return None
