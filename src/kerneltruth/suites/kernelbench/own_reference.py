"""Read the problem of a user's own file: a plain function with inputs, or KernelBench's form."""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

from kerneltruth.errors import UserError
from kerneltruth.suites.kernelbench.problem import Plain, Problem, problem_of, problem_of_function

# The function that kernels replace, where a file has several.
REFERENCE = "reference"
# The functions that may make the inputs of a plain function.
_MAKES = ("inputs", "get_inputs")


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
            f"{path}:{error.lineno}: {error.msg}; correct the reference, which is not valid Python"
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"{path} is not valid Python: {error}; correct the file") from error
    if any(isinstance(s, ast.ClassDef) and s.name == "Model" for s in tree.body):
        # A user's own file means the models that it names.
        found = replace(problem_of(0, 0, path.stem, source), alias=path.stem, pretrained=False)
        if found.trouble is not None:
            raise UserError(f"{path}: {found.trouble}; see docs/guides/own-kernels.md")
        return found
    plain = _plain_in(tree, path)
    name = path.stem if plain.name == REFERENCE else plain.name
    return problem_of_function(name, source, plain)


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
    found = _with_settings(tree, path, makes)
    if REFERENCE in {*names, *assigned}:
        return found
    public = [n for n in dict.fromkeys(names) if not n.startswith(("_", "test_"))]
    public = [n for n in public if n not in _MAKES]
    if len(public) != 1:
        if not public:
            named = [s.name for s in tree.body if isinstance(s, ast.ClassDef)]
            rule = "write what kernels replace as a function, or as Model and get_init_inputs()"
            beside = f", and a class is none: {', '.join(named)}" if named else ""
            raise UserError(f"{path}: it has no public function{beside}; {rule}")
        raise UserError(
            f"{path}: it has several public functions: {', '.join(public)}; name the one that "
            "kernels replace `reference`, and begin the names of others with _"
        )
    return replace(found, name=public[0])


def _with_settings(tree: ast.Module, path: Path, makes: str) -> Plain:
    """Return the function `reference` with what the file says about its task at module level.

    Raises:
        UserError: a value that means nothing.
    """
    found: dict[str, object] = {}
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
    tolerance = found.get("tolerance")
    return Plain(
        name=REFERENCE,
        makes=makes,
        tolerance=tolerance if _is_tolerance(tolerance) else None,
        backward=found.get("backward") is True,
    )


def _is_tolerance(value: object) -> TypeGuard[tuple[float, float]]:
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
