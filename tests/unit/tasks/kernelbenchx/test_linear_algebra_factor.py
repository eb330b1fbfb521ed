"""Factorizations: right ones of other libraries pass, whatever they chose; wrong ones do not."""

import numpy as np
import pytest
import scipy.linalg
import torch
from scipy.linalg import lapack

from kerneltruth.tasks.registry import find


def as_tensors(*arrays):
    return tuple(torch.from_numpy(np.array(a, dtype=np.float32, order="C")) for a in arrays)


def coarse(x):
    """Rounded to TF32's ten bits."""
    bits = (x.view(torch.int32) + 0x1000) & ~0x1FFF
    return bits.view(torch.float32)


@pytest.mark.parametrize("form", ["scaled", "spread"])
@pytest.mark.parametrize("upper", [False, True])
def test_scipys_cholesky_factor_is_right(claims, make_matrix, upper, form):
    a = make_matrix("spd", form, 20, 20)
    (factor,) = as_tensors(scipy.linalg.cholesky(a.numpy(), lower=not upper))
    assert claims("cholesky", factor, A=a, upper=upper) == []


def not_square_rooted(a):
    lower, d, _ = scipy.linalg.ldl(a.double().numpy())
    return torch.from_numpy(lower * np.diag(d)).float().tril()


CHOLESKY_WRONG = {
    "transposed": lambda a: torch.linalg.cholesky(a).mT,
    "without the root": not_square_rooted,
    "the other triangle left in place": lambda a: torch.linalg.cholesky(a) + a.triu(1),
    "a column's sign": lambda a: torch.linalg.cholesky(a) * torch.tensor([-1.0] + [1.0] * 19),
    "of TF32": lambda a: coarse(torch.linalg.cholesky(a)),
    "of half precision": lambda a: torch.linalg.cholesky(a).half().float(),
}


@pytest.mark.parametrize("way", CHOLESKY_WRONG)
def test_a_wrong_cholesky_factor_is_not(claims, make_matrix, way):
    a = make_matrix("spd", "scaled", 20, 20)
    assert claims("cholesky", CHOLESKY_WRONG[way](a), A=a)


def eliminated(a):
    """LU without pivoting, in float32."""
    u, lower = a.clone(), torch.eye(len(a))
    for k in range(len(a)):
        lower[k + 1 :, k] = u[k + 1 :, k] / u[k, k]
        u[k + 1 :] -= lower[k + 1 :, k : k + 1] * u[k]
    return torch.eye(len(a)), lower, u.triu()


@pytest.mark.parametrize("form", ["raw", "shuffled", "spread"])
@pytest.mark.parametrize("shape", [(17, 17), (9, 20), (20, 9), (2, 11, 11)])
def test_scipys_lu_is_right(claims, make_matrix, shape, form):
    a = make_matrix("matrix", form, *shape)
    assert claims("lu", as_tensors(*scipy.linalg.lu(a.numpy())), A=a, _rank=len(shape)) == []


def test_lu_of_a_singular_matrix_is_judged(claims):
    a = torch.ones(5, 5)
    assert claims("lu", tuple(torch.linalg.lu(a)), A=a) == []
    p, lower, _ = torch.linalg.lu(a)
    assert claims("lu", (p, lower, torch.full((5, 5), torch.nan).triu()), A=a)


def crout(a):
    """The diagonal on the side of L."""
    p, lower, u = torch.linalg.lu(a)
    d = u.diagonal()
    return p, lower * d, u / d.unsqueeze(-1)


def multipliers_left_behind(a):
    """Rows are interchanged in U, and the multipliers of earlier columns are not."""
    p, lower, u = torch.linalg.lu(a)
    moved = lower.clone()
    moved[-2:, 0] = moved[-2:, 0].flip(0)
    return p, moved, u


LU_WRONG = {
    "no pivoting": eliminated,
    "P transposed": lambda a: (torch.linalg.lu(a)[0].mT, *torch.linalg.lu(a)[1:]),
    "diagonal in L": crout,
    "multipliers not interchanged": multipliers_left_behind,
    "of TF32": lambda a: (*torch.linalg.lu(a)[:2], coarse(torch.linalg.lu(a)[2])),
    "packed": lambda a: (torch.linalg.lu(a)[0], *[sum(torch.linalg.lu(a)[1:])] * 2),
}


@pytest.mark.parametrize("way", LU_WRONG)
def test_a_wrong_lu_is_not(claims, make_matrix, way):
    a = make_matrix("matrix", "shuffled", 18, 18)
    assert claims("lu", LU_WRONG[way](a), A=a)


def test_lu_without_pivoting_is_right_if_requested(claims, make_matrix):
    a = make_matrix("matrix", "ordered", 18, 18)
    _, lower, u = eliminated(a)
    assert claims("lu", (torch.empty(0), lower, u), A=a, pivot=False) == []
    assert claims("lu", (torch.empty(0), lower, coarse(u)), A=a, pivot=False)


def test_the_reference_without_pivoting_gives_the_matrix_back(make_matrix):
    a = make_matrix("matrix", "ordered", 7, 4).double()
    _, lower, u = find("lu", "kernelbenchx").reference(A=a, pivot=False)
    torch.testing.assert_close(lower @ u, a)
    assert torch.equal(lower.diagonal(), torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("form", ["raw", "spread"])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [(19, 19), (8, 21), (21, 8)])
