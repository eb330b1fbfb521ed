"""The 16 controls and 10 bugs of the published corpus, by name and fault; the code is our own."""

from __future__ import annotations

from kerneltruth.corpus.entry import Entry, bug, control

ENTRIES: tuple[Entry, ...] = (
    control("numpy_softmax", "softmax", "NumPy, float32 inside"),
    control("numpy_layernorm", "layer_norm", "NumPy, float32 inside"),
    control("numpy_matmul", "matmul", "NumPy, float32 inside"),
    control("softmax", "softmax", "one row per program, any strides"),
    control("gelu", "gelu", "by erf, or by tanh where asked"),
    control("silu", "silu", "the exponential never overflows"),
    control("rmsnorm", "rms_norm", "any strides, float32 inside"),
    control("l2norm", "l2_norm", "a NaN norm stays NaN"),
    control("relu", "relu", "NaN passes; native dtype"),
    control("leaky_relu", "leaky_relu", "the slope is an argument"),
    control("sigmoid", "sigmoid", "the exponential never overflows"),
    control("tanh", "tanh", "by exp(-2|x|), a series near 0"),
    control("elu", "elu", "a series near 0 in place of exp(x) - 1"),
    control("matmul", "matmul", "any strides; tl.dot as it comes, so TF32 on a GPU"),
    control("attention", "attention", "two passes over the keys, any strides"),
    control("flash_attention", "attention", "keys in blocks, online softmax"),
    bug(
        "numpy_softmax_tail_leak",
        control="numpy_softmax",
        fault="padded columns join the sum",
        breaks="shapes",
        note="N not a multiple of 64",
    ),
    bug(
        "softmax_other_zero",
        control="softmax",
        fault="masked lanes are loaded as 0, not -inf",
        breaks="shapes",
        note="N not a power of two",
    ),
    bug(
        "gelu_no_half",
        control="gelu",
        fault="the leading 0.5 is missing",
        breaks="published",
        note="everywhere but at 0",
    ),
    bug(
        "silu_double_argument",
        control="silu",
        fault="sigmoid(2x) for sigmoid(x)",
        breaks="published",
        note="everywhere but at 0",
    ),
    bug(
        "rmsnorm_no_sqrt",
        control="rmsnorm",
        fault="divides by the mean square",
        breaks="published",
        note="rows whose mean square is not 1",
    ),
    bug(
        "l2norm_no_sqrt",
        control="l2norm",
        fault="divides by the squared norm",
        breaks="published",
        note="rows whose norm is not 1",
    ),
    bug(
        "leaky_relu_alpha",
        control="leaky_relu",
        fault="slope 0.1 whatever is asked",
        breaks="values",
        note="negative elements",
    ),
    bug(
        "matmul_no_accumulate",
        control="matmul",
        fault="`acc =` for `acc +=`",
        breaks="published",
        note="K > 32",
    ),
    bug(
        "attention_no_scale",
        control="attention",
        fault="scores are not divided by sqrt(D)",
        breaks="published",
        note="D > 1",
    ),
    bug(
        "flash_attention_no_rescale",
        control="flash_attention",
        fault="the accumulator is not rescaled",
        breaks="published",
        note="N > 16",
    ),
)
