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

An argument is one of:

- `name[dims]`, a tensor; `name[dims]: kind`, of another kind (see `arguments.KINDS`);
  `name[dims]?`, one that may be None. Dims are symbols, integers or integer expressions of symbols
  and attributes, such as `C // groups`; `*expression` gives several at once, as a tuple, so that
  the rank may vary.
- `name=default`, an attribute; `_name=default`, a hidden one, which cases vary like any other and
  the candidate does not see. The reference gets it if it has a parameter of that name.
- `name:=expression`, a scalar that follows from dims and attributes.
- `name=[a[M, K], b[M, L]?]`, a list of tensors; optional members may be missing from it.

The reference is written once, in torch, generic over the dtype: the oracle calls it with float64
tensors for the exact result and with working-precision tensors for the error of correct kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kerneltruth.errors import DeclarationError
from kerneltruth.tasks.arguments import (
    INDEX_KINDS,
    KINDS,
    MATRIX_KINDS,
    Argument,
    Attribute,
    Benchmark,
    Derived,
    Dim,
    Mask,
    Output,
    Role,
    Scalar,
    TensorSpec,
)
from kerneltruth.tasks.contract import Claim, Evidence
from kerneltruth.tasks.expressions import evaluate, spread_out
from kerneltruth.tasks.model import (
    BACKWARD,
    CALL,
    CORE,
    NUMBER,
    OUT,
    PLAIN_CALL,
    Contract,
    Task,
    WithSpread,
)
from kerneltruth.tasks.promises import Promises
from kerneltruth.tasks.signature import Given, parse_signature

__all__ = [
    "CORE",
    "FLOATS",
    "INDEX_KINDS",
    "KINDS",
    "MATRIX_KINDS",
    "Argument",
    "Attribute",
    "Benchmark",
    "Claim",
    "Derived",
    "Dim",
    "Evidence",
    "Mask",
    "Output",
    "Promises",
    "Role",
    "Scalar",
    "Task",
    "TensorSpec",
    "WithSpread",
    "evaluate",
    "parse_signature",
    "task",
]

FLOATS = ("float32", "float16", "bfloat16")


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
    mutates: Collection[str] | Mapping[str, str] = (),
    may_overwrite: Mapping[str, str] | None = None,
    values: tuple[float, float] | None = None,
    layouts: bool = True,
    admissible: Sequence[Callable[..., Any]] = (),
    contract: Contract | None = None,
    random: bool = False,
    perf: Sequence[Mapping[str, Any]] = (),
    extended: Mapping[str, Sequence[Scalar]] | None = None,
    promises: Promises | None = None,
    entry: str | None = None,
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
        benchmark: the shape of a one-shape benchmark; uniform [0, 1) inputs by default.
        suite: the suite of the task.
        attributes: for each attribute, further values to try beside its default.
        outputs: dtype and comparison of each output.
        dtypes: the main dtypes.
        extended_dtypes: dtypes that are tried less often.
        constraints: expressions of dims and attributes that must hold.
        bytes: least bytes moved, an expression that may name `itemsize` too, the bytes of an
            element of the case's dtype; None means each input read once and each output written
            once.
        tolerance: absolute tolerance by dtype for the `fixed` bound, where one is published.
        mutates: inputs that the operator writes in place, by contract, with the condition under
            which it does. They are compared as the outputs of their name; if there are none, and
            nothing is returned, as the outputs in order.
        may_overwrite: inputs that a kernel may write and return, with the condition.
        values: inclusive range to which every real input is clamped, if the operator has one.
        layouts: False if a non-contiguous input makes no sense.
        admissible: further correct formulations, as implementations that widen the spread bound.
        contract: claims that hold for every right answer, if several are right; for the outputs
            compared by `contract`.
        random: whether two calls may differ.
        perf: shapes to time, small to large; with attributes, if those must change too.
        extended: the attribute values that the prompt does not promise.
        promises: what else the prompt promises.
        entry: the function to call, if its name is not the task's.
    """
    parsed = parse_signature(signature)
    further = dict(attributes or {})
    arguments: list[Argument] = []
    for item in parsed.arguments:
        if isinstance(item, Given):
            others = (v for v in further.pop(item.name, ()) if not _alike(v, item.default))
            values_ = (item.default, *others)
            arguments.append(Attribute(name=item.name, default=item.default, values=values_))
        else:
            arguments.append(item)
    if further:
        raise DeclarationError(f"{signature!r} has no attributes {', '.join(further)}")
    calls = _calls(promises or Promises())
    if len(calls) > 1:
        arguments.append(Attribute(name=CALL, default=calls[0], values=calls))
    settings = {a.name: a.default for a in arguments if isinstance(a, Attribute)}
    return Task(
        name=parsed.name,
        category=category,
        suite=suite,
        signature=signature,
        description=" ".join((*description.split(), *_said(promises or Promises()))),
        dims=tuple(d if isinstance(d, Dim) else Dim(symbol=s, role=d) for s, d in dims.items()),
        arguments=tuple(_typical(a, tuple(dims), settings) for a in arguments),
        outputs=tuple(outputs),
        reference=reference,
        dtypes=tuple(dtypes),
        extended_dtypes=tuple(extended_dtypes),
        constraints=(*constraints, *_of_gradients(promises or Promises(), random=random)),
        flops=flops,
        bytes=bytes,
        benchmark=(
            benchmark if isinstance(benchmark, Benchmark) else Benchmark(dims=dict(benchmark))
        ),
        tolerance=dict(tolerance or {}),
        mutates=mutates if isinstance(mutates, Mapping) else dict.fromkeys(mutates, "True"),
        may_overwrite=dict(may_overwrite or {}),
        values=values,
        layouts=layouts,
        admissible=tuple(admissible),
        contract=contract,
        random=random,
        perf=tuple(perf),
        extended={name: tuple(values) for name, values in (extended or {}).items()},
        promises=promises or Promises(),
        entry=entry or parsed.name,
    )


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


def _said(promises: Promises) -> Iterator[str]:
    """Return what a description adds on the ways of calling the operator."""
    for name in promises.numbers:
        yield f"A Python number may stand in the place of {name}."
    if promises.out:
        yield "If a tensor `out` is given, the result is written to it, and it is returned."
    if promises.gradients:
        yield "The result is differentiable."


def _alike(one: Scalar, other: Scalar) -> bool:
    return type(one) is type(other) and one == other


def _typical(
    argument: Argument, symbols: tuple[str, ...], settings: Mapping[str, Scalar]
) -> Argument:
    """Return the argument with its dims at the default attributes, if some are starred."""
    if not isinstance(argument, TensorSpec) or not any(d.startswith("*") for d in argument.dims):
        return argument
    return replace(argument, typical=spread_out(argument.dims, symbols, settings))
