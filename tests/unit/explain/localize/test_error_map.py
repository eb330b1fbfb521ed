"""The picture of an error: where it lies, in as many cells as there is room for."""

import pytest
import torch

from kerneltruth.documents.records import ErrorMap
from kerneltruth.explain.localize.error_map import map_of
from kerneltruth.explain.localize.evidence import Values


def pictured(wrong):
    zeros = torch.zeros(wrong.shape, dtype=torch.float64)
    return map_of(Values(output=zeros, reference=zeros, wrong=wrong, name="out"))


def test_a_small_output_has_a_cell_for_each_element():
    wrong = torch.tensor([[False, True, False], [False, False, True]])
    assert pictured(wrong) == ErrorMap(output="out", shape=(2, 3), lines=(".#.", "..#"))


def test_all_dims_but_the_last_are_folded_into_rows():
    wrong = torch.zeros(2, 2, 2, dtype=torch.bool)
    wrong[1, 0] = True
    assert pictured(wrong).lines == ("..", "..", "##", "..")


def test_a_cell_of_several_elements_tells_the_share_that_is_wrong_rounded_up():
    wrong = torch.zeros(1, 6400, dtype=torch.bool)
    wrong[0, 0] = True
    wrong[0, 100:150] = True
    wrong[0, 200:299] = True
    wrong[0, 300:400] = True
    assert pictured(wrong).lines == ("159#" + 60 * ".",)


def test_a_large_output_is_shown_in_32_rows_of_64():
    wrong = torch.zeros(1000, 257, dtype=torch.bool)
    wrong[:, 256] = True
    lines = pictured(wrong).lines
    assert len(lines) == 32
    assert set(lines) == {63 * "." + "2"}


def test_a_scalar_is_one_cell():
    assert pictured(torch.tensor(True)).lines == ("#",)


def test_an_empty_output_has_no_cells():
    assert "".join(pictured(torch.zeros(0, 3, dtype=torch.bool)).lines) == ""
    assert "".join(pictured(torch.zeros(3, 0, dtype=torch.bool)).lines) == ""


def test_lines_of_several_lengths_are_refused():
    with pytest.raises(ValueError, match="several lengths"):
        ErrorMap(output="out", shape=(2, 2), lines=("..", "."))
