"""Find how wrong elements differ from right ones: NaN, zeros, a factor, a shift, ... Pure.

Every function returns a pattern that all wrong elements fit, or None.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from kerneltruth.explain.localize.evidence import (
    FailureEvidence,
    Pattern,
    Values,
    epsilon,
    number,
    ratio,
)
from kerneltruth.explain.localize.where import line_word

# Errors whose cosine with a candidate cause exceeds this are no rounding.
_SYSTEMATIC = 0.9
# A long sum may accumulate this many roundings, relative to the largest element.
_FEW = 1024
# Errors of half precision are smaller, relative to the largest element.
_HALF = 2.0**-7


def how(evidence: FailureEvidence, values: Values) -> Pattern | None:
    """Return how the output is wrong: the first pattern that fits."""
    tolerance = max(8 * epsilon(evidence.case.dtype), 1e-5)
    got, want = values.output[values.wrong], values.reference[values.wrong]
    special = not_finite(got, want)
    if special is not None or not bool((got.isfinite() & want.isfinite()).all()):
        return special
    return (
        misplaced(values, tolerance)
        or copied(values, evidence)
        or scaled(evidence, values, tolerance)
        or wrapped(got, want)
        or stuck(values, got, want)
        or scaled_by_row(values, tolerance)
        or rounded(evidence, values)
        or growing(values)
    )


def not_finite(got: Tensor, want: Tensor) -> Pattern | None:
    """Match NaN or infinity on one side."""
    if bool((want.isnan() & ~got.isnan()).all()):
        shown = "a number" if bool(got.isfinite().all()) else "something else"
        return Pattern(tag="nan_swallowed", clause=f"NaN is swallowed: {shown} stands in its place")
    if bool((got.isnan() & ~want.isnan()).all()):
        return Pattern(tag="nan", clause="NaN where a finite value is expected")
    if bool((got.isinf() & want.isfinite()).all()):
        sign = {True: "+", False: "-"}.get(bool((got > 0).all()), "")
        sign = sign if bool((got > 0).all()) or bool((got < 0).all()) else ""
        return Pattern(tag="inf", clause=f"{sign}inf where a finite value is expected")
    if bool((want.isinf() & got.isfinite()).all()):
        return Pattern(tag="inf_missing", clause="a finite value where infinity is expected")
    if bool((~got.isfinite() & want.isfinite()).all()):
        return Pattern(tag="nan", clause="NaN or infinity where a finite value is expected")
    return None


def misplaced(values: Values, tolerance: float) -> Pattern | None:
    """Match right numbers in the wrong place: transposed, reversed, shifted by one."""
    got, want = values.output, values.reference
    if not bool(got.isfinite().all()) or not bool(want.isfinite().all()):
        return None
    scale = float(want.abs().max())

    def same(a: Tensor, b: Tensor) -> bool:
        return bool(((a - b).abs() <= tolerance * (b.abs() + 0.01 * scale)).all())

    rank = got.dim()
    if rank >= 2 and min(want.shape[-2:]) > 1:
        turned = want.transpose(-1, -2).reshape(want.shape)
        if same(got, turned):
            return Pattern(tag="transposed", clause="the output is the expected one transposed")
    for axis in reversed(range(rank)):
        size, word = want.shape[axis], line_word(rank, axis)
        if size < 3 or not _varies(want, axis, tolerance * scale):
            continue
        if same(got, want.flip(axis)):
            return Pattern(tag="reversed", clause=f"the {word}s are in reverse order")
        for step in (1, -1):
            late, early = got.narrow(axis, 1, size - 1), want.narrow(axis, 0, size - 1)
            if step < 0:
                late, early = got.narrow(axis, 0, size - 1), want.narrow(axis, 1, size - 1)
            if same(late, early):
                holds = "the one before" if step > 0 else "the next one"
                clause = f"off by one: each {word} holds the value of {holds}"
                return Pattern(tag="shifted", clause=clause)
    return None


def _varies(want: Tensor, axis: int, tolerance: float) -> bool:
    """Return whether neighbours along an axis mostly differ, so that a shift would show."""
    steps = want.diff(dim=axis).abs()
    return bool((steps > 4 * tolerance).double().mean() > 0.5) and want.numel() >= 4


def copied(values: Values, evidence: FailureEvidence) -> Pattern | None:
    """Recognize an output that is a copy of an input."""
    for name, x in evidence.inputs.items():
        if x.shape != values.output.shape or bool((x == x.reshape(-1)[0]).all()):
            continue
        if bool((values.output == x).all()):
            return Pattern(tag="copy", clause=f"the output is a copy of {name}")
    return None


def scaled(evidence: FailureEvidence, values: Values, tolerance: float) -> Pattern | None:
    """Match zeros, the wrong sign, a constant factor or a constant offset."""
    got, want = values.output[values.wrong], values.reference[values.wrong]
    all_of_it = _everywhere(values)
    several = "the wrong elements are" if got.numel() > 1 else "the wrong element is"
    every = "every element is" if all_of_it else several
    if bool((got == 0).all()) and bool((want != 0).all()):
        which = "they" if every.endswith("are") else "it"
        return Pattern(tag="zeros", clause=f"{every} 0 where {which} should not be")
    if want.numel() < 2 or float(want.max() - want.min()) <= 4 * tolerance * _largest(want):
        return None
    factor = _factor(got, want, tolerance)
    if factor is not None:
        if abs(factor + 1) <= tolerance:
            return Pattern(tag="sign", clause=f"{every} of the wrong sign", everywhere=all_of_it)
        named = factor_name(factor, evidence, tolerance)
        clause = f"{every} off by the constant factor {named}"
        return Pattern(tag="factor", clause=clause, everywhere=all_of_it)
    offsets = got - want
    offset = float(offsets.median())
    # Few offsets are near each other by luck.
    near = 0.02 if offsets.numel() >= 8 else 0.001
    if float((offsets - offset).abs().max()) <= max(
        near * abs(offset), min(tolerance * _largest(want), 0.1 * abs(offset))
    ):
        return Pattern(tag="offset", clause=f"{every} off by the constant {number(offset)}")
    return None


def _largest(x: Tensor) -> float:
    return float(x.abs().max()) if x.numel() else 0.0


def _everywhere(values: Values) -> bool:
    """Return whether all elements that are not wrong are too near 0 to tell."""
    right = values.reference[~values.wrong]
    return right.numel() == 0 or _largest(right) <= 0.05 * _largest(values.reference)


def _factor(got: Tensor, want: Tensor, tolerance: float) -> float | None:
    """Return the one factor between expected and returned values, if it explains the error."""
    largest = _largest(want)
    telling = want.abs() >= 0.01 * largest
    if largest == 0 or int(telling.sum()) < 2:
        return None
    factor = float((got[telling] / want[telling]).median())
    left = (got - factor * want).abs()
    allowed = tolerance * (abs(factor) * want.abs() + 0.05 * abs(factor) * largest)
    explained = float(left.max()) <= 0.1 * float((got - want).abs().max())
    return factor if explained and bool((left <= allowed).all()) and factor != 0 else None


def factor_name(factor: float, evidence: FailureEvidence, tolerance: float) -> str:
    """Format the factor, as a product of dims or attributes if they explain it."""
    shown = ratio(factor)
    for words, value in _known_factors(evidence):
        if value and abs(factor / value - 1) <= min(2 * tolerance, 0.02):
            return f"{shown} = {words}"
    return shown


def _known_factors(evidence: FailureEvidence) -> Iterator[tuple[str, float]]:
    for symbol, n in evidence.case.dims:
        if n < 2:
            continue
        at = f"with {symbol}={n}"
        yield f"1/sqrt({symbol}) {at}", n**-0.5
        yield f"sqrt({symbol}) {at}", n**0.5
        yield f"1/{symbol} {at}", 1 / n
        yield f"{symbol} {at}", float(n)
        yield f"{symbol}/({symbol}-1) {at}", n / (n - 1)
        yield f"({symbol}-1)/{symbol} {at}", (n - 1) / n
        tiled = (-(-n // b) * b for b in evidence.blocks if b > 1)
        for padded in dict.fromkeys((1 << (n - 1).bit_length(), *tiled)):
            if padded > n:
                yield f"{symbol}/{padded} {at}, the size padded to its tiles", n / padded
    for name, value in evidence.case.attributes:
        if type(value) in (int, float) and isinstance(value, int | float) and value not in (0, 1):
            yield f"{name}", float(value)
            yield f"1/{name}", 1 / value
    yield "log2(e)", math.log2(math.e)
    yield "ln(2)", math.log(2)


def wrapped(got: Tensor, want: Tensor) -> Pattern | None:
    """Match integers that lost their upper bits."""
    if bool((got != got.round()).any()) or bool((want != want.round()).any()):
        return None
    for bits in (8, 16, 32):
        turns = (want - got) / 2.0**bits
        fits = bool((got >= -(2.0 ** (bits - 1))).all() and (got < 2.0**bits).all())
        if fits and bool((turns == turns.round()).all()) and bool((turns != 0).all()):
            return Pattern(tag="wraps", clause=f"the wrong elements wrap around at {bits} bits")
    return None


def stuck(values: Values, got: Tensor, want: Tensor) -> Pattern | None:
    """Match wrong elements that all hold one value: clipped, or constant."""
    value = float(got[0])
    if got.numel() < 2 or not bool((got == value).all()) or bool((want == want[0]).all()):
        return None
    right = values.reference[~values.wrong]
    for above in (True, False):
        beyond = want > value if above else want < value
        within = right <= value if above else right >= value
        if bool(beyond.all()) and bool(within.all()):
            side = "above" if above else "below"
            return Pattern(tag="clips", clause=f"the output is clipped {side} {number(value)}")
    return Pattern(tag="constant", clause=f"all wrong elements are {number(value)}")


def scaled_by_row(values: Values, tolerance: float) -> Pattern | None:
    """Match rows that are each off by their own factor or offset: their normalizer is wrong."""
    if values.output.dim() < 2 or values.output.shape[-1] < 3:
        return None
    rows = values.wrong.any(-1)
    got, want = values.output[rows], values.reference[rows]
    if got.shape[0] < 2 or not bool(got.isfinite().all() & want.isfinite().all()):
        return None
    if bool(((want.amax(-1) - want.amin(-1)) <= 4 * tolerance * want.abs().amax(-1)).any()):
        return None
    factors = [_factor(g, w, tolerance) for g, w in zip(got, want, strict=True)]
    known = [f for f in factors if f is not None]
    if len(known) == len(factors):
        span = f"{ratio(min(known))} to {ratio(max(known))}"
        return Pattern(tag="row_factor", clause=f"each wrong row is off by its own factor, {span}")
    offsets = got - want
    middle = offsets.median(-1, keepdim=True).values
    if bool(((offsets - middle).abs() <= 0.02 * middle.abs()).all()):
        span = f"{number(float(middle.min()))} to {number(float(middle.max()))}"
        return Pattern(tag="row_offset", clause=f"each wrong row is off by its own offset, {span}")
    return None


def rounded(evidence: FailureEvidence, values: Values) -> Pattern | None:
    """Match an output that is right but for rounding to a narrower format."""
    got, want = values.output.reshape(-1), values.reference.reshape(-1)
    finite = got.isfinite() & want.isfinite()
    got, want = got[finite], want[finite]
    if got.numel() < 8:
        return None
    error = float((got - want).abs().max()) / max(_largest(want), 1e-300)
    least = epsilon(values.dtype or evidence.case.dtype)
    for name in ("bfloat16", "float16", "float32"):
        dtype = getattr(torch, name)
        if not epsilon(name) > least > 0 or error > _FEW * epsilon(name):
            continue
        narrow = got.to(dtype).double() == got
        fits = (want.to(dtype).double() - want != 0).double().mean() > 0.5
        if bool(narrow.all()) and bool(fits):
            clause = f"every element is rounded to {name}"
            return Pattern(tag="precision", clause=clause, everywhere=True)
    in_half = evidence.case.dtype in ("float32", "float64") and 2.0**-14 <= error <= _HALF
    if in_half and not _systematic(got - want, want) and not _worse_elsewhere(evidence):
        clause = f"the numbers are imprecise: errors reach {error:.1g} of the largest element"
        return Pattern(
            tag="precision", clause=f"{clause}, as in half precision or by an approximation"
        )
    return None


def _worse_elsewhere(evidence: FailureEvidence) -> bool:
    """Return whether another case shows errors beyond those of half precision.

    An example is a variance that is divided by n - 1: few elements show it best.
    """
    dtype = evidence.case.dtype
    most = _HALF / epsilon(dtype)
    same = (s for s in evidence.siblings if s.failed and s.case.dtype == dtype)
    return any(s.ratio is not None and s.ratio > most for s in same)


def _systematic(errors: torch.Tensor, want: torch.Tensor) -> bool:
    """Return whether errors share one sign or grow with the right values; rounding does neither.

    Examples are a variance without its N / (N - 1), or an omitted decay.
    """
    others = (torch.ones_like(errors), want - want.mean())
    return any(abs(float(torch.cosine_similarity(errors, x, 0))) > _SYSTEMATIC for x in others)


def growing(values: Values) -> Pattern | None:
    """Match an error that grows along the last dim, as in an accumulation."""
    if values.output.dim() == 0 or values.output.shape[-1] < 16:
        return None
    columns = values.wrong.reshape(-1, values.wrong.shape[-1]).any(0)
    if float(columns.double().mean()) < 0.25:
        # The other errors are rounding: a few wrong columns are the whole explanation.
        return None
    error = (values.output - values.reference).abs().reshape(-1, values.output.shape[-1])
    error = error.nan_to_num(0, 0, 0).mean(0)
    parts = torch.stack([p.mean() for p in error.tensor_split(4)])
    rising = bool((parts.diff() > 0.2 * parts[:-1]).all())
    if rising and float(parts[-1]) > 3 * float(parts[0]):
        return Pattern(tag="grows", clause="the error grows along the last dim")
    return None
