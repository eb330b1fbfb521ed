"""A softmax in Triton, whose block is as wide as a row; its wrappers are the tests' own."""

KERNEL = """\
@triton.jit
def kernel(x, out, n, B: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + row * n + at, at < n, other=float("-inf"))
    if x.dtype.element_ty != tl.float64:
        v = v.to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * n + at, e / tl.sum(e, 0), at < n)
"""
