"""The rule of quantization that a wrong kernel departs from is named, and only that."""

import pytest

from kerneltruth.corpus import ENTRIES, source
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.engine.evaluator import EvaluationRequest
from kerneltruth.explain.diagnosis import DiagnosisEffort
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.registry import find

HEAD = """import math
import torch
import torch.nn.functional as F


def quantize_int8(input, scale=0.0625, zero_point=0):
    return to_int8(code(input.double() / scale) + zero_point)


def code(ratio):
    return torch.round(ratio)


def to_int8(codes):
    return codes.nan_to_num(nan=0.0).clamp(-128, 127).to(torch.int8)


def quantize_int8_rows(input):
    x = input.float()
    scale = x.abs().amax(-1, keepdim=True) / 127 if x.shape[1] else x.new_zeros(len(x), 1)
    return to_int8(code(torch.where(scale == 0, 0.0, x / scale))), scale.squeeze(-1)


def coded(x, dims, top=127.0):
    largest = x.float().abs().amax(dims, keepdim=True)
    scale = torch.where(largest > 0, largest / top, 1.0)
    return within(code(x.float() / scale)), scale


def within(codes):
    return codes.clamp(-128, 127)


def back(codes, scale):
    return codes.double() * scale.double()


def around(x, dims):
    return back(*coded(x, dims))


def matmul_w8a8(input, weight):
    return (around(input, -1) @ around(weight, 0)).to(input.dtype)


def bmm_w8a8(input, mat2):
    return (around(input, -1) @ around(mat2, 1)).to(input.dtype)


def conv2d_w8a8(input, weight, bias=None, stride=1, padding=0):
    bias = None if bias is None else bias.double()
    x, w = around(input, (0, 1, 2, 3)), around(weight, (1, 2, 3))
    return F.conv2d(x, w, bias, stride, padding).to(input.dtype)


def linear_w4a16(input, weight, bias=None):
    codes, scale = coded(weight, 1, 7.0)
    bias = None if bias is None else bias.double()
    return F.linear(input.double(), back(codes.clamp(-8, 7), scale), bias).to(input.dtype)


def attention_w8a8(query, key, value):
    scores = around(query, -1) @ around(key, -1).mT / math.sqrt(query.shape[-1])
    return (torch.softmax(scores, -1) @ around(value, -1)).to(query.dtype)


def layernorm_w8a8(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    return around(F.layer_norm(input, normalized_shape, weight, bias, eps), -1).to(input.dtype)


"""
TRUNCATES = "def code(ratio):\n    return torch.trunc(ratio)"
DOWN = "def code(ratio):\n    return torch.floor(ratio)"
WRAPS = """def to_int8(codes):
    return codes.nan_to_num(nan=0.0).to(torch.int32).to(torch.int8)"""
ZERO_POINT_KEPT = "def back(codes, scale):\n    return (codes.double() + 128) * scale.double()"
SCALE_LEFT_OUT = "def back(codes, scale):\n    return codes.double()"
ON_255 = (
    "def coded(x, dims, top=255.0):"
    + HEAD.split("def coded(x, dims, top=127.0):")[1].split("\n\n\n")[0]
)
WRAPS_ON_128 = (
    ON_255.replace("255.0", "128.0")
    + "\n\n\n"
    + ("def within(codes):\n    return (codes + 128) % 256 - 128")
)
IN_FLOATS = "def around(x, dims):\n    return x.double()"


def int4(line):
    return f"""def linear_w4a16(input, weight, bias=None):
    codes, scale = coded(weight, 1, 7.0)
    codes = codes.clamp(-8, 7)
    {line}
    bias = None if bias is None else bias.double()
    return F.linear(input.double(), back(codes, scale), bias).to(input.dtype)"""


