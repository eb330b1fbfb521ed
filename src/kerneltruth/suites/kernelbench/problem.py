"""Read KernelBench's problems from a checkout or a data file; parse them, never run them."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kerneltruth.errors import UserError
from kerneltruth.runner.child.pretrained import NEEDED
from kerneltruth.suites.kernelbench.constants import (
    Constants,
    constants_of,
    constants_of_inputs,
    read_by_model,
)
from kerneltruth.suites.submission import MAX_SOURCE_BYTES

_FILE = re.compile(r"^(\d+)_(.+)\.py$")
_FOLDER = re.compile(r"^level(\d+)$")
_COLUMNS = ("code", "level", "problem_id")
# The function that kernels replace, where a file has several.
REFERENCE = "reference"
# The functions that may make the inputs of a plain function.
_MAKES = ("inputs", "get_inputs")
_NEEDED = ("Model", "get_inputs", "get_init_inputs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """The plain function that a file has instead of a model.

    Attributes:
        name: of the function.
        makes: the name of the function that makes its inputs.
        tolerance: relative and absolute error that is right however small the bound.
        backward: whether the first result is differentiable.
    """

    name: str
    makes: str
    tolerance: tuple[float, float] | None = None
    backward: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem as its file states it.

    Attributes:
        level: from 1.
        number: its id within the level, from 1.
        title: the name in its file.
        trouble: why it cannot run, as far as is known without running it.
        doubt: why it runs but does not compute what it states.
        function: the plain function that it asks for, and the one that makes its inputs; None if
            it has KernelBench's form.
        alias: its name in a suite of its own.
        pretrained: whether it loads a model of `transformers` by name.
    """

    level: int
    number: int
    title: str
    source: str
    constants: Constants
    says: str = ""
    trouble: str | None = None
    doubt: str | None = None
    function: Plain | None = None
    alias: str | None = None
    pretrained: bool = False

    @property
    def name(self) -> str:
        """Return this project's name for it."""
        return self.alias or f"level{self.level}/{self.number}"

    @property
    def sha256(self) -> str:
        """Return the hash of the source."""
        return hashlib.sha256(self.source.encode("utf-8", "surrogatepass")).hexdigest()


def read_problems(path: Path) -> dict[str, Problem]:
    """The problems at a path, by name in the order of their numbers.

    Args:
        path: a problem file, a folder `levelN`, a checkout with such folders, or a data file
            (`.parquet`, `.jsonl`) with the columns `code`, `level` and `problem_id`. A file outside
            of a level's folder has level 0.

    Raises:
        UserError: nothing is there, or nothing that is a problem.
    """
    if path.is_dir():
        found = list(_folder(path))
    elif not path.is_file():
        raise UserError(
            f"--suite kernelbench:{path}: there is no such file or folder; name a checkout"
        )
    elif path.suffix == ".parquet":
        found = [_row(row, i, path) for i, row in enumerate(_parquet(path), 1)]
    elif path.suffix in (".jsonl", ".json"):
        found = [_row(row, i, path) for i, row in _json_rows(path)]
    else:
        found = [p for p in (_file(path, level=0),) if p is not None]
    if not found:
        raise UserError(
            f"--suite kernelbench:{path}: no problems there: neither folders level1, level2, ... "
            "with files like 12_Name.py, nor one such file, nor a .parquet or .jsonl file of them"
        )
    found = [_with_library(p) for p in found]
    return {p.name: p for p in sorted(found, key=lambda p: (p.level, p.number))}


def _with_library(problem: Problem) -> Problem:
    """Return a problem that says so if it needs a library that is not installed."""
    if not problem.pretrained or importlib.util.find_spec("transformers") is not None:
        return problem
    return replace(problem, trouble=problem.trouble or NEEDED)


def _folder(path: Path) -> Iterator[Problem]:
    """Return the problems of a folder: a level, or one with levels in it or in `KernelBench/`."""
    for folder in (path, *sorted(path.glob("level*")), *sorted(path.glob("KernelBench/level*"))):
        if folder.is_dir() and _FOLDER.match(folder.name):
            for file in folder.iterdir():
                problem = _file(file)
                if problem is not None:
                    yield problem


