"""PyTorch's own optimizer, and steps of others in its operators, as a candidate."""

import torch


def Adam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0):
    return torch.optim.Adam(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)


def adamw_step(
    param,
    grad,
    exp_avg,
    exp_avg_sq,
    step,
    lr=0.001,
    beta1=0.9,
    beta2=0.999,
    eps=1e-08,
    weight_decay=0.01,
):
    param.mul_(1 - lr * weight_decay)
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    denominator = (exp_avg_sq.sqrt() / (1 - beta2**step) ** 0.5).add_(eps)
    param.addcdiv_(exp_avg, denominator, value=-lr / (1 - beta1**step))
    return param, exp_avg, exp_avg_sq


def lion_step(param, grad, exp_avg, lr=0.0001, beta1=0.9, beta2=0.99, weight_decay=0.0):
    direction = (exp_avg * beta1).add_(grad, alpha=1 - beta1).sign_()
    param.mul_(1 - lr * weight_decay).add_(direction, alpha=-lr)
    exp_avg.lerp_(grad, 1 - beta2)
    return param, exp_avg


def rmsprop_step(param, grad, square_avg, lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0.0):
    grad = grad.add(param, alpha=weight_decay)
    square_avg = (square_avg * alpha).addcmul_(grad, grad, value=1 - alpha)
    return param - lr * grad / (square_avg.sqrt() + eps), square_avg


def sgd_step(
    param,
    grad,
    momentum_buffer=None,
    lr=0.1,
    momentum=0.9,
    weight_decay=0.0,
    dampening=0.0,
    nesterov=False,
):
    grad = grad.add(param, alpha=weight_decay)
    if momentum == 0:
        return param.add_(grad, alpha=-lr), None
    if momentum_buffer is None:
        momentum_buffer = torch.zeros_like(param)
    momentum_buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
    step = grad.add(momentum_buffer, alpha=momentum) if nesterov else momentum_buffer
    return param.add_(step, alpha=-lr), momentum_buffer
