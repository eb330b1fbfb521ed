"""Write a signature and an editable declaration from the facts learned of a plain function."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from textwrap import wrap

from kerneltruth.suites.kernelbench.constants import Constants, slots_of
from kerneltruth.suites.kernelbench.problem import Problem
from kerneltruth.suites.kernelbench.schema import ConstantChoice, Schema
from kerneltruth.tasks.arguments import KINDS
from kerneltruth.tasks.spec import ArgumentSpec, Attribute, Derived, Task, TensorSpec, evaluate

_MOST_FACTOR = 256
# The share of sets in which a sum has as many terms as a size that is summed over.
_MOSTLY = 0.6
_LINE = 96
# Integers of so few bits that the whole range is tried.
_BYTES = ("uint8", "int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The facts that a declaration states.

    Attributes:
        arguments: of the signature, each as it is written there.
        roles: of the sizes by name.
        divisors: of sizes, which must hold them.
        example: the sizes of the file's own example.
        left: what a declaration cannot say, in sentences.
    """

    arguments: tuple[str, ...]
    roles: Mapping[str, str]
    divisors: Mapping[str, int]
    example: Mapping[str, int]
    left: tuple[str, ...]


def learned(problem: Problem, schema: Schema, task: Task) -> Learned:
    """Return the facts learned of a plain function."""
    return _Learner(problem, schema, task).learned()


def signature_of(problem: Problem, found: Learned) -> str:
    """Return the call in the notation of declarations."""
    return f"{_name(problem)}({', '.join(found.arguments)})"


def in_one_line(problem: Problem, schema: Schema, task: Task) -> str:
    """Return the learned facts in a line for people."""
    further = f", also {', '.join(task.extended_dtypes)}" if task.extended_dtypes else ""
    found = signature_of(problem, learned(problem, schema, task))
    left = ", ".join(_left_at_default(problem, task))
    kept = f"; inputs() leaves out {left}, which does not vary" if left else ""
    return f"learned {found} in {', '.join(task.dtypes)}{further}{kept}"


def _left_at_default(problem: Problem, task: Task) -> Iterator[str]:
    """Yield the parameters with defaults to which the example gives no argument."""
    name = problem.function.name if problem.function else ""
    given = {getattr(a, "member_of", None) or a.name for a in task.arguments}
    for statement in ast.parse(problem.source).body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            of = statement.args
            every = [*of.posonlyargs, *of.args]
            optional = every[len(every) - len(of.defaults) :] + of.kwonlyargs
            yield from (p.arg for p in optional if p.arg not in given)


def declaration_of(problem: Problem, schema: Schema, task: Task) -> str:
    """Return a file that `--tasks` takes."""
    found = learned(problem, schema, task)
    futures, source = _without_inputs(problem)
    lines = [
        f'"""Declares {_name(problem)}; edit it, and pass this file with --tasks."""',
        "",
        *futures,
        "import kerneltruth as kt",
        "",
        source,
        "",
        "",
        *(f"# {sentence}" for sentence in (*found.left, *_unsaid(task))),
        f"{_name(problem).upper()}_TASK = kt.task(",
        *_signature_lines(problem, found),
        "    dims={",
        *_dims(found),
        "    },",
        f"    reference={problem.function.name if problem.function else 'Model'},",
        *_optional(task, found),
        ")",
        "",
    ]
    return "\n".join(lines)


def _name(problem: Problem) -> str:
    return re.sub(r"\W", "_", problem.name)


def _without_inputs(problem: Problem) -> tuple[list[str], str]:
    """Return the file's imports from the future, and what else of it the declaration needs.

    That is neither the function that makes its inputs nor what only this one imports.
    """
    makes = problem.function.makes if problem.function else ""
    lines = problem.source.splitlines()
    body = ast.parse(problem.source).body
    left = [s for s in body if not (isinstance(s, ast.FunctionDef) and s.name == makes)]
    used = {n.id for statement in left for n in ast.walk(statement) if isinstance(n, ast.Name)}
    futures: list[str] = []
    for statement in reversed(body):
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if future:
            futures += [ast.unparse(statement), ""]
        if future or statement not in left or _is_unused_import(statement, used):
            first = min(n.lineno for n in (statement, *getattr(statement, "decorator_list", ())))
            del lines[first - 1 : statement.end_lineno]
    return futures, "\n".join(lines).strip()


def _is_unused_import(statement: ast.stmt, used: Collection[str]) -> bool:
    if not isinstance(statement, ast.Import | ast.ImportFrom):
        return False
    bound = {(a.asname or a.name).partition(".")[0] for a in statement.names}
    return not bound & {*used, "*"}


def _unsaid(task: Task) -> Iterator[str]:
    """Yield statements of the reference that a declaration cannot express."""
    if task.admitted_share:
        yield f"A relative error of {task.admitted_share} was admitted too: tolerance is absolute."