# For each task: the rule that is named, the words, and what is changed.
FAULTS = {
    "quantize_int8": {
        "truncates": ("rounding", TRUNCATES),
        "floors": ("rounding", DOWN),
        "wraps": ("saturation", WRAPS),
        "unsigned range": (
            "saturation",
            """def to_int8(codes):
    return codes.nan_to_num(nan=0.0).clamp(0, 127).to(torch.int8)""",
        ),
        "zero point ignored": (
            "zero_point",
            """def quantize_int8(input, scale=0.0625, zero_point=0):
    return to_int8(code(input.double() / scale))""",
        ),
        "zero point subtracted": (
            "zero_point",
            """def quantize_int8(input, scale=0.0625, zero_point=0):
    return to_int8(code(input.double() / scale) - zero_point)""",
        ),
        "multiplies": (
            "scale",
            """def quantize_int8(input, scale=0.0625, zero_point=0):
    return to_int8(code(input.double() * scale) + zero_point)""",
        ),
        "floats": (
            "fake_quantization",
            """def to_int8(codes):
    return codes.nan_to_num(nan=0.0).clamp(-128, 127).float()""",
        ),
        "turned back": (
            "fake_quantization",
            """def quantize_int8(input, scale=0.0625, zero_point=0):
    codes = (code(input.double() / scale) + zero_point).clamp(-128, 127)
    return ((codes - zero_point) * scale).to(input.dtype)""",
        ),
    },
    "quantize_int8_rows": {
        "truncates": ("rounding", TRUNCATES),
        "one scale": (
            "scale",
            """def quantize_int8_rows(input):
    x = input.float()
    scale = x.abs().amax() / 127 if x.numel() else x.new_zeros(())
    codes = to_int8(torch.where(scale == 0, 0.0, x / scale).round())
    return codes, scale.expand(len(x)).contiguous()""",
        ),
        "on 128": (
            "scale",
            """def quantize_int8_rows(input):
    x = input.float()
    scale = x.abs().amax(-1, keepdim=True) / 128 if x.shape[1] else x.new_zeros(len(x), 1)
    return to_int8(code(torch.where(scale == 0, 0.0, x / scale))), scale.squeeze(-1)""",
        ),
        "floats": (
            "fake_quantization",
            """def to_int8(codes):
    return codes.nan_to_num(nan=0.0)""",
        ),
    },
    "dequantize_int8": {
        "unsigned": (
            "layout",
            """def dequantize_int8(input, scale):
    return (input.view(torch.uint8).to(scale.dtype) * scale[:, None]).to(scale.dtype)""",
        ),
        "divides": (
            "scale",
            """def dequantize_int8(input, scale):
    return (input.to(scale.dtype) / scale[:, None]).to(scale.dtype)""",
        ),
    },
    "kernelbenchx/matmul_w8a8": {
        "truncates": ("rounding", TRUNCATES),
        "on 255": ("scale", ON_255),
        "scale left out": ("scale", SCALE_LEFT_OUT),
        "wraps on 128": ("saturation", WRAPS_ON_128),
        "offset kept": ("zero_point", ZERO_POINT_KEPT),
        "in floats": ("fake_quantization", IN_FLOATS),
        "in TF32": (
            "fake_quantization",
            """def around(x, dims):
    bits = x.contiguous().view(torch.int32)
    return (bits >> 13 << 13).view(torch.float32).double()""",
        ),
        "weight only": (
            "fake_quantization",
            """def matmul_w8a8(input, weight):
    return (input.double() @ around(weight, 0)).to(input.dtype)""",
        ),
        "along the other dim": (
            "layout",
            """def matmul_w8a8(input, weight):
    return (around(input, -1) @ around(weight, 1)).to(input.dtype)""",
        ),
        "zero point forgotten": (
            "zero_point",
            """def matmul_w8a8(input, weight):
    low, high = input.amin(-1, keepdim=True), input.amax(-1, keepdim=True)
    scale = ((high - low) / 255).clamp_min(1e-12)
    codes = ((input / scale).round() + (-128 - (low / scale).round())).clamp(-128, 127)
    return (codes.double() * scale @ around(weight, 0)).to(input.dtype)""",
        ),
    },
    "kernelbenchx/bmm_w8a8": {
        "floors": ("rounding", DOWN),
        "floats": ("fake_quantization", IN_FLOATS),
    },
    "kernelbenchx/conv2d_w8a8": {
        "truncates": ("rounding", TRUNCATES),
        "floats": ("fake_quantization", IN_FLOATS),
    },
    "kernelbenchx/linear_w4a16": {
        "swapped codes": (
            "layout",
            int4("codes = codes.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)"),
        ),
        "no sign": ("layout", int4("codes = codes % 16")),
        "offset kept": ("zero_point", int4("codes = codes + 8")),
        "8 bits": ("scale", int4("codes, scale = coded(weight, 1, 127.0)")),
        "wraps": (
            "saturation",
            int4("codes, scale = coded(weight, 1, 8.0); codes = (codes + 8) % 16 - 8"),
        ),
        "truncates": ("rounding", TRUNCATES),
        "in floats": ("fake_quantization", int4("codes, scale = weight, torch.ones(1)")),
    },
    "kernelbenchx/attention_w8a8": {
        "truncates": ("rounding", TRUNCATES),
        "in floats": ("fake_quantization", IN_FLOATS),
    },
    "kernelbenchx/layernorm_w8a8": {
        "floors": ("rounding", DOWN),
        "in floats": ("fake_quantization", IN_FLOATS),
    },
}


