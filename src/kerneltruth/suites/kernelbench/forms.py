"""Learn the form of a problem: how the shapes of results follow from those of its inputs.

A reference may accept sizes by accident: halves of an odd dim, of sizes 1 and 2, broadcast to one
of size 2. Its result there is not what the problem specifies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kerneltruth.suites.kernelbench.schema import Outline

# An output and its dim, an input or weight and its dim.
_Pair = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What holds for all sizes.

    Attributes:
        equal: dims of outputs that are as large as dims of inputs and weights.
        stretched: which operands are broadcast, and along which dims; and whether concatenated
            parts differ in size.
    """

    equal: frozenset[_Pair]
    stretched: frozenset[str]

    def allows(self, outline: Outline, *, of_the_model: bool = True) -> bool:
        """Return whether an outline has the form.

        Args:
            outline: for some sizes.
            of_the_model: whether the model is the same except for sizes. With another kernel or
                stride the sizes of its outputs may follow otherwise.
        """
        if not self.stretched.issuperset(outline.stretched):
            return False
        return not of_the_model or self.equal <= frozenset(_equal(outline))


def form_of(outlines: Sequence[Outline]) -> Form:
    """Return what several outlines share; each differs in one size, so it is no accident."""
    pairs = [frozenset(_equal(outline)) for outline in outlines]
    return Form(
        equal=frozenset.intersection(*pairs),
        stretched=frozenset(s for outline in outlines for s in outline.stretched),
    )


def _equal(outline: Outline) -> Iterator[_Pair]:
    for o, output in enumerate(outline.outputs):
        for i, size in enumerate(output.shape):
            for m, shape in enumerate(outline.extents):
                yield from ((o, i, m, j) for j, other in enumerate(shape) if other == size)


def same_parts(one: Outline, other: Outline) -> bool:
    """Return whether inputs, weights and outputs are the same except for their sizes."""
    return (
        one.names == other.names
        and list(one.state) == list(other.state)
        and [(i.dtype, len(i.shape)) for i in one.inputs]
        == [(i.dtype, len(i.shape)) for i in other.inputs]
        and [(o.dtype, len(o.shape)) for o in one.outputs]
        == [(o.dtype, len(o.shape)) for o in other.outputs]
    )