def read_reference(path: Path) -> Problem:
    """Return the problem of a user's own file: a plain function, or KernelBench's form.

    Raises:
        UserError: the file has neither form, or cannot be read.
    """
    source = _own_text(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            compile(source, str(path), "exec")
    except SyntaxError as error:
        raise UserError(
            f"{path}:{error.lineno}: {error.msg}; correct the reference, which is no Python"
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"{path} is not Python: {error}; correct the file") from error
    if any(isinstance(s, ast.ClassDef) and s.name == "Model" for s in tree.body):
        # A user's own file means the models that it names.
        found = replace(problem_of(0, 0, path.stem, source), alias=path.stem, pretrained=False)
        if found.trouble is not None:
            raise UserError(f"{path}: {found.trouble}; see docs/guides/own-kernels.md")
        return found
    plain = _plain_in(tree, path)
    name = path.stem if plain.name == REFERENCE else plain.name
    return problem_of_function(name, source, plain)


def problem_of_function(name: str, source: str, plain: Plain) -> Problem:
    """Return the problem of a source with a plain function, under a name."""
    tree = ast.parse(source)
    functions = {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef)}
    says = ast.get_docstring(functions[plain.name]) if plain.name in functions else None
    held = {*read_by_model(source, tree, (plain.makes,)), "tolerance", "backward"}
    return Problem(
        level=0,
        number=0,
        title=plain.name,
        source=source,
        constants=constants_of_inputs(tree, plain.makes, held),
        says=" ".join((says or "").split()),
        function=plain,
        alias=name,
    )


def _own_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(
            f"--reference {path}: {error.strerror}; name a Python file with a function and inputs()"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"--reference {path}: byte {error.start} is not UTF-8; name a Python file"
        ) from error


def _plain_in(tree: ast.Module, path: Path) -> Plain:
    """Return the function of a file, and the one that makes its inputs.

    Raises:
        UserError: there is none, or more than one.
    """
    functions = [s for s in tree.body if isinstance(s, ast.FunctionDef)]
    names = [s.name for s in functions]
    makes = next((n for n in _MAKES if n in names), None)
    if makes is None:
        raise UserError(
            f"{path}: it has no function inputs(); add one that returns example arguments as a "
            "tuple"
        )
    required = next(s.args for s in functions if s.name == makes)
    if len(required.args) > len(required.defaults):
        raise UserError(
            f"{path}: {makes}() needs {required.args[0].arg!r}; give each of its parameters a "
            "default"
        )
    assigned = {n for s in tree.body if isinstance(s, ast.Assign) for n in _targets(s)}
    settings = _settings(tree, path)
    if REFERENCE in {*names, *assigned}:
        return Plain(name=REFERENCE, makes=makes, **settings)
    public = [n for n in dict.fromkeys(names) if not n.startswith(("_", "test_"))]
    public = [n for n in public if n not in _MAKES]
    if len(public) != 1:
        what = f"several public functions: {', '.join(public)}" if public else "no public function"
        raise UserError(
            f"{path}: it has {what}; name the one that kernels replace `reference`, and begin the "
            "names of others with _"
        )
    return Plain(name=public[0], makes=makes, **settings)


def _settings(tree: ast.Module, path: Path) -> dict[str, Any]:
    """Return what a file says about its task at module level.

    Raises:
        UserError: a value that means nothing.
    """
    found: dict[str, Any] = {}
    for statement in tree.body:
        name = next(iter(_targets(statement)), "") if isinstance(statement, ast.Assign) else ""
        if isinstance(statement, ast.Assign) and name in _SETTINGS:
            holds, rule = _SETTINGS[name]
            try:
                found[name] = ast.literal_eval(statement.value)
            except (ValueError, TypeError):
                found[name] = None
            if not holds(found[name]):
                raise UserError(
                    f"{path}:{statement.lineno}: {name} = {ast.unparse(statement.value)}: {rule}"
                )
    return found


def _is_tolerance(value: object) -> bool:
    pair = value if isinstance(value, tuple) and len(value) == 2 else ()
    return bool(pair) and all(
        isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v < math.inf for v in pair
    )


_SETTINGS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "tolerance": (_is_tolerance, "give a relative and an absolute error, such as (1e-2, 1e-3)"),
    "backward": (lambda value: isinstance(value, bool), "give True or False"),
}


def _targets(statement: ast.Assign) -> list[str]:
    return [t.id for t in statement.targets if isinstance(t, ast.Name)]


def _file(path: Path, *, level: int | None = None) -> Problem | None:
    """Return the problem of a file; `level` is for a file outside of a level's folder."""
    named, folder = _FILE.match(path.name), _FOLDER.match(path.parent.name)
    level = level if folder is None else int(folder[1])
    if named is None or level is None:
        return None
    try:
        source = path.read_bytes()[: MAX_SOURCE_BYTES + 1].decode("utf-8-sig")
    except OSError as error:
        raise UserError(_unreadable(path, error)) from error
    except UnicodeDecodeError as error:
        return _broken(level, int(named[1]), named[2], f"not UTF-8 at byte {error.start}")
    return problem_of(level, int(named[1]), named[2], source)


