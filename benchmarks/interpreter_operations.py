"""The operations that `interpreter_fidelity.py` compares: one small kernel each."""

from __future__ import annotations

import textwrap
import zlib
from dataclasses import dataclass

FLOATS = ("fp16", "bf16", "fp32", "fp64")
WIDE = ("fp32", "fp64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FP8 = ("fp8e4nv", "fp8e5")
TL = {
    "fp16": "tl.float16",
    "bf16": "tl.bfloat16",
    "fp32": "tl.float32",
    "fp64": "tl.float64",
    "fp8e4nv": "tl.float8e4nv",
    "fp8e5": "tl.float8e5",
}


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One kernel: `body` computes `r` from the blocks a, b, c (256 elements) of `dtype`.

    Attributes:
        count: elements of `r`; 0 for a scalar.
        in_place: the body itself updates the output, which starts with operands.
    """

    name: str
    dtype: str
    body: str
    out: str
    count: int = 256
    in_place: bool = False

    @property
    def key(self) -> str:
        """A name for files and functions."""
        plain = "".join(c if c.isalnum() else "_" for c in self.name)
        return f"k_{plain}_{zlib.crc32(self.name.encode()):08x}_{self.dtype}_{self.out}"


_HEADER = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def product(p, q):
    return p * q


@triton.jit
def later(p, q):
    return q


@triton.jit
def affine(s, t, u, v):
    return s * u, t * u + v


@triton.jit
def larger(p, q):
    if p > q:
        r = p
    else:
        r = q
    return r
"""

_KERNEL = """

@triton.jit
def {key}(x, y, z, o, N: tl.constexpr, M: tl.constexpr):
    i = tl.arange(0, N)
{loads}{body}{store}
"""


def _kernel(op: Operation) -> str:
    pointers = {"a": "x", "b": "y", "c": "z"}
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in op.body).split())
    loads = "".join(f"    {n} = tl.load({p} + i)\n" for n, p in pointers.items() if n in words)
    body = textwrap.indent(op.body.strip() + "\n", "    ")
    store = "    tl.store(o + tl.arange(0, M), tl.reshape(r, (M,)))"
    if op.in_place:
        store = ""
    elif op.count == 0:
        store = "    tl.store(o, r)"
    return _KERNEL.format(key=op.key, loads=loads, body=body, store=store)


def source(operations: list[Operation]) -> str:
    """A module with one kernel for each operation."""
    return _HEADER + "".join(_kernel(op) for op in operations)


def _make(
    name: str,
    dtypes: tuple[str, ...] | str,
    body: str,
    *,
    out: str | None = None,
    count: int = 256,
    in_place: bool = False,
) -> list[Operation]:
    names = (dtypes,) if isinstance(dtypes, str) else dtypes
    text = body if "r =" in body or in_place else f"r = {body}"
    return [
        Operation(name=name, dtype=d, body=text, out=out or d, count=count, in_place=in_place)
        for d in names
    ]


def _arithmetic() -> list[Operation]:
    ops: list[Operation] = []
    for symbol in ("+", "-", "*"):
        ops += _make(f"a {symbol} b", (*FLOATS, *INTEGERS), f"a {symbol} b")
        ops += _make(f"a {symbol} b", ("int1", *FP8), f"(a {symbol} b).to(tl.float32)", out="fp32")
    ops += _make("a / b", FLOATS, "a / b")
    ops += _make("a / b", INTEGERS, "a / b", out="fp32")
    ops += _make("a // b", INTEGERS, "a // b")
    ops += _make("a % b", (*FLOATS, *INTEGERS), "a % b")
    ops += _make("a + 1.5", (*FLOATS, "int32"), "(a + 1.5).to(tl.float32)", out="fp32")
    ops += _make("-a", (*FLOATS, *SIGNED), "-a")
    ops += _make("abs", (*FLOATS, *INTEGERS), "tl.abs(a)")
    for symbol in ("<", "<=", ">", ">=", "==", "!="):
        ops += _make(
            f"a {symbol} b",
            (*FLOATS, "int8", "int32", "int64", "uint8", "uint32", "int1"),
            f"(a {symbol} b).to(tl.int8)",
            out="int8",
        )
    for symbol in ("&", "|", "^"):
        ops += _make(f"a {symbol} b", ("int8", "int32", "int64", "uint32"), f"a {symbol} b")
        ops += _make(f"a {symbol} b", "int1", f"(a {symbol} b).to(tl.int8)", out="int8")
    for symbol in ("<<", ">>"):
        ops += _make(f"a {symbol} (b & 7)", INTEGERS, f"a {symbol} (b & 7)")
    ops += _make("~a", ("int8", "int32", "int64", "uint32"), "~a")
    ops += _make("umulhi", ("int32", "uint32", "int64", "uint64"), "tl.umulhi(a, b)")
    ops += _make("cdiv", ("int32", "int64"), "tl.cdiv(a, (b & 63) + 1)")
    return ops


