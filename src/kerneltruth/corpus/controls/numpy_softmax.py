import numpy as np


def softmax(input, dim=-1):
    x = input.astype(np.float32)
    with np.errstate(all="ignore"):
        x = x - x.max(axis=dim, keepdims=True, initial=-np.inf)
        numerator = np.exp(x)
        out = numerator / numerator.sum(axis=dim, keepdims=True)
    return out.astype(input.dtype)
