"""TritonBench-T's own tasks against NumPy, SciPy and loops, and what their claims refuse."""

import itertools

import numpy as np
import pytest
import scipy.linalg
import torch
from scipy.signal import correlate2d
from scipy.special import expit, logsumexp, softmax

from kerneltruth.tasks.registry import tasks_of

TASKS = {task.name: task for task in tasks_of("tritonbench").values()}
DRAW = np.random.default_rng(166)
INFINITE = float("inf")
ODD = np.array([-INFINITE, -2.0, -0.0, 0.0, 0.25, 700.0, 720.0, INFINITE, np.nan])


def results(name, **given):
    """What the task's reference and its admissible formulas give, each as a tuple."""
    task = TASKS[name]
    for formula in (task.reference, *task.admissible):
        copies = {n: torch.tensor(v) if isinstance(v, np.ndarray) else v for n, v in given.items()}
        result = formula(**copies)
        yield tuple(r.numpy() for r in (result if isinstance(result, tuple) else (result,)))


def assert_agrees(name, *expected, **given):
    """That all of them are as expected, signs of zeros included."""
    count = 0
    for found in results(name, **given):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
            np.testing.assert_array_equal(
                np.signbit(one[other == 0]), np.signbit(other[other == 0])
            )
        count += 1
    assert count > 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_exponentials_and_roots_are_numpys_also_of_odd_values():
    assert_agrees("exp", np.exp(ODD), input=ODD)
    assert_agrees("sqrt", np.sqrt(ODD), input=ODD)


def test_ones_do_not_depend_on_the_input():
    assert_agrees("ones_like", np.ones(9), input=ODD)


@pytest.mark.parametrize("shape", [(3, 4), (4,), (3, 1), ()])
def test_products_broadcast_before_the_negative_ones_are_cut(shape):
    x, y = DRAW.normal(size=(3, 4)), DRAW.normal(size=shape)
    x[0, 0] = np.nan
    assert_agrees(
        "mul_relu", np.where(x * y <= 0, 0.0, x * y), input=x, other=np.array(y), inplace=False
    )


@pytest.mark.parametrize(
    "shapes",
    [((3, 4), (4,)), ((3, 1), (4,)), ((), (3, 4)), ((3, 1, 4), (2, 1))],
)
def test_tensors_are_broadcast_as_numpy_does(shapes):
    x, y = (np.array(DRAW.normal(size=shape)) for shape in shapes)
    assert_agrees("broadcast_tensors", *np.broadcast_arrays(x, y), x=x, y=y)


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_the_softmax_is_multiplied_not_its_input(dim):
    x = 300 * DRAW.normal(size=(3, 4))
    for other in (DRAW.normal(size=(3, 4)), DRAW.normal(size=4), np.array(-2.0)):
        assert_agrees("softmax_mul", softmax(x, axis=dim) * other, input=x, other=other, dim=dim)


@pytest.mark.parametrize(("dim", "keepdim"), [(0, False), (1, True), (-1, True), (-2, False)])
def test_sums_of_large_exponentials_have_a_logarithm(dim, keepdim):
    x = 500 * DRAW.normal(size=(5, 4, 3))
    x[0], x[1, 0, 0] = -INFINITE, INFINITE
    expected = logsumexp(x, axis=dim, keepdims=keepdim)
    assert_agrees("logsumexp", expected, input=x, dim=dim, keepdim=keepdim)


@pytest.mark.parametrize(("dim", "keepdim"), [(0, False), (1, True), (-1, False)])
def test_maxima_are_numpys(claims, dim, keepdim):
    x = DRAW.normal(size=(5, 6)).astype(np.float32)
    values, indices = x.max(dim, keepdims=keepdim), x.argmax(dim, keepdims=keepdim)
    assert_agrees("max", values, indices, input=x, dim=dim, keepdim=keepdim)
    found = torch.tensor(values), torch.tensor(indices)
    broken = claims("tritonbench/max", found, input=torch.tensor(x), dim=dim, keepdim=keepdim)
    assert broken == []


TIED = torch.tensor([[1.0, 3.0, 3.0], [2.0, float("nan"), 5.0]])
BIGGEST = torch.tensor([3.0, float("nan")])
MISPLACED = ["indices at which the maximum does not stand"]


def test_any_index_of_a_tie_is_right(claims):
    for first in (1, 2):
        assert claims("tritonbench/max", (BIGGEST, torch.tensor([first, 1])), input=TIED) == []


@pytest.mark.parametrize("indices", [[0, 1], [1, 2]])
def test_an_index_of_something_smaller_is_wrong(claims, indices):
    assert claims("tritonbench/max", (BIGGEST, torch.tensor(indices)), input=TIED) == MISPLACED