def _selection() -> list[Operation]:
    ops: list[Operation] = []
    for name in ("minimum", "maximum"):
        ops += _make(f"tl.{name}", (*FLOATS, *INTEGERS), f"tl.{name}(a, b)")
        ops += _make(
            f"tl.{name} propagate_nan",
            FLOATS,
            f"tl.{name}(a, b, propagate_nan=tl.PropagateNan.ALL)",
        )
    ops += _make("clamp", FLOATS, "tl.clamp(a, tl.minimum(b, c), tl.maximum(b, c))")
    ops += _make("where", (*FLOATS, "int8", "int32", "int64"), "tl.where(a > b, b, c)")
    ops += _make("where 0", FLOATS, "tl.where(a > b, a, 0.0)")
    ops += _make("fma", FLOATS, "tl.fma(a, b, c)")
    return ops


def _mathematics() -> list[Operation]:
    ops: list[Operation] = []
    for name in ("exp", "exp2", "sin", "cos", "erf", "floor", "ceil", "sigmoid"):
        ops += _make(f"tl.{name}", WIDE, f"tl.{name}(a)")
    for name in ("log", "log2", "sqrt", "rsqrt"):
        ops += _make(f"tl.{name}", WIDE, f"tl.{name}(tl.abs(a))")
    ops += _make("tl.sqrt_rn", "fp32", "tl.sqrt_rn(tl.abs(a))")
    ops += _make("tl.div_rn", "fp32", "tl.div_rn(a, b)")
    ops += _make("tl.fdiv", WIDE, "tl.fdiv(a, b)")
    ops += _make("exp of cast", ("fp16", "bf16"), "tl.exp(a.to(tl.float32)).to(a.dtype)")
    ops += _make("softmax", ("fp16", "bf16", "fp32"), "tl.softmax(a.to(tl.float32))", out="fp32")
    return ops


_ONE_ARGUMENT = """
abs floor rsqrt ceil trunc exp2 saturatef fast_sinf fast_cosf fast_log2f fast_logf fast_expf
fast_tanf fast_exp10f fast_log10f rint nearbyint signbit isinf isnan finitef isfinited sqrt cbrt
rcbrt erf erfc erfcx erfinv erfcinv normcdf normcdfinv tgamma lgamma exp exp10 expm1 log log10
log1p log2 logb ilogb sin cos tan sinpi cospi asin acos atan sinh cosh tanh asinh acosh atanh
round llround llrint j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1 rcp_rn sqrt_rn float_as_int
float2int_rn float2int_rz float2int_rd float2int_ru float2uint_rn float2ll_rn float2ll_rz
float2ull_rz double2int_rn double2int_rz double2ll_rn double2float_rn
"""
_TWO_ARGUMENTS = """
pow fmod remainder atan2 hypot rhypot copysign nextafter fdim add_rn sub_rn mul_rn div_rn
fast_dividef fast_powf
"""


