"""Mathematical functions of one argument, element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

import torch
from torch import Tensor

from kerneltruth.tasks.claims import Claim, Evidence
from kerneltruth.tasks.formulas import LOGIT_WITH_NARROW_ENDS
from kerneltruth.tasks.spec import Output, Promises, Role, Scalar, Task, Variants, task

PLAIN: dict[str, Role] = {"M": "batch", "N": "channel"}
PERF = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
SMALL = {"M": 16, "N": 256}
ANY_SHAPE = Variants("_rank", {2: "M, N", 1: "M * N", 3: "M, 2, N", 4: "2, M, 1, N", 0: ""})
# Where a prompt speaks of integer inputs.
_WITH_INTEGERS = ("float32", "int32")

# Below zero only so far that a function of positive numbers shows its NaN in a few elements.
HARDLY_NEGATIVE = (-0.25, inf)


def pointwise(
    call: str,
    reference: Callable[..., Any],
    description: str,
    *,
    attributes: Mapping[str, Sequence[Scalar]] | None = None,
    flops: int = 10,
    **rest: Any,
) -> Task:
    """A function of every element of a tensor of any rank; `@` in the call stands for its shape."""
    return task(
        call.replace("@", "[*shape]"),
        category="Math",
        dims=PLAIN,
        where={"shape": ANY_SHAPE},
        attributes=attributes or {},
        reference=reference,
        description=description + " The input has any rank, 0 and empty included.",
        flops=f"{flops}*M*N",
        benchmark=SMALL,
        perf=PERF,
        **rest,
    )


def _whole_numbers(evidence: Evidence, formula: Callable[[Tensor], Tensor]) -> Claim:
    """How many elements are not the exact result of the input, or of it with subnormals flushed.

    A bound that follows the input's rounding says nothing of a function that jumps.
    """
    (x,) = (t.to(torch.float64) for t in evidence.inputs.values() if t is not None)
    got = evidence.outputs[0].to(torch.float64)
    flushed = torch.where(x.abs() < torch.finfo(torch.float32).tiny, 0.0, x)
    right = torch.zeros_like(got, dtype=torch.bool)
    for expected in (formula(x), formula(flushed)):
        right |= (got == expected) | (got.isnan() & expected.isnan())
    return Claim("elements that are not the exact result", float((~right).sum()), 0.0, where=~right)


def _accurate(
    evidence: Evidence, output: int, ulps: Tensor | float, *, floor: float | None = None
) -> list[Claim]:
    """Every element within some float32 ulps of itself, and two of a narrower dtype.

    For a function whose point is its small values: the usual bound lets an error pass that is
    small against the largest element of the row. An error below `floor` is never wrong.
    """
    result, want = evidence.outputs[output], evidence.reference[output]
    got, rounded = result.to(torch.float64), want.to(result.dtype).to(torch.float64)
    finite = got.isfinite() & rounded.isfinite()
    alike = finite | (got == rounded) | (got.isnan() & rounded.isnan())
    if floor is None:
        floor = 2.0**-23 if evidence.dtype == "float16" else 4 * torch.finfo(torch.float32).tiny
    relative = ulps * 2.0**-23 + (0.0 if evidence.dtype == "float32" else 2 * evidence.eps)
    error = (got - want).abs() / (relative * want.abs() + floor)
    worst = float(error[finite].amax()) if bool(finite.any()) else 0.0
    return [
        Claim(
            "infinities and NaN in other places than due", float((~alike).sum()), 0.0, where=~alike
        ),
        Claim(
            "worst error over what an accurate function shows",
            worst,
            1.0,
            where=finite & (error > 1),
        ),
    ]


def _accurate_erfc(evidence: Evidence) -> list[Claim]:
    x = evidence.inputs["input"]
    assert x is not None
    # By its definition 1 - erf(x), which loses the tail to a few ulps of 1. Where exp(-x*x) is
    # used it turns the rounding of x*x into that many ulps.
    of_one = evidence.eps * (8 if evidence.dtype in ("float32", "float64") else 1)
    return _accurate(evidence, 0, 8 + 2 * x.square().clamp(max=128), floor=of_one)


def _steps_in_half(input: Tensor) -> Tensor:
    """exp, then sqrt, each rounded to float16 where float16 holds the input: exp may overflow."""
    steps = input.exp().sqrt()
    narrow = input.to(torch.float16)
    half = narrow.exp().sqrt().to(input.dtype)
    return torch.where(narrow.to(input.dtype) == input, half, steps)


TASKS: tuple[Task, ...] = (
    pointwise(
        "abs(input_tensor@)",
        lambda input_tensor: input_tensor.abs(),
        "The magnitude of each element, in the input's dtype: -0.0 gives 0.0, an infinity gives "
        "positive infinity, NaN stays NaN.",
        flops=1,
        promises=Promises(out=True),
    ),
    pointwise(
        "asin(input_tensor@)",
        lambda input_tensor: input_tensor.asin(),
        "The arc sine of each element in radians, in [-pi/2, pi/2], in the input's dtype; NaN for "
        "an element below -1 or above 1 and for NaN.",
        values=(-1.0625, 1.0625),
        promises=Promises(out=True),
    ),
    pointwise(
        "cos(input_tensor@)",
        lambda input_tensor: input_tensor.cos(),
        "The cosine of each element, taken in radians, in the input's dtype. Large elements are "
        "reduced by multiples of pi in full precision; NaN for an infinity and for NaN.",
        promises=Promises(out=True),
    ),
    pointwise(
        "erf(input_tensor@)",
        lambda input_tensor: input_tensor.erf(),
        "The error function of each element, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to "
        "x, in the input's dtype; -1 and 1 at the infinities, NaN for NaN.",
        promises=Promises(out=True),
    ),
    pointwise(
        "erfc_sqrt(input@)",
        lambda input: (input.erfc(), input.sqrt()),
        "Two tensors in the input's dtype: erfc(x) = 1 - erf(x) of each element, to some ulps of "
        "itself or of 1, as that formula gives it; and sqrt(x) of each element, NaN where x is "
        "below 0. -0.0 has the root -0.0.",
        outputs=(Output(name="erfc", compare="claims"), Output(name="sqrt")),
        claims=_accurate_erfc,
        flops=20,
    ),
    pointwise(
        "exp_sqrt(input@)",
        lambda input: input.exp().sqrt(),
        "sqrt(exp(x)) of each element, in the input's dtype. Where exp(x) overflows in the "
        "precision used, infinity is as right as the root of the unbounded exponential.",
        admissible=(_steps_in_half,),
        flops=11,
        promises=Promises(out=True),
    ),
    pointwise(
        "floor(input@)",
        lambda input: input.floor(),
        "The largest whole number that is not above each element, in the input's dtype; "
        "infinities, NaN and -0.0 stay as they are. The result is exact (of a subnormal float32 "
        "or bfloat16 it may be 0). Integers stay as they are.",
        outputs=(Output(compare="claims"),),
        claims=lambda evidence: (_whole_numbers(evidence, torch.floor),),
        flops=1,
        extended_dtypes=("int32",),
        promises=Promises(dtypes=_WITH_INTEGERS, out=True),
    ),
    pointwise(
        "log(input@)",
        lambda input: input.log(),
        "The natural logarithm of each element, in the input's dtype; minus infinity at 0, NaN "
        "below 0 and for NaN.",
        values=HARDLY_NEGATIVE,
        promises=Promises(recipes=("mixed_amplitude",), out=True),
    ),
    pointwise(
        "log1p(input@)",
        lambda input: input.log1p(),
        "log(1 + x) of each element without the loss of rounding 1 + x, in the input's dtype: "
        "near 0 the result is near x, to within 8 float32 ulps of itself; minus infinity at -1, "
        "NaN below -1 and for NaN.",
        outputs=(Output(compare="claims"),),
        claims=lambda evidence: _accurate(evidence, 0, 8.0),
        values=(-1.0625, inf),
        promises=Promises(recipes=("mixed_amplitude",), out=True),
    ),
    pointwise(
        "logit(input@, eps=None)",
        lambda input, eps: torch.logit(input, eps),
        "log(z / (1 - z)) of each element, in the input's dtype, where z is the element clamped "
        "to [eps, 1 - eps], or the element itself if eps is None. Then 0 gives minus infinity, 1 "
        "infinity, and an element outside of [0, 1] NaN. NaN stays NaN. 1 - eps is best taken in "
        "float32: where it becomes 1 in the input's dtype, as in PyTorch on a CPU, infinity is "
        "accepted.",
        attributes={"eps": (0.125, 0.001, 1e-6)},
        admissible=LOGIT_WITH_NARROW_ENDS,
        values=(-0.0625, 1.0625),
        promises=Promises(out=True),
    ),
    pointwise(
        "rad2deg_sqrt(input@)",
        lambda input: (input.rad2deg(), input.sqrt()),
        "Two tensors in the input's dtype: x * 180 / pi of each element, and sqrt(x) of each "
        "element (not of its degrees), NaN where x is below 0.",
        outputs=(Output(name="degrees"), Output(name="sqrt")),
        flops=2,
    ),
    pointwise(
        "reciprocal(input@)",
        lambda input: input.reciprocal(),
        "1 / x of each element, in the input's dtype, or in float32 where that is an integer "
        "dtype; an infinity of x's sign at 0.0 and -0.0, 0 at the infinities, NaN for NaN.",
        outputs=(Output(dtype="float"),),
        flops=1,
        extended_dtypes=("int32",),
        promises=Promises(dtypes=_WITH_INTEGERS, recipes=("signed_zeros",), out=True),
    ),
    pointwise(
        "rsqrt(input@)",
        lambda input: input.rsqrt(),
        "1 / sqrt(x) of each element, in the input's dtype; infinity at 0.0, 0 at infinity, NaN "
        "below 0 and for NaN.",
        values=HARDLY_NEGATIVE,
        flops=2,
        promises=Promises(recipes=("signed_zeros",), out=True),
    ),
    pointwise(
        "signbit(input@)",
        lambda input: input.signbit(),
        "Whether the sign bit of each element is set, as bool: True for elements below 0, for "
        "-0.0 and for minus infinity, False for 0.0.",
        outputs=(Output(dtype="bool", compare="exact"),),
        # The smallest magnitudes of a recipe, scaled into this range, round to -0.0.
        values=(-100.0, 100.0),
        flops=1,
        promises=Promises(recipes=("signed_zeros",), out=True),
    ),
    pointwise(
        "sqrt_exp(input@)",
        lambda input: input.sqrt().exp(),
        "exp(sqrt(x)) of each element, in the input's dtype: the square root first. NaN below 0 "
        "and for NaN, infinity where the exponential overflows.",
        values=HARDLY_NEGATIVE,
        flops=11,
        promises=Promises(out=True),
    ),
    pointwise(
        "sqrt_tanh(input@)",
        lambda input: input.sqrt().tanh(),
        "tanh(sqrt(x)) of each element, in the input's dtype: the square root first. NaN below 0 "
        "and for NaN, 1 at infinity.",
        values=HARDLY_NEGATIVE,
        flops=11,
        promises=Promises(out=True),
    ),
    pointwise(
        "trunc(input@)",
        lambda input: input.trunc(),
        "Each element without its fraction, that is rounded towards 0, in the input's dtype; "
        "infinities, NaN and integers stay as they are. The result is exact.",
        outputs=(Output(compare="claims"),),
        claims=lambda evidence: (_whole_numbers(evidence, torch.trunc),),
        flops=1,
        extended_dtypes=("int32",),
        promises=Promises(dtypes=_WITH_INTEGERS, out=True),
    ),
)
