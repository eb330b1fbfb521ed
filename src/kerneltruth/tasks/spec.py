"""What a task is: a named operator over symbolic dims, with a float64 reference.

A task is declared by a call signature in a small notation, so that an ordinary operator takes
about ten lines:

    task(
        "rms_norm(x[M, N], weight[N], eps=1e-6)",
        category="Normalization",
        dims={"M": "batch", "N": "reduced"},
        reference=lambda x, weight, eps: F.rms_norm(x, x.shape[-1:], weight, eps),
        description="...",
        flops="4*M*N",
        benchmark={"M": 32, "N": 256},
    )

An argument is `name[dims]` (a tensor), `name[dims]: kind` (a tensor of another kind, see `KINDS`),
`name[dims]?` (a tensor that may be None) or `name=default` (an attribute). Dims are symbols,
integers or integer expressions of symbols and attributes, such as `C // groups`.

The reference is written once, in torch, generic over the dtype: the oracle calls it with float64
tensors for the truth and with working-precision tensors for what correct kernels may show.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from kerneltruth.errors import InternalError

Role = Literal["batch", "reduced", "contracted", "channel", "spatial"]
Scalar = None | bool | int | float | str | tuple[int, ...]

# The suite whose tasks go by their bare name.
CORE = "core"

FLOATS = ("float32", "float16", "bfloat16")

KINDS = {
    "real": "the case's dtype, any finite value of the recipe",
    "positive": "the case's dtype, magnitude of the recipe, never 0",
    "probability": "the case's dtype, in [0, 1]",
    "unit": "the case's dtype, in [-1, 1]",
    "index": "int64 in [0, extent): `index(C)`",
    "bool": "bool",
    "mask": "bool, at least one True in each row of the last dim, unless the recipe says otherwise",
    "int8": "int8, whole range",
    "int32": "int32",
    "int64": "int64",
    "float32": "float32 whatever the case's dtype",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dim:
    """A symbolic size: its role says which shapes are worth trying and what a bound grows with."""

    symbol: str
    role: Role
    low: int = 0
    high: int | None = None

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            known = ", ".join(get_args(Role))
            raise InternalError(f"dim {self.symbol!r}: role {self.role!r} is not one of {known}")
        if self.low < 0 or (self.high is not None and self.high < max(self.low, 1)):
            raise InternalError(f"dim {self.symbol!r}: need 0 <= low <= high, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """A tensor argument over symbolic dims; `dims` holds integer expressions."""

    name: str
    dims: tuple[str, ...]
    kind: str = "real"
    extent: str | None = None
    optional: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InternalError(f"{self.name}: kind {self.kind!r} is not one of {sorted(KINDS)}")
        if (self.kind == "index") != (self.extent is not None):
            raise InternalError(f"{self.name}: an index, and only an index, has an extent")

    def dtype(self, working: str) -> str:
        """The tensor's dtype when the case's dtype is `working`."""
        fixed = {"index": "int64", "mask": "bool"}
        if self.kind in ("real", "positive", "probability", "unit"):
            return working
        return fixed.get(self.kind, self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A scalar argument: its default and the values that cases vary it over (default first)."""

    name: str
    default: Scalar
    values: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        if not self.values or self.values[0] != self.default:
            raise InternalError(f"attribute {self.name!r}: the default must be the first value")


