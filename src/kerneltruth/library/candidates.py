"""Candidates of the library: a path, a source text, a function, or a `NamedCandidate`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from kerneltruth.errors import UserError
from kerneltruth.library.functions import source_of
from kerneltruth.library.own_package import package_of

if TYPE_CHECKING:
    from kerneltruth.tasks.model import Task

Function: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class NamedCandidate:
    """A kernel to judge, where a name or a task of its own is needed.

    Attributes:
        what: a path, a source text or a function; a folder or the name of a package with `entry`.
        name: how its report calls it; None takes the file's or the function's name.
        task: what it must compute, instead of the `task` of the call.
        entry: the function to call, instead of the `entry` of the call.

    Examples:
        >>> answer = kt.NamedCandidate(relu, name="answer 3", task="relu")
        >>> kt.check(answer, device="cpu", cases=4)
        Report(name='answer 3', task='relu', verdict='pass', cases=4, failed=0, score=...)
    """

    what: str | PathLike[str] | Function
    name: str | None = None
    task: str | Task | None = None
    entry: str | None = None


Judgeable: TypeAlias = (
    "str | PathLike[str] | Function | NamedCandidate | tuple[str, str | PathLike[str] | Function]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A candidate as it goes to the server.

    Attributes:
        name: how its report calls it.
        file: its file, or a stand-in for one.
        text: its source; None for a folder or a package, whose entry says what it is.
        entry: the function to call; None finds it.
        task: its own task, if it has one.
    """

    name: str
    file: str
    text: str | None
    entry: str | None = None
    task: str | Task | None = None

    def with_entry(self, entry: str | None) -> Source:
        """Return it as the entry of an option says, with the text of its files.

        Raises:
            UserError: a folder has no such entry, or none is named; or it is no name.
        """
        from kerneltruth.library.wording import as_argument
        from kerneltruth.runner.packages import names_module, read_package

        entry = self.entry or entry
        if not isinstance(entry, str | None):
            raise UserError(f"entry={entry!r}: name a function, or 'MODULE:FUNCTION' of a folder")
        if self.text is not None and not names_module(entry):
            return replace(self, entry=entry)
        if entry is None or not names_module(entry):
            raise UserError(
                f"cannot judge {self.file!r}: it is a folder; name its entry, such as "
                "entry='ops:softmax', or a file in it"
            )
        try:
            return replace(self, text=read_package(Path(self.file), entry), entry=None)
        except UserError as error:
            raise UserError(as_argument(str(error))) from error


def source_in(what: Judgeable) -> Source:
    """Return a candidate's source; files are read here.

    Raises:
        UserError: the file cannot be read, or the function cannot be taken from its source.
    """
    match what:
        case NamedCandidate():
            found = source_in_answer(what.what)
            entry = what.entry or found.entry
            return replace(found, name=what.name or found.name, task=what.task, entry=entry)
        case (str() as name, inner):
            return replace(source_in_answer(inner), name=name)
        case str() if not what.strip() and "\n" not in what:
            raise UserError(
                f"cannot judge {what!r}: it is empty; give a path, a source text, or a function"
            )
        case str() if is_text(what):
            return Source(name="<source>", file="candidate.py", text=what)
        case str() | PathLike():
            return _in_file(Path(what))
        case _ if callable(what):
            return _of_function(what)
    raise UserError(
        f"cannot judge {type(what).__name__}: give a path, a source text, a function, or a "
        "(name, source) pair"
    )


def source_in_answer(what: Judgeable) -> Source:
    """Return the source of one of many candidates, or of a named one: an answer may be empty."""
    blank = isinstance(what, str) and not what.strip()
    return source_in("\n" if blank else what)


def _of_function(function: Function) -> Source:
    """Return the source of a function: with the package that it imports from, if it does."""
    taken = source_of(function)
    alone = Source(name=taken.entry, file=taken.file, text=taken.text, entry=taken.entry)
    package = package_of(inspect.unwrap(function), taken.text)
    if package is None:
        return alone
    try:
        made = Source(name=taken.entry, file=str(package.folder), text=None)
        return made.with_entry(package.entry)
    except UserError:
        if package.relative:
            raise
        # Too large; PYTHONPATH may lead the candidate's process to the package.
        return alone


def is_text(given: str) -> bool:
    """Tell a source from a path: a path has no line break, and words only if it is there."""
    begins = given.startswith(("def ", "import ", "from ", "@"))
    words = len(given.split()) > 1 and not Path(given).suffix
    return "\n" in given or begins or (words and not Path(given).exists())


def _in_file(path: Path) -> Source:
    from kerneltruth.runner.candidate import read_source
    from kerneltruth.runner.packages import installed

    if path.is_dir():
        return Source(name=path.resolve().name, file=str(path.absolute()), text=None)
    if not path.exists() and installed(str(path)) is not None:
        return Source(name=str(path), file=str(path), text=None)
    return Source(name=path.name, file=str(path.absolute()), text=read_source(path))
