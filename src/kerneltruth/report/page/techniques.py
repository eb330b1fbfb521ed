"""The page's table of techniques: facts of the fastest kernels' sources and launches. Pure.

A fact is read from the syntax tree or was measured by the judge; that it makes a kernel fast is not
claimed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kerneltruth.analysis.intervals import geometric_mean
from kerneltruth.analysis.leaderboard import best_kernels
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import Against, Result, TimedShape, Timing
from kerneltruth.report.page.cells import (
    KernelsCell,
    ListedKernel,
    PageTable,
    column,
    factor,
    row,
    table,
    text,
)
from kerneltruth.report.page.wording import count, label, times
from kerneltruth.runner.source_numbers import nodes_of

FUSED = "one launch for several operators"
LIBRARY = "some launches are PyTorch's own"
FEWER = "takes less time than its reference's operations would"
DOT, HALF, TUNED = "calls tl.dot", "names float16 or bfloat16 beside tl.dot", "autotuned"
PERSISTENT = "programs loop over tiles (persistent)"
SPLIT = "tl.dot with atomic additions (split-K)"
COMPILED = {
    "tensor_cores": "compiled to tensor cores",
    "wide_loads": "compiled to loads of 16 bytes",
    "async_copies": "compiled to asynchronous copies",
    "tma": "compiled to copies of tiles by TMA",
    "atomics": "compiled to atomics",
}
FACTS = (FUSED, FEWER, DOT, HALF, SPLIT, TUNED, PERSISTENT, *COMPILED.values(), LIBRARY)
_HALVES = ("float16", "bfloat16")
# The rate that a device may reach, over the highest one that was measured.
HIGHEST_RATE = 4 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FastKernel:
    """A kernel that is faster than eager beyond its interval, and the facts of it."""

    result: Result
    against: Against
    facts: tuple[str, ...]


def techniques_table(study: Study, sources: Mapping[str, str]) -> list[PageTable]:
    """Make the table of facts; none where no kernel with a source is surely faster than eager."""
    found = list(_fast_kernels(study, sources))
    if not found:
        return []
    numbers = {(r.run, r.key): i for i, r in enumerate(study.attempts)}
    rows = []
    for fact in FACTS:
        own = [k for k in found if fact in k.facts]
        if not own:
            continue
        best = max(own, key=lambda k: k.against.speedup)
        shown = ListedKernel(
            who=label(best.result.task),
            speed=times(best.against.speedup),
            tied=False,
            attempt=numbers[best.result.run, best.result.key],
        )
        mean = geometric_mean([k.against.speedup for k in own], [k.result.task for k in own])
        rows.append(
            row(
                fact,
                [
                    text(f"{count(len(own))} of {count(len(found))}", value=len(own)),
                    factor(mean),
                    KernelsCell(kernels=[shown], more=0, value=best.against.speedup),
                ],
            )
        )
    columns = [
        column("fact", number=False),
        column("kernels"),
        column("speedup over eager", hint="geometric mean"),
        column("fastest of them"),
    ]
    caption = (
        f"Facts of {count(len(found))} kernels, of the fastest of each task those that are faster "
        "than eager beyond their intervals: of their source and compiled code, their times, and "
        "the launches of a call."
    )
    return [table("techniques", caption, columns, rows)] if rows else []


def _fast_kernels(study: Study, sources: Mapping[str, str]) -> Iterator[FastKernel]:
    known = {(r.run, r.key): r for r in study.attempts}
    for device in study.devices:
        own = [r for r in study.attempts if study.device_of(r) == device]
        for kernels in best_kernels(own).values():
            for best in kernels:
                if best.against.outcome != "faster" or best.sha256 not in sources:
                    continue
                result = known[best.run, best.key]
                operators = study.facts.get(result.task, {}).get("operators")
                facts = (
                    *facts_of_launches(result, operators),
                    *facts_of_times(result.timing),
                    *facts_of(sources[best.sha256]),
                )
                yield FastKernel(result=result, against=best.against, facts=facts)


def facts_of_launches(result: Result, operators: float | None) -> Iterator[str]:
    """Yield what the launches of a call show; `operators` are the reference's."""
    if result.own is None:
        return
    if result.own == 1 and result.launches == 1 and (operators or 0) > 1:
        yield FUSED
    if result.own < 1:
        yield LIBRARY


def facts_of_times(timing: Timing | None) -> Iterator[str]:
    """Yield what a kernel's times and its compiled code show.

    Operations that would need more than the device's highest rate were not done: the kernel
    computes the same by fewer, as a product with a diagonal allows.
    """
    if timing is None:
        return
    if any(map(_does_fewer, timing.shapes)):
        yield FEWER
    yield from (words for use, words in COMPILED.items() if use in timing.uses)


def _does_fewer(shape: TimedShape) -> bool:
    """Return whether a kernel is too fast to do the reference's operations, and PyTorch is not.

    If PyTorch's own function is as fast, the count is what a definition says, and not what the
    reference does.
    """
    share, eager = shape.least_compute_share, shape.baselines.get("eager")
    if share is None or eager is None or not eager.us or shape.rates is None:
        return False
    of_eager = (shape.rates.compute_share or 0.0) * shape.candidate_us / eager.us
    return share > HIGHEST_RATE and of_eager <= 1


def facts_of(source: str) -> Iterator[str]:
    """Yield what the Triton kernels of a source show."""
    functions = [n for n in nodes_of(source) if isinstance(n, ast.FunctionDef)]
    kernels = [f for f in functions if "jit" in map(_last_name, f.decorator_list)]
    dots = [k for k in kernels if _names(k, "dot")]
    if dots:
        yield DOT
    if any(_names(k, half) for k in dots for half in _HALVES):
        yield HALF
    if any(_names(k, "atomic_add") for k in dots):
        yield SPLIT
    if any(_is_persistent(k) for k in kernels):
        yield PERSISTENT
    if any("autotune" in map(_last_name, k.decorator_list) for k in kernels):
        yield TUNED


def _names(kernel: ast.FunctionDef, attribute: str) -> bool:
    """Return whether a kernel names `tl.attribute`."""
    return any(
        isinstance(n, ast.Attribute) and n.attr == attribute and _last_name(n.value) in _LANGUAGE
        for n in ast.walk(kernel)
    )


def _is_persistent(kernel: ast.FunctionDef) -> bool:
    """Return whether a loop begins at the program's number and steps by more than 1."""
    numbers = {
        target.id
        for node in ast.walk(kernel)
        if isinstance(node, ast.Assign) and _is_program_id(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    loops = (n.iter for n in ast.walk(kernel) if isinstance(n, ast.For))
    return any(
        isinstance(over, ast.Call)
        and _last_name(over.func) == "range"
        and len(over.args) == 3
        and (_is_program_id(over.args[0]) or getattr(over.args[0], "id", None) in numbers)
        and not isinstance(over.args[2], ast.Constant)
        for over in loops
    )


def _is_program_id(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "program_id"
        and _last_name(node.func.value) in _LANGUAGE
    )


_LANGUAGE: Sequence[str] = ("tl", "language")


def _last_name(node: ast.expr) -> str:
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
