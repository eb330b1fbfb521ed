"""The `Task`: a declaration read, and the questions that judges and case makers ask it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

from kerneltruth.tasks.arguments import (
    Argument,
    Attribute,
    Benchmark,
    Derived,
    Dim,
    Output,
    Scalar,
    TensorSpec,
)
from kerneltruth.tasks.contract import Claim, Evidence
from kerneltruth.tasks.expressions import evaluate, spread_out
from kerneltruth.tasks.promises import Promises

# The suite whose tasks go by their bare name.
CORE = "core"
# The suites with published prompts: what these do not name, no author was asked for.
PUBLISHED = ("kernelbenchx", "tritonbench", "earlier")
# The hidden attribute that says how a case's call departs from the plain one, which is the default.
CALL = "_call"
PLAIN_CALL = "plain"
# Its value, and the name of the tensor, where the result is asked for in a tensor of the caller's.
OUT = "out"
# Its value where the gradient of the result is asked for.
BACKWARD = "backward"
# Its value where a number stands in the place of a tensor, which the name follows.
NUMBER = "number "
# The attribute that asks for a dtype of the result, and how its values begin.
DTYPE = "dtype"
DTYPE_PREFIX = "torch."

Contract = Callable[[Evidence], Iterable[Claim]]


class WithSpread(Protocol):
    """A reference of large inputs that gives at once what a bound is made of."""

    def __call__(
        self,
        given: Mapping[str, Any],
        *,
        working: str,
        promised: Sequence[str],
        tf32: bool,
        beside: bool = False,
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
        """The outputs in float64, and for each how far right results stray from it.

        The latter is NaN where an element is not settled. None where runs one by one will do.

        Args:
            beside: whether it is wanted beside runs one by one, for what they do not show.
            given: tensors, in the dtype of the case, and scalars by name.
            working: the dtype of the case.
            promised: the dtype of each output.
            tf32: whether products may take factors in TF32.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a kernel must compute. Build with `spec.task(...)`, which explains the fields.

    Further ones, for tasks that an importer makes, whose shapes lie in a hidden attribute:

    Attributes:
        terms: how many terms the longest sum has, an expression of attributes; None means what the
            dims' roles say.
        tf32: the reference with factors in TF32, where products are not of the inputs alone.
        unrefereeable: why no candidate can be judged on this task.
        foreign: whether the reference is someone else's program, run in another process: nothing
            that this process does to torch's operators reaches it.
        narrowed: by narrow dtype, the reference with every result on the way rounded to it.
        as_written: whether what the reference gives in a narrow dtype is what the task asks for
            there, NaN and infinity too.
        with_spread: the reference together with how far right results stray from it, where that is
            quicker than evaluations one by one.
        own: draws tensors as the task's author does, by name, from every scalar and a seed; what it
            does not give is drawn as ever. It is the recipe `recipes.OWN`.
        first: the attributes of the first case, where the author's own inputs are that.
        further: attributes of which only the default is asked for, and why. What a kernel does
            wrong at their other values is reported and fails no candidate.
        smaller: attributes with which a fault may be shown in few elements; no case begins there.
    """

    name: str
    category: str
    suite: str
    signature: str
    description: str
    dims: tuple[Dim, ...]
    arguments: tuple[Argument, ...]
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
    contract: Contract | None = None
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

    @property
    def key(self) -> str:
        """What tells the task apart from those of all suites: `relu`, `kernelbenchx/relu`."""
        return self.name if self.suite == CORE else f"{self.suite}/{self.name}"

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """The tensor arguments and the members of lists, in call order."""
        return tuple(a for a in self.arguments if isinstance(a, TensorSpec))

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The scalar arguments that cases vary, hidden ones too, in call order."""
        return tuple(a for a in self.arguments if isinstance(a, Attribute))

    @property
    def promised_dtypes(self) -> tuple[str, ...]:
        """The working dtypes that a kernel may not refuse.

        They are those that the prompt names; where a published prompt names none, float32.
        """
        if self.promises.dtypes is not None:
            return self.promises.dtypes
        if self.suite in PUBLISHED and "float32" in self.dtypes:
            return ("float32",)
        return self.dtypes

    def number_for(self, settings: Mapping[str, Scalar]) -> str | None:
        """The tensor in whose place these attributes put a Python number."""
        call = settings.get(CALL)
        asked = isinstance(call, str) and call.startswith(NUMBER)
        return str(call).removeprefix(NUMBER) if asked else None

    def wants_out(self, settings: Mapping[str, Scalar]) -> bool:
        """Whether these attributes ask for the result in a tensor of the caller's."""
        return settings.get(CALL) == OUT

    def wants_gradients(self, settings: Mapping[str, Scalar]) -> bool:
        """Whether these attributes ask for the gradients of the inputs, and not for the result."""
        return settings.get(CALL) == BACKWARD

    def asked_dtype(self, settings: Mapping[str, Scalar]) -> str | None:
        """The dtype that these attributes ask for, in which the operator then computes."""
        asked = settings.get(DTYPE)
        named = isinstance(asked, str) and asked.startswith(DTYPE_PREFIX)
        return str(asked).removeprefix(DTYPE_PREFIX) if named else None

    def dim(self, symbol: str) -> Dim:
        """The dim of that symbol."""
        return next(d for d in self.dims if d.symbol == symbol)

    def shape(
        self, spec: TensorSpec, dims: Mapping[str, int], attributes: Mapping[str, Scalar]
    ) -> tuple[int, ...]:
        """The concrete shape of a tensor argument."""
        scope = {**attributes, **dims}
        if spec.typical is None:
            return tuple(evaluate(expression, scope) for expression in spec.dims)
        shape: list[int] = []
        for expression in spec.dims:
            starred = expression.startswith("*")
            value = evaluate(expression.removeprefix("*"), scope)
            shape += value if starred else (value,)
        return tuple(shape)

    def axes(self, spec: TensorSpec, attributes: Mapping[str, Scalar]) -> tuple[str, ...]:
        """The dims of a tensor at these attributes, an expression each."""
        if spec.typical is None:
            return spec.dims
        return spread_out(spec.dims, tuple(d.symbol for d in self.dims), attributes)

    def scalars(
        self, dims: Mapping[str, int], attributes: Mapping[str, Scalar]
    ) -> dict[str, Scalar]:
        """Every attribute, defaults where none is given, and every derived argument."""
        settings = {a.name: a.default for a in self.attributes} | dict(attributes)
        scope = {**settings, **dims}
        derived = [a for a in self.arguments if isinstance(a, Derived)]
        return settings | {a.name: evaluate(a.expression, scope) for a in derived}

    def call_order(self) -> tuple[str, ...]:
        """The names of what is passed, in order: a list once, a hidden attribute not at all."""
        names = (
            (a.member_of or a.name) if isinstance(a, TensorSpec) else a.name
            for a in self.arguments
            if not (isinstance(a, Attribute) and a.hidden)
        )
        return tuple(dict.fromkeys(names))

    def lists(self) -> dict[str, tuple[str, ...]]:
        """The lists of tensors, by name, with their members."""
        found: dict[str, tuple[str, ...]] = {}
        for spec in self.tensors:
            if spec.member_of is not None:
                found[spec.member_of] = (*found.get(spec.member_of, ()), spec.name)
        return found

    def keywords(
        self, tensors: Mapping[str, Any], scalars: Mapping[str, Any], function: Callable[..., Any]
    ) -> dict[str, Any]:
        """The keyword arguments with which `function`, a formula of this task, is called."""
        known = _parameters(function)
        # A dtype that is asked for is that of the tensors: `expectation` sees to it.
        unsaid = {n for n in scalars if n.startswith("_") or n == DTYPE}
        passed = {n: v for n, v in scalars.items() if n not in unsaid or n in known}
        given = {n: t for n, t in tensors.items() if n != OUT or n in known}
        for name, members in self.lists().items():
            passed[name] = [t for t in (given.pop(m) for m in members) if t is not None]
        return {**given, **passed}

    def due(
        self, scalars: Mapping[str, Scalar], tensors: Mapping[str, Any] | None = None
    ) -> tuple[Output, ...]:
        """The outputs of a call with these scalars and tensors."""
        outputs = self.outputs
        asked = self.asked_dtype(scalars)
        if asked is not None:
            outputs = tuple(replace(o, dtype=asked) if o.dtype == "same" else o for o in outputs)
        if all(o.when is None for o in outputs):
            return outputs
        scope = {**scalars, "present": _present(tensors)}
        return tuple(o for o in outputs if o.when is None or evaluate(o.when, scope))

    def written(
        self, scalars: Mapping[str, Scalar], tensors: Mapping[str, Any] | None = None
    ) -> tuple[str, ...]:
        """The inputs that a call writes by contract."""
        held = _holding(self.mutates, scalars, tensors)
        return (*held, OUT) if self.wants_out(scalars) else held

    def writable(
        self, scalars: Mapping[str, Scalar], tensors: Mapping[str, Any] | None = None
    ) -> tuple[str, ...]:
        """The inputs that a call must or may write."""
        may = _holding(self.may_overwrite, scalars, tensors)
        return (*self.written(scalars, tensors), *may)

    def is_core(self, attributes: Mapping[str, Scalar]) -> bool:
        """Whether the prompt promises these attributes."""
        return not any(n in attributes and attributes[n] in v for n, v in self.extended.items())

    def beyond(self, attributes: Mapping[str, Scalar]) -> str | None:
        """Why these attributes are more than the task asks for; None if they are not."""
        defaults = {a.name: a.default for a in self.attributes}
        asked = (n for n in self.further if attributes.get(n, defaults[n]) != defaults[n])
        return next((self.further[n] for n in asked), None)

    def allows(
        self, dims: Mapping[str, int], attributes: Mapping[str, Scalar], *, to_time: bool = False
    ) -> bool:
        """Whether dims are in range, all constraints hold and no shape is negative.

        Shapes to time may be larger than those that are judged.
        """
        in_range = all(
            d.low <= dims[d.symbol] and (to_time or d.high is None or dims[d.symbol] <= d.high)
            for d in self.dims
        )
        if not in_range:
            return False
        scope = {**attributes, **dims}
        if not all(evaluate(c, scope) for c in self.constraints):
            return False
        return all(n >= 0 for spec in self.tensors for n in self.shape(spec, dims, attributes))

    def contracted(self) -> bool:
        """Whether the operator multiplies matrices, so that the TF32 policy speaks of it."""
        return bool(self.tf32) or any(d.role == "contracted" for d in self.dims)

    def sums(self) -> bool:
        """Whether elements of the output are sums of more than one term."""
        roles = ("reduced", "contracted")
        return self.terms is not None or any(d.role in roles for d in self.dims)


def _present(tensors: Mapping[str, Any] | None) -> frozenset[str]:
    return frozenset(n for n, t in (tensors or {}).items() if t is not None)


def _holding(
    conditions: Mapping[str, str],
    scalars: Mapping[str, Scalar],
    tensors: Mapping[str, Any] | None,
) -> tuple[str, ...]:
    """The names of the tensors that are there and whose condition holds."""
    if not conditions:
        return ()
    present = _present(tensors)
    scope = {**scalars, "present": present}
    return tuple(
        name
        for name, condition in conditions.items()
        if (tensors is None or name in present) and evaluate(condition, scope)
    )


@lru_cache(maxsize=4096)
def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except ValueError:
        # A function of torch's own, which knows no hidden attribute.
        return frozenset()
