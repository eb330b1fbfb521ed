"""What the source of a problem states, without running it."""

import pytest

from kerneltruth.suites.kernelbench.published_problems import read_problems

from .problems import GROUPED, HEAD, LINEAR, NO_INIT, REMEMBERING, problem


def test_constants_are_numbers_and_tuples_and_what_follows_from_them_is_none():
    found = problem(GROUPED).constants
    assert found == {"batch": 32, "channels": 256, "groups": 8, "get_inputs:100": 100}


def test_an_expression_of_numbers_is_a_constant():
    assert problem(LINEAR).constants["rows"] == 256


def test_lists_tuples_and_shared_assignments_are_constants():
    source = (
        HEAD + "height = width = 224\nsizes = [64] * 3\nkernel = (3, 5)\nrate = 0.5\nlow = -1\n"
    )
    assert problem(source).constants == {"height": 224, "sizes": [64] * 3, "kernel": (3, 5)}


def test_a_large_size_written_inside_get_inputs_is_a_constant():
    source = HEAD + "def get_inputs():\n    return [torch.rand(2, 3, 224, 224)]\n"
    assert problem(source).constants == {"get_inputs:224": 224}


def test_a_large_size_beside_other_constants_is_one_too():
    source = HEAD + "batch = 10\nshape = (batch, 3, 224, 224)\n"
    assert problem(source).constants == {"batch": 10, "shape:224": 224}


def test_a_constant_that_the_model_itself_reads_keeps_its_value():
    assert problem(REMEMBERING).constants == {"features": 100}


@pytest.mark.parametrize(
    "reads",
    ["class Model:\n    kept = [n]\n", "def Model(k=n):\n    return k\n"],
    ids=["class", "default"],
)
def test_a_constant_read_while_the_model_is_defined_keeps_its_value(reads):
    assert problem(f"n = 64\nm = 48\n{reads}").constants == {"m": 48}


def test_a_constant_whose_name_a_parameter_takes_may_vary():
    source = f"{HEAD}n = 64\nclass Model:\n    def __init__(self, n):\n        self.n = n\n"
    assert problem(source).constants == {"n": 64}


def test_a_problem_without_a_model_says_so():
    found = problem(HEAD + "def get_inputs():\n    return []\n" + NO_INIT)
    assert found.trouble == "the problem does not define Model"


def test_a_source_that_is_not_python_is_a_problem_with_a_reason():
    assert problem("def (:\n").trouble.startswith("not Python")


def test_a_constant_passed_as_another_parameter_is_noticed():
    source = GROUPED.replace("[channels, groups, weight_shape]", "[groups, channels, weight_shape]")
    assert "`groups` as the constructor's `channels`" in problem(source).doubt


def test_constants_passed_as_their_own_parameters_are_in_no_doubt():
    assert (problem(GROUPED).trouble, problem(GROUPED).doubt) == (None, None)


def test_a_problem_file_may_lie_anywhere(tmp_path):
    path = tmp_path / "7_Mine.py"
    path.write_text(LINEAR)
    ((name, found),) = read_problems(path).items()
    assert (name, found.level, found.number, found.trouble) == ("level0/7", 0, 7, None)
