"""Sizes that are worth trying fit the dims of the task, and are made to fit its rules."""

from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltruth.cases import shapes
from kerneltruth.tasks.core import TASKS

KEYS = st.sampled_from(sorted(TASKS))
DEVICES = st.sampled_from(["cpu", "cuda"])


def draw_sizes(data, found, *, most=300):
    return {a.symbol: data.draw(st.integers(a.low, max(a.low, most)), a.symbol) for a in found}


def defaults(task):
    return {a.name: a.default for a in task.attributes}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("key", sorted(TASKS))
def test_sizes_lie_within_their_axis(key, device):
    for axis in shapes.axes(TASKS[key], device):
        first, rest = shapes.boundary_sizes(axis)
        assert not set(first) & set(rest)
        found = (*first, *rest, *shapes.regular_sizes(axis))
        assert all(axis.low <= n <= axis.cap for n in found)


@settings(deadline=None)
@given(KEYS, DEVICES, st.sets(st.integers(1, 2048), max_size=8))
def test_tile_sizes_are_never_none_nor_below_the_least(key, device, blocks):
    task = TASKS[key]
    for axis in shapes.axes(task, device):
        sizes = shapes.tile_sizes(axis, tuple(blocks), task)
        assert sizes
        assert all(n >= axis.low for n in sizes)
        assert len(set(sizes)) == len(sizes)


@settings(deadline=None)
@given(KEYS, DEVICES, st.data())
def test_repaired_sizes_break_no_rule_of_the_task(key, device, data):
    task = TASKS[key]
    found = shapes.axes(task, device)
    repaired = shapes.repair(task, found, draw_sizes(data, found), defaults(task), None)
    assert repaired is None or shapes.violations(task, repaired, defaults(task)) == 0


@settings(deadline=None)
@given(KEYS, st.data())
def test_sizes_that_break_no_rule_are_repaired_to_themselves(key, data):
    task = TASKS[key]
    found = shapes.axes(task, "cpu")
    sizes = shapes.repair(task, found, draw_sizes(data, found), defaults(task), None)
    if sizes is not None:
        assert shapes.repair(task, found, sizes, defaults(task), None) == sizes


@settings(deadline=None)
@given(KEYS, st.data(), st.integers(1, 10**6), st.booleans())
def test_shrunk_sizes_fit_or_nothing_is_left_to_shrink(key, data, most, odd):
    found = shapes.axes(TASKS[key], "cuda")
    sizes = draw_sizes(data, found, most=3000)
    keep = data.draw(st.sampled_from([None, *sizes]), "keep")
    shrunk = shapes.shrink(sizes, found, keep, lambda s: prod(s.values()) <= most, odd=odd)
    least = all(shrunk[a.symbol] == a.low for a in found if a.symbol != keep)
    assert prod(shrunk.values()) <= most or least
    assert all(shrunk[n] <= sizes[n] for n in sizes)
    assert keep is None or shrunk[keep] == sizes[keep]
