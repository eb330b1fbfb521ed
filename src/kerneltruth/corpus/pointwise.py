"""Kernels that work element by element: fills, limits, powers, interpolation, quantisation."""

from __future__ import annotations

from kerneltruth.corpus.entry import Entry, bug, control

ENTRIES: tuple[Entry, ...] = (
    control("masked_fill", "masked_fill", "a bool pointer; whatever lies under the mask is gone"),
    bug(
        "masked_fill_by_product",
        control="masked_fill",
        fault="mask applied by multiplication",
        breaks="attributes",
        note="NaN and infinities under the mask, or a fill value of -inf, become NaN",
    ),
    control("where", "where", "a condition read through an int8 pointer"),
    control("floor", "floor", "half precision is floored in float32"),
    bug(
        "floor_by_int_cast",
        control="floor",
        fault="truncation instead of floor",
        breaks="values",
        note="negative fractions round towards zero, and values beyond int32 are lost",
    ),
    control("pow", "pow", "libdevice, negative bases"),
    bug(
        "pow_by_logarithm",
        control="pow",
        fault="power through a logarithm",
        breaks="values",
        note="NaN for every negative base",
    ),
    control("clamp", "clamp", "NaN goes through, either end may be None"),
    bug(
        "clamp_swallows_nan",
        control="clamp",
        fault="NaN swallowed by minimum and maximum",
        breaks="specials",
        note="NaN comes out as an end of the range",
    ),
    control("rad2deg", "rad2deg", "one rounding"),
    bug(
        "rad2deg_short_constant",
        control="rad2deg",
        fault="constant cut after three decimals",
        breaks="published",
        note="a relative error of 1.4e-5, seen in fp32 only",
    ),
    control("logit", "logit", "an attribute that may be None"),
    bug(
        "logit_ignores_eps",
        control="logit",
        fault="attribute ignored",
        breaks="attributes",
        note="wrong wherever eps is not None and an input lies outside of [eps, 1 - eps]",
    ),
    control("lerp", "lerp", "autotuned over three configurations"),
    bug(
        "lerp_one_config_wrong",
        control="lerp",
        fault="block size hard-coded while configurations vary it",
        breaks="memory",
        note="the second configuration leaves half of its output unwritten from 257 elements on",
    ),
    control("addcmul", "addcmul", "a persistent grid, as large as the device has multiprocessors"),
    bug(
        "addcmul_bounded_tiles",
        control="addcmul",
        fault="grid too small beyond a size",
        breaks="memory",
        note="what follows the first 1024 elements is never written",
    ),
    control("gcd", "gcd", "a while loop over int32"),
    bug(
        "gcd_negative",
        control="gcd",
        fault="sign of the remainder ignored",
        breaks="published",
        note="negative operands give negative divisors",
    ),
    control("quantize_int8", "quantize_int8", "half to even, saturating"),
    bug(
        "quantize_int8_wraps",
        control="quantize_int8",
        fault="no saturation",
        breaks="values",
        note="beyond 127 steps the value wraps around",
    ),
    bug(
        "quantize_int8_adds_half",
        control="quantize_int8",
        fault="rounding by adding a half before truncation",
        breaks="values",
        note="negative values come out one too large",
    ),
    control("dequantize_int8", "dequantize_int8", "an int8 pointer and a strided scale"),
)
