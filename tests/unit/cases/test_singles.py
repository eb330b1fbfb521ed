"""The order in which attribute values are tried."""

from kerneltruth.cases.singles import in_pairs, singles_of
from kerneltruth.tasks.spec import task

TASK = task(
    "f(x[N], w[N]?, a=0, b=0)",
    category="Math",
    dims={"N": "batch"},
    reference=lambda x, w, a, b: x,
    description="x",
    flops="0",
    benchmark={"N": 4},
    attributes={"a": (1, 2, 3), "b": (1,)},
)


def test_every_attribute_has_its_first_turn_before_any_has_its_second():
    assert singles_of(TASK) == [
        ({"a": 1}, ()),
        ({"b": 1}, ()),
        ({}, ("w",)),
        ({"a": 2}, ()),
        ({"a": 3}, ()),
    ]


def test_pairs_hold_every_single_and_never_two_values_of_one_attribute():
    assert in_pairs(singles_of(TASK)) == [
        ({"a": 1, "b": 1}, ()),
        ({"a": 2}, ("w",)),
        ({"a": 3}, ()),
    ]
    assert in_pairs([({"a": 1}, ()), ({"a": 2}, ())]) == [({"a": 1}, ()), ({"a": 2}, ())]
