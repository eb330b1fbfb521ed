"""The rules that a declaration must keep; each message says which, and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

from kerneltruth.errors import DeclarationError
from kerneltruth.tasks.arguments import Derived, TensorSpec
from kerneltruth.tasks.expressions import FUNCTIONS, Variants, compiled, names_of
from kerneltruth.tasks.model import ALWAYS, DTYPE, OUT, Task

DTYPES = (
    *("float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2"),
    *("int8", "int16", "int32", "int64", "uint8", "bool", "complex64", "complex128"),
)
# The parameter of a function that draws inputs.
SEED = "seed"


def check(task: Task, drawn_from: Sequence[str] = ()) -> None:
    """Refuse a task whose declaration breaks a rule.

    Args:
        task: as declared.
        drawn_from: the parameters of the function that draws inputs, if there is one.

    Raises:
        DeclarationError: it does.
    """
    _check_names(task)
    symbols = [d.symbol for d in task.dims]
    known = {*symbols, *(a.name for a in task.arguments), *task.where, SEED}
    strange = [name for name in drawn_from if name not in known]
    if strange:
        raise DeclarationError(f"inputs: {_unknown(strange[0], symbols)}")
    _check_reference(task)
    _check_sizes(task)
    for dtype in (*task.dtypes, *task.extended_dtypes, *task.tolerance):
        if dtype not in DTYPES:
            raise DeclarationError(f"dtype {dtype!r}: must be one of {', '.join(DTYPES)}")
    wrong = [f"{dtype}: {t}" for dtype, t in task.tolerance.items() if not t >= 0]
    if wrong:
        raise DeclarationError(f"tolerance {wrong[0]}: give an absolute error of 0 or more")
    if task.bitwise and task.random:
        raise DeclarationError(
            "bitwise=True and random=True: two calls of a random task may differ; leave one out"
        )
    _check_outputs(task)


def _check_outputs(task: Task) -> None:
    """Refuse a task whose call writes what nothing is compared with."""
    if not task.outputs:
        raise DeclarationError("no output: give outputs=(Output(), ...), one for each result")
    tensors = [t.name for t in task.tensors]
    for what, named in (("mutates", task.mutates), ("may_overwrite", task.may_overwrite)):
        strange = next((name for name in named if name not in tensors), None)
        if strange is not None:
            raise DeclarationError(
                f"{what} {strange!r}: it is no tensor of the signature; name one of {_all(tensors)}"
            )
    names = [o.name for o in task.outputs]
    written = {**task.mutates, **({OUT: ALWAYS} if task.promises.out else {})}
    for name, condition in written.items():
        if name not in names:
            what = "out=True" if name == OUT else f"mutates {name!r}"
            when = "" if condition == ALWAYS else f", when={condition!r}"
            raise DeclarationError(
                f"{what}: no output has that name; add Output(name={name!r}{when}) to outputs, and "
                "return what a kernel must write to it"
            )


def _check_names(task: Task) -> None:
    symbols = {d.symbol for d in task.dims}
    known = symbols | {a.name for a in task.attributes} | {*task.where, *FUNCTIONS}
    for what, expression, more in _expressions(task):
        names = _names_in(expression)
        unknown = sorted(names - known - {*more})
        if unknown:
            raise DeclarationError(
                f"{what} {expression!r}: {_unknown(unknown[0], sorted(symbols))}"
            )
    taken = symbols | {a.name for a in task.arguments}
    for name, rule in task.where.items():
        if name in taken:
            raise DeclarationError(f"where {name!r}: a dim or an argument has that name; rename it")
        needed = (rule.attribute,) if isinstance(rule, Variants) else names_of(rule)
        unknown = [n for n in needed if n not in known]
        if unknown:
            raise DeclarationError(f"where {name!r}: {_unknown(unknown[0], sorted(symbols))}")


def _unknown(name: str, symbols: Sequence[str]) -> str:
    near = get_close_matches(name, symbols, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "add it to dims, or to the signature"
    return f"{name!r} is neither a dim ({', '.join(symbols)}) nor an attribute; {hint}"


def _expressions(task: Task) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield what each expression is, itself, and further names that it may use."""
    for argument in task.arguments:
        if isinstance(argument, Derived):
            yield argument.name, argument.expression, ()
        if isinstance(argument, TensorSpec):
            parts = (argument.extent, argument.other, argument.form)
            for part in (*argument.dims, *(p for p in parts if p)):
                yield argument.name, part.removeprefix("*"), ()
    for constraint in task.constraints:
        yield "constraints", constraint, ()
    yield "flops", task.flops, ()
    if task.bytes:
        yield "bytes", task.bytes, ("itemsize",)
    conditions = (o.when for o in task.outputs if o.when)
    for condition in (*conditions, *task.mutates.values(), *task.may_overwrite.values()):
        yield "condition", condition, ("present",)


def _names_in(expression: str) -> frozenset[str]:
    return frozenset(compiled(expression).co_names)


def _check_reference(task: Task) -> None:
    """Refuse a reference that cannot take the signature's arguments by name."""
    try:
        parameters = inspect.signature(task.reference).parameters.values()
    except ValueError:
        # A function of torch's own does not say.
        return
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    given = [n for n in task.call_order() if n not in (DTYPE, OUT)]
    missing = [n for n in given if n not in named]
    if missing and not takes_all:
        raise DeclarationError(
            f"the reference of {task.name} has no parameter {missing[0]!r}; the signature gives "
            f"it {', '.join(given)}, by name"
        )
    hidden = {a.name for a in task.attributes if a.hidden} | {DTYPE, OUT}
    free = (p for p in parameters if p.name in named and p.default is p.empty)
    strange = [p.name for p in free if p.name not in {*given, *hidden}]
    if strange:
        raise DeclarationError(
            f"the reference of {task.name} needs {strange[0]!r}, which the signature does not "
            f"have; it gives {', '.join(given)}"
        )


def _check_sizes(task: Task) -> None:
    """Refuse a benchmark or a timed shape without a size for each dim."""
    symbols = [d.symbol for d in task.dims]
    for what, sizes in (("benchmark", task.benchmark.dims), *(("perf", s) for s in task.perf)):
        names = {*symbols, *(a.name for a in task.attributes if what == "perf")}
        strange = [s for s in sizes if s not in names]
        if strange:
            raise DeclarationError(f"{what} {dict(sizes)}: {_unknown(strange[0], symbols)}")
        odd = [s for s in symbols if s in sizes and not (type(sizes[s]) is int and sizes[s] >= 0)]
        if odd:
            raise DeclarationError(f"{what} {dict(sizes)}: give {odd[0]} a whole number, 0 or more")
        missing = [s for s in symbols if s not in sizes]
        if missing:
            raise DeclarationError(f"{what} {dict(sizes)}: give a size for {_all(missing)} too")


def _all(names: Collection[str]) -> str:
    return ", ".join(names)
