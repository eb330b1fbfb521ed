"""Optimizers' steps against torch.optim and NumPy."""

import numpy as np
import pytest
import torch

from kerneltruth.tasks.kernelbenchx.optimizer import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
DRAW = np.random.default_rng(13)


def draw_normal(*shape):
    return torch.tensor(DRAW.normal(size=shape))


@pytest.mark.parametrize("decay", [0, 0.5])
def test_adam_takes_one_step_per_gradient(decay):
    given, gradients = draw_normal(3, 4), draw_normal(3, 3, 4)
    idle = draw_normal(2)
    own = given.clone()
    optimizer = torch.optim.Adam([own], lr=0.1, betas=(0.5, 0.9), eps=0.1, weight_decay=decay)
    for gradient in gradients:
        own.grad = gradient
        optimizer.step()
    result = TASKS["Adam"].reference(
        params=[given, idle],
        _gradients_of_p0=gradients,
        _gradients_of_p1=None,
        lr=0.1,
        betas=(0.5, 0.9),
        eps=0.1,
        weight_decay=decay,
    )
    np.testing.assert_allclose(result[0].numpy(), own.numpy(), rtol=1e-12)
    assert result[1] is idle


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_adamw_decays_the_parameter_and_not_the_gradient(decay):
    param, gradients = draw_normal(6), draw_normal(3, 6)
    own = param.clone()
    settings = {"lr": 0.1, "eps": 0.1, "weight_decay": decay}
    optimizer = torch.optim.AdamW([own], betas=(0.5, 0.9), **settings)
    mean, square = torch.zeros(6, dtype=torch.float64), torch.zeros(6, dtype=torch.float64)
    for step, gradient in enumerate(gradients, start=1):
        own.grad = gradient
        optimizer.step()
        param, mean, square = TASKS["AdamW"].reference(
            param=param,
            grad=gradient,
            exp_avg=mean,
            exp_avg_sq=square,
            step=step,
            beta1=0.5,
            beta2=0.9,
            **settings,
        )
        np.testing.assert_allclose(param.numpy(), own.numpy(), rtol=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_rmsprop_scales_by_the_new_average(decay):
    param, gradients = draw_normal(6), draw_normal(3, 6)
    own = param.clone()
    settings = {"lr": 0.1, "alpha": 0.9, "eps": 0.1, "weight_decay": decay}
    optimizer = torch.optim.RMSprop([own], **settings)
    square = torch.zeros(6, dtype=torch.float64)
    for gradient in gradients:
        own.grad = gradient
        optimizer.step()
        param, square = TASKS["RMSProp"].reference(
            param=param, grad=gradient, square_avg=square, **settings
        )
        np.testing.assert_allclose(param.numpy(), own.numpy(), rtol=1e-12)


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_keeps_its_momentum(nesterov):
    param, gradients = draw_normal(6), draw_normal(3, 6)
    own, buffer = param.clone(), None
    settings = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.5, "nesterov": nesterov}
    optimizer = torch.optim.SGD([own], **settings)
    for gradient in gradients:
        own.grad = gradient
        optimizer.step()
        param, buffer = TASKS["SGD"].reference(
            param=param, grad=gradient, momentum_buffer=buffer, dampening=0.0, **settings
        )
        np.testing.assert_allclose(param.numpy(), own.numpy(), rtol=1e-12)


def test_dampening_holds_from_the_first_step():
    param, grad = draw_normal(6), draw_normal(6)
    settings = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.0, "nesterov": False}
    result = TASKS["SGD"].reference(
        param=param, grad=grad, momentum_buffer=None, dampening=0.25, **settings
    )
    np.testing.assert_allclose(result[0].numpy(), (param - 0.1 * 0.75 * grad).numpy(), rtol=1e-12)
    np.testing.assert_allclose(result[1].numpy(), 0.75 * grad.numpy(), rtol=1e-12)


def test_without_momentum_there_is_no_buffer():
    param, grad, buffer = draw_normal(6), draw_normal(6), draw_normal(6)
    settings = {"lr": 0.5, "momentum": 0.0, "weight_decay": 0.0, "nesterov": False}
    result = TASKS["SGD"].reference(
        param=param, grad=grad, momentum_buffer=buffer, dampening=0.0, **settings
    )
    assert len(result) == 1
    np.testing.assert_allclose(result[0].numpy(), (param - 0.5 * grad).numpy(), rtol=1e-12)


def test_lion_moves_by_the_sign_of_a_mixture_of_the_old_average():
    param = torch.tensor([1.0, 1.0, 1.0], dtype=torch.float64)
    grad = torch.tensor([-1.0, 4.0, 0.0], dtype=torch.float64)
    average = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)
    result = TASKS["Lion"].reference(
        param=param, grad=grad, exp_avg=average, lr=0.1, beta1=0.75, beta2=0.5, weight_decay=0.5
    )
    # Mixtures of 0.5, 0.25 and 0; a decay by 1 - 0.1 * 0.5.
    np.testing.assert_allclose(result[0].numpy(), [0.85, 0.85, 0.95], rtol=1e-12)
    np.testing.assert_allclose(result[1].numpy(), [0.0, 1.5, 0.0], rtol=1e-12)
