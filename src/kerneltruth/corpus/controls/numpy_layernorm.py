import numpy as np


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    if x.size == 0:
        return np.zeros_like(x)
    values = x.astype(np.float32)
    with np.errstate(all="ignore"):
        mean = values.mean(axis=-1, keepdims=True)
        centered = values - mean
        variance = np.square(centered).mean(axis=-1, keepdims=True)
        out = centered / np.sqrt(variance + np.float32(eps))
        if weight is not None:
            out = out * weight.astype(np.float32)
        if bias is not None:
            out = out + bias.astype(np.float32)
        return out.astype(x.dtype)