@pytest.mark.parametrize("indices", [[-1, 1], [1, 3]])
def test_an_index_that_is_out_of_range_is_wrong(claims, indices):
    broken = claims("tritonbench/max", (BIGGEST, torch.tensor(indices)), input=TIED)
    assert "indices out of range" in broken


@pytest.mark.parametrize(("dim", "keepdim"), [(None, False), (0, True), (1, False), (-1, True)])
def test_the_largest_sigmoid_is_where_numpy_finds_it(claims, dim, keepdim):
    x = DRAW.normal(size=(5, 6)).astype(np.float32)
    index = np.array(expit(x).argmax(dim, keepdims=keepdim))
    given = {"input": torch.tensor(x), "dim": dim, "keepdim": keepdim}
    assert claims("tritonbench/sigmoid_argmax", torch.tensor(index), **given) == []
    other = torch.tensor(np.array(expit(x).argmin(dim, keepdims=keepdim)))
    assert claims("tritonbench/sigmoid_argmax", other, **given) == MISPLACED


def test_sigmoids_that_round_alike_may_be_taken_for_each_other(claims):
    near = torch.tensor([[0.0, 20.0, 30.0, 2.0]])
    for index, broken in ((2, []), (1, []), (3, MISPLACED)):
        assert (
            claims("tritonbench/sigmoid_argmax", torch.tensor([index]), input=near, dim=1) == broken
        )


def test_sigmoids_that_vanish_may_be_taken_for_each_other(claims):
    small = torch.tensor([[-30.0, -20.0]], dtype=torch.float16)
    larger = torch.tensor([[-30.0, -9.0]], dtype=torch.float16)
    key, first = "tritonbench/sigmoid_argmax", torch.tensor([0])
    assert claims(key, first, input=small, dim=1) == []
    assert claims(key, first, input=larger, dim=1) == MISPLACED


def test_the_sum_of_vectors_is_kept_in_the_first():
    x, y = DRAW.normal(size=7), DRAW.normal(size=7)
    total = y + -0.5 * x
    assert_agrees("scaled_add_norm", np.array(np.linalg.norm(total)), total, y=y, x=x, alpha=-0.5)
    assert_agrees("scaled_add_dot", np.array(np.dot(total, total)), total, y=y, x=x, alpha=-0.5)


