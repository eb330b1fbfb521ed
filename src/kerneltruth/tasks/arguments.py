"""Define the parts of a declaration: dims, arguments, outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kerneltruth.errors import DeclarationError

# The dtype of a complex dtype's real and imaginary parts.
PARTS = {"complex64": "float32", "complex128": "float64"}

Role = Literal["batch", "reduced", "contracted", "channel", "spatial"]
Scalar = None | bool | int | float | str | tuple[int, ...] | tuple[float, ...]
# The dims of a shape.
Sizes = tuple[int, ...]

# Kinds of real numbers that are no case's dtype.
KEPT_DTYPES = ("float64", "float32", "float16", "bfloat16")
KINDS = {
    "real": "the case's dtype, any finite value of the recipe",
    "unlimited": "as `real`, whatever the task's range of values",
    "positive": "the case's dtype, magnitude of the recipe, never 0",
    "negative": "the case's dtype, magnitude of the recipe, never above 0",
    "probability": "the case's dtype, in [0, 1]",
    "unit": "the case's dtype, in [-1, 1]",
    "sign": "the case's dtype, -1 or 1",
    "ones": "the case's dtype, all 1",
    "symmetric": "the case's dtype, equal to its transpose over the last two dims",
    "spd": "the case's dtype, symmetric positive definite over the last two dims",
    "invertible": "the case's dtype, a well-conditioned square matrix over the last two dims",
    "lower": "the case's dtype, lower triangular and well-conditioned over the last two dims",
    "tril": "the case's dtype, zero above the diagonal of the last two dims",
    "triu": "the case's dtype, zero below the diagonal of the last two dims",
    "stochastic": "the case's dtype, no negative values, each row of the last dim sums to 1",
    "log_stochastic": "the case's dtype, logarithms of such a row",
    "normalized": "the case's dtype, each row of the last dim has length 1",
    "halves": "the case's dtype, the second half of each row of the last dim repeats the first",
    "pairs": "the case's dtype, each element of the last dim stands twice in a row",
    "ascending": "the case's dtype, no element below the one before it in its row of the last dim",
    "descending": "the case's dtype, never above 0, no element above the one before it in its row",
    "weight": "the case's dtype, of the size that a constructor gives: see `span`",
    "triangular": "as `lower`, or upper triangular: `triangular('upper')`",
    "indefinite": "the case's dtype, symmetric, invertible and indefinite over the last two dims",
    "matrix": "the case's dtype, any matrix over the last two dims: `matrix('shuffled')`",
    "integer": "the case's dtype, which is an integer dtype or bool; whole range",
    "index": "int64 in [0, extent): `index(C)`",
    "target": "int64 class ids in [0, extent): `target(C)`",
    "index_or": "int64 in [0, extent), or a value that means none: `index_or(C, -100)`",
    "bool": "bool",
    "mask": "bool, at least one True in each row of the last dim, unless the recipe says otherwise",
    "int8": "int8, whole range",
    "uint8": "uint8, whole range",
    "packed_int4": "uint8, two int4 in each byte, whole range of both",
    "int32": "int32",
    "int64": "int64",
    **{dtype: f"{dtype} whatever the case's dtype" for dtype in KEPT_DTYPES},
}
INDEX_KINDS = ("index", "target", "index_or")
MATRIX_KINDS = (
    "symmetric",
    "spd",
    "invertible",
    "lower",
    "triangular",
    "indefinite",
    "matrix",
)
# Kinds whose elements depend on each other within a row of the last dim.
ROW_KINDS = (
    *("stochastic", "log_stochastic", "normalized"),
    *("halves", "pairs", "ascending", "descending"),
)
# Kinds that may have a dtype of their own: see `TensorSpec.keeps`.
KEEPING_KINDS = ("negative", *ROW_KINDS)
_WORKING = (
    *(
        "real",
        "unlimited",
        "positive",
        "negative",
        "probability",
        "unit",
        "sign",
        "ones",
        "integer",
        "weight",
    ),
    *ROW_KINDS,
    *("tril", "triu"),
    *MATRIX_KINDS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dim:
    """A symbolic size: its role says which shapes are worth trying and what a bound grows with.

    Attributes:
        symbol: its name in expressions.
        role: see `Role`.
        low: the least size that the task allows.
        high: the largest size that it allows, if there is one.
        tried: the largest size of cases, if judging a larger one would take too long; None means
            `high`.

    Examples:
        >>> kt.Dim(symbol="N", role="reduced", low=1).most is None
        True
    """

    symbol: str
    role: Role
    low: int = 0
    high: int | None = None
    tried: int | None = None

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            known = ", ".join(get_args(Role))
            raise DeclarationError(
                f"dim {self.symbol!r}: {self.role!r} is not a role; use one of {known}"
            )
        if self.low < 0 or (self.high is not None and self.high < max(self.low, 1)):
            raise DeclarationError(
                f"dim {self.symbol!r}: low is {self.low} and high is {self.high}; give "
                "0 <= low <= high, and 1 <= high"
            )

    @property
    def most(self) -> int | None:
        """Return the largest size that cases have, if there is one."""
        return self.high if self.tried is None else self.tried


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """A tensor argument over symbolic dims.

    Attributes:
        name: of the argument, or of the member of a list.
        dims: integer expressions; one that begins with `*` gives a tuple of sizes.
        kind: what it may hold, one of `KINDS`.
        extent: of an index: the number of elements that it may point at.
        other: of an `index_or`: the value that means "no element".
        form: of a matrix: an expression that gives the name of one of its forms (`cases.matrices`).
        optional: whether it may be None, or missing from its list.
        member_of: the list of tensors that it goes into.
        span: of a `weight`: its range; None means plus or minus `gain` over the square root of the
            number of elements that one sum takes, those of all dims but the first.
        typical: the dims at the task's default attributes, without stars; None means `dims`.
        held: returns the values for some attributes, if they are stored instead of drawn.
        stored: of an index: the dtype in which it is passed.
        least: of an index: the least one.
        keeps: of rows of a form: the dtype that they have beside any dtype of the case.
        layout: how it lies in memory in a case whose layout is `contiguous`.
        example: size and stride of each dim of one that is not contiguous: timed calls get such.
    """

    name: str
    dims: tuple[str, ...]
    kind: str = "real"
    extent: str | None = None
    other: str | None = None
    form: str | None = None
    optional: bool = False
    member_of: str | None = None
    span: tuple[float, float] | None = None
    gain: float = 1.0
    typical: tuple[str, ...] | None = None
    held: Callable[[Mapping[str, Scalar]], Any] | None = None
    stored: str = "int64"
    least: int = 0
    keeps: str | None = None
    layout: str = "contiguous"
    example: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DeclarationError(
                f"{self.name}: {self.kind!r} is not a kind; use one of {', '.join(sorted(KINDS))}"
            )
        if (self.kind in INDEX_KINDS) != (self.extent is not None):
            raise DeclarationError(
                f"{self.name}: an index, and only an index, has an extent; write `index(N)`"
            )
        if (self.kind == "index_or") != (self.other is not None):
            raise DeclarationError(f"{self.name}: `index_or(extent, other)` alone has an other")
        if self.form is not None and self.kind not in MATRIX_KINDS:
            raise DeclarationError(f"{self.name}: only a matrix has a form")
        if self.keeps is not None and self.kind not in KEEPING_KINDS:
            kinds = ", ".join(KEEPING_KINDS)
            raise DeclarationError(
                f"{self.name}: `keeps` is for {kinds}; give its dtype as its kind"
            )

    @property
    def usual(self) -> tuple[str, ...]:
        """Return the dims at the default attributes: as many as the tensor then has."""
        return self.dims if self.typical is None else self.typical

    @property
    def may_be_absent(self) -> bool:
        """Return whether None may be passed; a model draws a weight that is None itself."""
        return self.optional or self.kind == "weight"

    def dtype(self, working: str) -> str:
        """Return the tensor's dtype when the case's dtype is `working`."""
        if self.kind in _WORKING:
            return self.keeps or working
        fixed = {"mask": "bool", "packed_int4": "uint8"} | dict.fromkeys(INDEX_KINDS, self.stored)
        return fixed.get(self.kind, self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A scalar argument: its default and the values that cases try (default first).

    A name that begins with `_` marks a hidden attribute: it selects among the task's forms, such as
    the rank of an input, and is not passed to the candidate.
    """

    name: str
    default: Scalar
    values: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        if not self.values or not alike(self.values[0], self.default):
            raise DeclarationError(f"attribute {self.name!r}: the default must be the first value")

    @property
    def hidden(self) -> bool:
        """Return whether it is not an argument of the call."""
        return self.name.startswith("_")


