"""Matrix products against sums written as loops."""

import pytest
import torch

from kerneltruth.tasks.kernelbenchx.matrix_multiply import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
A = [[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]]
B = [[2.0, 1.0], [0.0, -3.0], [1.5, 0.25]]
C = [[10.0, 20.0], [-30.0, 40.0]]
SQUARE = [[1.0, 2.0, -1.0], [3.0, 0.5, 7.0], [-2.0, 4.0, 1.5]]


def matrix(rows):
    return torch.tensor(rows, dtype=torch.float64)


def product(one, other):
    columns = list(zip(*other, strict=True))
    return [[sum(a * b for a, b in zip(r, c, strict=True)) for c in columns] for r in one]


def transposed(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def mixed(one, other, alpha, beta):
    return [
        [alpha * a + beta * b for a, b in zip(r, s, strict=True)]
        for r, s in zip(one, other, strict=True)
    ]


def reference(name, **arguments):
    return TASKS[name].reference(**arguments)


@pytest.mark.parametrize("name", ["matmul", "matmul_bf16", "matmul_fp16"])
def test_a_product_is_the_sum_over_the_inner_dim(name):
    operands = ("tensor1", "tensor2") if name == "matmul" else ("input", "other")
    got = reference(name, **dict(zip(operands, (matrix(A), matrix(B)), strict=True)))
    torch.testing.assert_close(got, matrix(product(A, B)))


def test_vectors_are_rows_on_the_left_and_columns_on_the_right():
    row, column = matrix(A[0]), matrix([1.0, 2.0, 3.0])
    got = reference("matmul", tensor1=row, tensor2=matrix(B))
    torch.testing.assert_close(got, matrix(product([A[0]], B)[0]))
    got = reference("matmul", tensor1=matrix(A), tensor2=column)
    torch.testing.assert_close(got, matrix([6.0, 5.5]))
    assert float(reference("matmul", tensor1=row, tensor2=column)) == 6.0


@pytest.mark.parametrize("addend", [C, [C[0]], [[10.0], [20.0]]])
def test_addmm_broadcasts_what_it_adds(addend):
    wide = [[r[j % len(r)] for j in range(2)] for r in (addend[i % len(addend)] for i in range(2))]
    got = reference(
        "addmm", input=matrix(addend), mat1=matrix(A), mat2=matrix(B), beta=0.5, alpha=-2.0
    )
    torch.testing.assert_close(got, matrix(mixed(product(A, B), wide, -2.0, 0.5)))


def test_addmm_does_not_read_its_input_when_beta_is_0():
    nan = matrix([[float("nan")] * 2] * 2)
    got = reference("addmm", input=nan, mat1=matrix(A), mat2=matrix(B), beta=0.0, alpha=1.0)
    torch.testing.assert_close(got, matrix(product(A, B)))


def test_the_row_dot_is_that_of_the_first_two_rows():
    a, c = [*A, [9.0, 9.0, 9.0]], [*C, [7.0, 7.0]]
    rows = mixed(product(a, B), c, 0.5, 2.0)
    got = reference(
        "matrix_multiply_and_row_dot", A=matrix(a), B=matrix(B), C=matrix(c), alpha=0.5, beta=2.0
    )
    assert float(got) == pytest.approx(sum(x * y for x, y in zip(rows[0], rows[1], strict=True)))


def test_the_symmetric_product_is_taken_of_the_updated_matrix():
    first = mixed(product(A, B), C, 0.5, 2.0)
    second = mixed(product(first, transposed(first)), first, 0.5, 2.0)
    got = reference(
        "matrix_multiply_symmetric", A=matrix(A), B=matrix(B), C=matrix(C), alpha=0.5, beta=2.0
    )
    torch.testing.assert_close(got, matrix(second))


def test_the_vector_dot_uses_rows_of_the_matrix():
    x, y = [1.0, -2.0, 0.5], [4.0, 5.0, 6.0]
    z = [0.5 * sum(a * b for a, b in zip(r, x, strict=True)) for r in SQUARE]
    want = sum((v + 2.0 * w) * u for v, w, u in zip(z, y, x, strict=True))
    got, updated = reference(
        "matrix_vector_dot", A=matrix(SQUARE), x=matrix(x), y=matrix(y), alpha=0.5, beta=2.0
    )
    assert float(got) == pytest.approx(want)
    expected = [v + 2.0 * w for v, w in zip(z, y, strict=True)]
    assert updated.tolist() == pytest.approx(expected)


def test_the_sum_of_magnitudes_is_taken_after_the_update():
    updated = mixed(product(A, transposed(A)), C, -1.0, 0.5)
    got = reference("symmetric_mm_and_abs_sum", A=matrix(A), C=matrix(C), alpha=-1.0, beta=0.5)
    assert float(got) == pytest.approx(sum(abs(x) for row in updated for x in row))


def test_nothing_above_the_diagonal_is_a_factor():
    lower = [[x if j <= i else 0.0 for j, x in enumerate(row)] for i, row in enumerate(SQUARE)]
    dirty = matrix(SQUARE).triu(1) * float("nan")
    a = torch.where(dirty.isnan() & (matrix(SQUARE).triu(1) != 0), dirty, matrix(SQUARE))
    got = reference("tril_mm_and_scale", A=a, B=matrix(B), alpha=0.5, beta=-2.0)
    torch.testing.assert_close(got, -matrix(product(lower, B)))


@pytest.mark.parametrize("dims", [2, ((2, 0), (0, 2))])
def test_tensordot_contracts_the_named_dims(dims):
    a = torch.rand(3, 4, 5, dtype=torch.float64)
    b = torch.rand(4, 5, 2, dtype=torch.float64) if dims == 2 else None
    if b is not None:
        want = [
            [
                sum(float(a[m, k, i] * b[k, i, n]) for k in range(4) for i in range(5))
                for n in range(2)
            ]
            for m in range(3)
        ]
    else:
        b = torch.rand(5, 2, 3, dtype=torch.float64)
        want = [
            [
                sum(float(a[k, m, i] * b[i, n, k]) for k in range(3) for i in range(5))
                for n in range(2)
            ]
            for m in range(4)
        ]
    got = reference("tensordot_rsqrt", a=a, b=b, dims=dims)
    torch.testing.assert_close(got, matrix(want) ** -0.5)
