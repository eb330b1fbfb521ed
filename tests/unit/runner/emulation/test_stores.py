"""Which elements of an output lie where kernels have stored."""

import numpy as np
import pytest
import torch

from kerneltruth.runner.emulation import stores


@pytest.fixture(autouse=True)
def _followed():
    stores.begin()
    yield
    stores.end()


def addresses(tensor, *elements):
    start, size = tensor.data_ptr(), tensor.element_size()
    return np.array([start + size * e for e in elements], dtype=np.uint64)


def test_an_element_stored_twice_counts_once():
    x = torch.empty(4)
    stores.note(addresses(x, 0, 1), None)
    stores.note(addresses(x, 1), None)
    assert stores.elements_stored(x) == 2


def test_masked_lanes_do_not_count():
    x = torch.empty(4)
    stores.note(addresses(x, 0, 1, 2), np.array([True, False, True]))
    assert stores.elements_stored(x) == 2


def test_one_mask_may_be_that_of_all_lanes():
    x = torch.empty(4)
    stores.note(addresses(x, 0, 1), np.array(True))
    stores.note(addresses(x, 2, 3), np.array([0], dtype=np.uint8))
    assert stores.elements_stored(x) == 2


def test_what_lies_beside_a_tensor_does_not_count():
    whole = torch.empty(8, dtype=torch.float16)
    stores.note(addresses(whole, 0, 1, 6, 7), None)
    assert stores.elements_stored(whole[2:6]) == 0


def test_of_a_strided_tensor_its_own_elements_count():
    whole = torch.empty(2, 4)
    stores.note(addresses(whole, 0, 1, 4), None)
    assert stores.elements_stored(whole[:, 0]) == 2


def test_an_empty_tensor_has_no_elements():
    assert stores.elements_stored(torch.empty(0, 3)) == 0


def test_more_stores_than_are_kept_are_said_to_be_unknown():
    stores.begin(most=1)
    x = torch.empty(4)
    for _ in range(2):
        stores.note(addresses(x, 0, 1), None)
    assert stores.elements_stored(x) is None


def test_nothing_is_kept_when_the_call_is_over():
    x = torch.empty(4)
    stores.note(addresses(x, 0), None)
    stores.end()
    assert not stores.is_on()
    assert stores.elements_stored(x) == 0
