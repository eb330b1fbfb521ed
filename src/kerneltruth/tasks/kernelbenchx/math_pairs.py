"""Mathematical functions of two tensors, element by element, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from kerneltruth.tasks.kernelbenchx.math_pointwise import ANY_SHAPE, PERF, PLAIN, SMALL, pointwise
from kerneltruth.tasks.spec import Output, Promises, Scalar, Task, Variants, task

# The shapes of both, by the form.
_PAIRS = {
    "same": ("M, N", "M, N"),
    "row": ("M, N", "N"),
    "column": ("M, N", "M, 1"),
    "single": ("M, N", ""),
    "outer": ("M, 1", "N"),
    "flat": ("M * N", "M * N"),
    "deep": ("M, 2, N", "2, 1"),
}
_SHAPES = {
    "one": Variants("_form", {form: one for form, (one, _) in _PAIRS.items()}),
    "two": Variants("_form", {form: two for form, (_, two) in _PAIRS.items()}),
}
# What a prompt that does not speak of broadcasting leaves open.
_BROADCASTING: dict[str, tuple[Scalar, ...]] = {
    "_form": ("row", "column", "single", "outer", "deep")
}
_BROADCAST = """ The shapes broadcast: they are aligned at the last dim, and a dim of size 1 or
    one that is missing is repeated; the result has the common shape."""
# "Integer, float and complex", as prompts have it.
_NUMBERS = ("float32", "int32", "complex64")
_INTEGERS = ("int32", "int64", "int16", "int8", "uint8", "bool")


def _pair(
    call: str,
    reference: Callable[..., Any],
    description: str,
    *,
    attributes: Mapping[str, Sequence[Scalar]] | None = None,
    flops: int = 2,
    **rest: Any,
) -> Task:
    """A function of two tensors that broadcast; in the call, `@` stands for the shape of each."""
    return task(
        call.replace("@", "[*one]", 1).replace("@", "[*two]", 1),
        category="Math",
        dims=PLAIN,
        where=_SHAPES,
        attributes=attributes or {},
        reference=reference,
        description=description + _BROADCAST,
        flops=f"{flops}*M*N",
        benchmark=SMALL,
        perf=PERF,
        **rest,
    )


def _add(input: Tensor, other: Tensor, alpha: float) -> Tensor:
    if _of_integers(input):
        return torch.add(input, other, alpha=alpha)
    return input + alpha * other


def _sub(input: Tensor, other: Tensor, alpha: float) -> Tensor:
    if _of_integers(input):
        return torch.sub(input, other, alpha=alpha)
    return input - alpha * other


def _of_integers(input: Tensor) -> bool:
    """Whether the operands are integers, for which alpha must be one too."""
    return not (input.is_floating_point() or input.is_complex())


def _div(input: Tensor, other: Tensor, rounding_mode: str | None) -> Tensor:
    if rounding_mode is None and _of_integers(input):
        return input.double() / other
    return torch.div(input, other, rounding_mode=rounding_mode)


def _div_then_round(input: Tensor, other: Tensor, rounding_mode: str | None) -> Tensor:
    if _of_integers(input):
        return _div(input, other, rounding_mode)
    quotient = input / other
    if rounding_mode == "floor":
        return quotient.floor()
    return quotient.trunc() if rounding_mode == "trunc" else quotient


def _signbit_bitwise_and(input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    return input.signbit(), input.to(torch.int8) & other


def _and_is_right(
    inputs: Mapping[str, Any], outputs: Sequence[Any], reference: Sequence[Any]
) -> Tensor:
    """NaN has no whole number, so any will do there."""
    right: Tensor = (outputs[1] == reference[1]) | inputs["input"].isnan()
    return right


TASKS: tuple[Task, ...] = (
    _pair(
        "add(input@, other@, alpha=1)",
        _add,
        """input + alpha * other, in the dtype of the two, which is the same. alpha is a number, 1
            unless given; the product and the sum are rounded once in float32 or better, or each
            to the dtype.""",
        attributes={"alpha": (2.0, -0.5, 0, 3)},
        extended_dtypes=("int32", "complex64"),
        promises=Promises(dtypes=_NUMBERS, numbers=("other",), out=True),
    ),
    _pair(
        "sub(input@, other@, alpha=1)",
        _sub,
        """input - alpha * other, in the dtype of the two, which is the same. alpha is a number, 1
            unless given; the product and the difference are rounded once in float32 or better,
            or each to the dtype.""",
        attributes={"alpha": (2.0, -0.5, 0, 3)},
        extended_dtypes=("int32", "complex64"),
        promises=Promises(dtypes=_NUMBERS, numbers=("other",), out=True),
    ),
    _pair(
        "mul(input@, other@)",
        lambda input, other: input * other,
        "The product of the elements of input and other, in the dtype of the two, which is the "
        "same. 0 times an infinity is NaN.",
        flops=1,
        extended_dtypes=("int32", "complex64"),
        promises=Promises(dtypes=_NUMBERS, numbers=("other",), out=True),
    ),
    _pair(
        "div(input@, other@, rounding_mode=None)",
        _div,
        """input / other, in the dtype of the two, which is the same. rounding_mode None leaves
            the quotient as it is; "trunc" rounds it towards 0 and "floor" down, to whole numbers
            in the same dtype. A quotient so near a whole number that rounding decides may go
            either way. Division by 0 gives an infinity, or NaN for 0 / 0.""",
        attributes={"rounding_mode": ("trunc", "floor")},
        admissible=(_div_then_round,),
        flops=1,
        outputs=(
            Output(dtype="float", when="rounding_mode is None"),
            Output(when="rounding_mode is not None"),
        ),
        extended_dtypes=("int32", "complex64"),
        promises=Promises(dtypes=_NUMBERS, numbers=("other",), out=True),
    ),
    pointwise(
        "pow(input_tensor@, exponent=2.0)",
        lambda input_tensor, exponent: torch.pow(input_tensor, exponent),
        "Each element to the power of exponent, a number, in the input's dtype. A negative "
        "element has a power if the exponent is whole (its sign is that of an odd or even "
        "number of factors), else the result is NaN. Anything to the power 0 is 1, NaN too; 0 to "
        "a negative power is an infinity.",
        attributes={"exponent": (3.0, -1.0, 0.5, -0.5, 1.5, 4.0, 0.0, 2)},
        promises=Promises(
            out=True,
            not_tried={
                "exponent as a tensor": "an argument is a number or a tensor in all cases, and "
                "kernels take branches of their own for numbers"
            },
        ),
    ),
    _pair(
        "bitwise_and(input@: integer, other@: integer)",
        lambda input, other: input & other,
        "The bitwise and of the elements of input and other, two tensors of one integer dtype, "
        "or of bool, where it is the logical and; the result has that dtype.",
        dtypes=_INTEGERS,
        outputs=(Output(compare="exact"),),
        extended=_BROADCASTING,
        flops=1,
        promises=Promises(out=True),
    ),
    task(
        "signbit_bitwise_and(input[*shape], other[*shape]: int8)",
        category="Math",
        dims=PLAIN,
        where={"shape": ANY_SHAPE},
        outputs=(
            Output(name="signbit", dtype="bool", compare="exact"),
            Output(name="and", dtype="int8", compare="accept", accept=_and_is_right),
        ),
        values=(-100.0, 100.0),
        reference=_signbit_bitwise_and,
        description="""Two tensors of the shape of input, of any rank: whether the sign bit of
            each element of input is set, as bool (True for -0.0 too), and the bitwise and of
            input and other as int8. For that each element of input, a floating-point number in
            [-100, 100], is made an int8 by dropping its fraction, as a C cast does; what NaN
            becomes is not tested. other is int8 and has the shape of input.""",
        flops="2*M*N",
        benchmark=SMALL,
        perf=PERF,
        promises=Promises(recipes=("signed_zeros",)),
    ),
    _pair(
        "zeta(input@, other@)",
        lambda input, other: torch.special.zeta(input, other),
        """The Hurwitz zeta function of x = input and q = other: the sum of (k + q)**(-x) over
            k = 0, 1, 2, ..., in the dtype of the two, which is the same. Infinity for x = 1, NaN
            for x < 1 and where one of the two is NaN. All elements lie in [0.875, 24].""",
        values=(0.875, 24.0),
        extended=_BROADCASTING,
        flops=100,
        promises=Promises(out=True),
    ),
)
