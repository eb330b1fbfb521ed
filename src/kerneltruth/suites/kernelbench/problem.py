"""What a problem's source states, without running it."""

from __future__ import annotations

import ast
import hashlib
import warnings
from dataclasses import dataclass

from kerneltruth.suites.kernelbench.constants import (
    Constants,
    constants_of,
    constants_of_inputs,
    read_by_model,
)
from kerneltruth.suites.submission import MAX_SOURCE_BYTES

KERNELBENCH_FUNCTIONS = ("get_inputs", "get_init_inputs")
_NEEDED = ("Model", *KERNELBENCH_FUNCTIONS)


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


def problem_of_function(name: str, source: str, plain: Plain) -> Problem:
    """Return the problem of a source with a plain function, under a name."""
    tree = ast.parse(source)
    functions = {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef)}
    says = ast.get_docstring(functions[plain.name]) if plain.name in functions else None
    fixed = {*read_by_model(source, tree, (plain.makes,)), "tolerance", "backward"}
    return Problem(
        level=0,
        number=0,
        title=plain.name,
        source=source,
        constants=constants_of_inputs(tree, plain.makes, fixed),
        says=" ".join((says or "").split()),
        function=plain,
        alias=name,
    )


def problem_of(level: int, number: int, title: str, source: str) -> Problem:
    """Return the problem of a source text; what it lacks is its `trouble`."""
    if len(source) > MAX_SOURCE_BYTES:
        return broken_problem(level, number, title, f"longer than {MAX_SOURCE_BYTES} bytes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            fixed = read_by_model(source, tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return broken_problem(level, number, title, f"not Python: {error}")
    defined = {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef | ast.ClassDef)}
    missing = [name for name in _NEEDED if name not in defined]
    model = defined.get("Model")
    says = ast.get_docstring(model) if model is not None else None
    return Problem(
        level=level,
        number=number,
        title=title,
        source=source,
        constants=constants_of(tree, fixed),
        says=" ".join((says or "").split()),
        trouble=f"the problem does not define {' and '.join(missing)}" if missing else None,
        doubt=crossed(tree),
        pretrained=any(_imports(s, "transformers") for s in tree.body),
    )


def constructor_parameters(source: str) -> tuple[str, ...]:
    """Return the names of what a problem's `Model` is built from, in order."""
    body = ast.parse(source).body
    models = (s for s in body if isinstance(s, ast.ClassDef) and s.name == "Model")
    functions = (s for m in models for s in m.body if isinstance(s, ast.FunctionDef))
    made = next((f for f in functions if f.name == "__init__"), None)
    return () if made is None else tuple(a.arg for a in made.args.args[1:])


def broken_problem(level: int, number: int, title: str, trouble: str) -> Problem:
    """Return a problem without a source, and why it has none."""
    return Problem(
        level=level, number=number, title=title, source="", constants={}, trouble=trouble
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
