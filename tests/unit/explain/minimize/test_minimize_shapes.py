"""What is offered in place of a shape is simpler, allowed and possible."""

from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltruth.explain.minimize.shapes import (
    floored,
    lower_sizes,
    lowered,
    order,
    swept,
    together,
    traded,
)

SHAPES = st.lists(st.integers(0, 3000), min_size=1, max_size=4).map(tuple)
BLOCKS = st.sets(st.sampled_from([16, 24, 100, 128]))


def anything(shape):
    return True


def even(shape):
    return sum(shape) % 2 == 0


@settings(deadline=None)
@given(st.integers(1, 5000), BLOCKS)
def test_lower_sizes_are_positive_and_lower(size, blocks):
    assert all(0 < n < size for n in lower_sizes(size, blocks))


@settings(deadline=None)
@given(st.integers(2, 5000), BLOCKS)
def test_one_and_the_next_lower_size_are_among_them(size, blocks):
    assert {1, size - 1} <= set(lower_sizes(size, blocks))


@settings(deadline=None)
@given(SHAPES, st.sampled_from([anything, even]))
def test_every_offer_is_allowed_and_has_as_many_dims(shape, allowed):
    offers = [
        *floored(shape, allowed),
        *(s for i in range(len(shape)) for s in lowered(shape, i, allowed, ())),
        *islice(together(shape, allowed), 200),
        *islice(traded(shape, allowed), 200),
        *islice(swept(shape, allowed, 32), 200),
    ]
    assert all(allowed(offer) and len(offer) == len(shape) for offer in offers)


@settings(deadline=None)
@given(SHAPES)
def test_a_trade_or_a_sweep_only_offers_what_comes_before_in_the_order(shape):
    offers = [*islice(traded(shape, anything), 200), *swept(shape, anything, 32)]
    assert all(order(offer) < order(shape) for offer in offers)


@settings(deadline=None)
@given(SHAPES)
def test_a_sweep_goes_through_shapes_in_their_order(shape):
    offers = list(swept(shape, anything, 32))
    assert offers == sorted(set(offers), key=order)


@settings(deadline=None)
@given(SHAPES)
def test_an_empty_dim_is_filled_before_others_shrink(shape):
    filled = tuple(n or 1 for n in shape)
    assert order(filled) <= order(shape)
