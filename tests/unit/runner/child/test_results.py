"""What an entry returns is flattened by what it holds, without running any code of its classes."""

import collections
from typing import NamedTuple

import numpy as np
import pytest
import torch

from kerneltruth.runner.child import placing
from kerneltruth.runner.observation import OtherResult, TensorResult

X, Y = torch.arange(3.0), torch.arange(4.0)


class Pair(NamedTuple):
    values: torch.Tensor
    indices: torch.Tensor


class Late(tuple):
    __slots__ = ()

    def __iter__(self):
        raise AssertionError("asked")


class LateList(list):
    def __iter__(self):
        raise AssertionError("asked")


class LateDict(dict):
    def values(self):
        raise AssertionError("asked")


class LateTensor(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("asked")

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("asked")


class LateArray(np.ndarray):
    def __array__(self, *args, **kwargs):
        raise AssertionError("asked")


class NoneType:
    def __repr__(self):
        raise AssertionError("asked")


class Named(type):
    @property
    def __name__(cls):
        raise AssertionError("asked")


class Odd(metaclass=Named):
    __slots__ = ()


def results(returned, *, arrays=False):
    return placing.collect(placing.leaves(returned), [], arrays=arrays)


@pytest.mark.parametrize(
    "returned",
    [
        (X, Y),
        [X, (Y,)],
        {"a": X, "b": [Y]},
        collections.OrderedDict(a=X, b=Y),
        Pair(X, Y),
        collections.namedtuple("Plain", "a b")(X, Y),
        torch.return_types.max((X, Y)),
        (torch.nn.Parameter(X), Y.requires_grad_()),
    ],
)
def test_containers_and_named_tuples_are_flattened(returned):
    shapes = [r.shape for r in results(returned)]
    assert shapes == [(3,), (4,)]


@pytest.mark.parametrize(
    "late",
    [
        Late((X, Y)),
        LateList([X, Y]),
        LateDict(a=X),
        X.as_subclass(LateTensor),
        np.zeros(3).view(LateArray),
        NoneType(),
        Odd(),
    ],
    ids=lambda value: type.__dict__["__name__"].__get__(type(value)),
)
@pytest.mark.parametrize("inside", [False, True])
def test_no_class_of_the_candidate_runs_code(late, inside):
    found = results([late] if inside else late, arrays=True)
    assert [type(r) for r in found] == [OtherResult]
    assert found[0].type != "NoneType"


def test_nothing_and_numbers_are_what_they_are():
    assert results(None) == ()
    assert [r.type for r in results((None, 2.5))] == ["NoneType", "float"]
    assert results(2.5)[0].text == "2.5"


def test_arrays_are_tensors_of_a_numpy_candidate_alone():
    returned = (np.zeros(3, dtype=np.float32), np.float64(2.0))
    assert [type(r) for r in results(returned)] == [OtherResult] * 2
    assert [r.shape for r in results(returned, arrays=True)] == [(3,), ()]
    assert all(isinstance(r, TensorResult) for r in results(returned, arrays=True))


@pytest.mark.parametrize(
    "one", [torch.full((1, 2), 3.0)[:, ::2], torch.tensor([[3 + 1j]], dtype=torch.complex64).real]
)
def test_a_single_element_has_bytes_whatever_its_stride(one):
    (found,) = results(one)
    assert (found.shape, bytes(found.data)) == ((1, 1), torch.tensor(3.0).numpy().tobytes())


ODD = {
    "meta": X.to("meta"),
    "sparse_coo": X.to_sparse(),
    "wrapped": torch._to_functional_tensor(X),
}


@pytest.mark.parametrize("kind", ODD)
def test_a_tensor_without_elements_of_its_own_is_named_by_its_kind(kind):
    (found,) = results(ODD[kind])
    assert isinstance(found, OtherResult)
    assert (found.type, found.noun) == (f"{kind} tensor", f"a {kind} tensor")


def test_a_tensor_that_has_left_a_transform_is_not_read():
    kept = []
    torch.vmap(lambda x: (kept.append(x), x)[1])(X)
    assert [r.type for r in results(kept)] == ["wrapped tensor"]


def test_a_long_text_and_a_long_number_are_cut_before_they_are_written_out():
    text, number = results(("x" * 10**8, 10**6000))
    assert text.text == "'" + "x" * 199
    assert number.type == "int"
    assert number.text.startswith("<int object")
