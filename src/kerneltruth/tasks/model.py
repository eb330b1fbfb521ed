"""The `Task`: a parsed declaration, and the questions that judge and case makers ask it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from kerneltruth.tasks.arguments import (
    ArgumentSpec,
    Attribute,
    Benchmark,
    Derived,
    Dim,
    Output,
    Scalar,
    TensorSpec,
)
from kerneltruth.tasks.changed_rules import ChangedRule
from kerneltruth.tasks.claims import Claims
from kerneltruth.tasks.expressions import Rule, Scope, evaluate, spread_out
from kerneltruth.tasks.promises import Promises
from kerneltruth.tasks.with_spread import WithSpread

# Tasks of this suite go by their bare name.
CORE = "core"
# Suites with published prompts: a kernel need not support what its prompt does not name.
PUBLISHED = ("kernelbenchx", "tritonbench", "earlier")
# The hidden attribute that says how a case's call differs from the plain one, its default.
CALL = "_call"
PLAIN_CALL = "plain"
# Its value, and the name of the tensor, if the caller passes a tensor for the result.
OUT = "out"
# The condition of an input that every call writes.
ALWAYS = "True"
# Its value if the gradient of the result is requested.
BACKWARD = "backward"
# Its value, before the tensor's name, if a number replaces a tensor.
NUMBER = "number "
# The attribute that requests a dtype of the result, and how its values begin.
DTYPE = "dtype"
DTYPE_PREFIX = "torch."

RequestKind = Literal["argument", "values", "form"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a kernel must compute. Build with `spec.task(...)`, which explains the fields.

    Further fields, for tasks of imported suites, whose shapes are in a hidden attribute:

    Attributes:
        terms: how many terms the longest sum has, an expression of attributes; None derives it from
            the dims' roles.
        tf32: the reference with factors in TF32, for products of other tensors than the inputs.
        unrefereeable: why no candidate can be judged on this task.
        foreign: whether the reference is a third party's program, run in another process: changes
            of this process to torch's operators do not reach it.
        narrowed: by narrow dtype, the reference with every intermediate result rounded to it.
        as_written: whether the reference's results in a narrow dtype define the task there, NaN and
            infinity too.
        with_spread: returns the reference together with the deviations of right results, if that is
            faster than separate evaluations.
        own: draws tensors as the task's author does, by name, from sizes and scalars, and a seed;
            other tensors are drawn as usual. It is the recipe `recipes.OWN`.
        first: the attributes of the first case, for the author's own inputs.
        further: attributes of which only the default is required, and why. A fault at other values
            is reported and fails no candidate.
        smaller: attributes that show a fault in few elements; no case begins there.
        source: the text of the reference, if it came as a file of the user's own.
        pretrained: whether it is a pretrained model, for which children offer a small one.
        admitted: absolute errors by dtype that are right however small the bound.
        admitted_share: the error as a share of the result that is right beside these.
        where: what further names in expressions stand for.
        bitwise: whether equal calls must return the same bytes.
        changed_rules: of a quantized task, what its rules may be taken for.
        declared_at: the file or the notebook's cell that declares it, and the line there.
    """

    name: str
    category: str
    suite: str
    signature: str
    description: str
    dims: tuple[Dim, ...]
    arguments: tuple[ArgumentSpec, ...]
    outputs: tuple[Output, ...]
    reference: Callable[..., Any]
    dtypes: tuple[str, ...]
    extended_dtypes: tuple[str, ...]
    constraints: tuple[str, ...]
    flops: str
    bytes: str | None
    benchmark: Benchmark
    tolerance: Mapping[str, float]
    mutates: Mapping[str, str] = field(default_factory=dict)
    may_overwrite: Mapping[str, str] = field(default_factory=dict)
    values: tuple[float, float] | None = None
    layouts: bool = True
    admissible: tuple[Callable[..., Any], ...] = ()
    claims: Claims | None = None
    random: bool = False
    perf: tuple[Mapping[str, Any], ...] = ()
    extended: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    promises: Promises = field(default_factory=Promises)
    entry: str = ""
    terms: str | None = None
    tf32: tuple[Callable[..., Any], ...] = ()
    unrefereeable: str | None = None
    foreign: bool = False
    narrowed: Mapping[str, tuple[Callable[..., Any], ...]] = field(default_factory=dict)
    as_written: bool = False
    with_spread: WithSpread | None = None
    own: Callable[[Mapping[str, Scalar], int], Mapping[str, Any]] | None = None
    first: Mapping[str, Scalar] = field(default_factory=dict)
    further: Mapping[str, str] = field(default_factory=dict)
    smaller: tuple[Mapping[str, Scalar], ...] = ()
    source: str | None = None
    pretrained: bool = False
    admitted: Mapping[str, float] = field(default_factory=dict)
    admitted_share: float = 0.0
    where: Mapping[str, Rule] = field(default_factory=dict)
    bitwise: bool = False
    changed_rules: tuple[ChangedRule, ...] = ()
    declared_at: tuple[str, int] | None = field(default=None, compare=False)
    _request_kinds: dict[tuple[str, str], RequestKind] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def under(self, change: ChangedRule) -> Task:
        """Return the task with one rule of its quantization changed."""
        own = change.reference is None
        return replace(
            self,
            reference=change.reference or self.reference,
            admissible=self.admissible if own else change.admissible,
            claims=change.claims,
            outputs=change.outputs or self.outputs,
            changed_rules=(),
        )

    @property
    def key(self) -> str:
        """Return the key that is unique over all suites: `relu`, `kernelbenchx/relu`."""
        return self.name if self.suite == CORE else f"{self.suite}/{self.name}"

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Return the tensor arguments and the members of lists, in call order."""
        return tuple(a for a in self.arguments if isinstance(a, TensorSpec))

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return the scalar arguments that cases vary, including hidden ones, in call order."""
        return tuple(a for a in self.arguments if isinstance(a, Attribute))

    @property
    def promised_dtypes(self) -> tuple[str, ...]:
        """Return the working dtypes that a kernel may not refuse.

        They are those that the prompt names; float32 if a published prompt names none.
        """
        if self.promises.dtypes is not None:
            return self.promises.dtypes
        if self.suite in PUBLISHED and "float32" in self.dtypes:
            return ("float32",)
        return self.dtypes

    def number_for(self, settings: Mapping[str, Scalar]) -> str | None:
        """Return the tensor that these attributes replace by a Python number."""
        call = settings.get(CALL)
        is_number = isinstance(call, str) and call.startswith(NUMBER)
        return str(call).removeprefix(NUMBER) if is_number else None

    def wants_out(self, settings: Mapping[str, Scalar]) -> bool:
        """Return whether these attributes pass a tensor for the result."""
        return settings.get(CALL) == OUT

    def wants_gradients(self, settings: Mapping[str, Scalar]) -> bool:
        """Return whether these attributes request the gradients of the inputs, not the result."""
        return settings.get(CALL) == BACKWARD

    def asked_dtype(self, settings: Mapping[str, Scalar]) -> str | None:
        """Return the dtype that these attributes request; the operator then computes in it."""
        dtype = settings.get(DTYPE)
        named = isinstance(dtype, str) and dtype.startswith(DTYPE_PREFIX)
        return str(dtype).removeprefix(DTYPE_PREFIX) if named else None

    def dim(self, symbol: str) -> Dim:
        """Return the dim of that symbol."""
        return next(d for d in self.dims if d.symbol == symbol)

    def scope(
        self, dims: Mapping[str, int], attributes: Mapping[str, Scalar], **more: Any
    ) -> Scope:
        """Return the names that the task's expressions may use, with their values."""
        return Scope({**attributes, **dims, **more}, self.where)

    def shape(
        self, spec: TensorSpec, dims: Mapping[str, int], attributes: Mapping[str, Scalar]
    ) -> tuple[int, ...]:
        """Return the concrete shape of a tensor argument."""
        scope = self.scope(dims, attributes)
        if spec.typical is None:
            return tuple(evaluate(expression, scope) for expression in spec.dims)
        shape: list[int] = []
        for expression in spec.dims:
            starred = expression.startswith("*")
            value = evaluate(expression.removeprefix("*"), scope)
            shape += value if starred else (value,)
        return tuple(shape)

    def axes(self, spec: TensorSpec, attributes: Mapping[str, Scalar]) -> tuple[str, ...]:
        """Return the dims of a tensor at these attributes, an expression each."""
        if spec.typical is None:
            return spec.dims
        symbols = tuple(d.symbol for d in self.dims)
        return spread_out(spec.dims, symbols, attributes, self.where)

    def scalars(
        self, dims: Mapping[str, int], attributes: Mapping[str, Scalar]
    ) -> dict[str, Scalar]:
        """Return every attribute, with defaults, and every derived argument."""
        settings = {a.name: a.default for a in self.attributes} | dict(attributes)
        scope = self.scope(dims, settings)
        derived = [a for a in self.arguments if isinstance(a, Derived)]
        return settings | {a.name: evaluate(a.expression, scope) for a in derived}

    def asks(self, name: str, value: Scalar) -> RequestKind:
        """Return what an attribute's value asks of a kernel, beside the task's first call.

        That of a hidden attribute is another argument, other values of inputs, such as another form
        of a matrix, or another form of inputs: their number of dims, or which of them broadcast.
        """
        if not name.startswith("_") or name == CALL:
            return "argument"
        key = name, repr(value)
        if key not in self._request_kinds:
            other: RequestKind = "form" if self._reshapes(name, value) else "values"
            self._request_kinds[key] = "argument" if self.given_by(name, value) else other
        return self._request_kinds[key]

    def given_by(self, name: str, value: Scalar) -> tuple[str, ...]:
        """Return the arguments that a value of a hidden attribute gives other values.

        An argument that follows from the sizes changes with them: that is another size, not another
        argument, unless all tensors keep their shapes.
        """
        derived = [a.name for a in self.arguments if isinstance(a, Derived)]
        if not derived:
            return ()
        usual, sizes = self._first_call, self.benchmark.dims
        other = usual | {name: value}
        before, after = self.scalars(sizes, usual), self.scalars(sizes, other)
        changed = [n for n in derived if repr(before[n]) != repr(after[n])]
        if changed and self._reshapes(name, value):
            larger = self.scalars({symbol: 2 * n for symbol, n in sizes.items()}, other)
            changed = [n for n in changed if self.dims and repr(after[n]) == repr(larger[n])]
        return tuple(sorted(changed, key=lambda n: after[n] is None))

    @property
    def _first_call(self) -> dict[str, Scalar]:
        return {a.name: a.default for a in self.attributes} | dict(self.first)

    def _reshapes(self, name: str, value: Scalar) -> bool:
        """Return whether a value changes the shape of a tensor; without tensors, of the result."""
        usual, sizes = self._first_call, self.benchmark.dims
        other = usual | {name: value}
        shapes = ((self.shape(t, sizes, usual), self.shape(t, sizes, other)) for t in self.tensors)
        return not self.tensors or any(one != two for one, two in shapes)

    def call_order(self) -> tuple[str, ...]:
        """Return the names of the arguments in order: a list once, a hidden attribute never."""
        names = (
            (a.member_of or a.name) if isinstance(a, TensorSpec) else a.name
            for a in self.arguments
            if not (isinstance(a, Attribute) and a.hidden)
        )
        return tuple(dict.fromkeys(names))

    def lists(self) -> dict[str, tuple[str, ...]]:
        """Return the lists of tensors, by name, with their members."""
        found: dict[str, tuple[str, ...]] = {}
        for spec in self.tensors:
            if spec.member_of is not None:
                found[spec.member_of] = (*found.get(spec.member_of, ()), spec.name)
        return found

    def keywords(
        self, tensors: Mapping[str, Any], scalars: Mapping[str, Any], function: Callable[..., Any]
    ) -> dict[str, object]:
        """Return the keyword arguments for `function`, a formula of this task."""
        known = parameters_of(function)
        # A requested dtype is that of the tensors: `expectation` converts them.
        unsaid = {n for n in scalars if n.startswith("_") or n == DTYPE}
        passed = {n: v for n, v in scalars.items() if n not in unsaid or n in known}
        given = {n: t for n, t in tensors.items() if n != OUT or n in known}
        for name, members in self.lists().items():
            passed[name] = [t for t in (given.pop(m) for m in members) if t is not None]
        return {**given, **passed}

    def promised_outputs(
        self, scalars: Mapping[str, Scalar], tensors: Mapping[str, Any] | None = None
    ) -> tuple[Output, ...]:
        """Return the outputs of a call with these scalars and tensors."""
        outputs = self.outputs
        dtype = self.asked_dtype(scalars)
        if dtype is not None:
            outputs = tuple(replace(o, dtype=dtype) if o.dtype == "same" else o for o in outputs)
        if all(o.when is None for o in outputs):
            return outputs
        scope = self.scope({}, scalars, present=_present(tensors))
        return tuple(o for o in outputs if o.when is None or evaluate(o.when, scope))

    def written(
        self, scalars: Mapping[str, Scalar], tensors: Mapping[str, Any] | None = None
    ) -> tuple[str, ...]:
        """Return the inputs that a call writes, as the task declares."""
        held = self._holding(self.mutates, scalars, tensors)
        return (*held, OUT) if self.wants_out(scalars) else held

    def writable(
        self, scalars: Mapping[str, Scalar], tensors: Mapping[str, Any] | None = None
    ) -> tuple[str, ...]:
        """Return the inputs that a call must or may write."""
        may = self._holding(self.may_overwrite, scalars, tensors)
        return (*self.written(scalars, tensors), *may)

    def _holding(
        self,
        conditions: Mapping[str, str],
        scalars: Mapping[str, Scalar],
        tensors: Mapping[str, Any] | None,
    ) -> tuple[str, ...]:
        """Return the names of the present tensors whose condition holds."""
        if not conditions:
            return ()
        present = _present(tensors)
        scope = self.scope({}, scalars, present=present)
        return tuple(
            name
            for name, condition in conditions.items()
            if (tensors is None or name in present) and evaluate(condition, scope)
        )

    def is_core(self, attributes: Mapping[str, Scalar]) -> bool:
        """Return whether the prompt promises these attributes."""
        return not any(n in attributes and attributes[n] in v for n, v in self.extended.items())

    def beyond(self, attributes: Mapping[str, Scalar]) -> str | None:
        """Return why these attributes exceed what the task requires; None if they do not."""
        defaults = {a.name: a.default for a in self.attributes}
        changed = (n for n in self.further if attributes.get(n, defaults[n]) != defaults[n])
        return next((self.further[n] for n in changed), None)

    def allows(
        self, dims: Mapping[str, int], attributes: Mapping[str, Scalar], *, to_time: bool = False
    ) -> bool:
        """Return whether dims are in range, all constraints hold and no shape is negative.

        Shapes to time may be larger than judged ones.
        """
        in_range = all(
            d.low <= dims[d.symbol] and (to_time or d.high is None or dims[d.symbol] <= d.high)
            for d in self.dims
        )
        if not in_range:
            return False
        scope = self.scope(dims, attributes)
        if not all(evaluate(c, scope) for c in self.constraints):
            return False
        return all(n >= 0 for spec in self.tensors for n in self.shape(spec, dims, attributes))

    def contracted(self) -> bool:
        """Return whether the operator multiplies matrices, so that the TF32 policy applies."""
        return bool(self.tf32) or any(d.role == "contracted" for d in self.dims)

    def sums(self) -> bool:
        """Return whether elements of the output are sums of more than one term."""
        roles = ("reduced", "contracted")
        return self.terms is not None or any(d.role in roles for d in self.dims)


def _present(tensors: Mapping[str, Any] | None) -> frozenset[str]:
    return frozenset(n for n, t in (tensors or {}).items() if t is not None)


@lru_cache(maxsize=4096)
def parameters_of(function: Callable[..., Any]) -> frozenset[str]:
    """Return the names of a function's parameters; none for a function of torch's own."""
    try:
        return frozenset(inspect.signature(function).parameters)
    except ValueError:
        return frozenset()
