"""Read a problem of GPU MODE, as data: its `task.yml`, its files, and what its reference takes.

A problem becomes a file with a plain function, which is learned as a user's own reference is: the
arguments of `generate_input` are the constants whose sizes vary.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kerneltruth.errors import UserError
from kerneltruth.runner.bundle import parsed_text
from kerneltruth.runner.regular_file import read_regular
from kerneltruth.suites.submission import MAX_SOURCE_BYTES

META, SUBMITTED = "task.yml", "custom_kernel"
_REFERENCE, _TYPES, MAKES = "reference.py", "task.py", "generate_input"
COMPUTES, _CHECKS = "ref_kernel", "check_implementation"
# Functions that checks call to compare with the reference.
_COMPARES = ("match_reference", "verbose_allclose", "verbose_allequal")
# The default tolerances of `make_match_reference`.
_TOLERANCE = {"rtol": 1e-5, "atol": 1e-8}
_FILE = re.compile(r'\{"name": "(?P<name>\w+\.py)", "source": "(?P<source>[^"@]+)"\}')
# The argument that says how tensors in dicts and lists hang together.
_FORM = "form_of_data"
INSIDE, STRUCTURE = (Path(__file__).with_name(n) for n in ("inside.py", "structure.py"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A part of a problem's data.

    Attributes:
        written: whether it is a tensor that only makes room for the result.
        held: whether it is no tensor, but may hold some: a dict, a list, a number.
    """

    name: str
    written: bool = False
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModeProblem:
    """A problem as its files state it.

    Attributes:
        name: its folder in its group's, such as `pmpp_v2/vectoradd_py`.
        says: the description in `task.yml`.
        files: of the reference, by the names under which they are imported.
        test: the first test's arguments without the seed.
        others: those that are no numbers, in other tests with the same numbers.
        data: the parts of what a submission gets; empty if that is not known.
        is_tuple: whether it gets them as a tuple.
        tolerance: relative and absolute error that its check admits.
        trouble: why it cannot be judged.
    """

    name: str
    says: str
    files: Mapping[str, str]
    test: Mapping[str, object]
    others: tuple[Mapping[str, object], ...] = ()
    data: tuple[Parameter, ...] = ()
    is_tuple: bool = True
    tolerance: tuple[float, float] | None = None
    trouble: str | None = None

    @property
    def entry(self) -> str:
        """Return what a candidate that takes the tensors one by one defines."""
        return re.sub(r"\W", "_", self.name.rpartition("/")[2])

    @property
    def statement(self) -> str:
        """Return the problem's own words and its reference."""
        return f'"""{self.says}"""\n\n{self.files.get(_REFERENCE, "")}'

    @property
    def takes(self) -> tuple[str, ...]:
        """Return the names of what is passed for the data: their parts, and perhaps their form."""
        form = (_FORM,) if any(p.held for p in self.data) else ()
        return (*(p.name for p in self.data), *form)

    def source(self) -> str:
        """Return the problem as a file with a plain function and its inputs."""
        given = ", ".join(self.takes)
        written, held = (tuple(p.written for p in self.data), tuple(p.held for p in self.data))
        arguments = ", ".join(f"{name}={name}" for name in self.test)
        lines = [
            INSIDE.read_text("utf-8"),
            f"FILES = {dict(self.files)!r}",
            f"WRITTEN, HELD, IS_TUPLE = {written!r}, {held!r}, {self.is_tuple!r}",
            f"TEST, OTHERS = {self.test!r}, {self.others!r}",
            *(f"{name} = {value!r}" for name, value in self.test.items()),
            f"\n\ndef inputs():\n    return _drawn({arguments})",
            f"\n\ndef {self.entry}({given}):\n    return _computed([{given}])\n",
            _structure(),
        ]
        return "\n".join(lines)

    def submitted(self, source: str) -> str:
        """Return a submission with a function that takes the parts of the data one by one."""
        given = ", ".join(self.takes)
        made = [f"_room({p.name})" if p.written else p.name for p in self.data]
        data = f"({', '.join(made)},)" if self.is_tuple else made[0]
        whole = ""
        if _FORM in self.takes:
            data = f"_whole({_FORM}, [{', '.join(made)}])"
            data = f"tuple({data})" if self.is_tuple else f"{data}[0]"
            whole = f"\n\n{_structure()}"
        return (
            f"{_without_task(source).rstrip()}\n\n\n"
            "def _room(like):\n"
            "    import torch\n\n"
            "    return torch.empty(like.shape, dtype=like.dtype, device=like.device)\n\n\n"
            f"def {self.entry}({given}):\n    return {SUBMITTED}({data})\n{whole}"
        )