def _libdevice() -> list[Operation]:
    ops: list[Operation] = []
    for name in _ONE_ARGUMENT.split():
        single = name.startswith(("float", "fast", "saturate", "finitef"))
        double = name.startswith(("double", "isfinited"))
        dtypes = ("fp32",) if single else ("fp64",) if double else WIDE
        ops += _make(f"libdevice.{name}", dtypes, f"libdevice.{name}(a)")
    for name in _TWO_ARGUMENTS.split():
        dtypes = ("fp32",) if name.startswith("fast") else WIDE
        ops += _make(f"libdevice.{name}", dtypes, f"libdevice.{name}(a, b)")
    ops += _make("libdevice.pow of |a|", WIDE, "libdevice.pow(tl.abs(a), b)")
    for name in ("fma", "fma_rn", "norm3d", "rnorm3d"):
        ops += _make(f"libdevice.{name}", WIDE, f"libdevice.{name}(a, b, c)")
    ops += _make("libdevice.ldexp", WIDE, "libdevice.ldexp(a, (i & 31) - 16)")
    for name in ("clz", "popc", "ffs", "brev"):
        ops += _make(
            f"libdevice.{name}",
            ("int32", "int64"),
            f"libdevice.{name}(a).to(tl.int64)",
            out="int64",
        )
    for name in ("mulhi", "mul24", "hadd", "rhadd"):
        ops += _make(f"libdevice.{name}", ("int32", "uint32"), f"libdevice.{name}(a, b)")
    ops += _make("libdevice.byte_perm", "int32", "libdevice.byte_perm(a, b, c)")
    sad = "libdevice.sad(a, b, c.to(tl.uint32))"
    ops += _make("libdevice.sad", "int32", sad, out="int32")
    ops += _make("libdevice.rsqrt_rn", "fp32", "libdevice.rsqrt_rn(tl.abs(a))")
    return ops


def _casts() -> list[Operation]:
    ops: list[Operation] = []
    for src in (*FLOATS, *INTEGERS, "int1"):
        for dst in (*FLOATS, *INTEGERS, "int1"):
            if src == dst:
                continue
            kind = TL.get(dst, f"tl.{dst}")
            text, out = (f"a.to({kind})", dst)
            if dst == "int1":
                text, out = "a.to(tl.int1).to(tl.int8)", "int8"
            ops += _make(f"to {dst}", src, text, out=out)
    for fp8 in FP8:
        for other in FLOATS:
            ops += _make(f"to {fp8}", other, f"a.to({TL[fp8]})", out=fp8)
            ops += _make(f"to {other}", fp8, f"a.to({TL[other]})", out=other)
    for dst in ("fp16", "bf16", "fp8e5"):
        body = f'a.to({TL[dst]}, fp_downcast_rounding="rtz")'
        ops += _make(f"to {dst} rtz", "fp32", body, out=dst)
    ops += _make("to fp8e4b15", "fp16", "a.to(tl.float8e4b15).to(tl.float16)")
    ops += _make("bitcast", "fp32", "a.to(tl.int32, bitcast=True)", out="int32")
    ops += _make("bitcast", "bf16", "a.to(tl.int16, bitcast=True)", out="int16")
    ops += _make("bitcast", "int16", "a.to(tl.bfloat16, bitcast=True)", out="bf16")
    return ops


def _reductions() -> list[Operation]:
    ops: list[Operation] = []
    many = (*FLOATS, "int8", "int32", "int64", "uint8", "uint32")
    wide = {"int8": "int32", "uint8": "uint32"}
    for d in many:
        ops += _make("tl.sum", d, "tl.sum(a, axis=0)", out=wide.get(d, d), count=0)
        rows = "tl.sum(tl.reshape(a, (16, 16)), axis=1)"
        ops += _make("tl.sum rows", d, rows, out=wide.get(d, d), count=16)
        for name in ("max", "min"):
            ops += _make(f"tl.{name}", d, f"tl.{name}(a, axis=0)", count=0)
        ops += _make("cumsum", d, "tl.cumsum(a, axis=0)", out=wide.get(d, d))
    ops += _make("tl.sum", "int1", "tl.sum(a, axis=0)", out="uint32", count=0)
    for name in ("argmax", "argmin"):
        body = f"tl.{name}(tl.reshape(a, (16, 16)), axis=1)"
        ops += _make(f"tl.{name}", ("fp16", "bf16", "fp32", "int32"), body, out="int32", count=16)
        ties = f"tl.{name}((tl.reshape(a, (16, 16)) * 0.0).to(tl.int32), axis=1)"
        ops += _make(f"tl.{name} of ties", "fp32", ties, out="int32", count=16)
    ops += _make(
        "max return_indices",
        "fp32",
        "v, w = tl.max(tl.reshape(a, (16, 16)), axis=0, return_indices=True)\nr = v + w",
        count=16,
    )
    ops += _make("xor_sum", ("int32", "int64"), "tl.xor_sum(a, axis=0)", count=0)
    scaled = "tl.reduce(1.0 + a * 0.001, 0, product)"
    ops += _make("tl.reduce product", ("fp32", "fp64"), scaled, count=0)
    ops += _make("tl.reduce product", "int32", "tl.reduce(a, 0, product)", count=0)
    ops += _make("tl.reduce branching", ("fp32", "int32"), "tl.reduce(a, 0, larger)", count=0)
    ops += _make("cumsum reverse", WIDE, "tl.cumsum(a, axis=0, reverse=True)")
    rows = "tl.cumsum(tl.reshape(a, (16, 16)), axis=1)"
    ops += _make("cumsum rows", ("fp32", "int32"), rows)
    ops += _make("cumprod", ("fp32", "int32"), "tl.cumprod(a, axis=0)")
    ops += _make("associative_scan last", "int32", "tl.associative_scan(a, 0, later)")
    ops += _make(
        "associative_scan pair",
        "fp32",
        "s, t = tl.associative_scan((1.0 + a * 0.001, b), 0, affine)\nr = t",
    )
    ops += _make("tl.sort", ("fp16", "bf16", "fp32", "int32"), "tl.sort(a)")
    ops += _make("tl.sort descending", "fp32", "tl.sort(a, descending=True)")
    ops += _make("tl.topk", ("fp32", "int32"), "tl.topk(a, 16)", count=16)
    return ops


