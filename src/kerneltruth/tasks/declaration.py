"""Turn a declaration into a `Task`, step by step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from kerneltruth.errors import DeclarationError
from kerneltruth.tasks.arguments import (
    ArgumentSpec,
    Attribute,
    Benchmark,
    Dim,
    Output,
    Role,
    Scalar,
    TensorSpec,
    alike,
)
from kerneltruth.tasks.claims import Claims
from kerneltruth.tasks.expressions import Rule, Variants, names_of, spread_out
from kerneltruth.tasks.forms import check_forms
from kerneltruth.tasks.model import (
    ALWAYS,
    BACKWARD,
    CALL,
    CORE,
    NUMBER,
    OUT,
    PLAIN_CALL,
    Task,
)
from kerneltruth.tasks.promises import Promises
from kerneltruth.tasks.rules import SEED, check
from kerneltruth.tasks.signature import Given, Signature, parse_signature

FLOATS = ("float32", "float16", "bfloat16")
# The size of each dim in the benchmark of a declaration without one.
_USUAL_SIZE = 64


@dataclass(frozen=True, slots=True)
class Declaration:
    """An operator as its author declares it.

    Attributes:
        signature: the call, in the notation of `spec`.
        dims: role (or a full `Dim`) of each symbol of the signature.
        reference: the operator in torch, generic over the dtype; arguments by the signature's
            names.
        category: the category of the operator, as KernelBenchX names them.
        description: one paragraph from which a kernel can be written.
        flops: floating-point operations, an expression of dims and attributes.
        benchmark: the shape of a one-shape benchmark; uniform [0, 1) inputs by default.
        suite: the suite of the task.
        where: what further names in expressions stand for: functions of dims, attributes and each
            other by name, or `Variants`.
        attributes: for each attribute, further values to try beside its default.
        outputs: dtype and comparison of each output; by default one, or one for each input that the
            operator always writes.
        dtypes: the main dtypes.
        extended_dtypes: dtypes that are tried less often.
        constraints: expressions of dims and attributes that must hold.
        bytes: least bytes moved, an expression that may name `itemsize` too, the bytes of an
            element of the case's dtype; None means each input read once and each output written
            once.
        tolerance: absolute error by dtype that is right for a task of a user's file; for one of a
            published benchmark, what that admits (the `fixed` bound, and a peer's check).
        mutates: inputs that the operator promises to write in place, with the condition under
            which it does. Each is compared as the output of its name: the reference returns what
            must be in it.
        may_overwrite: inputs that a kernel may write and return, with the condition.
        values: inclusive range to which every real input is clamped, if the operator has one.
        layouts: False if a non-contiguous input makes no sense.
        admissible: further correct formulations, as implementations that widen the spread bound.
        claims: statements that hold for every right answer, if several are right; for the outputs
            compared by `claims`.
        random: whether two calls may differ.
        bitwise: whether equal calls must return the same bytes, and not only values within the
            bound.
        perf: shapes to time, small to large; with attributes, if those must change too.
        extended: the attribute values that the prompt does not promise.
        promises: what else the prompt promises.
        inputs: draws tensors as callers have them, by name; its parameters are dims, attributes and
            `seed`. Cases of the strategy `default` and the benchmark take them; other cases, and
            tensors that it leaves out, are drawn as usual.
        out: whether the caller may pass a tensor `out=` for the result.
        backward: whether the result must be differentiable; autograd of the reference gives the
            right gradients.
        entry: the function to call, if its name is not the task's.

    Examples:
        >>> doubled = kt.task(
        ...     "doubled(x[M, N])",
        ...     dims={"M": "batch", "N": "spatial"},
        ...     reference=lambda x: 2 * x,
        ... )
        >>> doubled.key, doubled.dtypes
        ('doubled', ('float32', 'float16', 'bfloat16'))
    """

    signature: str
    _: KW_ONLY
    dims: Mapping[str, Role | Dim]
    reference: Callable[..., Any]
    category: str = "Own"
    description: str = ""
    flops: str = "0"
    benchmark: Mapping[str, int] | Benchmark | None = None
    suite: str = CORE
    where: Mapping[str, Rule] = field(default_factory=dict)
    attributes: Mapping[str, Sequence[Scalar]] = field(default_factory=dict)
    outputs: Sequence[Output] | None = None
    dtypes: Sequence[str] = FLOATS
    extended_dtypes: Sequence[str] = ()
    constraints: Sequence[str] = ()
    bytes: str | None = None
    tolerance: Mapping[str, float] = field(default_factory=dict)
    mutates: Collection[str] | Mapping[str, str] = ()
    may_overwrite: Mapping[str, str] = field(default_factory=dict)
    values: tuple[float, float] | None = None
    layouts: bool = True
    admissible: Sequence[Callable[..., Any]] = ()
    claims: Claims | None = None
    random: bool = False
    bitwise: bool = False
    perf: Sequence[Mapping[str, Any]] = ()
    extended: Mapping[str, Sequence[Scalar]] = field(default_factory=dict)
    promises: Promises = field(default_factory=Promises)
    inputs: Callable[..., Mapping[str, Any]] | None = None
    out: bool = False
    backward: bool = False
    entry: str | None = None

    def task(self) -> Task:
        """Return the task.

        Raises:
            DeclarationError: the declaration breaks a rule.
        """
        check_forms(self)
        parsed = parse_signature(self.signature)
        task = self._task(parsed)
        check(task, () if self.inputs is None else names_of(self.inputs))
        defaults = {a.name: a.default for a in task.attributes}
        arguments = tuple(self._typical(a, defaults) for a in task.arguments)
        return replace(task, arguments=arguments)

    def _task(self, parsed: Signature) -> Task:
        promises = self._promises()
        dims = tuple(_dim(symbol, role) for symbol, role in self.dims.items())
        given = self.mutates
        mutates = given if isinstance(given, Mapping) else dict.fromkeys(given, ALWAYS)
        return Task(
            name=parsed.name,
            category=self.category,
            suite=self.suite,
            signature=self.signature,
            description=" ".join(
                (*self.description.split(), *_said(promises, bitwise=self.bitwise))
            ),
            dims=dims,
            arguments=tuple(self._arguments(parsed, promises)),
            outputs=_outputs(mutates) if self.outputs is None else tuple(self.outputs),
            reference=self.reference,
            dtypes=tuple(self.dtypes),
            extended_dtypes=tuple(self.extended_dtypes),
            constraints=(*self.constraints, *_of_gradients(promises, random=self.random)),
            flops=self.flops,
            bytes=self.bytes,
            benchmark=_benchmark(self.benchmark, dims, own=self.inputs is not None),
            tolerance=dict(self.tolerance),
            mutates=mutates,
            may_overwrite=dict(self.may_overwrite),
            values=self.values,
            layouts=self.layouts,
            admissible=tuple(self.admissible),
            claims=self.claims,
            random=self.random,
            bitwise=self.bitwise,
            perf=tuple(self.perf),
            extended={name: tuple(values) for name, values in self.extended.items()},
            promises=promises,
            entry=self.entry or parsed.name,
            where=dict(self.where),
            own=None if self.inputs is None else _own(self.inputs),
        )

    def _promises(self) -> Promises:
        given = self.promises
        return replace(given, out=given.out or self.out, gradients=given.gradients or self.backward)

    def _arguments(self, parsed: Signature, promises: Promises) -> Iterator[ArgumentSpec]:
        """Yield the arguments in order, then hidden ones: of variants, and ways of calling."""
        given = {a.name for a in parsed.arguments if isinstance(a, Given)}
        unknown = self.attributes.keys() - given
        if unknown:
            raise DeclarationError(
                f"{self.signature!r} has no attributes {', '.join(sorted(unknown))}; write "
                "`name=default` for each"
            )
        for argument in parsed.arguments:
            yield self._attribute(argument) if isinstance(argument, Given) else argument
        yield from _of_variants(self.where, given)
        calls = _calls(promises)
        if len(calls) > 1:
            yield Attribute(name=CALL, default=calls[0], values=calls)

    def _attribute(self, given: Given) -> Attribute:
        further = self.attributes.get(given.name, ())
        others = (value for value in further if not alike(value, given.default))
        return Attribute(name=given.name, default=given.default, values=(given.default, *others))

    def _typical(self, argument: ArgumentSpec, defaults: Mapping[str, Scalar]) -> ArgumentSpec:
        """Return the argument with its dims at the default attributes, if some are starred."""
        if not isinstance(argument, TensorSpec) or not any(d[0] == "*" for d in argument.dims):
            return argument
        spread = spread_out(argument.dims, tuple(self.dims), defaults, self.where)
        return replace(argument, typical=spread)


def _dim(symbol: str, given: Role | Dim) -> Dim:
    dim = given if isinstance(given, Dim) else Dim(symbol=symbol, role=given)
    if dim.symbol != symbol:
        raise DeclarationError(f"dims: {symbol!r} is given as {dim.symbol!r}; use one name")
    return dim


def _outputs(mutates: Mapping[str, str]) -> tuple[Output, ...]:
    """Return the outputs of a declaration that names none."""
    written = [name for name, condition in mutates.items() if condition == ALWAYS]
    return tuple(Output(name=name) for name in written or (OUT,))


def _own(inputs: Callable[..., Mapping[str, Any]]) -> Callable[..., Mapping[str, Any]]:
    """Return the function as cases call it: with all names, and a seed."""

    def own(scope: Mapping[str, Scalar], seed: int) -> Mapping[str, Any]:
        given = {name: seed if name == SEED else scope[name] for name in names_of(inputs)}
        return inputs(**given)

    return own


def _benchmark(
    given: Mapping[str, int] | Benchmark | None, dims: Sequence[Dim], *, own: bool
) -> Benchmark:
    if isinstance(given, Benchmark):
        return given
    usual = {d.symbol: max(d.low, min(_USUAL_SIZE, d.most or _USUAL_SIZE)) for d in dims}
    sizes = usual if given is None else dict(given)
    return Benchmark(dims=sizes, distribution="own" if own else "uniform")


def _of_variants(where: Mapping[str, Rule], known: Collection[str]) -> Iterator[Attribute]:
    """Yield the hidden attributes that choose among variants and are not in the signature."""
    tables: dict[str, tuple[Scalar, ...]] = {}
    for rule in where.values():
        if isinstance(rule, Variants) and rule.attribute not in known:
            values = tables.setdefault(rule.attribute, tuple(rule.shapes))
            if values != tuple(rule.shapes):
                raise DeclarationError(
                    f"variants of {rule.attribute!r} have the values {values} and "
                    f"{tuple(rule.shapes)}; give each the same ones, in one order"
                )
    for name, values in tables.items():
        yield Attribute(name=name, default=values[0], values=values)


def _calls(promises: Promises) -> tuple[str, ...]:
    """Return the ways in which the operator may be called, the plain one first."""
    numbers = (f"{NUMBER}{name}" for name in promises.numbers)
    out = (OUT,) if promises.out else ()
    return (PLAIN_CALL, *numbers, *out, *((BACKWARD,) if promises.gradients else ()))


def _of_gradients(promises: Promises, *, random: bool) -> tuple[str, ...]:
    """Return where gradients are requested: never of random results, as of dropout in training."""
    if not (promises.gradients and random):
        return ()
    return (f"{CALL} != {BACKWARD!r} or not training",)


def _said(promises: Promises, *, bitwise: bool) -> Iterator[str]:
    """Return the description's sentences on ways of calling the operator."""
    for name in promises.numbers:
        yield f"A Python number may stand in the place of {name}."
    if promises.out:
        yield "If a tensor `out` is given, the result is written to it, and it is returned."
    if promises.gradients:
        yield "The result is differentiable."
    if bitwise:
        yield "Equal calls return the same bits."
