"""Implement the peers' checks: the draws each makes and how it judges the answers.

Common to all but two: the reference is the task's own formula in torch, in working precision, on
the same tensors, and runs before the candidate. So these checks miss an overwritten input, an
output that shares memory with an input, a non-contiguous layout, and writes out of bounds. Where a
peer does not seed its draws, they come from our seed, so results are reproducible.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

import torch

from kerneltruth.peers.answers import Answer, NoAnswer
from kerneltruth.peers.comparisons import (
    OutputCheck,
    absolute,
    all_close,
    asserted_close,
    both_exceed,
    similar,
)
from kerneltruth.peers.draws import (
    CannotRun,
    Draw,
    Setting,
    again,
    all_cast,
    scaled,
    with_outliers,
)
from kerneltruth.tasks.spec import Task

Protocol = Generator[Draw, Answer, str | None]
"""Yields draws, receives answers, and returns None for a pass or the reason for a failure."""

KERNELBENCH_TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2}
KERNELBENCHX_TOLERANCE = {"float64": 1e-5, "float32": 1e-5, "float16": 5e-3, "bfloat16": 5e-3}
GPUEMU_CASES = 30
GPUEMU_DTYPES = ("float32", "float16")

# An operator without a published tolerance takes that of the nearest published family; matrix
# products have one in float32 only.
GPUEMU_ELEMENTWISE = {"float32": 1e-4, "float16": 5e-2}
GPUEMU_CONTRACTED = {"float32": 5e-2}

# With the trace these are the 13 tests per operator that BackendBench documents.
OPERATOR_SAMPLES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A peer's check.

    Attributes:
        protocol: its draws and comparisons, in one dtype.
        supported_dtypes: returns the dtypes in which it is defined for a task.
        every: it must pass in each of its dtypes; otherwise one suffices.
    """

    name: str
    protocol: Callable[[Setting], Protocol]
    summary: str
    supported_dtypes: Callable[[Task], tuple[str, ...]] = lambda task: task.dtypes
    every: bool = False

    def dtypes_for(self, task: Task) -> tuple[str, ...]:
        """Return the task's main dtypes in which the check is defined, float32 first."""
        known = [d for d in task.dtypes if d in self.supported_dtypes(task)]
        return tuple(sorted(known, key=lambda d: d != "float32"))


def kernelbench(setting: Setting) -> Protocol:
    """KernelBench: five draws at one shape, allclose by dtype; every tensor cast to the dtype.

    It compares one tensor by its shape, so a task with several outputs stops it. So does the cast,
    if an input is an index or a mask that torch needs in its own dtype.
    """
    _one_output(setting.task)
    tolerance = KERNELBENCH_TOLERANCE.get(setting.dtype, 1e-4)
    draws = (all_cast(setting, draw) for draw in _five(setting))
    compare = all_close(atol=tolerance, rtol=tolerance, shape=True)
    return (yield from _against_reference(setting, draws, compare))


def kernelbench_v0(setting: Setting) -> Protocol:
    """KernelBench as published: 1e-2 for every dtype, and no cast."""
    _one_output(setting.task)
    compare = all_close(atol=1e-2, rtol=1e-2, shape=True)
    return (yield from _against_reference(setting, _five(setting), compare))


def kernelbench_verified(setting: Setting) -> Protocol:
    """KernelBench-Verified: one draw, scaled by 1, 3, 0.01 and -1; 1e-3 in float32.

    Inputs whose kind has a range of its own (probabilities, positive numbers) are not scaled.
    """
    draw = setting.at_benchmark(setting.task.benchmark.distribution)
    draws = (scaled(setting, draw, factor) for factor in (1, 3, 0.01, -1))
    compare = all_close(atol=1e-3, rtol=1e-3, shape=True)
    return (yield from _against_reference(setting, draws, compare))


def kernelbenchx(setting: Setting) -> Protocol:
    """KernelBenchX: one shape and seed 0, a standard and an outlier mode, assert_close.

    Quantization is judged by its usual thresholds: cosine 0.95, relative L1 0.05, RMSE 0.1.
    """
    tolerance = KERNELBENCHX_TOLERANCE.get(setting.dtype, 1e-5)
    compare = asserted_close(tolerance)
    if setting.task.category == "Quantization":
        compare = similar(cosine=0.95, l1=0.05, rmse=0.1)
    standard = setting.at_benchmark("normal", seed=0)
    modes = (standard, with_outliers(setting, standard))
    return (yield from _against_reference(setting, modes, compare))


def tritonbench(setting: Setting) -> Protocol:
    """TritonBench: runs the entry on the benchmark's inputs and passes if nothing is raised.

    The peer compares what the author's test prints. Nearly all of its tests print nothing, so it
    compares two empty texts; our kernels have no printing test either. This is the check as it
    works for 177 of its 184 operators.
    """
    answer = yield setting.at_benchmark(setting.task.benchmark.distribution)
    if not isinstance(answer, NoAnswer):
        return None
    if answer.ended == "unsupported":
        raise CannotRun(answer.detail)
    return f"{answer.ended}: {answer.detail}"


def backendbench(setting: Setting) -> Protocol:
    """BackendBench: in bfloat16, a trace from [0, 1) and operator samples; 1e-2, equal_nan.

    The trace has the benchmark's shape. The samples are small shapes from the sizes of torch's own
    operator samples, values uniform in [-10, 10] (torch: [-9, 9]); zero-size and strided ones are
    left out. The reference stands for one ATen operator, which computes in float32 and rounds once.
    """

    def draws() -> Iterable[Draw]:
        yield setting.at_benchmark("uniform")
        yield from setting.samples(OPERATOR_SAMPLES)

    compare = asserted_close(1e-2)
    for draw in draws():
        want = setting.rounded_reference(draw, "float32")
        wrong = _wrong(compare, _outputs((yield draw)), want)
        if wrong:
            return wrong
    return None