def _unreadable(path: Path, error: OSError) -> str:
    return f"cannot read {path}: {error.strerror}; make it readable"


def _broken(level: int, number: int, title: str, trouble: str) -> Problem:
    return Problem(
        level=level, number=number, title=title, source="", constants={}, trouble=trouble
    )


def problem_of(level: int, number: int, title: str, source: str) -> Problem:
    """Return the problem of a source text; what it lacks is its `trouble`."""
    if len(source) > MAX_SOURCE_BYTES:
        return _broken(level, number, title, f"longer than {MAX_SOURCE_BYTES} bytes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            held = read_by_model(source, tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return _broken(level, number, title, f"not Python: {error}")
    defined = {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef | ast.ClassDef)}
    missing = [name for name in _NEEDED if name not in defined]
    model = defined.get("Model")
    says = ast.get_docstring(model) if model is not None else None
    return Problem(
        level=level,
        number=number,
        title=title,
        source=source,
        constants=constants_of(tree, held),
        says=" ".join((says or "").split()),
        trouble=f"the problem does not define {' and '.join(missing)}" if missing else None,
        doubt=crossed(tree),
        pretrained=any(_imports(s, "transformers") for s in tree.body),
    )


def _imports(statement: ast.stmt, package: str) -> bool:
    match statement:
        case ast.Import(names=names):
            modules = [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            modules = [module]
        case _:
            modules = []
    return any(module.partition(".")[0] == package for module in modules)


def crossed(tree: ast.Module) -> str | None:
    """Return whether a constant named after one constructor parameter is passed as another.

    The file then computes something else than it states; either may be meant.
    """
    parameters, passed = _constructor(tree), _passed(tree)
    for place, (parameter, name) in enumerate(zip(parameters, passed, strict=False)):
        if name is not None and name != parameter and name in parameters:
            return (
                f"the problem passes its `{name}` as the constructor's `{parameter}` "
                f"(argument {place + 1}): what it asks for is not what it computes"
            )
    return None


def _constructor(tree: ast.Module) -> list[str]:
    for model in tree.body:
        if isinstance(model, ast.ClassDef) and model.name == "Model":
            for method in model.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    return [a.arg for a in method.args.args[1:]]
    return []


def _passed(tree: ast.Module) -> list[str | None]:
    """Return the names that `get_init_inputs` returns; None for an item without a name."""
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name == "get_init_inputs":
            last = function.body[-1]
            if isinstance(last, ast.Return) and isinstance(last.value, ast.List | ast.Tuple):
                return [e.id if isinstance(e, ast.Name) else None for e in last.value.elts]
    return []


def _row(row: Mapping[str, Any], line: int, path: Path) -> Problem:
    missing = [c for c in _COLUMNS if c not in row]
    if missing:
        raise UserError(
            f"--suite kernelbench:{path}: row {line} has no {', '.join(missing)}; "
            f"a KernelBench data file has {', '.join(_COLUMNS)} and name"
        )
    try:
        level, number = int(row["level"]), int(row["problem_id"])
    except (TypeError, ValueError) as error:
        raise UserError(f"--suite kernelbench:{path}: row {line}: {error}") from error
    title = re.sub(r"^\d+_|\.py$", "", str(row.get("name") or number))
    return problem_of(level, number, title, str(row["code"]))


def _parquet(path: Path) -> list[dict[str, object]]:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError as error:
        raise UserError(
            f"--suite kernelbench:{path}: reading .parquet needs pyarrow; pip install pyarrow, "
            "or name a checkout or a .jsonl file"
        ) from error
    try:
        rows: list[dict[str, object]] = parquet.read_table(path).to_pylist()
    except (ArrowInvalid, OSError) as error:
        said = str(error).splitlines()[0]
        raise UserError(f"--suite kernelbench:{path}: not a parquet file: {said}") from error
    return rows


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    try:
        text = path.read_text("utf-8-sig", errors="replace")
    except OSError as error:
        raise UserError(_unreadable(path, error)) from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            said = f"line {number} is not JSON: {error}"
            raise UserError(f"--suite kernelbench:{path}: {said}") from error
        if not isinstance(row, dict):
            raise UserError(
                f"--suite kernelbench:{path}: line {number} is not a JSON object; correct that line"
            )
        yield number, row