def _signature_lines(problem: Problem, found: Learned) -> Iterator[str]:
    whole = signature_of(problem, found)
    if len(whole) < _LINE:
        yield f'    "{whole}",'
        return
    yield f'    "{_name(problem)}("'
    *first, last = found.arguments
    yield from (f'    "{argument}, "' for argument in first)
    yield f'    "{last})",'


def _dims(found: Learned) -> Iterator[str]:
    for name, role in found.roles.items():
        yield f'        "{name}": kt.Dim(symbol="{name}", role="{role}", low=1),'


def _optional(task: Task, found: Learned) -> Iterator[str]:
    if task.description:
        yield "    description=("
        *first, last = wrap(task.description, _LINE - 12)
        yield from (f"        {_quoted(f'{line} ')}" for line in first)
        yield f"        {_quoted(last)}"
        yield "    ),"
    varied = {a.name: a.values[1:] for a in task.attributes if not a.hidden}
    if varied:
        yield f"    attributes={_quoted(varied)},"
    if [(o.name, o.dtype) for o in task.outputs] != [("out", "same")]:
        yield "    outputs=("
        for output in task.outputs:
            dtype = "" if output.dtype == "same" else f', dtype="{output.dtype}"'
            yield f'        kt.Output(name="{output.name}"{dtype}),'
        yield "    ),"
    yield f"    dtypes={_quoted(task.dtypes)},"
    yield f"    extended_dtypes={_quoted(task.extended_dtypes)},"
    if task.admitted:
        yield f"    tolerance={_quoted(dict(task.admitted))},"
    if task.promises.gradients:
        yield "    backward=True,"
    divided = tuple(f"{name} % {by} == 0" for name, by in found.divisors.items())
    if divided:
        yield f"    constraints={_quoted(divided)},"
    yield f"    benchmark={_quoted(dict(found.example))},"


def _quoted(value: object) -> str:
    """Write a literal with double quotes where that is safe."""
    text = repr(value)
    return text if '"' in text else text.replace("'", '"')


class _Learner:
    """Expresses shapes by sizes, over all sets of constants that were tried."""

    def __init__(self, problem: Problem, schema: Schema, task: Task) -> None:
        self._task = task
        self._own = problem.constants
        self._schema = schema
        self._sets = [c for c in schema.every if c.core]
        taken = {a.name for a in task.arguments}
        every = [self._constants(c) for c in self._sets]
        self._example: dict[str, int] = {}
        self._sizes: dict[str, list[int]] = {}
        for slot in slots_of(problem.constants):
            values = [slot.get(constants) for constants in every]
            if len(set(values)) > 1:
                name = _symbol(slot.name, slot.value, slot.places, {*taken, *self._sizes})
                self._sizes[name] = values
                self._example[name] = slot.value
        self._divisors: dict[str, int] = {}
        self._left: list[str] = []

    def learned(self) -> Learned:
        """Return all of it."""
        arguments = tuple(self._written())
        used = {n: v for n, v in self._example.items() if _occurs(n, arguments)}
        return Learned(
            arguments=arguments,
            roles={name: self._role(name) for name in used},
            divisors={n: by for n, by in self._divisors.items() if n in used},
            example=used,
            left=tuple(self._left),
        )

    def _constants(self, choice: ConstantChoice) -> Constants:
        return {**self._own, **ast.literal_eval(choice.constants)}

    def _written(self) -> Iterator[str]:
        """Yield each argument, a list of tensors once."""
        shown = [a for a in self._task.arguments if not (isinstance(a, Attribute) and a.hidden)]
        lists: dict[str, list[str]] = {}
        for i, argument in enumerate(shown):
            text = self._argument(i, argument)
            if isinstance(argument, TensorSpec) and argument.member_of is not None:
                lists.setdefault(argument.member_of, []).append(text)
                members = sum(
                    isinstance(a, TensorSpec) and a.member_of == argument.member_of for a in shown
                )
                if len(lists[argument.member_of]) == members:
                    yield f"{argument.member_of}=[{', '.join(lists[argument.member_of])}]"
            else:
                yield text

    def _argument(self, place: int, argument: ArgumentSpec) -> str:
        match argument:
            case Attribute():
                return f"{argument.name}={argument.default!r}"
            case Derived():
                return self._derived(argument)
            case TensorSpec():
                dims = self._shape(place, argument.name)
                return f"{argument.name}[{', '.join(dims)}]{self._kind(place, argument)}"

    def _derived(self, argument: Derived) -> str:
        scopes = ({"_sizes": c.label} for c in self._sets)
        values = [evaluate(argument.expression, scope) for scope in scopes]
        if all(v == values[0] for v in values):
            return f"{argument.name}={values[0]!r}"
        fitted = self._fit(values) if all(type(v) is int for v in values) else None
        if fitted is None:
            self._left.append(f"{argument.name} follows from the sizes: write how.")
        return f"{argument.name}:={fitted or repr(values[-1])}"

    def _shape(self, place: int, name: str) -> Iterator[str]:
        shapes = [c.outline.inputs[place].shape for c in self._sets]
        for i, sizes in enumerate(zip(*shapes, strict=True)):
            fitted = self._fit(sizes)
            if fitted is None:
                self._left.append(f"dim {i} of {name} follows from the sizes: write how.")
            yield fitted or str(sizes[-1])

    def _kind(self, place: int, spec: TensorSpec) -> str:
        if self._schema.inputs[place].arranged:
            self._left.append(f"{spec.name} holds offsets or a permutation: say how it is made.")
        if spec.layout != "contiguous":
            self._left.append(f"{spec.name} was {spec.layout} in memory: a declared one is not.")
        if spec.kind == "real":
            return ""
        if spec.kind != "index":
            if spec.keeps is not None:
                self._left.append(f"{spec.name} is {spec.keeps} in every dtype of the task.")
            return f": {spec.kind}"
        if spec.stored in _BYTES and spec.stored in KINDS:
            return f": {spec.stored}"
        if spec.stored != "int64" or spec.least:
            self._left.append(f"{spec.name} is {spec.stored} from {spec.least}: index is int64.")
        known = [(c, c.extents[place]) for c in self._sets if c.extents]
        extents = [int(e or 0) + 1 for _, e in known]
        some = [self._sets.index(c) for c, _ in known]
        return f": index({self._fit(extents, some) or max(extents)})"

    def _fit(self, values: Sequence[int], some: Sequence[int] | None = None) -> str | None:
        """Return an expression of sizes with these values, one for each set (or for some)."""
        if len(set(values)) == 1:
            return str(values[0])
        rows = range(len(self._sets)) if some is None else some
        sizes = {n: [v[row] for row in rows] for n, v in self._sizes.items()}
        for form in _forms(values, sizes):
            text, divided = form
            for name, by in divided.items():
                if all(n % by == 0 for n in sizes[name]):
                    self._divisors[name] = max(by, self._divisors.get(name, 1))
            return text
        return None

    def _role(self, name: str) -> str:
        """Return the role of a size: summed over, or kept in results."""
        outlines = [c.outline for c in self._sets]
        pairs = [(n, o.terms) for n, o in zip(self._sizes[name], outlines, strict=True)]
        larger = [(n, terms) for n, terms in pairs if terms > 1]
        same = [terms % n == 0 for n, terms in larger if n > 1]
        if larger and same and sum(same) >= _MOSTLY * len(same):
            return "contracted" if outlines[-1].products else "reduced"
        return "batch"