def flashinfer_bench(setting: Setting) -> Protocol:
    """FlashInfer-Bench: three normal draws; an element fails if both errors exceed 1e-2."""
    draws = (setting.at_benchmark("normal", index) for index in range(3))
    compare = both_exceed(atol=1e-2, rtol=1e-2)
    return (yield from _against_reference(setting, draws, compare))


def robust_kbench(setting: Setting) -> Protocol:
    """robust-kbench: five draws, candidate, reference, candidate again; 1e-5, shape unchecked.

    It draws from seed 42; here the draws are those of `kernelbench`.
    """
    compare = all_close(atol=1e-5, rtol=1e-5, shape=False)
    for draw in _five(setting):
        for turn in (draw, again(draw)):
            wrong = _wrong(compare, _outputs((yield turn)), setting.working_reference(draw))
            if wrong:
                return wrong
    return None


def gpuemu(setting: Setting) -> Protocol:
    """The Correctness Illusion's harness: 30 cases of the schema against a rounded float64 result.

    Half of the cases are float32, half float16, where both have a tolerance. It stops at the first
    failing case.
    """
    tolerance = gpuemu_tolerance(setting.task, setting.dtype)
    if tolerance is None:
        raise CannotRun(f"it has no tolerance for {setting.task.name} in {setting.dtype}")
    compare = absolute(tolerance)
    count = GPUEMU_CASES // len(gpuemu_dtypes(setting.task))
    for draw in setting.schema_draws(count):
        want = setting.rounded_reference(draw, "float64")
        wrong = _wrong(compare, _outputs((yield draw)), want)
        if wrong:
            return f"{draw.case.summary()}: {wrong}"
    return None


def gpuemu_tolerance(task: Task, dtype: str) -> float | None:
    """Return the published absolute tolerance, or that of the nearest published family, if any."""
    family = GPUEMU_CONTRACTED if task.contracted() else GPUEMU_ELEMENTWISE
    return task.tolerance.get(dtype, family.get(dtype))


def gpuemu_dtypes(task: Task) -> tuple[str, ...]:
    """Return the task's main dtypes that have a tolerance."""
    known = (d for d in GPUEMU_DTYPES if gpuemu_tolerance(task, d) is not None)
    return tuple(d for d in known if d in task.dtypes)


def one_shape(setting: Setting) -> Protocol:
    """Compare once by allclose, on one normal draw at one power-of-two shape."""
    draws = (setting.at_benchmark("normal"),)
    compare = all_close(atol=1e-5, rtol=1e-2, shape=False)
    return (yield from _against_reference(setting, draws, compare))


def _five(setting: Setting) -> Iterable[Draw]:
    distribution = setting.task.benchmark.distribution
    return (setting.at_benchmark(distribution, index) for index in range(5))


def _one_output(task: Task) -> None:
    if len(task.outputs) != 1:
        raise CannotRun(f"it compares one tensor, and {task.name} has {len(task.outputs)} outputs")


def _against_reference(setting: Setting, draws: Iterable[Draw], compare: OutputCheck) -> Protocol:
    for draw in draws:
        want = setting.working_reference(draw)
        wrong = _wrong(compare, _outputs((yield draw)), want)
        if wrong:
            return wrong
    return None


def _outputs(answer: Answer) -> tuple[torch.Tensor, ...]:
    if isinstance(answer, NoAnswer):
        raise CannotRun(f"{answer.ended}: {answer.detail}")
    return answer


def _wrong(
    compare: OutputCheck, got: tuple[torch.Tensor, ...], want: tuple[torch.Tensor, ...]
) -> str | None:
    if len(got) != len(want):
        return f"{len(got)} outputs, not {len(want)}"
    reasons = (compare(x, y) for x, y in zip(got, want, strict=True))
    return next((reason for reason in reasons if reason), None)


CHECKS: tuple[Check, ...] = (
    Check(
        name="kernelbench",
        protocol=kernelbench,
        summary="5 draws, one shape, 1e-4 (float32) or 1e-2",
    ),
    Check(name="kernelbench-v0", protocol=kernelbench_v0, summary="5 draws, one shape, 1e-2"),
    Check(
        name="kernelbench-verified",
        protocol=kernelbench_verified,
        summary="one draw times 1, 3, 0.01 and -1, 1e-3",
        supported_dtypes=lambda _: ("float32",),
    ),
    Check(
        name="kernelbenchx",
        protocol=kernelbenchx,
        summary="one shape, seed 0, standard and outlier values, 1e-5 (float32) or 5e-3",
    ),
    Check(
        name="tritonbench", protocol=tritonbench, summary="the author's test prints the same text"
    ),
    Check(
        name="backendbench",
        protocol=backendbench,
        summary="operator samples and a trace in bfloat16, 1e-2",
        supported_dtypes=lambda _: ("bfloat16",),
    ),
    Check(
        name="flashinfer-bench",
        protocol=flashinfer_bench,
        summary="3 normal draws, one shape, absolute and relative error above 1e-2",
    ),
    Check(
        name="robust-kbench",
        protocol=robust_kbench,
        summary="5 draws, one shape, 1e-5, shape unchecked",
        supported_dtypes=lambda _: ("float32",),
    ),
    Check(
        name="gpuemu",
        protocol=gpuemu,
        summary="30 cases of the operator's schema, absolute tolerance",
        supported_dtypes=gpuemu_dtypes,
        every=True,
    ),
    Check(name="one-shape", protocol=one_shape, summary="one normal draw, 1e-5 plus 1e-2 relative"),
)
