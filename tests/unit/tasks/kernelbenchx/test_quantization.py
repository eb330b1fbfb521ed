"""Which results quantized arithmetic explains, and float references against NumPy and loops."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from kerneltruth.tasks.claims import Evidence
from kerneltruth.tasks.kernelbenchx.quantization import TASKS as PRODUCTS
from kerneltruth.tasks.kernelbenchx.quantization_fused import TASKS as FUSED

TASKS = {t.name: t for t in (*PRODUCTS, *FUSED)}
NOT_EXPLAINED = "distance to quantized arithmetic / rounding"


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def broken(name, out, scalars=None, **tensors):
    """The claims that an output breaks."""
    task = TASKS[name]
    wide = {n: None if t is None else t.double() for n, t in tensors.items()}
    reference = task.reference(**wide, **(scalars or {}))
    dtype = str(out.dtype).removeprefix("torch.")
    evidence = Evidence(
        inputs=wide,
        scalars=scalars or {},
        outputs=(out,),
        reference=(reference,),
        dtype=dtype,
        eps=torch.finfo(out.dtype).eps,
    )
    return [claim.name for claim in task.claims(evidence) if not claim.holds]


def away(x):
    """Round halves away from zero."""
    return torch.sign(x) * torch.floor(x.abs() + 0.5)


def codes(x, dim, *, top=127, rounding=torch.round):
    scale = x.abs().amax(dim, keepdim=True) / top
    return rounding(x / scale).clamp(-128, 127), scale


def w8a8(x, w, x_dim, w_dim, **how):
    a, a_scale = codes(x, x_dim, **how)
    b, b_scale = codes(w, w_dim, **how)
    return (a.double() @ b.double()).float() * a_scale * b_scale


def in_groups(x, w, size):
    parts = zip(x.split(size, -1), w.split(size, 0), strict=True)
    return sum(w8a8(a, b, -1, 0) for a, b in parts)


WAYS = {
    "per row and column": lambda x, w: w8a8(x, w, -1, 0),
    "per tensor": lambda x, w: w8a8(x, w, (0, 1), (0, 1)),
    "per tensor and column": lambda x, w: w8a8(x, w, (0, 1), 0),
    "on 128": lambda x, w: w8a8(x, w, -1, 0, top=128),
    "halves away": lambda x, w: w8a8(x, w, -1, 0, rounding=away),
    "groups of 32": lambda x, w: in_groups(x, w, 32),
    "groups of 64": lambda x, w: in_groups(x, w, 64),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_product_is_explained_however_its_scales_are_shared(generator, way):
    x, w = (torch.randn(s, generator=generator) for s in ((33, 100), (100, 17)))
    assert broken("matmul_w8a8", WAYS[way](x, w), input=x, weight=w) == []


def truncated(x, w):
    return w8a8(x, w, -1, 0, rounding=torch.trunc)


def only_the_weight(x, w):
    b, scale = codes(w, 0)
    return x @ (b * scale)


def seven_bits(x, w):
    return w8a8(x, w, -1, 0, top=63)


def in_half(x, w):
    return (x.half() @ w.half()).float()


@pytest.mark.parametrize(
    "wrong",
    [torch.matmul, truncated, only_the_weight, seven_bits, in_half],
    ids=lambda f: f.__name__,
)
def test_what_is_not_int8_arithmetic_is_not_explained(generator, wrong):
    x, w = (torch.randn(s, generator=generator) for s in ((33, 100), (100, 17)))
    assert NOT_EXPLAINED in broken("matmul_w8a8", wrong(x, w), input=x, weight=w)


def test_ties_may_go_either_way(generator):
    # Multiples of a quarter of the step up to 127: every other code is a tie or close to one.
    x = torch.randint(-254, 255, (8, 40), generator=generator) / 2.0
    x[:, 0] = 127.0
    w = torch.randn(40, 9, generator=generator)
    for rounding in (torch.round, away):
        assert broken("matmul_w8a8", w8a8(x, w, -1, 0, rounding=rounding), input=x, weight=w) == []


def test_a_result_that_is_far_off_breaks_the_published_thresholds(generator):
    x, w = (torch.randn(s, generator=generator) for s in ((33, 100), (100, 17)))
    found = broken("matmul_w8a8", torch.zeros(33, 17), input=x, weight=w)
    assert found[:2] == ["1 - cosine similarity", "relative L1 error"]


def test_nothing_is_claimed_where_inputs_have_no_codes(generator):
    x, w = (torch.randn(s, generator=generator) for s in ((3, 4), (4, 5)))
    x[0, 0] = float("nan")
    assert broken("matmul_w8a8", torch.zeros(3, 5), input=x, weight=w) == []


def test_a_batch_may_have_scales_of_its_own(generator):
    x, y = (torch.randn(s, generator=generator) for s in ((2, 9, 50), (2, 50, 7)))
    for dims in (((1, 2), (1, 2)), ((0, 1, 2), (0, 1, 2)), (-1, 1)):
        assert broken("bmm_w8a8", w8a8(x, y, *dims), input=x, mat2=y) == []
    assert broken("bmm_w8a8", x @ y, input=x, mat2=y) == [NOT_EXPLAINED]


@pytest.mark.parametrize("dims", [(0, 1, 2, 3), (1, 2, 3)])
def test_a_convolution_is_explained_with_scales_per_channel_of_the_weight(generator, dims):
    x, w = (torch.randn(s, generator=generator) for s in ((2, 5, 8, 9), (4, 5, 3, 3)))
    bias = torch.randn(4, generator=generator)
    options = {"stride": 2, "padding": 1}
    a, a_scale = codes(x, dims)
    b, b_scale = codes(w, (1, 2, 3))
    out = F.conv2d(a, b, None, **options) * a_scale * b_scale.reshape(1, -1, 1, 1)
    out = out + bias.reshape(1, -1, 1, 1)
    given = {"input": x, "weight": w, "bias": bias}
    assert broken("conv2d_w8a8", out, options, **given) == []
    floats = F.conv2d(x, w, bias, **options)
    assert broken("conv2d_w8a8", floats, options, **given) == [NOT_EXPLAINED]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kept", ["float32", "scale", "value"])
@pytest.mark.parametrize("top", [7, 7.5, 8])
def test_an_int4_weight_is_explained_whatever_is_kept_in_16_bits(generator, dtype, kept, top):
    x, w = (torch.randn(s, generator=generator).to(dtype) for s in ((33, 100), (17, 100)))
    bias = torch.randn(17, generator=generator).to(dtype)
    scale = w.float().abs().amax(1, keepdim=True) / top
    scale = scale if kept == "float32" else scale.to(dtype).float()
    q = torch.round(w.float() / scale).clamp(-8, 7) * scale
    q = q.to(dtype).float() if kept == "value" else q
    out = F.linear(x.float(), q, bias.float()).to(dtype)
    assert broken("linear_w4a16", out, input=x, weight=w, bias=bias) == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_linear_layer_with_another_weight_is_not_explained(generator, dtype):
    x, w = (torch.randn(s, generator=generator).to(dtype) for s in ((33, 100), (17, 100)))
    int8, scale = codes(w.float(), 1)
    for weight in (w.float(), int8 * scale):
        out = F.linear(x.float(), weight).to(dtype)
        assert broken("linear_w4a16", out, input=x, weight=w, bias=None) == [NOT_EXPLAINED]


def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), -1) @ v


def dequantized(x, dim):
    c, scale = codes(x, dim)
    return c * scale


@pytest.mark.parametrize("dims", [-1, (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("chances", ["float", "unit", "row"])
def test_attention_is_explained_with_or_without_quantized_probabilities(generator, dims, chances):
    q, k, v = (torch.randn(2, 17, 24, generator=generator) for _ in range(3))
    p = torch.softmax(dequantized(q, dims) @ dequantized(k, dims).mT / math.sqrt(24), -1)
    if chances == "unit":
        p = torch.round(p * 127) / 127
    if chances == "row":
        p = dequantized(p, -1)
    out = p @ dequantized(v, dims)
    assert broken("attention_w8a8", out, query=q, key=k, value=v) == []


def test_attention_in_floats_is_not_explained(generator):
    q, k, v = (torch.randn(2, 17, 24, generator=generator) for _ in range(3))
    given = {"query": q, "key": k, "value": v}
    assert NOT_EXPLAINED in broken("attention_w8a8", attention(q, k, v), **given)
    only_value = attention(q, k, dequantized(v, -1))
    assert NOT_EXPLAINED in broken("attention_w8a8", only_value, **given)


def test_layer_normalization_may_quantize_its_input_or_its_result(generator):
    x, w, b = (torch.randn(s, generator=generator) for s in ((9, 60), (60,), (60,)))
    scalars = {"normalized_shape": (60,), "eps": 1e-5}
    given = {"input": x, "weight": w, "bias": b}
    floats = F.layer_norm(x, (60,), w, b)
    normal = F.layer_norm(x, (60,))
    for out in (
        dequantized(floats, -1),
        dequantized(floats, (0, 1)),
        dequantized(normal, -1) * w + b,
        F.layer_norm(dequantized(x, -1), (60,), w, b),
        F.layer_norm(x, (60,), dequantized(w, 0), b),
    ):
        assert broken("layernorm_w8a8", out, scalars, **given) == []
    assert broken("layernorm_w8a8", floats, scalars, **given) == [NOT_EXPLAINED]


def test_float_references_are_those_of_numpy():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 5, 2))
    got = TASKS["bmm_w8a8"].reference(input=torch.from_numpy(a), mat2=torch.from_numpy(b))
    np.testing.assert_allclose(got.numpy(), np.einsum("bmk,bkn->bmn", a, b), rtol=1e-12)
    got = TASKS["matmul_w8a8"].reference(input=torch.from_numpy(a), weight=torch.from_numpy(b[0]))
    np.testing.assert_allclose(got.numpy(), np.einsum("bmk,kn->bmn", a, b[0]), rtol=1e-12)
    weight, bias = rng.normal(size=(7, 5)), rng.normal(size=7)
    given = {"input": a, "weight": weight, "bias": bias}
    got = TASKS["linear_w4a16"].reference(**{n: torch.from_numpy(t) for n, t in given.items()})
    np.testing.assert_allclose(got.numpy(), a @ weight.T + bias, rtol=1e-12)


def test_the_float_attention_is_that_of_numpy():
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=s) for s in ((2, 3, 4), (2, 5, 4), (2, 5, 4)))
    scores = np.exp(np.einsum("bsd,btd->bst", q, k) / 2)
    want = np.einsum("bst,btd->bsd", scores / scores.sum(-1, keepdims=True), v)
    given = {"query": q, "key": k, "value": v}
    got = TASKS["attention_w8a8"].reference(**{n: torch.from_numpy(t) for n, t in given.items()})
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


def test_the_float_layer_normalization_is_that_of_numpy():
    rng = np.random.default_rng(0)
    x, weight, bias = (rng.normal(size=s) for s in ((4, 2, 6), (2, 6), (2, 6)))
    flat = x.reshape(4, 12)
    mean, variance = flat.mean(1, keepdims=True), flat.var(1, keepdims=True)
    normal = ((flat - mean) / np.sqrt(variance + 1e-3)).reshape(x.shape)
    given = {"input": x, "weight": weight, "bias": bias}
    got = TASKS["layernorm_w8a8"].reference(
        **{n: torch.from_numpy(t) for n, t in given.items()}, normalized_shape=(2, 6), eps=1e-3
    )
    np.testing.assert_allclose(got.numpy(), normal * weight + bias, rtol=1e-12)


def test_rounding_large_results_to_half_precision_is_no_error_of_quantization(generator):
    # One weight a row is exact in int4, so that only the rounding of the result is left.
    x = (1000 * torch.randn(31, 1, generator=generator)).half()
    w = torch.randn(256, 1, generator=generator).half()
    product = x.double() @ w.double().T
    assert broken("linear_w4a16", product.half(), input=x, weight=w, bias=None) == []
    assert broken("linear_w4a16", (product * 1.1).half(), input=x, weight=w, bias=None) != []