def _shapes() -> list[Operation]:
    ops: list[Operation] = []
    some = ("bf16", "fp32", "int8", "int64")
    ops += _make("flip", some, "tl.flip(a, 0)")
    ops += _make("trans", some, "tl.trans(tl.reshape(a, (16, 16)))")
    ops += _make("permute", "fp32", "tl.permute(tl.reshape(a, (4, 8, 8)), (2, 0, 1))")
    ops += _make("join", some, "tl.join(a, b)", count=512)
    ops += _make("interleave", some, "tl.interleave(a, b)", count=512)
    halves = "p, q = tl.split(tl.reshape(a, (128, 2)))\nr = p - q"
    ops += _make("split", some, halves, count=128)
    ops += _make("gather", ("fp32", "int32"), "tl.gather(a, (i * 7) % N, 0)")
    ops += _make("histogram", "int32", "tl.histogram(a & 15, 16)", count=16)
    broadcast = "tl.reshape(a, (16, 16)) + tl.arange(0, 16)[None, :]"
    ops += _make("broadcast", ("bf16", "fp32", "int32"), f"({broadcast}).to(a.dtype)")
    ops += _make("full", FLOATS, "tl.full((N,), 1.7, a.dtype) + a")
    return ops


def _products() -> list[Operation]:
    ops: list[Operation] = []
    square = "tl.reshape(a, (16, 16)), tl.reshape(b, (16, 16))"
    for d in ("fp16", "bf16", "fp32", "fp64", "fp8e4nv", "fp8e5", "int8"):
        out = {"fp64": "fp64", "int8": "int32"}.get(d, "fp32")
        body = f"tl.dot({square})" if d != "fp64" else f"tl.dot({square}, out_dtype=tl.float64)"
        if d in (*FP8, "int8"):
            long = "tl.reshape(tl.join({0}, {0}), (16, 32))"
            tall = "tl.trans(tl.reshape(tl.join({0}, {0}), (16, 32)))"
            body = f"tl.dot({long.format('a')}, {tall.format('b')})"
        ops += _make("tl.dot", d, body, out=out)
    ops += _make("tl.dot ieee", "fp32", f'tl.dot({square}, input_precision="ieee")')
    ops += _make("tl.dot tf32x3", "fp32", f'tl.dot({square}, input_precision="tf32x3")')
    ops += _make("tl.dot out fp16", "fp16", f"tl.dot({square}, out_dtype=tl.float16)")
    acc = "tl.reshape(c, (16, 16)).to(tl.float32)"
    ops += _make("tl.dot acc", ("fp16", "bf16"), f"tl.dot({square}, acc={acc})", out="fp32")
    batched = (
        "p = tl.broadcast_to(tl.reshape(a, (1, 16, 16)), (2, 16, 16))\n"
        "q = tl.broadcast_to(tl.reshape(b, (1, 16, 16)), (2, 16, 16))\n"
        "r = tl.dot(p, q)"
    )
    ops += _make("tl.dot batched", ("fp16", "fp32"), batched, out="fp32", count=512)
    return ops


