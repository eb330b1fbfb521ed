"""What differs from a task's defaults in one point, in the order in which it is tried."""

from __future__ import annotations

from kerneltruth.tasks.spec import Scalar, Task

Single = tuple[dict[str, Scalar], tuple[str, ...]]


def singles_of(task: Task) -> list[Single]:
    """What differs from the defaults in one point: an absent tensor, or one attribute's value.

    The first further value of every attribute comes before the second of any.
    """
    found: list[Single] = []
    rounds = max((len(a.values) for a in task.attributes), default=0)
    for turn in range(1, rounds):
        found += [({a.name: a.values[turn]}, ()) for a in task.attributes if turn < len(a.values)]
        if turn == 1:
            found += [({}, (spec.name,)) for spec in task.tensors if spec.optional]
    return found or [({}, (spec.name,)) for spec in task.tensors if spec.optional]


def in_pairs(alone: list[Single]) -> list[Single]:
    """Two neighbours at a time where they speak of different attributes."""
    pairs: list[Single] = []
    for one, other in zip(alone[::2], [*alone[1::2], ({}, ())], strict=False):
        if set(one[0]) & set(other[0]):
            pairs += [one, other]
        else:
            pairs.append(({**one[0], **other[0]}, one[1] + other[1]))
    return pairs
