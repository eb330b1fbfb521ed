"""What tests of fused operators share: inputs, references on NumPy arrays, and common steps."""

import math

import numpy as np
import scipy.special
import torch


def draw_uniform(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).uniform(-2, 2, shape)


def reference_of(task, **given):
    """The task's reference on NumPy arrays; attributes that are not given keep their defaults."""
    tensors = {n: torch.tensor(v) if isinstance(v, np.ndarray) else v for n, v in given.items()}
    arguments = {
        a.name: a.default for a in task.attributes if not a.hidden and a.name != "dtype"
    } | tensors
    result = task.reference(**arguments)
    outputs = result if isinstance(result, tuple) else (result,)
    return outputs[0].numpy() if len(outputs) == 1 else tuple(o.numpy() for o in outputs)


def assert_close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * scipy.special.ndtr(x)


def normalized(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
