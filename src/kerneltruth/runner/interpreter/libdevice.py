"""libdevice: float functions in float64 rounded to their type, and bit functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kerneltruth.runner.interpreter import special
from kerneltruth.runner.interpreter.arithmetic import fused
from kerneltruth.runner.interpreter.casts import saturate
from kerneltruth.runner.interpreter.handles import Handle, Type, make, values
from kerneltruth.runner.interpreter.integers import high_product
from kerneltruth.runner.interpreter.numbers import Array
from kerneltruth.runner.unsupported import UnsupportedError

Function = Callable[..., Any]


def _norm(*parts: Array) -> Array:
    return np.asarray(np.sqrt(sum(p * p for p in parts)))


def _saturated(x: Array) -> Array:
    return np.where(np.isnan(x), 0.0, np.clip(x, 0.0, 1.0))


def _exponent(x: Array) -> Array:
    return np.where(np.isinf(x), np.inf, np.where(x == 0, -np.inf, np.frexp(x)[1] - 1.0))


_NUMPY_NAMES = (
    *("cos", "cosh", "sin", "sinh", "tan", "tanh", "exp", "exp2", "expm1"),
    *("log", "log10", "log1p", "log2", "sqrt", "cbrt", "hypot"),
    *("trunc", "floor", "ceil", "rint", "fabs", "fmod", "copysign"),
)
_FAST_NAMES = ("cos", "exp", "log", "log10", "log2", "sin", "tan")

# Name without `__nv_` and without the `f` of single precision; arguments come as float64.
_FLOAT: dict[str, Function] = {
    **{name: getattr(np, name) for name in _NUMPY_NAMES},
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "pow": np.power,
    "powi": np.power,
    "nearbyint": np.rint,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "exp10": lambda x: np.power(10.0, x),
    "sinpi": special.sin_of_pi,
    "cospi": special.cos_of_pi,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfcx": special.erfcx,
    "erfinv": special.erfinv,
    "erfcinv": special.erfcinv,
    "normcdf": special.normcdf,
    "normcdfinv": special.normcdfinv,
    "cyl_bessel_i0": special.bessel_i0,
    "cyl_bessel_i1": special.bessel_i1,
    "j0": special.bessel_j0,
    "j1": special.bessel_j1,
    "y0": special.bessel_y0,
    "y1": special.bessel_y1,
    "lgamma": special.lgamma,
    "tgamma": special.gamma,
    "round": special.rounded_half_away,
    "remainder": special.ieee_remainder,
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.fmax(x - y, 0.0)),
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "norm3d": _norm,
    "norm4d": _norm,
    "rnorm3d": lambda *p: 1.0 / _norm(*p),
    "rnorm4d": lambda *p: 1.0 / _norm(*p),
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "scalbn": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "logb": _exponent,
    "fma": fused,
    "saturate": _saturated,
    "fast_fdivide": np.divide,
    "fast_pow": np.power,
    "fast_exp10": lambda x: np.power(10.0, x),
    **{f"fast_{name}": getattr(np, name) for name in _FAST_NAMES},
}

# Round-to-nearest arithmetic, of single and double precision.
_NEAREST: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rcp": lambda x: 1.0 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
}

_DIRECTIONS: dict[str, Function] = {
    "rd": np.floor,
    "rn": np.rint,
    "ru": np.ceil,
    "rz": np.trunc,
}
_INTEGERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}


def _wide(function: Function) -> Function:
    return lambda *args: function(*(a.astype(np.float64) for a in args))


def _to_integer(direction: Function, target: type) -> Function:
    return lambda x: saturate(direction(x.astype(np.float64)), np.dtype(target))


def _bits(data: Array) -> Array:
    return data.view(f"uint{data.itemsize * 8}")


def _leading_zeros(data: Array) -> Array:
    bits, width = _bits(data).copy(), data.itemsize * 8
    length = np.zeros(data.shape, dtype=np.int32)
    shift = width // 2
    while shift:
        large = (bits >> bits.dtype.type(shift)) != 0
        length += np.where(large, shift, 0).astype(np.int32)
        bits = np.where(large, bits >> bits.dtype.type(shift), bits)
        shift //= 2
    return np.asarray(width - (length + (bits != 0)))


def _first_set(data: Array) -> Array:
    bits = _bits(data)
    lowest = bits & (~bits + bits.dtype.type(1))
    return data.itemsize * 8 - _leading_zeros(lowest)


def _reversed_bits(data: Array) -> Array:
    raw = np.ascontiguousarray(_bits(data))
    octets = raw.reshape(-1).view(np.uint8).reshape(-1, raw.itemsize)
    # All bits of the word backwards: the last byte, bits reversed, comes first.
    flipped = np.packbits(np.unpackbits(octets, axis=1)[:, ::-1], axis=1)
    return np.asarray(flipped.reshape(-1).view(raw.dtype).reshape(raw.shape))


def _permuted_bytes(a: Array, b: Array, selector: Array) -> Array:
    pool = (_bits(b).astype(np.uint64) << np.uint64(32)) | _bits(a).astype(np.uint64)
    chosen = _bits(selector).astype(np.uint64)
    result = np.zeros(pool.shape, dtype=np.uint64)
    for i in range(4):
        index = (chosen >> np.uint64(4 * i)) & np.uint64(7)
        octet = (pool >> (index * np.uint64(8))) & np.uint64(0xFF)
        result |= octet << np.uint64(8 * i)
    return np.asarray(result.astype(np.uint32).view(np.int32))


def _product_24(a: Array, b: Array) -> Array:
    shift = a.dtype.type(8)
    low_a, low_b = (a << shift) >> shift, (b << shift) >> shift
    product = low_a.astype(np.int64) * low_b.astype(np.int64)
    return np.asarray(product.astype(np.uint32).view(a.dtype))


def _high_signed(a: Array, b: Array) -> Array:
    high = high_product(_bits(a), _bits(b)).view(a.dtype)
    return np.asarray(high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)).astype(a.dtype)


def _mean(extra: int) -> Function:
    return lambda a, b: (a.astype(np.int64) + b.astype(np.int64) + extra) >> 1


def _distance(a: Array, b: Array, c: Array) -> Array:
    difference = np.abs(a.astype(np.int64) - b.astype(np.int64))
    return (difference + c.astype(np.int64)).astype(np.uint32).view(c.dtype)


def _joined(high: Array, low: Array) -> Array:
    word = (_bits(high).astype(np.uint64) << np.uint64(32)) | _bits(low).astype(np.uint64)
    return word.view(np.float64)


def _view(kind: str) -> Function:
    return lambda x: x.view(kind)


_OTHERS: dict[str, Function] = {
    "abs": np.abs,
    "llabs": np.abs,
    "clz": _leading_zeros,
    "clzll": _leading_zeros,
    "popc": lambda x: np.bitwise_count(_bits(x)),
    "popcll": lambda x: np.bitwise_count(_bits(x)),
    "ffs": _first_set,
    "ffsll": _first_set,
    "brev": lambda x: _reversed_bits(x).view(x.dtype),
    "brevll": lambda x: _reversed_bits(x).view(x.dtype),
    "byte_perm": _permuted_bytes,
    "mul24": _product_24,
    "umul24": _product_24,
    "mulhi": _high_signed,
    "mul64hi": _high_signed,
    "umulhi": high_product,
    "umul64hi": high_product,
    "hadd": _mean(0),
    "uhadd": _mean(0),
    "rhadd": _mean(1),
    "urhadd": _mean(1),
    "sad": _distance,
    "usad": _distance,
    "float_as_int": _view("int32"),
    "float_as_uint": _view("uint32"),
    "int_as_float": _view("float32"),
    "uint_as_float": _view("float32"),
    "double_as_longlong": _view("int64"),
    "longlong_as_double": _view("float64"),
    "double2hiint": lambda x: (x.view(np.int64) >> 32).astype(np.int32),
    "double2loint": lambda x: x.view(np.uint64).astype(np.uint32).view(np.int32),
    "hiloint2double": _joined,
    "nextafter": np.nextafter,
    "nextafterf": np.nextafter,
    "isnanf": np.isnan,
    "isnand": np.isnan,
    "isinff": np.isinf,
    "isinfd": np.isinf,
    "finitef": np.isfinite,
    "isfinited": np.isfinite,
    "signbitf": np.signbit,
    "signbitd": np.signbit,
}


def _table() -> dict[str, Function]:
    table = dict(_OTHERS)
    for name, function in _FLOAT.items():
        table[name] = table[name + "f"] = _wide(function)
    for name, function in _NEAREST.items():
        table[f"f{name}_rn"] = table[f"d{name}_rn"] = _wide(function)
    table["fma_rn"] = table["fmaf_rn"] = fused
    for suffix, direction in _DIRECTIONS.items():
        for integer, target in _INTEGERS.items():
            for source in ("float", "double"):
                table[f"{source}2{integer}_{suffix}"] = _to_integer(direction, target)
    for integer in _INTEGERS:
        # Rounded to nearest by the conversion to the result's type.
        table[f"{integer}2float_rn"] = table[f"{integer}2double_rn"] = lambda x: x
    table["double2float_rn"] = lambda x: x
    for suffix in ("", "f"):
        table[f"llrint{suffix}"] = _to_integer(np.rint, np.int64)
        table[f"llround{suffix}"] = _to_integer(special.rounded_half_away, np.int64)
        table[f"ilogb{suffix}"] = _to_integer(_exponent, np.int32)
    return table


FUNCTIONS = _table()


def _extern(
    self: Any, library: str, path: str, symbol: str, args: list[Handle], ret_type: Type, pure: bool
) -> Handle:
    function = FUNCTIONS.get(symbol.removeprefix("__nv_"))
    if function is None:
        raise UnsupportedError(f"the interpreter has no {symbol}")
    operands = np.broadcast_arrays(*(values(a) for a in args))
    return make(np.asarray(function(*operands)), ret_type.scalar)


METHODS: dict[str, Callable[..., Any]] = {"create_extern_elementwise": _extern}
