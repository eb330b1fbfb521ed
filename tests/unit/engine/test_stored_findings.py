"""A case from a file that its task cannot have is refused with what does not fit."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from kerneltruth.cases.strategies import generate
from kerneltruth.engine.stored_findings import refuse_unfit
from kerneltruth.errors import UserError
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import Variants, task

TASK = find("softmax")
(CASE,) = generate(TASK, seed=0, count=1)


def refusal(task, case):
    """What a case is refused with, or nothing."""
    try:
        return refuse_unfit(Path("f.json"), task, case)
    except UserError as error:
        return str(error)


@pytest.mark.parametrize("name", ["softmax", "kernelbenchx/conv2d"])
def test_no_case_that_a_strategy_makes_is_refused(name):
    task = find(name)
    cases = [*generate(task, seed=0, count=60, device="cpu")]
    assert len({(c.dtype, c.layout, c.recipe, c.absent) for c in cases}) > 20
    assert any(c.absent for c in cases) == any(t.may_be_absent for t in task.tensors)
    assert [said for case in cases if (said := refusal(task, case))] == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"dims": ()}, "dims missing"),
        (
            {"dims": (("B", 2**20), ("N", 2**20))},
            f"{2**40} elements; at most {2**26} are replayed",
        ),
        ({"attributes": (("dim", "last"),)}, "attribute dim='last'"),
        ({"dtype": "int7"}, "dtype 'int7'"),
        ({"recipe": "spicy"}, "recipe 'spicy'"),
        ({"layout": "upside_down"}, "layout 'upside_down'"),
        ({"absent": ("input",)}, "'input' cannot be left out"),
        ({"literals": (("y", (1.0,)),)}, "values of 'y'"),
    ],
)
def test_a_case_that_does_not_fit_is_refused_with_the_file_and_the_next_step(changed, says):
    with pytest.raises(UserError) as caught:
        refuse_unfit(Path("f.json"), TASK, structs.replace(CASE, **changed))
    assert str(caught.value).startswith("f.json: its case does not fit softmax(")
    assert f": {says}; restore the file, or judge the kernel again" in str(caught.value)


def test_the_benchmarks_own_inputs_are_taken_however_large_they_are():
    small_first = task(
        "halved(x[*shape], _size='small')",
        category="Math",
        dims={},
        where={"shape": Variants("_size", {"small": "2, 8", "large": "8, 16777216"})},
        attributes={"_size": ("small", "large")},
        reference=lambda x: x / 2,
        description="",
        flops="1",
        benchmark={},
    )
    (case,) = generate(small_first, seed=0, count=1)
    large = case.with_attributes(_size="large")
    assert "elements; at most" in refusal(small_first, large)
    assert refusal(replace(small_first, first={"_size": "large"}), large) is None


def test_a_case_of_small_tensors_that_takes_hours_is_refused():
    task = find("matmul")
    (case,) = generate(task, seed=0, count=1)
    large = structs.replace(case, dims=tuple((symbol, 2**12) for symbol, _ in case.dims))
    with pytest.raises(UserError, match=f"a product over {2**34}; restore"):
        refuse_unfit(Path("f.json"), task, large)
