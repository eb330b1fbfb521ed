"""Fusions with dropout: the chain without it, and what their claims tell apart."""

import numpy as np
import pytest
import torch
from claims_of import broken_by
from scipy.special import log_softmax, softmax

from kerneltruth.cases.materialize import benchmark_case, materialize
from kerneltruth.corpus.eager import fusion_z_random as eager
from kerneltruth.oracle.reference import reference
from kerneltruth.tasks.kernelbenchx.fusion_z_random import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
DRAW = np.random.default_rng(19)


def broken_claims(task, function, **settings):
    """The names of the claims that a function's result breaks at the benchmark's shape."""
    case = benchmark_case(task, 3, "float32", "normal").with_attributes(**settings)
    inputs = materialize(task, case)
    torch.manual_seed(5)
    out = function(**task.keywords(inputs.tensors, inputs.scalars, function))
    truth = reference(task, inputs.tensors, inputs.scalars)
    return broken_by(task, inputs.tensors, (out,), inputs.scalars, reference=truth)


def test_log_softmax_of_the_sum_is_multiplied_by_matrices():
    one, two, other = DRAW.normal(size=(3, 2, 4, 5))
    mat2 = DRAW.normal(size=(2, 5, 3))
    expected = np.einsum("bmk,bkn->bmn", log_softmax(one * two + other, axis=1), mat2)
    result = TASKS["fused_mul_add_logsoftmax_dropout_bmm"].reference(
        input1=torch.tensor(one),
        input2=torch.tensor(two),
        other=torch.tensor(other),
        mat2=torch.tensor(mat2),
        p=0.5,
        training=False,
        inplace=False,
        dim=1,
    )
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


def test_log_softmax_of_the_product_with_a_vector():
    matrix, vec = DRAW.normal(size=(6, 4)), DRAW.normal(size=4)
    result = TASKS["fused_mv_logsoftmax_dropout"].reference(
        input=torch.tensor(matrix),
        vec=torch.tensor(vec),
        p=0.0,
        training=True,
        inplace=False,
        dim=0,
    )
    np.testing.assert_allclose(result.numpy(), log_softmax(matrix @ vec), rtol=1e-12)


def test_the_residual_is_added_before_the_rows_are_normalized():
    x, one, two = DRAW.normal(size=(3, 4)), DRAW.normal(size=(4, 6)), DRAW.normal(size=(6, 5))
    residual = DRAW.normal(size=5)
    mixed = softmax(x @ one, axis=-1) @ two + residual
    centered = mixed - mixed.mean(-1, keepdims=True)
    expected = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 0.01)
    result = TASKS["fused_transformer_block"].reference(
        input=torch.tensor(x),
        weight1=torch.tensor(one),
        weight2=torch.tensor(two),
        residual=torch.tensor(residual),
        dropout_p=0.0,
        eps=0.01,
    )
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", sorted(TASKS))
def test_dropout_of_the_right_share_is_accepted(name):
    assert broken_claims(TASKS[name], getattr(eager, name)) == []


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("fused_mul_add_logsoftmax_dropout_bmm", {"p": 0.25}),
        ("fused_mul_add_logsoftmax_dropout_bmm", {"training": False}),
        ("fused_mv_logsoftmax_dropout", {"p": 0.05}),
        ("fused_mv_logsoftmax_dropout", {"training": False}),
        ("fused_transformer_block", {"dropout_p": 0.9}),
        ("fused_transformer_block", {"dropout_p": 0.0}),
    ],
)
def test_dropout_of_another_share_is_rejected(name, wrong):
    def other(**arguments):
        return getattr(eager, name)(**(arguments | wrong))

    settings = {"dropout_p": 0.5} if name == "fused_transformer_block" else {}
    assert broken_claims(TASKS[name], other, **settings)


@pytest.mark.parametrize("name", ["fused_mv_logsoftmax_dropout"])
def test_kept_elements_that_are_not_scaled_are_rejected(name):
    def unscaled(p, **arguments):
        return getattr(eager, name)(p=p, **arguments) * (1 - p)

    assert broken_claims(TASKS[name], unscaled)
