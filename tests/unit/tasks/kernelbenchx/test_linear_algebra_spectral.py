"""Eigenvalues, singular values and what is made of them, against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.linalg
import torch

from kerneltruth.tasks.registry import find


def as_tensors(*arrays):
    return tuple(torch.from_numpy(np.array(a, order="C")) for a in arrays)


def coarse(x):
    """Rounded to TF32's ten bits."""
    bits = (x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF
    return bits.view(torch.float32)


@pytest.mark.parametrize("form", ["raw", "shuffled", "spread"])
def test_numpys_eigenvectors_are_right_in_any_order_and_phase(claims, make_matrix, form):
    a = make_matrix("matrix", form, 15, 15)
    w, v = np.linalg.eig(a.numpy())
    w, v = as_tensors(w.astype(np.complex64), v.astype(np.complex64))
    assert claims("eig", (w, v), A=a) == []
    assert claims("eig", (w.flip(0), v.flip(1) * 1j), A=a) == []


def test_a_defective_matrix_is_judged(claims):
    a = torch.tensor([[2.0, 1.0], [0.0, 2.0]])
    assert claims("eig", tuple(torch.linalg.eig(a)), A=a) == []
    assert claims("eig", (torch.full((2,), torch.nan + 0j), torch.eye(2) + 0j), A=a)


def eig(a):
    return tuple(torch.linalg.eig(a))


def one_twice(a):
    w, v = eig(a)
    return torch.cat((w[:1], w[:1], w[2:])), torch.cat((v[:, :1], v[:, :1], v[:, 2:]), 1)


EIG_WRONG = {
    "real parts alone": lambda a: tuple(t.real + 0j for t in eig(a)),
    "one eigenvalue twice": one_twice,
    "not of length 1": lambda a: (eig(a)[0], eig(a)[1] * 2),
    "left eigenvectors": lambda a: eig(a.mT.contiguous()),
    "as if symmetric": lambda a: tuple(t + 0j for t in torch.linalg.eigh(a)),
    "in another order": lambda a: (eig(a)[0].flip(0), eig(a)[1]),
    "of TF32": lambda a: (torch.view_as_complex(coarse(torch.view_as_real(eig(a)[0]))), eig(a)[1]),
}


@pytest.mark.parametrize("way", EIG_WRONG)
def test_wrong_eigenvectors_are_not(claims, make_matrix, way):
    a = make_matrix("matrix", "raw", 15, 15, seed=3)
    assert claims("eig", EIG_WRONG[way](a), A=a)


@pytest.mark.parametrize("form", ["raw", "spread"])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(13, 13), (6, 15), (15, 6), (2, 7, 7)])
def test_numpys_svd_is_right_whatever_the_signs(claims, make_matrix, shape, full, form):
    a = make_matrix("matrix", form, *shape)
    u, s, vh = as_tensors(*np.linalg.svd(a.numpy(), full_matrices=full))
    given = {"A": a, "full_matrices": full, "_rank": len(shape)}
    assert claims("svd", (u, s, vh), **given) == []
    assert claims("svd", (-u, s, -vh), **given) == []


def test_svd_of_a_singular_matrix_has_orthonormal_vectors_all_the_same(claims):
    a = torch.ones(4, 4)
    u, s, vh = torch.linalg.svd(a)
    assert claims("svd", (u, s, vh), A=a) == []
    missing = u.clone()
    missing[:, 1:] = 0
    assert claims("svd", (missing, s, vh), A=a)


def svd(a):
    return tuple(torch.linalg.svd(a))


def through_the_gram_matrix(a):
    squares, v = torch.linalg.eigh(a.mT @ a)
    s, v = squares.flip(0).clamp_min(0).sqrt(), v.flip(1)
    return (a @ v) / s, s, v.mT.contiguous()


def unsorted(a):
    u, s, vh = svd(a)
    return u.flip(1), s.flip(0), vh.flip(0)


SVD_WRONG = {
    "ascending": unsorted,
    "negative": lambda a: (-svd(a)[0], -svd(a)[1], svd(a)[2]),
    "V in place of Vh": lambda a: (*svd(a)[:2], svd(a)[2].mT),
    "through the Gram matrix": through_the_gram_matrix,
    "squares": lambda a: (svd(a)[0], svd(a)[1] ** 2, svd(a)[2]),
    "of TF32": lambda a: tuple(map(coarse, svd(a))),
}


@pytest.mark.parametrize("way", SVD_WRONG)
def test_a_wrong_svd_is_not(claims, make_matrix, way):
    a = make_matrix("matrix", "spread", 20, 20)
    assert claims("svd", SVD_WRONG[way](a), A=a)


def of_rank(a, k):
    u, s, vh = np.linalg.svd(a.numpy(), full_matrices=False)
    return torch.from_numpy((u[:, :k] * s[:k]) @ vh[:k])


