"""Matrix products, and sums and dot products of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kerneltruth.tasks.rounding import held_by, rounded
from kerneltruth.tasks.spec import Dim, Output, Promises, Role, Task, Variants, task

_MNK: dict[str, Role | Dim] = {"M": "batch", "N": "channel", "K": "contracted"}
_SMALL = {"M": 64, "N": 64, "K": 64}
_LARGE = (
    {"M": 512, "N": 512, "K": 512},
    {"M": 2048, "N": 2048, "K": 2048},
    {"M": 4096, "N": 4096, "K": 4096},
)
_ALPHA_BETA = {"alpha": (0.5, -2.0), "beta": (0.0, 0.5)}
# A sum of both signs: a gain of 1% often drowns in its rounding.
_ONE_NUMBER = (Output(spared=("gain",)),)
# Products of products leave half precision's range soon; larger inputs would only show that.
_MODERATE = (-2.0, 2.0)


Add = Callable[[Tensor, Tensor, float, float], Tensor]


def _add(product: Tensor, other: Tensor, alpha: float, beta: float) -> Tensor:
    return alpha * product + beta * other


def _add_unless_beta_is_0(product: Tensor, other: Tensor, alpha: float, beta: float) -> Tensor:
    """What BLAS computes: with beta 0 the addend is not read, so that its NaN does not spread."""
    return alpha * product if beta == 0 else _add(product, other, alpha, beta)


def _row_dot(A: Tensor, B: Tensor, alpha: float, beta: float, C: Tensor, add: Add = _add) -> Tensor:
    rows = add(A[:2] @ B, C.expand(len(A), B.shape[1])[:2], alpha, beta)
    return (rows[0] * rows[1]).sum()


def _symmetric(
    A: Tensor, B: Tensor, C: Tensor, alpha: float, beta: float, add: Add = _add
) -> Tensor:
    first = add(A @ B, C, alpha, beta)
    return add(first @ first.T, first, alpha, beta)


def _vector_dot(
    A: Tensor, x: Tensor, y: Tensor, alpha: float, beta: float, add: Add = _add
) -> tuple[Tensor, Tensor]:
    updated = add(A @ x, y, alpha, beta)
    return (updated * x).sum(), updated


def _abs_sum(A: Tensor, C: Tensor, alpha: float, beta: float, add: Add = _add) -> Tensor:
    return add(A @ A.T, C, alpha, beta).abs().sum()


def _others(function: Any) -> tuple[Any, ...]:
    """The same operator with the sum formed in other ways that are correct too.

    The addend is not read where beta is 0; the sum is rounded to the case's dtype, once or at each
    step. The last two matter where one number is made of many that nearly cancel: a single
    evaluation in half precision says little about what others lose.
    """

    def unread(**arguments: Any) -> Any:
        return function(**arguments, add=_add_unless_beta_is_0)

    def at_once(**arguments: Any) -> Any:
        dtype = held_by(arguments["A"])

        def add(product: Tensor, other: Tensor, alpha: float, beta: float) -> Tensor:
            return rounded(_add(product, other, alpha, beta), dtype)

        return function(**arguments, add=add)

    def in_steps(**arguments: Any) -> Any:
        dtype = held_by(arguments["A"])

        def add(product: Tensor, other: Tensor, alpha: float, beta: float) -> Tensor:
            left = rounded(alpha * rounded(product, dtype), dtype)
            return rounded(left + rounded(beta * other, dtype), dtype)

        return function(**arguments, add=add)

    return unread, at_once, in_steps


def _addmm(input: Tensor, mat1: Tensor, mat2: Tensor, beta: float, alpha: float) -> Tensor:
    product = alpha * (mat1 @ mat2)
    return product if beta == 0 else beta * input + product


def _tril(A: Tensor, B: Tensor, alpha: float, beta: float) -> Tensor:
    return beta * (alpha * (torch.tril(A) @ B))


def _tensordot_rsqrt(a: Tensor, b: Tensor, dims: Any) -> Tensor:
    return torch.rsqrt(torch.tensordot(a, b, dims=dims))


_MATMUL_LEFT = Variants(
    "_form",
    {
        "matrices": "M, K",
        "batched": "B, M, K",
        "broadcast right": "B, M, K",
        "broadcast left": "B, 2, M, K",
        "row": "K",
        "column": "M, K",
        "dot": "K",
    },
)
_MATMUL_RIGHT = Variants(
    "_form",
    {
        "matrices": "K, N",
        "batched": "B, K, N",
        "broadcast right": "K, N",
        "broadcast left": "2, K, N",
        "row": "K, N",
        "column": "K",
        "dot": "K",
    },
)

_task = partial(task, category="MatrixMultiply")

TASKS: tuple[Task, ...] = (
    _task(
        "addmm(input[*shape], mat1[M, K], mat2[K, N], beta=1.0, alpha=1.0)",
        dims=_MNK,
        where={
            "shape": Variants(
                "_input", {"matrix": "M, N", "row": "N", "column": "M, 1", "scalar": ""}
            )
        },
        attributes={"beta": (0.0, 0.5), "alpha": (2.0, -0.5)},
        reference=_addmm,
        admissible=(
            lambda input, mat1, mat2, beta, alpha: torch.addmm(
                input, mat1, mat2, beta=beta, alpha=alpha
            ),
        ),
        description="""beta * input + alpha * (mat1 @ mat2) in the dtype of the inputs; mat1 is
            [M, K], mat2 is [K, N], and `input` is [M, N] or may be broadcast to that ([N], [M, 1]
            or no dims). With beta 0 `input` is not read, so that its NaN does not spread. With
            K = 0 the product is 0.""",
        flops="2*M*N*K + 3*M*N",
        benchmark=_SMALL,
        perf=_LARGE,
        promises=Promises(out=True, not_tried={"sparse layouts": "only strided tensors are made"}),
    ),
    _task(
        "matmul(tensor1[*left], tensor2[*right])",
        dims={"B": Dim(symbol="B", role="batch", high=64), **_MNK},
        where={"left": _MATMUL_LEFT, "right": _MATMUL_RIGHT},
        reference=lambda tensor1, tensor2: torch.matmul(tensor1, tensor2),
        description="""The matrix product of tensor1 and tensor2, as in torch.matmul, in the dtype
            of the inputs. Two matrices [M, K] and [K, N] give [M, N]. A vector on the left is a
            row and one on the right a column, and that dim is left out of the result; two vectors
            give a scalar tensor. With more dims the last two are matrices and the leading ones
            are broadcast. With K = 0 the result is 0.""",
        flops="2*M*N*K",
        benchmark={"B": 1, **_SMALL},
        perf=tuple({"B": 1, **shape} for shape in _LARGE),
        promises=Promises(out=True, not_tried={"sparse layouts": "only strided tensors are made"}),
    ),
    *(
        _task(
            f"{name}(input[*batch, M, K], other[*others, K, N], _batched=False)",
            dims={"B": Dim(symbol="B", role="batch", high=64), **_MNK},
            where={
                "batch": Variants("_batched", {False: "", True: "B", "one other": "B"}),
                "others": Variants("_batched", {False: "", True: "B", "one other": ""}),
            },
            attributes={"_batched": (True, "one other")},
            extended=extended,
            dtypes=(dtype,),
            reference=lambda input, other: torch.matmul(input, other),
            description=f"""The matrix product of input [M, K] and other [K, N], both {dtype}, with
                products summed in float32 and rounded once, to {dtype}. With a leading batch dim
                on both, each pair is multiplied. With K = 0 the result is 0.""",
            flops="2*M*N*K",
            benchmark={"B": 1, **_SMALL},
            perf=tuple({"B": 1, **shape} for shape in _LARGE),
        )
        for name, dtype, extended in (
            ("matmul_bf16", "bfloat16", {"_batched": (True, "one other")}),
            ("matmul_fp16", "float16", {"_batched": ("one other",)}),
        )
    ),
    _task(
        "matrix_multiply_and_row_dot(A[M, K], B[K, N], alpha=1.0, beta=1.0, C[*addend])",
        where={"addend": Variants("_c", {"same": "M, N", "row": "N"})},
        extended={"_c": ("row",)},
        dims={
            "M": Dim(symbol="M", role="batch", low=2),
            "N": "reduced",
            "K": "contracted",
        },
        attributes=_ALPHA_BETA,
        values=_MODERATE,
        outputs=_ONE_NUMBER,
        may_overwrite={"C": "True"},
        reference=_row_dot,
        admissible=_others(_row_dot),
        description="""With R = alpha * (A @ B) + beta * C, where A is [M, K], B is [K, N] and C is
            [M, N], the dot product of R's first two rows, as a tensor without dims in the dtype
            of the inputs. M is at least 2. C may be overwritten; with beta 0 it need not be
            read.""",
        flops="4*N*K + 8*N",
        benchmark={"M": 32, "N": 64, "K": 64},
        perf=_LARGE,
    ),
    _task(
        "matrix_multiply_symmetric(A[M, K], B[K, M], C[*addend], alpha=1.0, beta=1.0)",
        where={"addend": Variants("_c", {"same": "M, M", "row": "M"})},
        extended={"_c": ("row",)},
        dims={"M": "contracted", "K": "contracted"},
        attributes=_ALPHA_BETA,
        values=_MODERATE,
        may_overwrite={"C": "True"},
        reference=_symmetric,
        admissible=_others(_symmetric),
        description="""First R = alpha * (A @ B) + beta * C, then alpha * (R @ R.T) + beta * R, as
            an [M, M] tensor in the dtype of the inputs. A is [M, K], B is [K, M], C is [M, M] and
            may be overwritten. With beta 0 the addends may be read or not.""",
        flops="2*M*M*K + 2*M*M*M + 6*M*M",
        benchmark={"M": 48, "K": 48},
        perf=({"M": 512, "K": 512}, {"M": 2048, "K": 2048}, {"M": 4096, "K": 4096}),
    ),
    _task(
        "matrix_vector_dot(A[N, N], x[N], y[N], alpha=1.0, beta=1.0)",
        dims={"N": Dim(symbol="N", role="contracted")},
        attributes=_ALPHA_BETA,
        values=_MODERATE,
        outputs=(*_ONE_NUMBER, Output(name="y")),
        mutates={"y": "True"},
        reference=_vector_dot,
        admissible=_others(_vector_dot),
        description="""y becomes alpha * (A @ x) + beta * y, in place, where A is [N, N] and x and y
            are [N]; the result is the dot product of the new y and x, as a tensor without dims in
            the dtype of the inputs. A may not be taken for symmetric. With beta 0 the old y may be
            read or not.""",
        flops="2*N*N + 5*N",
        benchmark={"N": 64},
        perf=({"N": 1024}, {"N": 8192}, {"N": 16384}),
    ),
    _task(
        "symmetric_mm_and_abs_sum(A[M, K], C[M, M], alpha=1.0, beta=1.0)",
        dims={"M": "reduced", "K": "contracted"},
        attributes=_ALPHA_BETA,
        values=_MODERATE,
        may_overwrite={"C": "True"},
        reference=_abs_sum,
        admissible=_others(_abs_sum),
        description="""The sum of the magnitudes of all elements of alpha * (A @ A.T) + beta * C,
            where A is [M, K] and C is [M, M], as a tensor without dims in the dtype of the inputs.
            C need not be symmetric; it may be overwritten. With beta 0 C may be read or not.""",
        flops="2*M*M*K + 4*M*M",
        benchmark={"M": 48, "K": 48},
        perf=({"M": 512, "K": 512}, {"M": 2048, "K": 2048}, {"M": 4096, "K": 4096}),
    ),
    _task(
        "tensordot_rsqrt(a[*a_shape]: probability, b[*b_shape]: probability, dims:=contracted)",
        dims={
            "M": "batch",
            "N": "channel",
            "K": Dim(symbol="K", role="contracted", high=65),
            "L": Dim(symbol="L", role="contracted", high=65),
        },
        where={
            "contracted": lambda _dims: 2 if _dims == "int" else ((2, 0), (0, 2)),
            "a_shape": Variants("_dims", {"int": "M, K, L", "lists": "K, M, L"}),
            "b_shape": Variants("_dims", {"int": "K, L, N", "lists": "L, N, K"}),
        },
        reference=_tensordot_rsqrt,
        description="""1 / sqrt(tensordot(a, b, dims)) per element, in the dtype of the inputs. An
            integer `dims` contracts the last `dims` dims of a with the first `dims` of b; a pair of
            lists names the dims of a and those of b that are contracted with each other, in that
            order. What is left of a's dims comes first, then what is left of b's. A sum of 0 gives
            infinity and a negative one NaN.""",
        flops="2*M*N*K*L + 2*M*N",
        benchmark={"M": 32, "N": 32, "K": 8, "L": 8},
        perf=(
            {"M": 512, "N": 512, "K": 16, "L": 32},
            {"M": 2048, "N": 2048, "K": 32, "L": 64},
            {"M": 4096, "N": 4096, "K": 64, "L": 64},
        ),
    ),
    _task(
        "tril_mm_and_scale(A[M, M], B[M, N], alpha=1.0, beta=1.0)",
        dims={"M": "contracted", "N": "channel"},
        attributes={"alpha": (0.5, -2.0), "beta": (0.5, -2.0)},
        values=(-10.0, 10.0),
        reference=_tril,
        description="""beta * alpha * (tril(A) @ B), where tril(A) is A with 0 above the main
            diagonal, A is [M, M] and B is [M, N]: an [M, N] tensor in the dtype of the inputs. What
            stands above the diagonal is not read as a factor: NaN and infinity there have no
            effect.""",
        flops="M*M*N + 2*M*N",
        benchmark={"M": 64, "N": 64},
        perf=({"M": 512, "N": 512}, {"M": 2048, "N": 2048}, {"M": 4096, "N": 4096}),
    ),
)
