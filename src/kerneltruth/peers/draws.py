"""Make the inputs that a peer's check would draw, from a task's declared benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from msgspec import structs

from kerneltruth.cases.materialize import Inputs, benchmark_case, materialize
from kerneltruth.cases.philox import derive, stream
from kerneltruth.cases.strategies import generate
from kerneltruth.documents.case import Case
from kerneltruth.oracle.dtypes import DTYPES
from kerneltruth.oracle.recent import Recent, tensor_bytes
from kerneltruth.oracle.reference import cast, outputs_of, quietly
from kerneltruth.tasks.spec import Task

# The sizes from which torch's operator samples are built: S, M, L and XS of its test suite.
SAMPLE_SIZES = (5, 10, 20, 3, 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draw:
    """Concrete inputs on which a check runs the candidate.

    Attributes:
        key: equal for two draws exactly if their inputs are equal and one run may serve both.
        inputs: the arguments, as the check changed them.
        turn: 1 if the check runs the candidate a second time on the same inputs.
    """

    key: str
    case: Case
    inputs: Inputs
    turn: int = 0


class CannotRun(Exception):
    """The check itself cannot run on this task; the reason, in one line."""


class DrawCache:
    """Draws and reference outputs by key, shared by all candidates of a task."""

    def __init__(self, *, limit_bytes: int = 64 * 2**20) -> None:
        self.draws: Recent[Draw] = Recent(
            lambda d: tensor_bytes(d.inputs.tensors.values()), limit_bytes=limit_bytes // 2
        )
        self.outputs: Recent[tuple[torch.Tensor, ...]] = Recent(
            tensor_bytes, limit_bytes=limit_bytes // 2
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting:
    """The task, dtype and seed that a check runs with."""

    task: Task
    dtype: str
    seed: int
    cache: DrawCache

    def at_benchmark(self, distribution: str, index: int = 0, *, seed: int | None = None) -> Draw:
        """Return draw number `index` at the task's benchmark shape."""
        chosen = self.seed if seed is None else seed
        return self.of(benchmark_case(self.task, chosen, self.dtype, distribution, index))

    def of(self, case: Case) -> Draw:
        """Return the draw of a case."""

        def make() -> Draw:
            return Draw(key=case.identity, case=case, inputs=materialize(self.task, case))

        return self.cache.draws.get(case.identity, make)

    def samples(self, count: int) -> Iterator[Draw]:
        """Draw at `count` small shapes that the task allows, values uniform in [-10, 10]."""
        base = benchmark_case(self.task, self.seed, self.dtype, "uniform", 0)
        seen: set[tuple[int, ...]] = set()
        for attempt in range(8 * count):
            words = stream(self.seed, self.task.name, "operator samples", str(attempt))
            picks = [SAMPLE_SIZES[int(w) % 5] for w in words.words(len(base.dims))]
            case = base.with_dims(**dict(zip((s for s, _ in base.dims), picks, strict=True)))
            if tuple(picks) in seen or not self.task.allows(case.sizes, case.settings):
                continue
            seen.add(tuple(picks))
            seed = derive(self.seed, self.task.name, "operator sample", str(attempt))
            yield self.of(structs.replace(case, recipe="uniform", seed=seed))
            if len(seen) == count:
                return

    def schema_draws(self, count: int) -> Iterator[Draw]:
        """Draw from the published schema: boundary and ordinary sizes, uniform in [-10, 10]."""
        # A peer tries its dtypes whether or not the task's prompt promises them.
        promised = self.dtype in self.task.promised_dtypes
        cases = generate(
            self.task,
            strategies=("default",),
            seed=self.seed,
            count=count,
            dtypes=(self.dtype,),
            domain="core" if promised else "extended",
        )
        yield from (self.of(structs.replace(case, recipe="uniform")) for case in cases)

    def working_reference(self, draw: Draw) -> tuple[torch.Tensor, ...]:
        """Return the reference's outputs on the same tensors, in working precision.

        Raises:
            CannotRun: torch refuses these inputs.
        """

        def make() -> tuple[torch.Tensor, ...]:
            given = draw.inputs
            own = {n: None if t is None else t.clone() for n, t in given.tensors.items()}
            return _run(draw, lambda: outputs_of(self.task, own, given.scalars))

        return self.cache.outputs.get(f"{draw.key}>working", make)

    def rounded_reference(self, draw: Draw, precision: str) -> tuple[torch.Tensor, ...]:
        """Return the reference's outputs in a wider precision, rounded once to the output dtypes.

        Raises:
            CannotRun: torch refuses these inputs.
        """

        def make() -> tuple[torch.Tensor, ...]:
            wider = cast(draw.inputs.tensors, DTYPES[precision])
            exact = _run(draw, lambda: outputs_of(self.task, wider, draw.inputs.scalars))
            specs = self.task.promised_outputs(draw.inputs.scalars, draw.inputs.tensors)
            wanted = (o.parts_at(self.dtype) for o in specs)
            return tuple(t.to(DTYPES[d]) for t, d in zip(exact, wanted, strict=True))

        return self.cache.outputs.get(f"{draw.key}>{precision}", make)


def _run(draw: Draw, call: Callable[[], tuple[torch.Tensor, ...]]) -> tuple[torch.Tensor, ...]:
    try:
        with quietly():
            return call()
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise CannotRun(f"the reference refuses {draw.case.summary()}: {lines[0]}") from error


def scaled(setting: Setting, draw: Draw, factor: float) -> Draw:
    """Multiply the draw's real inputs by a factor; a kind with its own range stays unchanged."""
    if factor == 1:
        return draw
    real = {s.name for s in setting.task.tensors if s.kind == "real"}
    return _changed(setting, draw, f"x{factor:g}", lambda n, t: t * factor if n in real else t)


def with_outliers(setting: Setting, draw: Draw) -> Draw:
    """Make 0.1% to 1% of the draw's real elements 10 to 50 times as large."""
    real = {s.name for s in setting.task.tensors if s.kind == "real"}

    def change(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if name not in real:
            return tensor
        rng = stream(draw.case.seed, name, "outliers")
        share, scale = rng.uniform(2).tolist()
        struck = rng.uniform(tensor.numel()).reshape(tensor.shape) < 0.001 + 0.009 * share
        return torch.where(struck, tensor * (10 + 40 * scale), tensor)

    return _changed(setting, draw, "outliers", change)


def all_cast(setting: Setting, draw: Draw) -> Draw:
    """Cast every tensor of the draw to the working dtype, including indices and masks."""
    target = DTYPES[setting.dtype]
    if all(t is None or t.dtype == target for t in draw.inputs.tensors.values()):
        return draw
    return _changed(setting, draw, "cast", lambda _, t: t.to(target))


def _changed(
    setting: Setting, draw: Draw, how: str, change: Callable[[str, torch.Tensor], torch.Tensor]
) -> Draw:
    key = f"{draw.key}|{how}"

    def make() -> Draw:
        given = draw.inputs.tensors
        changed = {n: None if t is None else change(n, t) for n, t in given.items()}
        return replace(draw, key=key, inputs=replace(draw.inputs, tensors=changed))

    return setting.cache.draws.get(key, make)


def again(draw: Draw) -> Draw:
    """Return the same inputs for a second run, which a cached answer must not serve."""
    return replace(draw, key=f"{draw.key}|again", turn=1)