Mask = Any  # a bool torch.Tensor; this module does not import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One output: its dtype (`same` as the case's) and how it is compared.

    `bound`: per element against the bound. `exact`: bit-equal values (indices, bools).
    `accept(inputs, outputs, reference)` returns True where an element is right, for outputs that
    have several right answers (indices of a top-k under ties).
    """

    name: str = "out"
    dtype: str = "same"
    compare: Literal["bound", "exact", "accept"] = "bound"
    accept: Callable[[Mapping[str, Any], Sequence[Any], Sequence[Any]], Mask] | None = None

    def __post_init__(self) -> None:
        if (self.compare == "accept") != (self.accept is not None):
            raise InternalError(f"output {self.name!r}: `accept` goes with compare='accept'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """The one shape and input distribution that a one-shape benchmark would use for the task."""

    dims: Mapping[str, int]
    distribution: Literal["uniform", "normal"] = "uniform"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a kernel must compute. Build with `task(...)`."""

    name: str
    category: str
    suite: str
    signature: str
    description: str
    dims: tuple[Dim, ...]
    arguments: tuple[TensorSpec | Attribute, ...]
    outputs: tuple[Output, ...]
    reference: Callable[..., Any]
    dtypes: tuple[str, ...]
    extended_dtypes: tuple[str, ...]
    constraints: tuple[str, ...]
    flops: str
    bytes: str | None
    benchmark: Benchmark
    tolerance: Mapping[str, float]
    mutates: tuple[str, ...] = ()
    values: tuple[float, float] | None = None
    layouts: bool = True
    admissible: tuple[Callable[..., Any], ...] = ()

    @property
    def key(self) -> str:
        """What tells the task apart from those of all suites: `relu`, `kernelbenchx/relu`."""
        return self.name if self.suite == CORE else f"{self.suite}/{self.name}"

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """The tensor arguments, in call order."""
        return tuple(a for a in self.arguments if isinstance(a, TensorSpec))

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The scalar arguments, in call order."""
        return tuple(a for a in self.arguments if isinstance(a, Attribute))

    def dim(self, symbol: str) -> Dim:
        """The dim of that symbol."""
        return next(d for d in self.dims if d.symbol == symbol)

    def shape(
        self, spec: TensorSpec, dims: Mapping[str, int], attributes: Mapping[str, Scalar]
    ) -> tuple[int, ...]:
        """The concrete shape of a tensor argument."""
        scope = {**attributes, **dims}
        return tuple(evaluate(expression, scope) for expression in spec.dims)

    def allows(self, dims: Mapping[str, int], attributes: Mapping[str, Scalar]) -> bool:
        """Whether dims are in range, all constraints hold and no shape is negative."""
        in_range = all(
            d.low <= dims[d.symbol] and (d.high is None or dims[d.symbol] <= d.high)
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
        return any(d.role == "contracted" for d in self.dims)


@dataclass(frozen=True, slots=True)
class _Parsed:
    name: str
    tensors_and_defaults: tuple[TensorSpec | tuple[str, Scalar], ...] = field(default=())


def task(  # noqa: PLR0913 - a declaration names each of its parts
    signature: str,
    *,
    category: str,
    dims: Mapping[str, Role | Dim],
    reference: Callable[..., Any],
    description: str,
    flops: str,
    benchmark: Mapping[str, int] | Benchmark,
    suite: str = CORE,
    attributes: Mapping[str, Sequence[Scalar]] | None = None,
    outputs: Sequence[Output] = (Output(),),
    dtypes: Sequence[str] = FLOATS,
    extended_dtypes: Sequence[str] = (),
    constraints: Sequence[str] = (),
    bytes: str | None = None,
    tolerance: Mapping[str, float] | None = None,
    mutates: Sequence[str] = (),
    values: tuple[float, float] | None = None,
    layouts: bool = True,
    admissible: Sequence[Callable[..., Any]] = (),
) -> Task:
    """Declare an operator.

    Args:
        signature: the call, in the notation of this module's docstring.
        category: the category of the operator, as KernelBenchX names them.
        dims: role (or a full `Dim`) of each symbol of the signature.
        reference: the operator in torch, generic over the dtype; arguments by the signature's
            names.
        description: one paragraph from which a kernel can be written.
        flops: floating-point operations, an expression of dims and attributes.
        benchmark: the shape of a one-shape benchmark; uniform [0, 1) inputs unless told otherwise.
        suite: where the task belongs.
        attributes: for each attribute, further values to try beside its default.
        outputs: dtype and comparison of each output.
        dtypes: the main dtypes (core domain).
        extended_dtypes: dtypes beyond the core domain.
        constraints: expressions of dims and attributes that must hold.
        bytes: least bytes moved; None means each input read once and each output written once.
        tolerance: absolute tolerance by dtype for the `fixed` bound, where one is published.
        mutates: inputs that the operator writes in place, by contract.
        values: inclusive range to which every real input is clamped, where the operator has one.
        layouts: False where a non-contiguous input makes no sense.
        admissible: further correct formulations, as implementations that widen the spread bound.
    """
    parsed = parse_signature(signature)
    more = attributes or {}
    arguments: list[TensorSpec | Attribute] = []
    for item in parsed.tensors_and_defaults:
        if isinstance(item, TensorSpec):
            arguments.append(item)
        else:
            name, default = item
            others = tuple(v for v in more.get(name, ()) if v != default)
            arguments.append(Attribute(name=name, default=default, values=(default, *others)))
    return Task(
        name=parsed.name,
        category=category,
        suite=suite,
        signature=signature,
        description=" ".join(description.split()),
        dims=tuple(d if isinstance(d, Dim) else Dim(symbol=s, role=d) for s, d in dims.items()),
        arguments=tuple(arguments),
        outputs=tuple(outputs),
        reference=reference,
        dtypes=tuple(dtypes),
        extended_dtypes=tuple(extended_dtypes),
        constraints=tuple(constraints),
        flops=flops,
        bytes=bytes,
        benchmark=(
            benchmark if isinstance(benchmark, Benchmark) else Benchmark(dims=dict(benchmark))
        ),
        tolerance=dict(tolerance or {}),
        mutates=tuple(mutates),
        values=values,
        layouts=layouts,
        admissible=tuple(admissible),
    )


_TENSOR = re.compile(
    r"^(?P<name>\w+)\[(?P<dims>[^\]]*)\](?P<optional>\?)?"
    r"(?:\s*:\s*(?P<kind>\w+)(?:\((?P<extent>[^)]*)\))?)?$"
)


def parse_signature(text: str) -> _Parsed:
    """Read the notation of this module's docstring."""
    name, _, rest = text.partition("(")
    if not name.isidentifier() or not rest.endswith(")"):
        raise InternalError(f"signature {text!r} is not `name(arguments)`")
    items: list[TensorSpec | tuple[str, Scalar]] = []
    for part in _split(rest[:-1]):
        match = _TENSOR.match(part)
        if match:
            items.append(
                TensorSpec(
                    name=match["name"],
                    dims=tuple(d.strip() for d in match["dims"].split(",") if d.strip()),
                    kind=match["kind"] or "real",
                    extent=match["extent"],
                    optional=match["optional"] is not None,
                )
            )
            continue
        key, equals, default = part.partition("=")
        if not equals:
            raise InternalError(f"{part!r} of {text!r} is neither a tensor nor an attribute")
        items.append((key.strip(), ast.literal_eval(default.strip())))
    return _Parsed(name, tuple(items))


def _split(text: str) -> list[str]:
    """Split at the commas that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def evaluate(expression: str, scope: Mapping[str, Any]) -> Any:
    """Evaluate an expression of dims and attributes, as our own declarations write them."""
    if expression in scope:
        return scope[expression]
    if expression.isdigit():
        return int(expression)
    return eval(expression, {"__builtins__": {"min": min, "max": max, "abs": abs}}, dict(scope))
