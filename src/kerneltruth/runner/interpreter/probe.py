"""One kernel whose results are known, for versions of Triton that no test has run with."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kerneltruth.runner.unsupported import UnsupportedError

_COUNT = 13


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    total = tl.sum(x.to(tl.float32), axis=0)
    for k in range(2):
        x = tl.where(x > 2.0, x * factor - k, -x).to(tl.bfloat16)
    columns = tl.broadcast_to(x[:, None], (BLOCK, BLOCK))
    product = tl.dot(columns, tl.full((BLOCK, BLOCK), 1.0, tl.bfloat16))
    result = tl.max(product, axis=1) / BLOCK
    if total > 0 and n > 0:
        tl.store(out_ptr + i, result + total, mask=i < n)


def check() -> None:
    """Run it.

    Raises:
        UnsupportedError: the result is not what a GPU computes.
    """
    x = torch.arange(_COUNT, dtype=torch.bfloat16)
    out = torch.zeros(_COUNT)
    _kernel[(1,)](x, out, _COUNT, 2.0, BLOCK=16)
    # All of these numbers are integers that bf16 holds exactly.
    numbers = torch.arange(_COUNT, dtype=torch.float32)
    if not torch.equal(out, torch.where(numbers > 2, 4 * numbers - 1, numbers) + numbers.sum()):
        raise UnsupportedError(f"a kernel whose result is known computed {out.tolist()}")
