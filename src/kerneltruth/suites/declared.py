"""Load tasks that a user declares in a file of their own: `--tasks my_tasks.py`.

The judge runs the file and trusts it like its own code. The process that times the
reference as a baseline runs it too; no candidate's process does.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, Self

from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import Candidate
from kerneltruth.suites.deadline import within
from kerneltruth.suites.suite import FILE, Opening, Suite
from kerneltruth.suites.trial import try_reference
from kerneltruth.tasks.model import OUT, Task, parameters_of
from kerneltruth.tasks.registry import Listed, is_suite, suites

# The most seconds that a file may run, and its reference on a small case.
RUN_S = 60.0
# The files that run now; processes that they start must not read them again.
RUNNING: list[Path] = []


class DeclaredTasks(Suite):
    """The tasks of a file; the suite has the name of the file: `--tasks FILE`.

    Attributes:
        called: the file's name without `.py`.
        path: the file.
        sha256: of the file.
    """

    place = FILE
    any_name = True
    by_entry = True

    def __init__(self, path: Path, source: str, *, run_s: float = RUN_S) -> None:
        self.called = suite_of(path)
        self.path = path
        self.sha256 = hashlib.sha256(source.encode()).hexdigest()
        self._source = source
        run = partial(_run, path, source)
        module = within(run_s, run, path=path, line=1, what="running the file")
        self._tasks = _declared_in(module, path)
        _check_names(self._tasks, path)
        for task in self._tasks:
            what = f"trying {task.name} on a small case"
            tried = partial(_tried, task, path)
            within(run_s, tried, path=path, line=_first_line(task), what=what)

    @classmethod
    def open(cls, path: Path, opening: Opening | None = None) -> Self:
        """Return the tasks that a file declares.

        Raises:
            UserError: it cannot be read, does not run, or declares nothing, or something wrong.
        """
        try:
            return cls(path, path.read_bytes().decode("utf-8-sig"))
        except OSError as error:
            raise UserError(
                f"--tasks {path}: {error.strerror}; name a Python file that declares tasks"
            ) from error
        except UnicodeDecodeError as error:
            raise UserError(
                f"--tasks {path}: byte {error.start} is not UTF-8; name a Python file"
            ) from error

    def listed(self) -> Iterator[Listed]:
        """Return the tasks, each with the hash of the file."""
        return (replace(Listed.of(task), sha256=self.sha256) for task in self._tasks)

    def own_function(self, name: str) -> Candidate:
        """Return the reference as a candidate, the eager baseline of a task."""
        entry = next(task.entry for task in self._tasks if task.name == name)
        given = ", ".join(map(repr, (str(self.path.absolute()), self._source, name)))
        return Candidate(
            source=f"from {__name__} import eager\n\n{entry} = eager({given})\n",
            path=f"{name}.py",
            sha256=self.sha256,
            language="torch",
            trusted=True,
            entry=entry,
        )


def suite_of(path: Path) -> str:
    """Return the name of the suite that a file's tasks form.

    Raises:
        UserError: a suite has that name.
    """
    if path.stem in suites() or is_suite(path.stem):
        raise UserError(
            f"--tasks {path}: {path.stem!r} is a suite's name; give the file another one, or pass "
            "a function with its inputs() as --reference"
        )
    return path.stem


def eager(path: str, source: str, name: str) -> Callable[..., Any]:
    """Return the reference of a task as a function with the parameters of a candidate."""
    where = Path(path)
    task = next(t for t in _declared_in(_run(where, source), where) if t.name == name)
    return as_candidate(task)


def as_candidate(task: Task) -> Callable[..., Any]:
    """Wrap the reference: it ignores arguments for kernels only, and writes declared ones."""
    unknown = {OUT} - parameters_of(task.reference)
    names = [o.name for o in task.outputs]

    def call(**given: Any) -> Any:
        made = task.reference(**{n: v for n, v in given.items() if n not in unknown})
        if given.get(OUT) is not None:
            return given[OUT].copy_(made)
        if not task.mutates:
            return made
        results = list(made) if isinstance(made, tuple | list) else [made]
        named = dict(zip(names, results, strict=False))
        if not named.keys() & task.mutates.keys():
            named = dict(zip(task.mutates, results, strict=False))
        for each in task.mutates.keys() & named.keys():
            given[each].copy_(named.pop(each))
        left = tuple(named.values())
        return left if len(left) > 1 else next(iter(left), None)

    call.__signature__ = inspect.Signature(list(_parameters(task)))  # type: ignore[attr-defined]
    return call


def _parameters(task: Task) -> Iterator[inspect.Parameter]:
    defaults = {a.name: a.default for a in task.attributes}
    optional = {spec.name for spec in task.tensors if spec.optional}
    names = (*task.call_order(), *((OUT,) if task.promises.out else ()))
    for name in names:
        free = inspect.Parameter.empty
        default = None if name in {*optional, OUT} else defaults.get(name, free)
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)


def _run(path: Path, source: str) -> ModuleType:
    """Run the file as a module of its own.

    Raises:
        UserError: it is not Python, or raises; with the line.
    """
    module = ModuleType(f"kerneltruth_tasks_{path.stem}")
    module.__file__ = str(path.absolute())
    sys.modules[module.__name__] = module
    RUNNING.append(path)
    try:
        with _locating(path), _importing_beside(path):
            exec(compile(source, module.__file__, "exec"), module.__dict__)
    finally:
        RUNNING.pop()
    return module


@contextmanager
def _importing_beside(path: Path) -> Iterator[None]:
    """Let a file import modules beside it, as a script does."""
    folder = str(path.absolute().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


@contextmanager
def _locating(path: Path, line: int = 1) -> Iterator[None]:
    """Turn whatever a file raises into one line that says where it is wrong.

    Args:
        path: the file.
        line: where it is wrong if none of the file's own lines raises.
    """
    try:
        yield
    except SyntaxError as error:
        raise UserError(
            f"{path}:{error.lineno}: {error.msg}; correct the file, which is not valid Python"
        ) from error
    except (Exception, SystemExit) as error:
        raise UserError(f"{path}:{_line_of(error, path) or line}: {_said(error)}") from error


def _line_of(error: BaseException, path: Path) -> int | None:
    """Return the last line of the file that led to the error."""
    file = str(path.absolute())
    lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == file]
    return lines[-1] if lines else None


def _first_line(task: Task) -> int:
    """Return where the reference of a task begins."""
    code = getattr(task.reference, "__code__", None)
    return 1 if code is None else int(code.co_firstlineno)


def _said(error: BaseException) -> str:
    match error:
        case UserError():
            return str(error)
        case ImportError():
            return f"{error}; install it, or import what is there"
        case _:
            return f"{type(error).__name__}: {error}; correct the file"


def _declared_in(module: ModuleType, path: Path) -> list[Task]:
    """Return the tasks of a module: its values, and the elements of its `TASKS`.

    Raises:
        UserError: there is none.
    """
    values = [*vars(module).values(), *vars(module).get("TASKS", ())]
    found = list({id(v): v for v in values if isinstance(v, Task)}.values())
    if not found:
        raise UserError(
            f"{path}:1: the file declares no task; give what `task(...)` returns a name, list it "
            "in TASKS, or pass a function with its inputs() as --reference"
        )
    return found


def _tried(task: Task, path: Path) -> None:
    with _locating(path, _first_line(task)):
        try_reference(task)


def _check_names(tasks: list[Task], path: Path) -> None:
    lines: dict[str, int] = {}
    for task in tasks:
        line = _first_line(task)
        if task.name in lines:
            raise UserError(
                f"{path}:{line}: a task named {task.name!r} is declared at line "
                f"{lines[task.name]}; rename one of them"
            )
        lines[task.name] = line