@pytest.mark.parametrize("form", ["raw", "spread"])
@pytest.mark.parametrize("shape", [(14, 14), (6, 20), (20, 6)])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_numpys_best_approximation_is_right(claims, make_matrix, k, shape, form):
    a = make_matrix("matrix", form, *shape)
    assert claims("low_rank_svd_approximation", of_rank(a, k), A=a, k=k) == []


def by_columns(a):
    """The best of the approximations that keep the first columns: not the best of all."""
    q = torch.linalg.qr(a[:, :3]).Q
    return q @ (q.mT @ a)


LOW_RANK_WRONG = {
    "one too many": lambda a: of_rank(a, 4),
    "one too few": lambda a: of_rank(a, 2),
    "of the first columns": by_columns,
    "a gain": lambda a: of_rank(a, 3) * 1.01,
    "the rest": lambda a: a - of_rank(a, 3),
    "of TF32": lambda a: coarse(of_rank(a, 3)),
}


@pytest.mark.parametrize("way", LOW_RANK_WRONG)
def test_a_worse_approximation_is_not(claims, make_matrix, way):
    a = make_matrix("matrix", "raw", 16, 16)
    assert claims("low_rank_svd_approximation", LOW_RANK_WRONG[way](a), A=a, k=3)


@pytest.mark.parametrize("form", ["shuffled", "spread"])
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("shape", [(12, 12), (5, 14), (14, 5)])
def test_numpys_pseudoinverse_is_right(claims, make_matrix, shape, cut, form):
    a = make_matrix("matrix", form, *shape)
    values = np.linalg.svd(a.numpy(), compute_uv=False)
    rcond = float((values[2] + values[3]) / 2 / values[0]) if cut else 1e-15
    (x,) = as_tensors(np.linalg.pinv(a.numpy(), rcond=rcond))
    assert claims("pseudoinverse_svd", x, A=a, rcond=rcond) == []


def not_inverted(a):
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    return (vh.mT * s) @ u.mT


PSEUDO_WRONG = {
    "by the normal equations": lambda a: torch.linalg.inv(a.mT @ a) @ a.mT,
    "transposed": lambda a: a.mT.contiguous(),
    "not inverted": not_inverted,
    "a gain": lambda a: torch.linalg.pinv(a) * 1.01,
    "cut at a hundredth": lambda a: torch.linalg.pinv(a, rtol=0.01),
    "of TF32": lambda a: torch.linalg.pinv(coarse(a)),
}


@pytest.mark.parametrize("way", PSEUDO_WRONG)
def test_a_wrong_pseudoinverse_is_not(claims, make_matrix, way):
    # Squaring loses what a steep spectrum shows, and it hides a gain.
    tried = [make_matrix("matrix", form, 18, 12) for form in ("spread", "steep")]
    assert any(claims("pseudoinverse_svd", PSEUDO_WRONG[way](a), A=a) for a in tried)


def test_what_rcond_cuts_off_must_be_cut_off(claims, make_matrix):
    a = make_matrix("matrix", "spread", 12, 12)
    assert claims("pseudoinverse_svd", torch.linalg.pinv(a), A=a, rcond=0.03)


def test_a_singular_value_at_the_cut_is_refused():
    task = find("pseudoinverse_svd", "kernelbenchx")
    a = torch.diag(torch.tensor([1.0, 0.3], dtype=torch.float64))
    with pytest.raises(ValueError, match="at the cut"):
        task.reference(A=a, full_matrices=True, rcond=0.3)


@pytest.mark.parametrize("form", ["scaled", "spread"])
@pytest.mark.parametrize("k", [2.0, 0.5, -1.0, 3.0, 0.0, -0.5])
def test_scipys_matrix_power_is_right(claims, make_matrix, k, form):
    a = make_matrix("spd", form, 11, 11)
    expected = scipy.linalg.fractional_matrix_power(a.double().numpy(), k)
    assert claims("matrix_power_eig", torch.from_numpy(expected).float(), A=a, k=k) == []


POWER_WRONG = {
    "of each element": lambda a: a.abs() ** 0.5,
    "rounded exponent": lambda a: torch.eye(len(a)),
    "Cholesky's root": lambda a: torch.linalg.cholesky(a),
    "a gain": lambda a: power(a, 0.5) * 1.01,
    "of bfloat16": lambda a: power(a, 0.5, of=lambda t: t.bfloat16().float()),
    "the inverse": lambda a: power(a, -0.5),
}


def power(a, k, of=lambda t: t):
    w, v = torch.linalg.eigh(a)
    return of(v * w**k) @ of(v.mT)


@pytest.mark.parametrize("way", POWER_WRONG)
def test_a_wrong_power_is_not(claims, make_matrix, way):
    a = make_matrix("spd", "scaled", 11, 11)
    assert claims("matrix_power_eig", POWER_WRONG[way](a), A=a, k=0.5)
