"""Indices that a foreign reference returns beside what it has sorted or picked."""

import dataclasses

import pytest
import torch
from scripted import Bench, declare, result

from kerneltruth.cases.materialize import Inputs
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.oracle.ties import with_ties
from kerneltruth.runner.observation import Observation
from kerneltruth.tasks.spec import Output

ROWS = [[2.0, 1.0, 2.0, 0.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0], [3.0, 3.0, 3.0, 1.0, 2.0]]
BOTH = (Output(name="values"), Output(name="indices", dtype="int64"))
INDICES = (Output(name="indices", dtype="int64"),)


def foreign(reference, outputs):
    return dataclasses.replace(
        declare("ordered(x[M, N])", reference, outputs=outputs), foreign=True
    )


SORTED = foreign(lambda x: tuple(torch.sort(x, dim=-1, stable=True)), BOTH)
TOP = foreign(lambda x: tuple(torch.topk(x, 3, dim=-1)), BOTH)
ARGSORTED = foreign(lambda x: torch.argsort(x, dim=-1, stable=True), INDICES)
LARGEST = foreign(lambda x: tuple(torch.max(x, dim=-1, keepdim=True)), BOTH)
LAST = foreign(lambda x: (x.amax(-1, keepdim=True), 4 - x.flip(-1).argmax(-1, keepdim=True)), BOTH)
COUNTED = foreign(lambda x: (x, torch.arange(5).expand(3, 5) + 0 * x.long()), BOTH)


def verdict(task, outputs):
    bench = Bench(task, M=3, N=5, literals=(("x", [v for row in ROWS for v in row]),))
    assert bench.expectation.unrefereeable is None
    return bench.verdict(Observation(ended="returned", results=tuple(map(result, outputs))))


def sorted_from_behind(x):
    """Sort with the last of equal elements first."""
    values, places = torch.sort(x.flip(-1), dim=-1, stable=True)
    return values, x.shape[-1] - 1 - places


@pytest.mark.parametrize("task", [SORTED, TOP, ARGSORTED], ids=["sort", "topk", "argsort"])
def test_equal_elements_come_in_any_order(task):
    x = torch.tensor(ROWS)
    values, indices = sorted_from_behind(x)
    if task is TOP:
        values, indices = values.flip(-1)[:, :3], indices.flip(-1)[:, :3]
    given = (indices,) if task is ARGSORTED else (values, indices)
    assert isinstance(verdict(task, [t.contiguous() for t in given]), Passed)


@pytest.mark.parametrize("task", [SORTED, ARGSORTED], ids=["sort", "argsort"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda i: i.index_put((torch.tensor(0), torch.tensor(4)), i[0, 3]),
        lambda i: i.index_put((torch.tensor(1), torch.tensor([0, 1])), i[1, [1, 0]]),
        lambda i: i + (i == 4),
        torch.zeros_like,
    ],
    ids=["twice", "swapped", "out of range", "zeros"],
)
def test_an_index_of_another_element_or_one_that_comes_twice_is_wrong(task, spoil):
    values, indices = torch.sort(torch.tensor(ROWS), dim=-1, stable=True)
    given = (spoil(indices),) if task is ARGSORTED else (values, spoil(indices))
    assert isinstance(verdict(task, list(given)), Failed)


def test_one_index_a_row_is_that_of_the_reference():
    x = torch.tensor(ROWS)
    values, indices = LARGEST.reference(x)
    assert isinstance(verdict(LARGEST, [values, indices]), Passed)
    assert isinstance(verdict(LARGEST, [values, torch.tensor([[2], [1], [2]])]), Failed)


def test_one_index_a_row_may_be_of_any_equal_element_where_the_reference_names_a_later_one():
    """As of a topk of one element: in `LARGEST` it is the first, as PyTorch promises."""
    values, _ = LAST.reference(torch.tensor(ROWS))
    assert isinstance(verdict(LAST, [values, torch.tensor([[0], [0], [1]])]), Passed)
    assert isinstance(verdict(LAST, [values, torch.tensor([[1], [0], [2]])]), Failed)


def test_one_index_a_row_may_be_of_any_equal_element_where_their_count_is_an_argument():
    first = dataclasses.replace(
        declare("ordered(x[M, N], k=1)", lambda x, k: LARGEST.reference(x), outputs=BOTH),
        foreign=True,
    )
    values, _ = LARGEST.reference(torch.tensor(ROWS))
    assert isinstance(verdict(first, [values, torch.tensor([[2], [0], [1]])]), Passed)
    assert isinstance(verdict(first, [values, torch.tensor([[1], [0], [2]])]), Failed)


@pytest.mark.parametrize(
    ("name", "compare"), [("k", "accept"), ("dim", "bound"), ("axis", "bound")]
)
def test_an_argument_that_names_a_dim_counts_no_elements(name, compare):
    x = torch.tensor(ROWS)
    inputs = Inputs(order=("x", name), tensors={"x": x}, scalars={name: 1})
    _, indices = with_ties(LARGEST, BOTH, inputs, LARGEST.reference(x))
    assert indices.compare == compare


def test_integers_that_are_no_order_are_compared():
    x = torch.tensor(ROWS)
    counts = torch.arange(5).expand(3, 5).contiguous()
    assert isinstance(verdict(COUNTED, [x, counts]), Passed)
    assert isinstance(verdict(COUNTED, [x, counts.flip(-1).contiguous()]), Failed)
