"""What does nothing in a task is found, and what does something is not."""

import pytest

from kerneltruth.engine.proof import idle_attributes, idle_dims
from kerneltruth.tasks.spec import task


def declared(signature, reference, **more):
    given = {"dims": {"M": "batch", "N": "reduced"}, "benchmark": {"M": 4, "N": 8}} | more
    return task(
        signature,
        category="Math",
        reference=reference,
        description="x",
        flops="N",
        **given,
    )


def test_an_attribute_that_is_not_read_is_idle():
    made = declared(
        "f(x[M, N], gain=1.0, unread=1.0)",
        lambda x, gain, unread: x * gain,
        attributes={"gain": (2.0,), "unread": (2.0,)},
    )
    assert list(idle_attributes(made)) == ["unread"]


def test_an_attribute_that_matters_beside_another_value_only_is_not_idle():
    made = declared(
        "f(x[M, N], trained=False, momentum=1.0)",
        lambda x, trained, momentum: x * momentum if trained else x,
        attributes={"trained": (True,), "momentum": (2.0,)},
    )
    assert list(idle_attributes(made)) == []


def test_an_attribute_that_matters_for_negative_values_only_is_not_idle():
    made = declared(
        "f(x[M, N], slope=0.5)",
        lambda x, slope: x.clamp_min(0) + slope * x.clamp_max(0),
        attributes={"slope": (0.25,)},
    )
    assert list(idle_attributes(made)) == []


@pytest.mark.parametrize(
    ("reference", "idle"),
    [
        (lambda x: x.sum(-1), []),
        (lambda x: x[:, :0].sum(-1), ["N"]),
        (lambda x: x[:0].sum(-1), ["M", "N"]),
        (lambda x: x[:0].sum(0), ["M"]),
    ],
)
def test_a_dim_whose_elements_are_not_read_is_idle(reference, idle):
    assert list(idle_dims(declared("f(x[M, N])", reference))) == idle


def test_a_dim_that_only_indices_reach_is_not_idle():
    made = declared(
        "f(table[N, 3], places[M]: index(N))",
        lambda table, places: table[places],
        dims={"M": "batch", "N": "channel"},
    )
    assert list(idle_dims(made)) == []