def _random() -> list[Operation]:
    ops: list[Operation] = []
    ops += _make("tl.randint", "int32", "tl.randint(123, i)", out="int32")
    ops += _make("tl.randint offsets", "int32", "tl.randint(a.to(tl.int64) * 77, i + 9)")
    ops += _make("tl.rand", "fp32", "tl.rand(123, i)")
    ops += _make("tl.rand", "int64", "tl.rand(123, i + a)", out="fp32")
    ops += _make("tl.randn", "fp32", "tl.randn(123, i)")
    four = "p, q, s, t = tl.randint4x(5, i)\nr = p ^ q ^ s ^ t"
    ops += _make("tl.randint4x", "int32", four)
    return [op for op in ops if "offsets" not in op.name]


def _memory() -> list[Operation]:
    ops: list[Operation] = []
    for name, dtypes in {
        "add": ("fp16", "bf16", "fp32", "fp64", "int32", "int64", "uint32"),
        "max": ("fp32", "int32", "uint32", "int64"),
        "min": ("fp32", "int32", "uint32", "int64"),
        "and": ("int32", "int64"),
        "or": ("int32",),
        "xor": ("int32",),
        "xchg": ("fp32", "int32"),
    }.items():
        body = f"tl.atomic_{name}(o + i, a, mask=i % 3 != 0)"
        ops += _make(f"atomic_{name}", dtypes, body, in_place=True)
    ops += _make("atomic_add contended", "int32", "tl.atomic_add(o + i % 4, a)", in_place=True)
    cas = "tl.atomic_cas(o + i, tl.where(i % 2 == 0, tl.load(o + i), a), b)"
    ops += _make("atomic_cas", ("int32", "int64"), cas, in_place=True)
    block = (
        "p = tl.make_block_ptr(x, (15, 13), (16, 1), (8, 8), (16, 16), (1, 0))\n"
        'r = tl.load(p, boundary_check=(0, 1), padding_option="{pad}")'
    )
    for d in (*FLOATS, "int8", "int32"):
        ops += _make("block pointer zero", d, block.format(pad="zero"))
    ops += _make("block pointer nan", FLOATS, block.format(pad="nan"))
    ops += _make("masked load other", FLOATS, "tl.load(x + i, mask=i % 3 == 0, other=1.25)")
    ops += _make("masked load", ("fp32", "bf16", "int8"), "tl.load(x + i, mask=i % 3 == 0)")
    ops += _make("store bool", "int1", "a ^ b")
    ops += _make("store float to narrow", "fp32", "a", out="bf16")
    ops += _make("store int32 to int8", "int32", "a", out="int8")
    ops += _make("store float to int", "fp32", "a", out="int32")
    return ops


def _control() -> list[Operation]:
    ops: list[Operation] = []
    loop = "r = a\nfor k in range(0, 5):\n    r += b * k"
    ops += _make("for range", ("fp16", "bf16", "fp32", "int32"), f"{loop}\nr = r.to(a.dtype)")
    ops += _make("for tl.range", "fp32", loop.replace("range(", "tl.range("))
    ops += _make("for tl.static_range", "bf16", loop.replace("range(0, 5)", "tl.static_range(5)"))
    ops += _make(
        "loop variable type",
        "int8",
        "r = a.to(tl.int32)\nfor k in range(3):\n    r += a + k",
        out="int32",
    )
    count = "n = tl.max(a, axis=0)\nr = 0\nwhile n > 0:\n    n = n // 2\n    r += 1"
    ops += _make("while", "int32", count, count=0)
    both = "r = ((a > b) & (b > c) | ~(c > a)).to(tl.int8)"
    ops += _make("masks", ("fp32", "bf16", "int32"), both, out="int8")
    swizzle = "p, q = tl.swizzle2d(i // 16, i % 16, 16, 16, 4)\nr = p * 16 + q"
    ops += _make("swizzle2d", "int32", swizzle)
    return ops


OPERATIONS: tuple[Operation, ...] = tuple(
    _arithmetic()
    + _selection()
    + _mathematics()
    + _libdevice()
    + _casts()
    + _reductions()
    + _shapes()
    + _products()
    + _random()
    + _memory()
    + _control()
)

assert len({op.key for op in OPERATIONS}) == len(OPERATIONS), "two operations share a name"
