"""Which obligations decide, by the name of a contract."""

import pytest

from kerneltruth.errors import UserError
from kerneltruth.oracle.contract import CONTRACTS, contract_named
from kerneltruth.oracle.obligations import Departure

PUBLISHED = Departure(obligation="published")
SHAPES = Departure(obligation="shapes")
STRIDES = Departure(obligation="layouts", promised=False)
GRADIENTS = Departure(obligation="gradients", promised=False)


@pytest.mark.parametrize(
    ("name", "decisive"),
    [
        ("published", {PUBLISHED}),
        ("core", {PUBLISHED, SHAPES}),
        ("torch", {PUBLISHED, SHAPES, STRIDES}),
    ],
)
def test_a_contract_decides_by_its_obligations(name, decisive):
    obligations = (PUBLISHED, SHAPES, STRIDES, GRADIENTS)
    assert {d for d in obligations if CONTRACTS[name].decides(d)} == decisive


def test_promised_gradients_decide_for_all_but_the_benchmark():
    promised = Departure(obligation="gradients")
    decides = [contract.decides(promised) for contract in CONTRACTS.values()]
    assert decides == [False, True, True]


@pytest.mark.parametrize("name", ["", "Core", "strict"])
def test_an_unknown_contract_is_refused_with_those_that_there_are(name):
    with pytest.raises(UserError, match=rf"--contract '{name}': must be one of published, core"):
        contract_named(name)
