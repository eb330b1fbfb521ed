"""Quantisation to int8 and back."""

from __future__ import annotations

from dataclasses import replace

import torch

from kerneltruth.tasks.misquantized.codes import CHANGES, saturated
from kerneltruth.tasks.spec import Output, Role, Task, task

_ROWS: dict[str, Role] = {"M": "batch", "N": "reduced"}
_LARGE = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})


def _quantize(input: torch.Tensor, scale: float, zero_point: int) -> torch.Tensor:
    return saturated(torch.round(input / scale) + zero_point)


def _quantize_by_product(input: torch.Tensor, scale: float, zero_point: int) -> torch.Tensor:
    return saturated(torch.round(input * (1.0 / scale)) + zero_point)


def _quantize_rows(input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    largest = _largest(input)
    ratio = torch.where(largest == 0, 0.0, input / largest)
    return saturated(torch.round(ratio * 127)), (largest / 127).squeeze(-1)


def _quantize_rows_by_scale(input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale = _largest(input) / 127
    ratio = torch.where(scale == 0, 0.0, input / scale)
    return saturated(torch.round(ratio)), scale.squeeze(-1)


def _largest(input: torch.Tensor) -> torch.Tensor:
    if input.shape[-1] == 0:
        return input.new_zeros((*input.shape[:-1], 1))
    return input.abs().amax(-1, keepdim=True)


_DECLARED: tuple[Task, ...] = (
    task(
        "quantize_int8(input[M, N], scale=0.0625, zero_point=0)",
        category="Quantization",
        dims={"M": "batch", "N": "channel"},
        attributes={"scale": (0.5, 0.003), "zero_point": (5,)},
        outputs=(Output(dtype="int8"),),
        reference=_quantize,
        admissible=(_quantize_by_product,),
        description="""round(input / scale) + zero_point as int8, rounding halves to even and
            saturating at -128 and 127; NaN gives 0.""",
        flops="3*M*N",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE,
    ),
    task(
        "quantize_int8_rows(input[M, N])",
        category="Quantization",
        dims=_ROWS,
        outputs=(Output(name="quantized", dtype="int8"), Output(name="scale", dtype="float32")),
        reference=_quantize_rows,
        admissible=(_quantize_rows_by_scale,),
        description="""Symmetric int8 quantisation of each row: scale[M] = max |row| / 127 in
            float32 and quantized = round(row / scale). A row of zeros, or an empty one, has scale
            0 and quantises to 0, and so does what is NaN after the division.""",
        flops="4*M*N",
        benchmark={"M": 16, "N": 128},
        perf=_LARGE,
    ),
    task(
        "dequantize_int8(input[M, N]: int8, scale[M]: positive)",
        category="Quantization",
        dims=_ROWS,
        reference=lambda input, scale: input.to(scale.dtype) * scale[:, None],
        description="input[i, j] * scale[i], in scale's dtype.",
        flops="M*N",
        benchmark={"M": 16, "N": 128},
        perf=_LARGE,
    ),
)
TASKS = tuple(replace(task, changed_rules=CHANGES[task.name]) for task in _DECLARED)
