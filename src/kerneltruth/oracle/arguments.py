"""A case's inputs as the arguments of a call, in memory as the case lays them out."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltruth.cases.layouts import Placed, place
from kerneltruth.cases.materialize import Inputs, expanded_dim, layout_of
from kerneltruth.cases.philox import derive
from kerneltruth.documents.case import Case
from kerneltruth.oracle.recent import Recent
from kerneltruth.runner.arguments import Argument, ScalarArgument, TensorArgument
from kerneltruth.runner.protocol import EarlierContents
from kerneltruth.tasks.model import OUT
from kerneltruth.tasks.spec import Derived, Task, TensorSpec

# Wide enough for an unmasked block of rows that runs over the end of a small input.
INPUT_GUARD_BYTES = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """All of a call but its inputs' values; a right result does not change with it.

    Attributes:
        small_poison: uninitialized memory holds small numbers, and no NaN.
        small_guards: so does the memory around inputs and around the candidate's allocations.
        contiguous: inputs that are laid out contiguously, whatever the case says.
        draw: the seed of random generators; another one makes another random call.
        reused: a model is called with other values first.
        idle: the candidate's own kernels do nothing; a right result needs them.
    """

    small_poison: bool = False
    small_guards: bool = False
    contiguous: frozenset[str] = frozenset()
    draw: int = 0
    reused: bool = False
    idle: bool = False


USUAL = Surroundings()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LaidOut:
    """The arguments of a call in the order of the signature, and where each tensor lies."""

    inputs: Inputs
    arguments: tuple[Argument, ...]
    placed: dict[str, Placed]

    def bytes(self) -> int:
        """The size of all buffers."""
        return sum(len(p.buffer) for p in self.placed.values())


class Layouts:
    """Arguments by inputs; shared by a call, its compilation, and the candidates of one task.

    The default limit holds some sixty tasks: candidates of many tasks are judged in turn, and an
    input takes longer to lay out than its result to compare.
    """

    def __init__(self, *, limit_bytes: int = 64 * 2**20) -> None:
        self._limit = limit_bytes
        self._recent: Recent[LaidOut] = Recent(LaidOut.bytes, limit_bytes=limit_bytes)

    def of(self, task: Task, case: Case, inputs: Inputs, around: Surroundings = USUAL) -> LaidOut:
        """The arguments made of these inputs; laid out again only if they were not kept."""
        tensors = [t for t in inputs.tensors.values() if t is not None]
        if sum(t.nbytes for t in tensors) > self._limit // 4:
            return lay_out(task, case, inputs, around)
        # The kept layout holds its inputs, so no other inputs get the same id.
        memory = f"{around.small_guards}>{sorted(around.contiguous)}"
        key = f"{id(inputs)}>{case.layout}>{case.seed}>{memory}"
        return self._recent.get(key, lambda: lay_out(task, case, inputs, around))


def lay_out(task: Task, case: Case, inputs: Inputs, around: Surroundings = USUAL) -> LaidOut:
    """A call's arguments in memory as the case lays them out."""
    arguments: list[Argument] = []
    placed: dict[str, Placed] = {}
    for spec in task.arguments:
        if not isinstance(spec, TensorSpec):
            if isinstance(spec, Derived) or not spec.hidden:
                value, default = inputs.scalars[spec.name], getattr(spec, "default", None)
                arguments.append(ScalarArgument(name=spec.name, value=value, default=default))
            continue
        tensor = inputs.tensors[spec.name]
        if tensor is None:
            if spec.member_of is not None:
                continue
            value = inputs.scalars.get(spec.name)
            arguments.append(ScalarArgument(name=spec.name, value=value))
            continue
        layout = "contiguous" if spec.name in around.contiguous else layout_of(case, spec)
        spot = place(
            tensor,
            layout,
            seed=derive(case.seed, "guards", "0", spec.name),
            small=around.small_guards,
            guard_bytes=INPUT_GUARD_BYTES,
            expand=expanded_dim(task, spec, inputs.scalars) if layout == "expanded" else None,
        )
        placed[spec.name] = spot
        arguments.append(_passed(spec, spot))
    out = inputs.tensors.get(OUT)
    if out is not None and OUT not in placed:
        placed[OUT] = place(
            out,
            "contiguous",
            seed=derive(case.seed, "guards", "0", OUT),
            small=around.small_guards,
            guard_bytes=INPUT_GUARD_BYTES,
        )
        arguments.append(_passed(TensorSpec(name=OUT, dims=()), placed[OUT]))
    return LaidOut(inputs=inputs, arguments=tuple(arguments), placed=placed)


def _passed(spec: TensorSpec, spot: Placed) -> TensorArgument:
    return TensorArgument(
        name=spec.name,
        dtype=spot.dtype,
        shape=spot.shape,
        strides=spot.strides,
        offset=spot.offset,
        buffer=spot.buffer,
        member_of=spec.member_of,
        # A model has copies of its weights, so nothing can be written there.
        shown=spec.kind != "weight",
    )


def contents_of(laid: LaidOut, usual: LaidOut) -> EarlierContents:
    """What the memory of a call holds in one on other inputs of the same shapes and layout."""
    pairs = ((name, place.buffer, usual.placed[name].buffer) for name, place in laid.placed.items())
    return EarlierContents(buffers={name: buffer for name, buffer, own in pairs if buffer != own})


def poison_of(case: Case, index: int) -> bytes:
    """The pattern of uninitialized memory for the index-th call of a case: 16 bytes."""
    return b"".join(
        derive(case.seed, "poison", str(index), half).to_bytes(8, "little") for half in "ab"
    )