def test_scipys_qr_is_right_and_so_is_one_of_other_signs(claims, make_matrix, shape, mode, form):
    a = make_matrix("matrix", form, *shape)
    economic = {"reduced": "economic", "complete": "full"}[mode]
    q, r = as_tensors(*scipy.linalg.qr(a.numpy(), mode=economic))
    assert claims("qr", (q, r), A=a, mode=mode) == []
    assert claims("qr", (-q, -r), A=a, mode=mode) == []


def test_r_alone_is_judged_by_the_gram_matrix(claims, make_matrix):
    a = make_matrix("matrix", "raw", 12, 9)
    r = torch.linalg.qr(a, mode="r").R
    assert claims("qr", (torch.empty(0), r), A=a, mode="r") == []
    assert claims("qr", (torch.empty(0), r * 1.01), A=a, mode="r")


def gram_schmidt(a, *, passes=1):
    """Classical: projections on all earlier columns at once."""
    q, r = torch.zeros_like(a), torch.zeros(a.shape[1], a.shape[1])
    for k in range(a.shape[1]):
        rest = a[:, k].clone()
        for _ in range(passes):
            along = q[:, :k].mT @ rest
            rest -= q[:, :k] @ along
            r[:k, k] += along
        r[k, k] = rest.norm()
        q[:, k] = rest / r[k, k]
    return q, r


def cholesky_qr(a):
    r = torch.linalg.cholesky(a.mT @ a).mT.contiguous()
    return torch.linalg.solve_triangular(r, a, upper=True, left=False), r


QR_WRONG = {
    "Gram-Schmidt once": gram_schmidt,
    "through the Gram matrix": cholesky_qr,
    "a sign in R alone": lambda a: (torch.linalg.qr(a).Q, -torch.linalg.qr(a).R),
    "Q transposed": lambda a: (torch.linalg.qr(a).Q.mT, torch.linalg.qr(a).R),
    "R not triangular": lambda a: (torch.eye(len(a)), a),
    "of TF32": lambda a: (coarse(torch.linalg.qr(a).Q), torch.linalg.qr(a).R),
}


@pytest.mark.parametrize("way", QR_WRONG)
def test_a_wrong_qr_is_not(claims, make_matrix, way):
    a = make_matrix("matrix", "spread", 24, 24)
    assert claims("qr", QR_WRONG[way](a), A=a)


def test_gram_schmidt_with_a_second_pass_is_right(claims, make_matrix):
    a = make_matrix("matrix", "spread", 24, 24)
    assert claims("qr", gram_schmidt(a, passes=2), A=a) == []


@pytest.mark.parametrize("form", ["scaled", "spread"])
@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_lapacks_ldl_is_right(claims, make_matrix, n, form):
    a = make_matrix("indefinite", form, n, n)
    factor, pivots, info = lapack.ssytrf(a.numpy(), lower=True)
    assert info == 0
    given = torch.from_numpy(pivots.astype(np.int32))
    assert claims("ldl_factor", (*as_tensors(factor), given), A=a) == []


def test_an_ldl_of_a_matrix_that_needs_no_pivots_may_do_without(claims, make_matrix):
    a = make_matrix("spd", "scaled", 9, 9)
    lower, d, _ = scipy.linalg.ldl(a.double().numpy())
    packed = torch.from_numpy(np.tril(lower, -1) + d).float()
    identity = torch.arange(1, 10, dtype=torch.int32)
    assert np.allclose(d, np.diag(np.diag(d)))
    assert claims("ldl_factor", (packed, identity), A=a) == []


def no_symmetric_pivoting(a):
    _, lower, u = eliminated(a)
    packed = lower.tril(-1) + torch.diag(u.diagonal())
    return packed, torch.arange(1, len(a) + 1, dtype=torch.int32)


def ldl(a):
    return tuple(torch.linalg.ldl_factor(a))


LDL_WRONG = {
    "no pivoting": no_symmetric_pivoting,
    "pivots from 0": lambda a: (ldl(a)[0], ldl(a)[1] - ldl(a)[1].sign()),
    "no interchange": lambda a: (ldl(a)[0], torch.arange(1, len(a) + 1, dtype=torch.int32)),
    "blocks' signs lost": lambda a: (ldl(a)[0], ldl(a)[1].abs()),
    "of TF32": lambda a: (coarse(ldl(a)[0]), ldl(a)[1]),
    "the matrix itself": lambda a: (a, ldl(a)[1]),
}


@pytest.mark.parametrize("way", LDL_WRONG)
def test_a_wrong_ldl_is_not(claims, make_matrix, way):
    a = make_matrix("indefinite", "scaled", 16, 16)
    assert bool((ldl(a)[1] < 0).any())
    assert claims("ldl_factor", LDL_WRONG[way](a), A=a)


@pytest.mark.parametrize("name", ["cholesky", "lu", "qr", "ldl_factor"])
def test_a_matrix_that_is_not_finite_is_refused(name):
    task = find(name, "kernelbenchx")
    a = torch.full((3, 3), torch.nan, dtype=torch.float64)
    settings = {x.name: x.default for x in task.attributes}
    with pytest.raises(ValueError, match="not finite"):
        task.reference(**task.keywords({"A": a}, settings, task.reference))
