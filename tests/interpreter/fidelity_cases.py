"""Kernels for test_fidelity.py: what each computes, without importing Triton."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """`body` computes `r` from a and b, 8 numbers each of type `dtype`; `r` is stored as `out`.

    A body with `o` in it stores by itself. `scalars` are passed as n and s.
    """

    body: str
    a: list = field(default_factory=lambda: [0.0] * 8)
    b: list = field(default_factory=lambda: [0.0] * 8)
    dtype: str = "float32"
    out: str = ""
    n: object = 0
    s: object = 0.0
    count: int = 8


NAN, INF = float("nan"), float("inf")
SMALL = [1.0, 2.5, -3.0, 0.1, 1e-3, 100.0, 7.7, -0.3]
OTHER = [0.01, -1.3, 3.0, 0.7, 5.0, 0.003, 1.1, 9.0]
ODD = [NAN, 1.0, INF, -INF, 0.0, -2.0, 3.0, NAN]
EVEN = [1.0, NAN, 2.0, 2.0, NAN, 5.0, -1.0, NAN]
WORDS = [7, -7, 7, -7, 2**31 - 1, -(2**31), 5, 0]
DIVISORS = [2, 2, -2, -2, 3, -1, 0, 4]


def _elementwise(dtype):
    pair = {"dtype": dtype, "a": SMALL, "b": OTHER}
    kernels = {
        "add": "r = a + b",
        "sub": "r = a - b",
        "mul": "r = a * b",
        "div": "r = a / b",
        "where": "r = tl.where(a > b, a, b)",
        "fma": "r = tl.fma(a, b, a)",
        "half": "r = (a + 0.5) * 3",
        "sum": "r = tl.full((8,), 0, tl.float32) + tl.sum(a, axis=0).to(tl.float32)",
        "clamp": "r = tl.clamp(a, -1.0, 2.0)",
    }
    made = {f"{name} {dtype}": Kernel(body=body, **pair) for name, body in kernels.items()}
    for name, symbol in {"lt": "<", "ge": ">=", "eq": "==", "ne": "!="}.items():
        body = f"r = a {symbol} b"
        made[f"{name} {dtype}"] = Kernel(body=body, dtype=dtype, a=ODD, b=EVEN, out="bool")
    return made


def _minmax(dtype):
    pair = {"dtype": dtype, "a": ODD, "b": EVEN}
    keep = "propagate_nan=tl.PropagateNan.ALL"
    return {
        f"maximum {dtype}": Kernel(body="r = tl.maximum(a, b)", **pair),
        f"minimum {dtype}": Kernel(body="r = tl.minimum(a, b)", **pair),
        f"maximum nan {dtype}": Kernel(body=f"r = tl.maximum(a, b, {keep})", **pair),
        f"max {dtype}": Kernel(body="r = tl.zeros((8,), tl.float32) + tl.max(b, axis=0)", **pair),
    }


def _casts():
    wild = [NAN, INF, -INF, 3e9, -3e9, 2.9, -2.9, 300.0]
    eight = [NAN, INF, -INF, 500.0, -1e6, 0.3, 1.0625, 60000.0]
    made = {
        f"to {kind}": Kernel(body=f"r = a.to(tl.{kind})", a=wild, out=kind)
        for kind in ("int32", "uint32", "int64", "int16")
    }
    made |= {
        f"to {name}": Kernel(body=f"r = a.to(tl.{name}).to(tl.float32)", a=eight)
        for name in ("float8e4nv", "float8e5")
    }
    toward_zero = 'r = a.to(tl.{}, fp_downcast_rounding="rtz")'
    tall = [1.0 + 2**-7 - 2**-20, -1.9999999, 70000.0, 3.3e38, 0.1, -0.1, 1.0, INF]
    for kind in ("float16", "bfloat16"):
        made[f"rtz {kind}"] = Kernel(body=toward_zero.format(kind), a=tall, out=kind)
    made["int to bfloat16"] = Kernel(
        body="r = a.to(tl.bfloat16)", dtype="int32", a=[257, 511, -1, 3, 2**24, 0, 9, 1000001],
        out="bfloat16",
    )  # fmt: skip
    made["store float32 as bfloat16"] = Kernel(body="r = a", a=SMALL, out="bfloat16")
    made["bool of int"] = Kernel(body="r = a.to(tl.int1)", dtype="int32", a=WORDS, out="bool")
    return made


def _integers():
    pair = {"dtype": "int32", "a": WORDS, "b": DIVISORS}
    made = {
        name: Kernel(body=f"r = {text}", **pair)
        for name, text in {
            "floor division": "a // b",
            "remainder": "a % b",
            "wrapping": "a * 65537 + a",
            "shift right": "a >> 3",
            "shift right unsigned": "(a.to(tl.uint32) >> 3).to(tl.int32)",
            "umulhi": "tl.umulhi(a, a)",
            "invert": "~a",
            "minimum": "tl.minimum(a, b)",
        }.items()
    }
    made["true division"] = Kernel(body="r = a / b", dtype="int32", a=[1, 2, 3, 4, 5, 6, 7, 8],
                                   b=[3] * 8, out="float32")  # fmt: skip
    made["one bit sum"] = Kernel(body="r = (a > 0) + (b > 0)", out="bool", **pair)
    made["umulhi 64"] = Kernel(
        body="r = tl.umulhi(a, b)", dtype="int64", a=[2**62, -1, 3, 2**40, 2**63 - 1, -5, 0, 1],
        b=[2**62, -1, 5, 2**41, 2**63 - 1, 7, 1, 1],
    )  # fmt: skip
    made["int8 sum"] = Kernel(body="r = tl.zeros((8,), tl.int32) + tl.sum(a, axis=0)",
                              dtype="int8", a=[100] * 8, out="int32")  # fmt: skip
    return made


def _blocks():
    ties = [3.0, 5.0, 5.0, 1.0, 1.0, 5.0, 0.0, 0.0]
    up = [1.0, -2.0, 3.0, 4.0, -5.0, 6.0, 7.0, 8.0]
    return {
        "argmax": Kernel(body="r = tl.zeros((8,), tl.int32) + tl.argmax(a, axis=0)", a=ties,
                         out="int32"),
        "argmin": Kernel(body="r = tl.zeros((8,), tl.int32) + tl.argmin(a, axis=0)", a=ties,
                         out="int32"),
        "cumsum reverse": Kernel(body="r = tl.cumsum(a, axis=0, reverse=True)", a=up),
        "cumprod": Kernel(body="r = tl.cumprod(a, axis=0)", a=up),
        "scan of pairs": Kernel(
            body="s, t = tl.associative_scan((a, b), 0, affine)\nr = t", a=up, b=OTHER
        ),
        "branching combine": Kernel(
            body="r = tl.zeros((8,), tl.float32) + tl.reduce(a, 0, larger)", a=up
        ),
        "branching scan": Kernel(body="r = tl.associative_scan(a, 0, larger)", a=up),
        "last of scan": Kernel(body="r = tl.associative_scan(a, 0, later)", a=up),
        "first of reduce": Kernel(
            body="r = tl.zeros((8,), tl.float32) + tl.reduce(a, 0, earlier)", a=up
        ),
        "sort": Kernel(body="r = tl.sort(a)", a=up),
        "sort bfloat16": Kernel(body="r = tl.sort(a)", a=up, dtype="bfloat16"),
        "topk": Kernel(body="r = tl.topk(a, 4)", a=up, count=4),
        "flip": Kernel(body="r = tl.flip(a, 0)", a=up, dtype="bfloat16"),
        "histogram": Kernel(body="r = tl.histogram(a, 8)", dtype="int32",
                            a=[1, 1, 7, 0, 3, 3, 3, 6]),
        "interleave": Kernel(body="r = tl.interleave(a, b)", a=up, b=SMALL, count=16),
        "randint": Kernel(body="r = tl.randint(n, i)", n=123, out="int32"),
        "rand": Kernel(body="r = tl.rand(n, i)", n=123),
    }  # fmt: skip


def _language():
    pointer = (
        "p = tl.make_tensor_descriptor(x, (6,), (1,), (8,), padding_option='nan')\nr = p.load((1,))"
    )
    return {
        "float argument": Kernel(body="r = a * s", dtype="bfloat16", a=SMALL, s=0.1, out="float32"),
        "float constant": Kernel(body="r = a * 0.1", dtype="bfloat16", a=SMALL, out="float32"),
        "int argument": Kernel(body="r = a + n", dtype="int64", a=WORDS, n=2**31 + 5),
        "bool argument": Kernel(body="r = a\nif n:\n    r = a + 1", dtype="int32", a=WORDS, n=True),
        "and or": Kernel(body="r = (a > 0 and b > 0) or not (a < 5)", a=SMALL, b=OTHER, out="bool"),
        "loop variable": Kernel(
            body="r = a.to(tl.int32)\nfor k in range(3):\n    r += a + k.to(tl.int8)",
            dtype="int8", a=[127, 1, 2, 3, 4, 5, 6, 7], out="int32",
        ),
        "loop variable type": Kernel(
            body="r = a.to(tl.int32)\nfor k in range(2):\n    r += a + (k + 100)",
            dtype="int8", a=[127, 1, 2, 3, 4, 5, 6, 7], out="int32",
        ),
        "loop backwards": Kernel(body="r = a\nfor k in range(n, 0, -1):\n    r = r * 2 + k", n=4),
        "while": Kernel(body="r = a\nk = n\nwhile k > 0 and k < 100:\n    r += k\n    k -= 1", n=4),
        "closure": Kernel(body="r = a * CAPTURED", a=SMALL),
        "python max": Kernel(body="r = a + max(n, 5) + min(s, 2.0)", n=3, s=9.0),
        "constant value": Kernel(body="r = a + COUNT.value"),
        "constant first": Kernel(body="r = tl.sigmoid(COUNT * (a - a))"),
        "assert": Kernel(body="assert n > 5\nr = a", n=1),
        "descriptor nan": Kernel(body=pointer, dtype="bfloat16", a=SMALL),
        "masked load": Kernel(body="r = tl.load(x + i, mask=i < 3)", dtype="bfloat16", a=SMALL),
        "masked other": Kernel(body="r = tl.load(x + i, mask=i < 3, other=1.7)", dtype="bfloat16",
                               a=SMALL),
        "atomic add": Kernel(body="tl.atomic_add(o + i * 0, a)", dtype="bfloat16", a=SMALL),
        "atomic add half": Kernel(body="tl.atomic_add(o + i * 0, a)", dtype="float16", a=SMALL),
        "atomic max": Kernel(body="tl.atomic_max(o + i * 0, a)", a=SMALL),
        "atomic min": Kernel(body="tl.atomic_min(o + i * 0, a)", a=SMALL),
        "atomic cas": Kernel(body="tl.atomic_cas(o + i, a, b)", dtype="int32",
                             a=[0, 1, 0, 1, 0, 0, 0, 0], b=[7] * 8),
        "atomic xchg": Kernel(body="tl.atomic_xchg(o + i, a)", a=SMALL),
        "inline asm": Kernel(
            body='r = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [a], dtype=tl.float32,'
            " is_pure=True, pack=1)"
        ),
        "waits forever": Kernel(body="while tl.atomic_add(o, 0.0) < 1.0:\n    pass\nr = a"),
        "directed rounding": Kernel(body="r = libdevice.add_rd(a, b)"),
        "broken": Kernel(body="r = a + missing_name"),
    }  # fmt: skip


def _dot(dtype, *, out="float32", options=""):
    a = [1.0, 2.0, -3.0, 0.5, 1.0 + 2**-12, 1.0, 1.0, 3.0]
    b = [1.0 + 2**-12, 2.0, 0.25, -1.0, 5.0, 1.0, 2.0, 0.5]
    if dtype == "int8":
        a, b = [127] * 8, [-128, 127, 3, 4, 5, 6, 7, 8]
    body = "r = tl.dot(tl.reshape(a, (2, 4)), tl.reshape(b, (4, 2)){})"
    return Kernel(body=body.format(options), dtype=dtype, a=a, b=b, out=out, count=4)


def _products():
    batched = "r = tl.dot(tl.reshape(a, (2, 2, 2)), tl.reshape(b, (2, 2, 2)))"
    scaled = (
        "q = (tl.arange(0, 64) * 5 % 256).to(tl.uint8)\n"
        "f = tl.full((2, 2), 129, tl.uint8)\n"
        "p = tl.reshape(q, (2, 32))\n"
        "w = tl.reshape(q, (32, 2))\n"
        'r = tl.dot_scaled(p, f, "e2m1", w, f, "e2m1")'
    )
    fp8 = (
        "p = tl.reshape(a, (2, 4)).to(tl.float8e5)\n"
        "q = tl.reshape(b, (4, 2)).to(tl.float8e5)\n"
        "r = tl.dot(p, q)"
    )
    return {
        "dot bfloat16": _dot("bfloat16"),
        "dot float16": _dot("float16"),
        "dot float16 out": _dot("float16", out="float16", options=", out_dtype=tl.float16"),
        "dot float32": _dot("float32"),
        "dot tf32": _dot("float32"),
        "dot int8": _dot("int8", out="int32"),
        "dot float64": _dot("float64", out="float64", options=", out_dtype=tl.float64"),
        "dot batched": Kernel(body=batched, a=SMALL, b=OTHER),
        "dot float8e5": Kernel(body=fp8, a=SMALL, b=OTHER, count=4),
        "dot scaled": Kernel(body=scaled, count=4),
    }


def _pointers():
    block = (
        "p = tl.make_block_ptr(x, (2, 3), (4, 1), (0, 1), (2, 4), (1, 0))\n"
        "p = tl.advance(p, (1, -1))\n"
        "r = tl.load(p, boundary_check=(0, 1), padding_option='{}')"
    )
    numbers = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    store = (
        "p = tl.make_block_ptr(o, (6,), (1,), (2,), (8,), (0,))\n"
        "tl.store(p, a, boundary_check=(0,))"
    )
    return {
        "block pointer nan": Kernel(body=block.format("nan"), a=numbers, dtype="bfloat16"),
        "block pointer zero": Kernel(body=block.format("zero"), a=numbers, dtype="float16"),
        "block pointer store": Kernel(body=store, a=numbers),
        "broadcast store": Kernel(
            body="q = tl.reshape(o + i, (2, 4))\n"
            "tl.store(q, tl.arange(0, 2)[:, None].to(tl.float32))"
        ),
        "bool pointers": Kernel(body="r = a ^ b", dtype="bool", a=[1, 0] * 4, b=[1, 1, 0, 0] * 2),
        "volatile wait": Kernel(body="while tl.load(o, volatile=True) < 1.0:\n    pass\nr = a"),
    }


def _by_version():
    """What only some versions of Triton have, or read otherwise."""
    numbers = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    return {
        "negative": Kernel(body="r = -a", dtype="bfloat16", a=ODD),
        "half to brain": Kernel(body="r = a.to(tl.bfloat16)", dtype="float16", a=SMALL,
                                out="bfloat16"),
        "condition": Kernel(body="r = a\nk = n\nwhile tl.condition(k > 0):\n    r += k\n    k -= 1",
                            a=numbers, n=4),
        "chained": Kernel(body="r = 0.5 < a <= b", a=SMALL, b=OTHER, out="bool"),
        "chained constants": Kernel(body="r = a\nif 0 < M < 9 < 10:\n    r = a + 1", a=numbers),
        "approximate division": Kernel(body="r = tl.fdiv(a, b, approx=True)", a=SMALL, b=OTHER),
        "cached load": Kernel(body="r = tl.load(x + i, cache_modifier='.cg')", a=SMALL),
        "streamed store": Kernel(body="tl.store(o + i, a, eviction_policy='evict_first')", a=SMALL),
        "fetched anew": Kernel(
            body="while tl.load(o, cache_modifier='.cv') < 1.0:\n    pass\nr = a"
        ),
        "atomic load": Kernel(body="r = tl.atomic_load(x + i, mask=i < 9)", a=numbers),
        "atomic store": Kernel(body="tl.atomic_store(o + i, a, mask=i < 3)", a=numbers),
        "poll": Kernel(body="r = tl.atomic_poll(x + i, b, timeout_ns=0)", dtype="int32", out="bool",
                       a=[1, 2, 3, 4, 5, 6, 7, 8], b=[1, 0, 3, 0, 5, 0, 0, 8]),
        "polls forever": Kernel(body="tl.atomic_poll(x, 5)\nr = a", dtype="int32"),
    }  # fmt: skip


def _libdevice():
    ops = ("tanh", "erf", "rint", "log1p", "expm1", "rsqrt", "tgamma", "normcdf", "round", "atan")
    made = {f"libdevice {op}": Kernel(body=f"r = libdevice.{op}(a)", a=SMALL) for op in ops}
    made["libdevice pow"] = Kernel(body="r = libdevice.pow(tl.abs(a), b)", a=SMALL, b=OTHER)
    made["libdevice isnan"] = Kernel(body="r = libdevice.isnan(a)", a=ODD, out="bool")
    made["libdevice by name"] = Kernel(body="r = imported_tanh(a)", a=SMALL)
    made["libdevice cuda"] = Kernel(body="r = tl.extra.cuda.libdevice.fast_expf(a)", a=OTHER)
    made["brev"] = Kernel(body="r = libdevice.brev(a)", dtype="int32", a=[1, 2, 3, -1, 0, 5, 6, 7])
    made["clz"] = Kernel(body="r = libdevice.clz(a)", dtype="int32", a=[1, 2, 3, -1, 0, 5, 6, 256])
    made["ffs"] = Kernel(body="r = libdevice.ffs(a)", dtype="int32", a=[1, 2, 3, -1, 0, 8, 6, 256])
    made["byte perm"] = Kernel(body="r = libdevice.byte_perm(a, b, a * 0 + 0x3705)", dtype="int32",
                               a=[0x33221100] * 8, b=[0x77665544] * 8)  # fmt: skip
    made["erf"] = Kernel(body="r = tl.erf(a)", a=SMALL)
    made["exp"] = Kernel(body="r = tl.exp(a)", a=OTHER)
    return made


KERNELS = {
    **_elementwise("bfloat16"),
    **_elementwise("float16"),
    **_elementwise("float32"),
    **_minmax("bfloat16"),
    **_minmax("float16"),
    **_minmax("float32"),
    **_casts(),
    **_integers(),
    **_blocks(),
    **_language(),
    **_libdevice(),
    **_products(),
    **_pointers(),
    **_by_version(),
}
