"""The schema of a problem, found by trying it: sets of constants with shapes, and properties."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from kerneltruth.documents.model import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input of the model's call for one set of constants: a tensor, or a plain value."""

    shape: tuple[int, ...] = ()
    dtype: str | None = None
    value: str | None = None

    @property
    def elements(self) -> int:
        """Return its number of elements; a plain value has none."""
        return math.prod(self.shape) if self.dtype else 0

    @property
    def holds_integers(self) -> bool:
        """Return whether it is a tensor of integers, such as indices, and not of bools."""
        return (self.dtype or "").startswith(("int", "uint"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The problem's shapes and cost for one set of constants.

    Attributes:
        init: what `get_init_inputs` returns, as Python text.
        state: shapes of parameters and buffers by name.
        outputs: of the call, tensors and plain values.
        flops: of one call.
        terms: the most that one sum has.
        masks: buffers of bools, which cost little: a model may have one for its longest sequence.
        products: how many matrix products and convolutions a call makes.
        stretched: which operands its operators broadcast, and along which dims.
    """

    init: str
    plain: bool
    names: tuple[str, ...]
    inputs: tuple[Input, ...]
    state: dict[str, tuple[int, ...]]
    parameters: tuple[str, ...]
    outputs: tuple[Input, ...]
    flops: int
    terms: int
    products: int
    stretched: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()

    @property
    def weights(self) -> int:
        """Return the elements of all parameters and buffers but masks."""
        return sum(math.prod(shape) for n, shape in self.state.items() if n not in self.masks)

    @property
    def elements(self) -> int:
        """Return the elements of all inputs and outputs."""
        return sum(i.elements for i in (*self.inputs, *self.outputs))

    @property
    def rows(self) -> int:
        """Return the most rows that an input has: elements of all dims but the last."""
        return max((math.prod(i.shape[:-1]) for i in self.inputs), default=0)

    @property
    def extents(self) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of inputs and weights."""
        return (*(i.shape for i in self.inputs), *self.state.values())

    @property
    def shapes(self) -> tuple[Any, ...]:
        """Return the key that tells sets apart for a kernel."""
        return tuple(i.shape for i in self.inputs), self.init, tuple(self.state.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantChoice:
    """One set of constants.

    Attributes:
        label: its name in cases.
        constants: as the text of a dict, only those that differ from the file's own.
        extents: for each input, the largest index that it may hold; None for other inputs.
        core: whether it differs from the file in sizes alone, not in what the model is.
    """

    label: str
    constants: str
    outline: Outline
    extents: tuple[int | None, ...] = ()
    core: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFacts:
    """The common properties of one input's draws.

    Attributes:
        form: such as `sign` or `upper`; None for other values, and for integers.
        arranged: whether integers are no independent draws: offsets, or a permutation.
        layout: how it lies in memory, one of `cases.layouts.LAYOUTS`.
        example: size and stride of each dim where it is not contiguous, in elements.
    """

    low: Number | None = None
    high: Number | None = None
    form: str | None = None
    arranged: bool = False
    layout: str = "contiguous"
    example: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFacts:
    """How a constructor fills a parameter or buffer.

    Attributes:
        random: whether two constructors differ.
        constant: the one number that it holds; None if there are several, or it holds integers.
        size: root of the mean square.
    """

    dtype: str
    random: bool
    constant: Number | None = None
    size: Number = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The forms in which a problem is judged.

    Attributes:
        choices: small first, but for the smallest that is core, which leads.
        timed: the file's own constants, reduced if that size cannot be timed; none if they have no
            outline.
        inputs: what the draws of each input have in common.
        state: how the constructor fills each parameter and buffer.
        first: the file's own constants as far as a case on a CPU affords them; none if it affords
            nothing near.
        whole: the same for judging on a GPU, by how much of the file's sizes fits: the largest
            first.
        smaller: sets to show a fault in.
        long: sets with one size far beyond the others.
        training: the mode in which the constructor leaves the model.
        modes: whether its results differ in the other mode.
        random: whether two runs on the same inputs and weights differ.
        random_otherwise: the same for the other mode.
        updated: buffers that a call in training mode writes.
        dtypes: the dtypes of the outputs, by the dtype of inputs and weights; empty if no choice
            was run.
        working: the dtype in which the file has its real inputs.
        numbers: another value of some plain arguments, by name as Python text.
        trouble: why no candidate can be judged on it.
    """

    choices: tuple[ConstantChoice, ...] = ()
    timed: ConstantChoice | None = None
    inputs: tuple[InputFacts, ...] = ()
    state: dict[str, WeightFacts] = field(default_factory=dict)
    dtypes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    working: str = "float32"
    numbers: dict[str, str] = field(default_factory=dict)
    positive: bool = False
    first: ConstantChoice | None = None
    whole: tuple[ConstantChoice, ...] = ()
    smaller: tuple[ConstantChoice, ...] = ()
    long: tuple[ConstantChoice, ...] = ()
    training: bool = True
    modes: bool = False
    random: bool = False
    random_otherwise: bool = False
    updated: tuple[str, ...] = ()
    trouble: str | None = None

    def random_in(self, mode: str) -> bool:
        """Return whether a model in a mode, `training` or `evaluation`, is random."""
        own = mode.startswith("training") == self.training
        return self.random if own else self.random_otherwise

    def largest(self, room: int) -> ConstantChoice | None:
        """Return the largest of the file's own sizes within that many elements, or the smallest."""
        known = (c for c in self.whole if c.outline.elements + c.outline.weights <= room)
        return next(known, self.whole[-1] if self.whole else self.first)

    @property
    def every(self) -> tuple[ConstantChoice, ...]:
        """Return all sets that a case may use, once by label."""
        more = (self.timed, self.first, *self.whole)
        found = (*self.choices, *self.long, *self.smaller, *(c for c in more if c is not None))
        return tuple({c.label: c for c in reversed(found)}.values())[::-1]

    @property
    def distinct(self) -> int:
        """Return how many different shapes of inputs the choices have."""
        return len({tuple(i.shape for i in c.outline.inputs) for c in self.choices})