def alike(one: Scalar, other: Scalar) -> bool:
    """Return whether both are equal and of one type: 1, 1.0 and True differ for a kernel."""
    return type(one) is type(other) and one == other


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A scalar argument that follows from dims and attributes: `normalized_shape:=(N,)`."""

    name: str
    expression: str


ArgumentSpec = TensorSpec | Attribute | Derived
Mask = Any  # a bool torch.Tensor; this module does not import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One output: its dtype and how it is compared.

    `bound`: each element against its bound. `exact`: bit-equal values (indices, bools).
    `accept(inputs, outputs, reference)` returns True where an element is right, for outputs with
    several right answers (indices of a top-k under ties). `claims`: judged by the task's claims
    alone.

    Attributes:
        name: the name in findings; an input that the task mutates is an output of the same name.
        dtype: a dtype's name; `same` as the case's; `complex` or `real` of the case's; `float`, the
            case's, or float32 if that is an integer dtype.
        compare: how it is compared.
        accept: see above.
        when: an expression of attributes (and of `present`, the names of the tensors that are not
            None); the output is expected only where it is true.
        spared: decoys that a correct judgement cannot tell apart on small cases, by name.
        may_be_complex: whether the published prompt lets a real result have a complex dtype.

    Examples:
        >>> kt.Output(name="indices", dtype="int64", compare="exact").dtype_at("float16")
        'int64'
    """

    name: str = "out"
    dtype: str = "same"
    compare: Literal["bound", "exact", "accept", "claims"] = "bound"
    accept: Callable[[Mapping[str, Any], Sequence[Any], Sequence[Any]], Mask] | None = None
    when: str | None = None
    spared: tuple[str, ...] = ()
    may_be_complex: bool = False

    def __post_init__(self) -> None:
        if (self.compare == "accept") != (self.accept is not None):
            raise DeclarationError(f"output {self.name!r}: `accept` goes with compare='accept'")

    def dtype_at(self, working: str) -> str:
        """Return the output's dtype when the case's dtype is `working`."""
        match self.dtype:
            case "same":
                return working
            case "complex":
                return "complex128" if PARTS.get(working, working) == "float64" else "complex64"
            case "real":
                return PARTS.get(working, working)
            case "float":
                return "float32" if "int" in working else working
            case name:
                return name

    def parts_at(self, working: str) -> str:
        """Return the dtype of its elements, or of their real and imaginary parts."""
        dtype = self.dtype_at(working)
        return PARTS.get(dtype, dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """The one shape and input distribution that a one-shape benchmark would use for the task.

    Attributes:
        distribution: `uniform` in [0, 1), `wide` in [-10, 10), `normal`, or `own`: as the task's
            author draws them.

    Examples:
        >>> kt.Benchmark(dims={"M": 32, "N": 256}, distribution="normal").dims["N"]
        256
    """

    dims: Mapping[str, int]
    distribution: Literal["uniform", "normal", "own", "wide"] = "uniform"
