"""Solutions, inverses and determinants: stable algorithms pass, unstable and wrong ones do not."""

import numpy as np
import pytest
import scipy.linalg
import torch

from kerneltruth.tasks.registry import find


def coarse(x):
    """Rounded to TF32's ten bits."""
    bits = (x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF
    return bits.view(torch.float32)


def narrow(x):
    return x.bfloat16().float()


def right_side(n, k=3, seed=5):
    return torch.randn(n, k, generator=torch.Generator().manual_seed(seed))


def eliminated(a, b):
    """Gauss's algorithm without pivoting, in float32."""
    a, b = a.clone(), b.clone()
    for k in range(len(a)):
        factor = a[k + 1 :, k : k + 1] / a[k, k]
        a[k + 1 :] -= factor * a[k]
        b[k + 1 :] -= factor * b[k]
    return torch.linalg.solve_triangular(a.triu(), b, upper=True)


@pytest.mark.parametrize("form", ["shuffled", "spread"])
@pytest.mark.parametrize("n", [1, 2, 17, 40])
def test_scipys_solution_is_right_however_the_matrix_is_conditioned(claims, make_matrix, n, form):
    a, b = make_matrix("matrix", form, n, n), right_side(n)
    x = torch.from_numpy(scipy.linalg.solve(a.numpy(), b.numpy()))
    assert claims("solve", x, A=a, B=b) == []
    assert claims("solve", x[:, 0], A=a, B=b[:, 0].contiguous(), _b="vector") == []
    assert claims("fused_lu_solve", x[:, 0], A=a, b=b[:, 0].contiguous()) == []


def test_an_exact_solution_of_a_very_ill_conditioned_system_need_not_be_found(claims):
    a = torch.from_numpy(scipy.linalg.hilbert(9)).float()
    b = a @ right_side(9)
    x = torch.linalg.solve(a, b)
    expected = torch.linalg.solve(a.double(), b.double())
    assert float((x - expected).norm() / expected.norm()) > 1e-2
    assert claims("solve", x, A=a, B=b) == []
    assert claims("solve", torch.linalg.inv(a) @ b, A=a, B=b)


def without_permutation(a, b):
    _, lower, u = torch.linalg.lu(a)
    return torch.linalg.solve(lower @ u, b)


SOLVE_WRONG = {
    "no pivoting": eliminated,
    "permutation forgotten": without_permutation,
    "of the transpose": lambda a, b: torch.linalg.solve(a.mT, b),
    "one step of it": lambda a, b: torch.linalg.solve_triangular(a.triu(), b, upper=True),
    "a gain": lambda a, b: torch.linalg.solve(a, b) * 1.01,
    "of TF32": lambda a, b: coarse(torch.linalg.solve(a, b)),
    "not a number": lambda a, b: torch.linalg.solve(a, b) / 0 * 0,
}


@pytest.mark.parametrize("way", SOLVE_WRONG)
def test_a_wrong_solution_is_not(claims, make_matrix, way):
    a, b = make_matrix("matrix", "shuffled", 24, 24), right_side(24)
    x = SOLVE_WRONG[way](a, b)
    assert claims("solve", x, A=a, B=b)
    assert claims("fused_lu_solve", x[:, 0], A=a, b=b[:, 0].contiguous())


@pytest.mark.parametrize("upper", [False, True])
def test_scipys_cholesky_solution_is_right(claims, make_matrix, upper):
    factor, b = make_matrix("triangular", "upper" if upper else "lower", 20, 20), right_side(20)
    x = torch.from_numpy(scipy.linalg.cho_solve((factor.numpy(), not upper), b.numpy()))
    assert claims("cholesky_solve", x, B=b, L=factor, upper=upper) == []
    assert claims("cholesky_solve", x * 1.01, B=b, L=factor, upper=upper)


CHOLESKY_SOLVE_WRONG = {
    "upper as lower": lambda b, u: torch.linalg.solve(u @ u.mT, b),
    "one substitution": lambda b, u: torch.linalg.solve(u, b),
    "the factor twice": lambda b, u: torch.linalg.solve(u @ u, b),
    "of the factor's diagonal": lambda b, u: b / u.diagonal().unsqueeze(-1) ** 2,
    "of TF32": lambda b, u: coarse(torch.cholesky_solve(b, u, upper=True)),
}


@pytest.mark.parametrize("way", CHOLESKY_SOLVE_WRONG)
def test_a_wrong_cholesky_solution_is_not(claims, make_matrix, way):
    u, b = make_matrix("triangular", "upper", 20, 20), right_side(20)
    assert claims("cholesky_solve", CHOLESKY_SOLVE_WRONG[way](b, u), B=b, L=u, upper=True)


@pytest.mark.parametrize("alpha", [0.5, -2.0, 0.0])
def test_a_solution_with_a_vector_added_is_judged_as_a_whole(claims, make_matrix, alpha):
    a, b, y = make_matrix("triangular", "upper", 20, 20), right_side(20), right_side(20, 1, seed=6)
    x = torch.from_numpy(scipy.linalg.solve_triangular(a.numpy(), b.numpy())) + alpha * y
    assert claims("solve_and_add_scaled_vector", x, A=a, b=b, y=y, alpha=alpha) == []


ADD_WRONG = {
    "taken away": lambda a, b, y: upper_solution(a, b) - 0.5 * y,
    "not scaled": lambda a, b, y: upper_solution(a, b) + y,
    "added before": lambda a, b, y: upper_solution(a, b + 0.5 * y),
    "as if lower": lambda a, b, y: torch.linalg.solve(a.mT, b) + 0.5 * y,
    "a row for a column": lambda a, b, y: upper_solution(a, b) + 0.5 * y[:3].mT,
    "of TF32": lambda a, b, y: coarse(upper_solution(a, b) + 0.5 * y),
}


def upper_solution(a, b):
    return torch.linalg.solve_triangular(a, b, upper=True)


@pytest.mark.parametrize("way", ADD_WRONG)
def test_a_wrong_sum_is_not(claims, make_matrix, way):
    a, b, y = make_matrix("triangular", "upper", 20, 20), right_side(20), right_side(20, 1, seed=6)
    assert claims("solve_and_add_scaled_vector", ADD_WRONG[way](a, b, y), A=a, b=b, y=y)


@pytest.mark.parametrize("form", ["scaled", "spread"])
def test_scipys_symmetric_solution_is_right(claims, make_matrix, form):
    a, b = make_matrix("indefinite", form, 21, 21), right_side(21)
    x = torch.from_numpy(scipy.linalg.solve(a.numpy(), b.numpy(), assume_a="sym"))
    assert claims("solve_symmetric_ldl", x, A=a, b=b, _b="matrix") == []


def compact_form_taken_for_a_factor(a, b):
    """As if LD were L, and the pivots D."""
    factor, pivots = torch.linalg.ldl_factor(a)
    return torch.linalg.solve(factor @ torch.diag(pivots.float()) @ factor.mT + torch.eye(21), b)


LDL_WRONG = {
    "no pivoting": eliminated,
    "compact form taken for L": compact_form_taken_for_a_factor,
    "lower triangle alone": lambda a, b: torch.linalg.solve(a.tril() + torch.eye(21), b),
    "as if positive definite": lambda a, b: torch.linalg.solve(a @ a, b),
    "of TF32": lambda a, b: coarse(torch.linalg.solve(a, b)),
}


@pytest.mark.parametrize("way", LDL_WRONG)
def test_a_wrong_symmetric_solution_is_not(claims, make_matrix, way):
    a, b = make_matrix("indefinite", "scaled", 21, 21), right_side(21)
    assert claims("solve_symmetric_ldl", LDL_WRONG[way](a, b), A=a, b=b, _b="matrix")


@pytest.mark.parametrize("form", ["shuffled", "spread"])
def test_numpys_inverse_is_right_from_either_side(claims, make_matrix, form):
    a = make_matrix("matrix", form, 25, 25)
    assert claims("invert_matrix_lu", torch.from_numpy(np.linalg.inv(a.numpy())), A=a) == []
    other = torch.from_numpy(np.linalg.inv(a.mT.numpy())).mT
    assert claims("invert_matrix_lu", other, A=a) == []


INVERSE_WRONG = {
    "no pivoting": lambda a: eliminated(a, torch.eye(len(a))),
    "permutation forgotten": lambda a: without_permutation(a, torch.eye(len(a))),
    "transposed": lambda a: torch.linalg.inv(a).mT,
    "of each element": lambda a: 1 / a,
    "of TF32": lambda a: coarse(torch.linalg.inv(a)),
}


@pytest.mark.parametrize("way", INVERSE_WRONG)
def test_a_wrong_inverse_is_not(claims, make_matrix, way):
    a = make_matrix("matrix", "shuffled", 25, 25)
    a[0, 0] *= 2**-12
    assert claims("invert_matrix_lu", INVERSE_WRONG[way](a), A=a)


DETERMINANTS = ("det", "determinant_lu", "determinant_via_qr")


@pytest.mark.parametrize("form", ["shuffled", "spread"])
@pytest.mark.parametrize("n", [1, 2, 9, 20])
@pytest.mark.parametrize("name", DETERMINANTS)
def test_numpys_determinant_is_right(claims, make_matrix, name, n, form):
    a = make_matrix("matrix", form, n, n)
    expected = torch.tensor(np.linalg.det(a.numpy()))
    assert claims(name, expected, A=a) == []
    # The determinant of an ill-conditioned matrix is not known to 1% in float32.
    assert claims(name, expected * (1.01 if form == "shuffled" else 1.1), A=a)


def odd(made):
    """A matrix with an odd permutation of its rows."""
    for seed in range(20):
        a = made("matrix", "shuffled", 12, 12, seed=seed)
        if float(torch.linalg.det(torch.linalg.lu(a).P)) < 0:
            return a
    raise AssertionError


DET_WRONG = {
    "sign of the permutation forgotten": lambda a: torch.linalg.lu(a).U.diagonal().prod(),
    "of the diagonal": lambda a: a.diagonal().prod(),
    "without a sign": lambda a: torch.linalg.det(a).abs() * -torch.linalg.det(a).sign(),
    "no pivoting": lambda a: eliminated_pivots(a).prod(),
    "logarithm": lambda a: torch.linalg.slogdet(a).logabsdet,
    "of TF32": lambda a: coarse(torch.linalg.lu(a).U).diagonal().prod() * -1.004,
}


def eliminated_pivots(a):
    a = a.clone()
    a[0, 0] *= 2**-22
    for k in range(len(a)):
        a[k + 1 :] -= a[k + 1 :, k : k + 1] / a[k, k] * a[k]
    return a.diagonal()


@pytest.mark.parametrize("way", DET_WRONG)
@pytest.mark.parametrize("name", DETERMINANTS)
def test_a_wrong_determinant_is_not(claims, make_matrix, name, way):
    a = odd(make_matrix)
    assert claims(name, DET_WRONG[way](a), A=a)


def test_a_product_that_leaves_the_range_is_refused():
    a = torch.eye(60, dtype=torch.float64) * 4
    with pytest.raises(ValueError, match="may leave float32's range"):
        find("det", "kernelbenchx").reference(A=a)


@pytest.mark.parametrize("form", ["scaled", "spread"])
def test_scipys_positive_definite_solution_is_right(claims, make_matrix, form):
    a, b = make_matrix("spd", form, 20, 20), right_side(20)
    x = torch.from_numpy(scipy.linalg.solve(a.numpy(), b.numpy(), assume_a="pos"))
    assert claims("fused_cholesky_solve", x, A=a, b=b) == []


FUSED_CHOLESKY_WRONG = {
    "one substitution": lambda a, b: torch.linalg.solve(torch.linalg.cholesky(a), b),
    "the factor twice": lambda a, b: torch.linalg.solve(torch.linalg.cholesky(a), b) ** 2,
    "diagonal alone": lambda a, b: b / a.diagonal().unsqueeze(-1),
    "of TF32": lambda a, b: coarse(torch.linalg.solve(a, b)),
}


@pytest.mark.parametrize("way", FUSED_CHOLESKY_WRONG)
def test_a_wrong_positive_definite_solution_is_not(claims, make_matrix, way):
    a, b = make_matrix("spd", "scaled", 20, 20), right_side(20)
    assert claims("fused_cholesky_solve", FUSED_CHOLESKY_WRONG[way](a, b), A=a, b=b)


@pytest.mark.parametrize("form", ["shuffled", "spread"])
@pytest.mark.parametrize("shape", [(15, 15), (30, 12), (9, 1)])
def test_scipys_least_squares_are_right(claims, make_matrix, shape, form):
    a, b = make_matrix("matrix", form, *shape), right_side(shape[0])
    x = torch.from_numpy(scipy.linalg.lstsq(a.numpy(), b.numpy())[0])
    assert claims("fused_qr_solve", x, A=a, b=b) == []


LEAST_SQUARES_WRONG = {
    "first rows alone": lambda a, b: torch.linalg.solve(a[:12], b[:12]),
    "Q not transposed": lambda a, b: torch.linalg.qr(a).Q.mT.flip(0) @ b,
    "R left out": lambda a, b: torch.linalg.qr(a).Q.mT @ b,
    "a gain": lambda a, b: torch.linalg.lstsq(a, b).solution * 1.01,
}


@pytest.mark.parametrize("way", LEAST_SQUARES_WRONG)
def test_wrong_least_squares_are_not(claims, make_matrix, way):
    a, b = make_matrix("matrix", "shuffled", 30, 12), right_side(30)
    assert claims("fused_qr_solve", LEAST_SQUARES_WRONG[way](a, b), A=a, b=b)


def test_normal_equations_fail_on_an_ill_conditioned_matrix(claims, make_matrix):
    a, b = make_matrix("matrix", "steep", 24, 24), right_side(24)
    x = torch.linalg.solve(a.mT @ a, a.mT @ b)
    assert claims("fused_qr_solve", x, A=a, b=b)


def test_nothing_is_no_solution(claims, make_matrix):
    a, b = make_matrix("matrix", "shuffled", 30, 12), right_side(30)
    assert claims("fused_qr_solve", torch.zeros(12, 3), A=a, b=b)
    assert claims("fused_qr_solve", torch.zeros(12, 3), A=a, b=torch.zeros(30, 3)) == []


@pytest.mark.parametrize("form", ["shuffled", "spread", "steep"])
def test_tf32_in_the_right_side_is_admitted_and_nowhere_else(claims, make_matrix, form):
    a, b = make_matrix("matrix", form, 30, 12), right_side(30)
    Q, R = torch.linalg.qr(a)
    of_product = torch.linalg.solve_triangular(R, coarse(Q.mT) @ coarse(b), upper=True)
    assert claims("fused_qr_solve", of_product, A=a, b=b) == []
    wide = [t.double() for t in (of_product, a, b)]
    assert claims("fused_qr_solve", wide[0], A=wide[1], b=wide[2])
    if form != "shuffled":
        of_substitution = torch.linalg.solve_triangular(coarse(R), Q.mT @ b, upper=True)
        assert claims("fused_qr_solve", of_substitution, A=a, b=b)
        assert claims("fused_qr_solve", coarse(of_product), A=a, b=b)


def reconstructed(a, *, u=lambda t: t, s=lambda t: t, v=lambda t: t):
    left, values, right = torch.linalg.svd(a, full_matrices=False)
    return (u(left) * s(values)) @ v(right)


RECONSTRUCTIONS_WRONG = {
    "V transposed": lambda a: reconstructed(a, v=lambda t: t.mT),
    "the smallest value dropped": lambda a: reconstructed(a, s=lambda t: t * (t > t[-1])),
    "values squared": lambda a: reconstructed(a, s=lambda t: t * t),
    "a sign lost": lambda a: reconstructed(a, u=lambda t: t * (1 - 2 * (t == t[:, -1:]))),
    "of bfloat16": lambda a: reconstructed(a, u=narrow, v=narrow),
}


def test_a_matrix_put_together_again_is_the_matrix(claims, make_matrix):
    a = make_matrix("matrix", "raw", 20, 20)
    assert claims("fused_svd_reconstruct", reconstructed(a), A=a) == []
    in_tf32 = reconstructed(a, u=coarse, s=coarse, v=coarse)
    assert claims("fused_svd_reconstruct", in_tf32, A=a) == []
    assert claims("fused_svd_reconstruct", in_tf32.double(), A=a.double())


@pytest.mark.parametrize("way", RECONSTRUCTIONS_WRONG)
def test_a_matrix_put_together_wrongly_is_not(claims, make_matrix, way):
    a = make_matrix("matrix", "raw", 20, 20)
    assert claims("fused_svd_reconstruct", RECONSTRUCTIONS_WRONG[way](a), A=a)
