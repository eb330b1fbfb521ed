"""Sets of constants are named by the file's variables, or by shapes."""

from dataclasses import replace

from kerneltruth.suites.kernelbench.labels import label, told_apart
from kerneltruth.suites.kernelbench.schema import ConstantChoice, Schema

from .problems import outline


def test_sizes_with_names_name_a_set():
    assert label({"inputs.rows": 3, "shape": (2, 7)}, outline((3, 7))) == "rows=3 shape=(2,7)"


def test_shapes_name_a_set_whose_sizes_are_numbers_in_calls():
    assert label({"inputs:64": 3, "inputs:8": 7}, outline((3, 7))) == "x[3,7]"
    assert label({"get_inputs:64": 3, "groups": 2}, outline((3, 7))) == "x[3,7] groups=2"


def test_a_tensor_of_equal_dims_is_named_by_all_of_them():
    assert label({"inputs:64": 3}, outline((3, 3, 3, 3))) == "x[3,3,3,3]"


def test_a_long_list_is_not_spelled_out():
    tensor = outline((3,)).inputs[0]
    several = replace(outline((3,)), names=(), inputs=(tensor,) * 8)
    assert label({"inputs:64": 3}, several).split()[-3:] == ["input_5[3]", "2", "more"]


def test_a_file_without_sizes_is_as_it_is():
    assert label({}, outline((3,))) == "as in the file"


def choice(constants):
    return ConstantChoice(label="x[3]", constants=constants, outline=outline((3,)))


def test_sets_of_equal_shapes_are_told_apart():
    schema = Schema(choices=(choice("{}"),), smaller=(choice("{'inputs:7': 3}"),))
    found = told_apart(schema)
    assert found.choices[0].label == "x[3] with its own numbers"
    assert found.smaller[0].label == "x[3] with inputs 7=3"


def test_the_same_set_in_several_places_keeps_its_name():
    schema = Schema(choices=(choice("{}"),), first=choice("{}"))
    assert told_apart(schema) == schema