def convolved(x, weight, bias, *, stride, padding, dilation, groups):
    """By SciPy, one pair of channels after the other."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    count, channels, rows, columns = weight.shape
    spaced = np.zeros(
        (count, channels, dilation * (rows - 1) + 1, dilation * (columns - 1) + 1),
    )
    spaced[:, :, ::dilation, ::dilation] = weight
    outputs = []
    for n, o in itertools.product(range(len(x)), range(count)):
        first = o // (count // groups) * channels
        parts = (correlate2d(x[n, first + c], spaced[o, c], "valid") for c in range(channels))
        outputs.append(sum(parts)[::stride, ::stride] + (0.0 if bias is None else bias[o]))
    return np.stack(outputs).reshape(len(x), count, *outputs[0].shape)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups", "biased"),
    [(1, 0, 1, 1, True), (2, 1, 1, 2, False), (1, 2, 2, 1, True), (3, 1, 1, 2, True)],
)
def test_the_sigmoid_is_of_a_convolution_with_its_bias(stride, padding, dilation, groups, biased):
    x, weight = DRAW.normal(size=(2, 4, 6, 7)), DRAW.normal(size=(6, 4 // groups, 3, 2))
    bias = DRAW.normal(size=6) if biased else None
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    expected = expit(convolved(x, weight, bias, **how))
    assert_agrees("sigmoid_conv2d", expected, input=x, weight=weight, bias=bias, **how)


def channels():
    return {
        "running_mean": DRAW.normal(size=3),
        "running_var": DRAW.uniform(0.5, 2, size=3),
        "weight": DRAW.normal(size=3),
        "bias": DRAW.normal(size=3),
    }


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 2)])
def test_silu_comes_after_the_running_statistics(shape):
    x, own = DRAW.normal(size=shape), channels()
    mean, var, weight, bias = (v.reshape(-1, *[1] * (len(shape) - 2)) for v in own.values())
    z = (x - mean) / np.sqrt(var + 0.25) * weight + bias
    how = {"training": False, "momentum": 0.5, "eps": 0.25}
    assert_agrees("silu_batch_norm", z * expit(z), input=x, **own, **how)


def test_training_takes_the_batchs_statistics_and_keeps_the_unbiased_variance():
    x, own = DRAW.normal(size=(4, 3, 5)), channels() | {"weight": None, "bias": None}
    z = (x - x.mean((0, 2))[:, None]) / np.sqrt(x.var((0, 2)) + 1e-5)[:, None]
    mean = 0.75 * own["running_mean"] + 0.25 * x.mean((0, 2))
    variance = 0.75 * own["running_var"] + 0.25 * x.var((0, 2), ddof=1)
    how = {"training": True, "momentum": 0.25, "eps": 1e-5}
    assert_agrees("silu_batch_norm", z * expit(z), mean, variance, input=x, **own, **how)


def test_contractions_take_dims_by_number_or_by_lists():
    a, b = DRAW.normal(size=(2, 3, 4)), DRAW.normal(size=(3, 4, 5))
    assert_agrees("tensordot", np.einsum("ikl,kln->in", a, b), a=a, b=b, dims=2)
    b = DRAW.normal(size=(4, 5))
    assert_agrees("tensordot", np.einsum("ilk,kn->iln", a, b), a=a, b=b, dims=1)
    b = DRAW.normal(size=(4, 5, 2))
    assert_agrees("tensordot", np.einsum("kml,lnk->mn", a, b), a=a, b=b, dims=((2, 0), (0, 2)))


def right_side(rows, columns=3):
    return torch.tensor(DRAW.normal(size=(rows, columns)), dtype=torch.float32)


@pytest.mark.parametrize("form", ["shuffled", "spread"])
@pytest.mark.parametrize("shape", [(15, 15), (30, 12), (9, 1)])
def test_scipys_least_squares_are_right(claims, make_matrix, shape, form):
    a, b = make_matrix("matrix", form, *shape), right_side(shape[0])
    x = torch.from_numpy(scipy.linalg.lstsq(a.numpy(), b.numpy())[0])
    assert claims("tritonbench/least_squares_qr", x, A=a, b=b) == []
    vector = {"b": b[:, 0].contiguous(), "_b": "vector", "mode": "complete"}
    assert claims("tritonbench/least_squares_qr", x[:, 0], A=a, **vector) == []
    assert claims("tritonbench/least_squares_qr", x * 1.01, A=a, b=b)


@pytest.mark.parametrize("form", ["shuffled", "spread"])
@pytest.mark.parametrize("n", [1, 2, 17, 40])
def test_scipys_solution_with_a_factorization_is_right(claims, make_matrix, n, form):
    a, b = make_matrix("matrix", form, n, n), right_side(n)
    x = torch.from_numpy(scipy.linalg.lu_solve(scipy.linalg.lu_factor(a.numpy()), b.numpy()))
    assert claims("tritonbench/solve_multiple_lu", x, A=a, Bs=b) == []
    assert claims("tritonbench/solve_multiple_lu", x * 1.01, A=a, Bs=b)


def test_an_ordered_matrix_is_solved_without_pivoting(claims, make_matrix):
    a, b = make_matrix("matrix", "ordered", 24, 24), right_side(24)
    x, side = a.clone(), b.clone()
    for k in range(len(a)):
        factor = x[k + 1 :, k : k + 1] / x[k, k]
        x[k + 1 :] -= factor * x[k]
        side[k + 1 :] -= factor * side[k]
    found = torch.linalg.solve_triangular(x.triu(), side, upper=True)
    assert claims("tritonbench/solve_multiple_lu", found, A=a, Bs=b, pivot=False) == []


SETTINGS = [
    {},
    {"momentum": 0.9},
    {"momentum": 0.9, "dampening": 0.5},
    {"momentum": 0.5, "nesterov": True, "weight_decay": 2.0},
    {"weight_decay": 0.01, "maximize": True},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_steps_are_those_of_pytorchs_optimizer(settings):
    options = {a.name: a.default for a in TASKS["SGD"].attributes} | {"lr": 0.1} | settings
    params = [torch.tensor(DRAW.normal(size=shape)) for shape in ((2, 3), (4,), (5,))]
    gradients = [torch.tensor(DRAW.normal(size=(3, *p.shape))) for p in params[:2]]
    found = TASKS["SGD"].reference(
        params=params[:2], _gradients_of_p0=gradients[0], _gradients_of_p1=gradients[1], **options
    )
    owned = [p.clone().requires_grad_() for p in params]
    made = torch.optim.SGD(owned, **options)
    for step in range(3):
        for p, given in zip(owned, gradients, strict=False):
            p.grad = given[step].clone()
        made.step()
    for one, expected in zip(found, owned, strict=False):
        torch.testing.assert_close(one, expected.detach(), rtol=1e-12, atol=1e-12)
    assert torch.equal(owned[2], params[2])