def _structure() -> str:
    """Return the code that puts data together, without what it says to its reader here."""
    return STRUCTURE.read_text("utf-8").partition('"""\n\n')[2]


def read_problems(path: Path) -> dict[str, GpuModeProblem]:
    """Return the problems below a checkout, its folder `problems`, a group or one problem.

    Raises:
        UserError: there are none, or a file of one cannot be read.
    """
    depths = (META, f"*/{META}", f"*/*/{META}", f"problems/*/*/{META}")
    files = {file.absolute() for depth in depths for file in path.glob(depth)}
    found = (_problem(file) for file in sorted(files))
    known = {problem.name: problem for problem in found}
    if not known:
        raise UserError(
            f"--suite gpumode:{path}: no folder there has a {META}; name a checkout of "
            "reference-kernels, or a problem in it"
        )
    return known


def defines_kernel(source: str) -> bool:
    """Return whether a source is a submission to some problem."""
    return re.search(rf"^(def {SUBMITTED}\(|{SUBMITTED} *=)", source, re.MULTILINE) is not None


def _problem(file: Path) -> GpuModeProblem:
    folder, stated = file.parent, _text(file)
    name = f"{folder.parent.name}/{folder.name}"
    named = _FILE.findall(stated)
    files = {n: _beside(folder, s) for n, s in named if n not in ("eval.py", "submission.py")}
    says = re.search(r"^description: \|\n((?:[ \t]+.*\n|\s*\n)*)", stated, re.MULTILINE)
    tests = [*_tests(stated)]
    test = tests[0] if tests else {}
    plain = GpuModeProblem(
        name=name,
        says=" ".join((says[1] if says else "").split()),
        files=files,
        test=test,
        others=tuple(_named(t) for t in tests[1:] if _numbers(t) == _numbers(test)),
    )
    several = bool(re.search(r"^multi_gpu: true", stated, re.MULTILINE))
    try:
        return _with_data(plain, several=several)
    except RecursionError:
        return _refused(plain, f"{_REFERENCE} is nested too deep")


def _tests(stated: str) -> Iterator[dict[str, object]]:
    """Yield the arguments of each test in the file."""
    section = re.search(r"^tests:\s*\n((?:[ \t#-].*\n|\s*\n)*)", stated, re.MULTILINE)
    for line in (section[1] if section else "").splitlines():
        if line.strip().startswith("- {"):
            try:
                found = ast.literal_eval(line.strip()[2:].partition("#")[0].strip())
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                continue
            if isinstance(found, dict) and all(_is_name(name) for name in found):
                yield {name: value for name, value in found.items() if name != "seed"}


def _numbers(test: Mapping[str, object]) -> dict[str, object]:
    return {n: v for n, v in test.items() if not isinstance(v, bool | str)}


def _named(test: Mapping[str, object]) -> dict[str, object]:
    return {n: v for n, v in test.items() if isinstance(v, bool | str)}


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isidentifier() and not keyword.iskeyword(value)


def _with_data(problem: GpuModeProblem, *, several: bool) -> GpuModeProblem:
    """Return the problem with what its reference takes, or with why it cannot be judged."""
    try:
        tree = parsed_text(problem.files.get(_REFERENCE, ""))
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        return _refused(problem, f"{_REFERENCE} is not Python: {error}")
    defined = {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef)}
    missing = [name for name in (MAKES, COMPUTES) if name not in defined]
    tolerance = _tolerance(tree)
    if several:
        return _refused(problem, "it asks for several GPUs")
    if missing:
        return _refused(problem, f"{_REFERENCE} does not define {' and '.join(missing)}")
    if not problem.test:
        return _refused(problem, f"{META} has no tests that are mappings in one line each")
    if tolerance is None:
        reason = f"its {_CHECKS} accepts any result with some properties, not what is near one"
        return _refused(problem, reason)
    parts = _data(defined[COMPUTES])
    data = parts or (Parameter(name="data"),)
    kinds = _kinds(problem.files.get(_TYPES, ""), is_tuple=bool(parts))
    if len(kinds) == len(data):
        pairs = zip(data, kinds, strict=True)
        data = tuple(replace(part, held=not kind.endswith("Tensor")) for part, kind in pairs)
    return replace(problem, data=data, is_tuple=bool(parts), tolerance=tolerance)


