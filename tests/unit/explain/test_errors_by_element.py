"""The error of each element: what the arrays hold, and what the picture shows of them."""

import re
from xml.etree import ElementTree

import numpy as np
import torch

from kerneltruth.documents.case import Case
from kerneltruth.documents.verdict import Passed
from kerneltruth.explain.errors_by_element import ErrorsByElement, errors_by_element, heat_map
from kerneltruth.oracle.expectation import Expectation, ExpectedOutput
from kerneltruth.oracle.judge import Ruling
from kerneltruth.tasks.arguments import Output

NONE, RIGHT, TEN, MOST = "#f3f4f2", "#9dbfd3", "#f2b57e", "#86210f"


def compared(got, reference, bound):
    dtype = str(got.dtype).removeprefix("torch.")
    want = ExpectedOutput(
        spec=Output(),
        dtype=dtype,
        promised_dtype=dtype,
        reference=reference,
        rounded=reference.to(got.dtype),
        bound=bound,
    )
    expectation = Expectation(case=Case(task="relu", dims=()), inputs=None, outputs=(want,))
    ruling = Ruling(verdict=Passed(), outputs=(got,), differences=(want.difference(got),))
    return errors_by_element(expectation, ruling)


def one(got, reference, bound=0.5):
    reference = torch.tensor(reference, dtype=torch.float64)
    (found,) = compared(torch.tensor(got), reference, torch.full_like(reference, bound))
    return found


def colours(picture):
    cells = re.findall(r'y="88" width="(\d+)" height="8" fill="(#\w+)"', picture)
    unit = min(int(width) for width, _ in cells)
    return [colour for width, colour in cells for _ in range(int(width) // unit)]


def test_the_arrays_hold_each_elements_error_its_bound_and_whether_it_is_wrong():
    arrays = one([1.25, 5.0], [1.0, 2.0]).arrays()
    assert arrays["out.error"].tolist() == [0.25, 3.0]
    assert arrays["out.output"].tolist() == [1.25, 5.0]
    assert arrays["out.reference"].tolist() == [1.0, 2.0]
    assert arrays["out.bound"].tolist() == [0.5, 0.5]
    assert arrays["out.wrong"].tolist() == [False, True]


def test_an_error_without_a_finite_side_is_not_a_number():
    found = one([float("nan"), float("inf")], [1.0, float("inf")])
    assert np.isnan(found.error).all()
    assert found.over_bound().tolist() == [np.inf, 0.0]


def test_large_integers_are_kept_as_they_are():
    reference = torch.tensor([2**62 + 1, 3])
    (found,) = compared(torch.tensor([2**62 + 1, 4]), reference, None)
    assert found.output.tolist() == [2**62 + 1, 4]
    assert found.over_bound().tolist() == [0.0, np.inf]
    assert "out.bound" not in found.arrays()


def test_an_output_of_another_shape_has_no_errors():
    want = torch.zeros(3, dtype=torch.float64)
    (found,) = compared(torch.zeros(3), want, want)
    assert found.name == "out"
    expectation = Expectation(
        case=Case(task="relu", dims=()),
        inputs=None,
        outputs=(
            ExpectedOutput(
                spec=Output(),
                dtype="float32",
                promised_dtype="float32",
                reference=want,
                rounded=want.float(),
                bound=want,
            ),
        ),
    )
    ruling = Ruling(verdict=Passed(), outputs=(torch.zeros(2),), differences=(None,))
    assert errors_by_element(expectation, ruling) == ()


def test_the_picture_shades_a_cell_by_its_error_over_the_bound():
    picture = heat_map(one([1.0, 1.5, 3.0, float("nan")], [1.0] * 4), "relu", "N=4")
    assert colours(picture) == [NONE, RIGHT, TEN, MOST]


def test_a_cell_of_several_elements_shows_the_worst():
    got = [0.0] * 9600
    got[150] = 2.0
    picture = colours(heat_map(one(got, [0.0] * 9600), "relu", ""))
    assert len(picture) == 96
    assert [i for i, colour in enumerate(picture) if colour != NONE] == [1]


def test_a_hostile_name_stays_text_in_the_picture():
    picture = heat_map(one([1.0], [1.0]), "<script>&", "]]>")
    assert ElementTree.fromstring(picture)[0].text == "<script>&"


def test_without_elements_that_are_right_or_wrong_alone_there_is_no_picture():
    zeros = np.zeros((2, 2))
    errors = ErrorsByElement(
        name="out", output=zeros, reference=zeros, error=zeros, bound=None, wrong=None
    )
    assert heat_map(errors, "rand", "") is None
    assert sorted(errors.arrays()) == ["out.error", "out.output", "out.reference"]