def _symbol(name: str, value: int, places: tuple[int, ...], taken: set[str]) -> str:
    """Return a name for a size: the variable's, or `n64` for a number in a call."""
    plain, colon, _ = name.rpartition(".")[2].partition(":")
    found = f"n{value}" if colon else plain
    if places:
        found = f"{found}{places[0]}"
    while found in taken:
        found += "_"
    return found


def _occurs(name: str, arguments: Sequence[str]) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\b", a) for a in arguments)


def _forms(
    values: Sequence[int], sizes: Mapping[str, Sequence[int]]
) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield expressions that fit, the simplest first, with the divisors that they use."""
    for name, own in sizes.items():
        if list(values) == list(own):
            yield name, {}
    for name, own in sizes.items():
        yield from _of_one(name, own, values)
    for (a, left), (b, right) in permutations(sizes.items(), 2):
        for sign, of in _PAIRS.items():
            if _fits(of, left, right, values):
                yield f"{a} {sign} {b}", {}


def _of_one(
    name: str, own: Sequence[int], values: Sequence[int]
) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield `n + 1`, `n * 2`, `n // 2` and `n * 2 + 1` where they fit."""
    for factor in range(1, _MOST_FACTOR + 1):
        more = {v - factor * n for v, n in zip(values, own, strict=True)}
        if len(more) == 1:
            (rest,) = more
            product = name if factor == 1 else f"{name} * {factor}"
            yield (
                (f"{product} + {rest}" if rest > 0 else f"{product} - {-rest}")
                if rest
                else product,
                {},
            )
    for divisor in range(2, _MOST_FACTOR + 1):
        if all(v == n // divisor for v, n in zip(values, own, strict=True)):
            yield f"{name} // {divisor}", {name: divisor}


def _fits(
    of: Callable[[int, int], int], left: Sequence[int], right: Sequence[int], values: Sequence[int]
) -> bool:
    return all(v == of(a, b) for v, a, b in zip(values, left, right, strict=True))


_PAIRS: Mapping[str, Callable[[int, int], int]] = {
    "*": lambda a, b: a * b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "//": lambda a, b: a // b if b else -1,
}