def with_definitions(change):
    """The right functions, with those of the change in place of the ones of their names."""
    parts = {
        part.partition("(")[0]: part for text in (HEAD, change) for part in text.split("\n\n\n")
    }
    return "\n\n\n".join(part for part in parts.values() if part.strip()) + "\n"


@pytest.fixture
def explained(evaluator):
    """Judge a source on a task, and explain its failure."""

    def judge(task, source):
        entry = find(task).entry
        candidate = read_candidate(source, "kernel.py", task_names=(task,), entry=entry, task=task)
        plan = Plan(seed=0, cases=40, compile=False)
        effort = DiagnosisEffort(evaluations=10)
        job = EvaluationRequest(name="k", task=task, candidate=candidate, plan=plan, effort=effort)
        return evaluator.evaluate(job).attempt

    return judge


@pytest.fixture
def judge(explained):
    return lambda task, change: explained(task, with_definitions(change))


@pytest.mark.sampled(by=lambda task, name: [FAULTS[task][name][0]])
@pytest.mark.parametrize(
    ("task", "name"), [(task, name) for task, faults in FAULTS.items() for name in faults]
)
def test_a_changed_rule_is_named(judge, task, name):
    rule, change = FAULTS[task][name]
    attempt = judge(task, change)
    assert isinstance(attempt.verdict, Failed)
    assert attempt.quantization is not None, attempt.explanation
    assert attempt.quantization.rule == rule
    assert attempt.quantization.sentence in attempt.explanation


def after(name, line):
    """A change of a right function's result."""
    original = next(p for p in HEAD.split("\n\n\n") if p.startswith(f"def {name}("))
    signature, _, _ = original.partition(":\n")
    names = [
        a.partition("=")[0].strip() for a in signature.partition("(")[2].rstrip(")").split(",")
    ]
    right = original.replace(f"def {name}(", "def right(", 1)
    return f"{right}\n\n\n{signature}:\n    out = right({', '.join(names)})\n    {line}"