def _kinds(types: str, *, is_tuple: bool) -> list[str]:
    """Return the type that a problem states of each part of its data; none if it states none."""
    try:
        tree = parsed_text(types)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and [ast.unparse(a) for a in node.args] == ["'input_t'"]:
            (bound, *_) = [k.value for k in node.keywords if k.arg == "bound"] or [node]
            if not is_tuple:
                return [ast.unparse(bound)]
            parts = bound.slice if isinstance(bound, ast.Subscript) else bound
            return [ast.unparse(e) for e in getattr(parts, "elts", [])]
    return []


def _refused(problem: GpuModeProblem, trouble: str) -> GpuModeProblem:
    return replace(problem, test={}, trouble=trouble)


def _tolerance(tree: ast.Module) -> tuple[float, float] | None:
    """Return the errors that a check admits; None where it does not compare with the reference."""
    for statement in tree.body:
        targets = getattr(statement, "targets", [])
        made = isinstance(statement, ast.FunctionDef) and statement.name == _CHECKS
        if not made and not any(isinstance(t, ast.Name) and t.id == _CHECKS for t in targets):
            continue
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
        compares = [c for c in calls if ast.unparse(c.func).removeprefix("make_") in _COMPARES]
        if not compares:
            return None
        given = {k.arg: k.value for k in compares[0].keywords}
        exact = {"rtol": 0.0, "atol": 0.0} if "allequal" in ast.unparse(compares[0].func) else {}
        found = {n: exact.get(n, _TOLERANCE[n]) for n in _TOLERANCE}
        for name in _TOLERANCE:
            if isinstance(value := given.get(name), ast.Constant):
                try:
                    found[name] = float(str(value.value))
                except ValueError:
                    return None
        return found["rtol"], found["atol"]
    return None


def _data(function: ast.FunctionDef) -> tuple[Parameter, ...]:
    """Return the names that a reference gives the elements of its data; none if it is a tensor."""
    (given, *_) = [a.arg for a in function.args.args] or ["data"]
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or ast.unparse(node.value) != given:
            continue
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            names = [e.id if isinstance(e, ast.Name) else "_" for e in target.elts]
            kept = [f"unused_{i}" if n == "_" else n for i, n in enumerate(names)]
            return tuple(Parameter(name=n, written=_is_written(function, n)) for n in kept)
    return ()


def _is_written(function: ast.FunctionDef, name: str) -> bool:
    """Return whether a reference reads no element of a tensor before it has written them."""
    reads = 0
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            reads += 1
        written = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        if written and ast.unparse(node.value) == name:  # type: ignore[attr-defined]
            reads -= 1
        if isinstance(node, ast.Return) and node.value is not None:
            returned = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            reads -= sum(ast.unparse(r) == name for r in returned)
    # Reading its size is not reading its elements.
    attributes = [n for n in ast.walk(function) if isinstance(n, ast.Attribute)]
    forms = sum(a.attr in ("shape", "dtype") and ast.unparse(a.value) == name for a in attributes)
    return reads <= forms


def _without_task(source: str) -> str:
    """Return a submission without its import of the problem's types, line by line the same."""

    def typed(match: re.Match[str]) -> str:
        names = (name.strip() for name in match[1].split(","))
        return f"from typing import {', '.join(f'Any as {name}' for name in names)}"

    return re.sub(r"^from task import ([\w, ]+)$", typed, source, flags=re.MULTILINE)


def _beside(folder: Path, source: str) -> str:
    """Return the text of a file of a problem: its own, its group's, or that of a group beside."""
    file, group = (folder / source).resolve(), folder.parent.resolve()
    beside = file.parent.parent == group.parent and any(file.parent.glob(f"*/{META}"))
    if not (beside or file.is_relative_to(group)):
        raise UserError(
            f"{folder / META}: {source!r} leads out of its group, and to no other group of "
            "problems; name a file of one"
        )
    return _text(folder / source)


def _text(path: Path) -> str:
    try:
        return read_regular(path)[:MAX_SOURCE_BYTES].decode("utf-8-sig")
    except (OSError, ValueError) as error:
        # The name of a file may hold line breaks.
        said = " ".join(f"{path}: {error}".split())
        raise UserError(f"{said}; put the problem's file there, as text") from error