# Faults that are none of quantization.
OTHERS = {
    "quantize_int8": {
        "off by one": after("quantize_int8", "return out.roll(1, -1)"),
        "the last column is 0": after("quantize_int8", "out[:, -1:] = 0; return out"),
        "one too large": after("quantize_int8", "return (out.short() + 1).clamp(-128, 127).char()"),
        "the sign is lost": after("quantize_int8", "return out.clamp(-127).abs()"),
    },
    "quantize_int8_rows": {
        "off by one": after("quantize_int8_rows", "return out[0].roll(1, -1), out[1]"),
        "scales of the row before": after("quantize_int8_rows", "return out[0], out[1].roll(1)"),
        "imprecise": after("quantize_int8_rows", "return out[0], out[1].half().float()"),
    },
    "dequantize_int8": {
        "scales of the row before": """def dequantize_int8(input, scale):
    return input.to(scale.dtype) * scale.roll(1)[:, None]""",
        "imprecise": """def dequantize_int8(input, scale):
    return (input.bfloat16() * scale[:, None].bfloat16()).to(scale.dtype) * 1.01""",
    },
    "kernelbenchx/matmul_w8a8": {
        "off by one": after("matmul_w8a8", "return out.roll(1, -1)"),
        "the last tile is not summed": """def matmul_w8a8(input, weight):
    k = input.shape[-1] // 16 * 16
    x, w = around(input, -1), around(weight, 0)
    return (x[..., :k] @ w[:k]).to(input.dtype)""",
        "in half precision": after("matmul_w8a8", "return out.bfloat16().to(out.dtype)"),
        "half too large": after("matmul_w8a8", "return out * 1.5"),
    },
    "kernelbenchx/bmm_w8a8": {
        "the first batch everywhere": after("bmm_w8a8", "return out[:1].expand_as(out).clone()"),
    },
    "kernelbenchx/conv2d_w8a8": {
        "without bias": """def conv2d_w8a8(input, weight, bias=None, stride=1, padding=0):
    x, w = around(input, (0, 1, 2, 3)), around(weight, (1, 2, 3))
    return F.conv2d(x, w, None, stride, padding).to(input.dtype)""",
        "turned kernel": """def conv2d_w8a8(input, weight, bias=None, stride=1, padding=0):
    bias = None if bias is None else bias.double()
    x, w = around(input, (0, 1, 2, 3)), around(weight, (1, 2, 3)).flip(-1)
    return F.conv2d(x, w, bias, stride, padding).to(input.dtype)""",
    },
    "kernelbenchx/linear_w4a16": {
        "bias twice": after("linear_w4a16", "return out if bias is None else out + bias"),
        "shifted": after("linear_w4a16", "return out.roll(1, -1)"),
        "imprecise": after("linear_w4a16", "return (out.float() * 1.02).to(out.dtype)"),
    },
    "kernelbenchx/attention_w8a8": {
        "not scaled": """def attention_w8a8(query, key, value):
    scores = around(query, -1) @ around(key, -1).mT
    return (torch.softmax(scores, -1) @ around(value, -1)).to(query.dtype)""",
        "causal": """def attention_w8a8(query, key, value):
    scores = around(query, -1) @ around(key, -1).mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    return (torch.softmax(scores, -1) @ around(value, -1)).to(query.dtype)""",
    },
    "kernelbenchx/layernorm_w8a8": {
        "unbiased variance": """def layernorm_w8a8(
    input, normalized_shape, weight=None, bias=None, eps=1e-5
):
    dims = tuple(range(-len(normalized_shape), 0))
    x = input.double()
    out = (x - x.mean(dims, keepdim=True)) / (x.var(dims, keepdim=True) + eps).sqrt()
    out = out if weight is None else out * weight
    return around(out if bias is None else out + bias, -1).to(input.dtype)""",
        "without weight": """def layernorm_w8a8(
    input, normalized_shape, weight=None, bias=None, eps=1e-5
):
    return around(F.layer_norm(input, normalized_shape, None, bias, eps), -1).to(input.dtype)""",
    },
}


@pytest.mark.sampled(by=lambda task, name: [task])
@pytest.mark.parametrize(
    ("task", "name"), [(task, name) for task, faults in OTHERS.items() for name in faults]
)
def test_no_rule_is_named_for_another_fault(judge, task, name):
    attempt = judge(task, OTHERS[task][name])
    assert isinstance(attempt.verdict, Failed)
    assert attempt.explanation
    assert attempt.quantization is None


ON_128 = ON_255.replace("255.0", "128.0")
WITHIN_127 = ON_128 + "\n\n\ndef within(codes):\n    return codes.clamp(-127, 127)"
FLOATS = [task for task in FAULTS if task.endswith("w8a8")]
# What a description admits: the largest magnitude on 127 or 128, and -128 as a code or not.
ADMITTED = {
    **{(task, "on 127"): "" for task in FAULTS if task != "dequantize_int8"},
    **{(task, "on 128"): ON_128 for task in FLOATS},
    **{(task, "on 128, within 127"): WITHIN_127 for task in FLOATS},
    ("kernelbenchx/linear_w4a16", "on 8"): int4(
        "codes, scale = coded(weight, 1, 8.0); codes = codes.clamp(-8, 7)"
    ),
    ("kernelbenchx/linear_w4a16", "on 8, within 7"): int4(
        "codes, scale = coded(weight, 1, 8.0); codes = codes.clamp(-7, 7)"
    ),
}


@pytest.mark.sampled(by=lambda task, name: [name])
@pytest.mark.parametrize(("task", "name"), ADMITTED)
def test_a_right_kernel_is_clean(judge, task, name):
    attempt = judge(task, ADMITTED[task, name])
    assert isinstance(attempt.verdict, Passed), attempt.explanation
    assert attempt.quantization is None


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("quantize_int8_adds_half", "rounding"),
        ("quantize_int8_wraps", "saturation"),
        ("quantize_int8_rows_scale_floor", None),
    ],
)
def test_the_rule_of_a_triton_kernel_is_named(explained, name, rule):
    (bug,) = (entry for entry in ENTRIES if entry.name == name)
    attempt = explained(bug.task, source(bug))
    assert isinstance(attempt.verdict, Failed)
    assert (attempt.quantization.rule if attempt.quantization else None) == rule
