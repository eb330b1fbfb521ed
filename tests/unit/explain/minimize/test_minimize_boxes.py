"""Written-out values go along into smaller forms of a task whose shapes follow from attributes."""

from dataclasses import replace

import pytest
from msgspec import structs

from kerneltruth.documents.case import Case
from kerneltruth.explain.minimize import boxes
from kerneltruth.explain.minimize.cases import minimize_case
from kerneltruth.explain.minimize.search import MinimizeBudget
from kerneltruth.tasks.spec import TensorSpec, task

SHAPES = {"17x3": (17, 3), "5x3": (5, 3), "1x3": (1, 3), "1x1": (1, 1)}
IDENTITY = task(
    "rows(x[1, 1], _sizes='17x3')",
    category="Math",
    dims={},
    reference=lambda x: x,
    description="The identity.",
    flops="0",
    attributes={"_sizes": ["5x3"]},
)
ROWS = TensorSpec(name="x", dims=(f"*{SHAPES!r}[_sizes]",), typical=("17", "3"))
TASK = replace(
    IDENTITY,
    arguments=(ROWS, *IDENTITY.attributes),
    smaller=({"_sizes": "1x3"}, {"_sizes": "1x1"}),
)


def case(label, values=()):
    literals = (("x", tuple(values)),) if values else ()
    return Case(task="rows", dims=(), attributes=(("_sizes", label),), literals=literals)


def test_the_part_with_a_value_that_is_not_0_is_among_those_moved():
    values = [0.0] * 51
    values[9 * 3 + 1] = 7.0
    found = boxes.moved(case("17x3", values), case("1x3"), TASK)
    assert (("x", (0.0, 7.0, 0.0)),) in [c.literals for c in found]


def test_nothing_is_moved_into_a_larger_form():
    assert list(boxes.moved(case("1x3", [1.0, 2.0, 3.0]), case("5x3"), TASK)) == []


def with_drawn_values(one):
    """What a recipe would draw: nothing telling, but in one place of the largest form."""
    rows, columns = SHAPES[one.settings["_sizes"]]
    values = [1.0] * (rows * columns)
    if rows == 17:
        values[9 * columns + 1] = 100.0
    return structs.replace(one, literals=(("x", tuple(values)),))


@pytest.mark.parametrize(("needs", "expected"), [(3, "1x3"), (1, "1x1")])
def test_a_value_that_only_a_large_form_draws_fails_in_the_smallest_form(needs, expected):
    def fails(one):
        ((_, values),) = (one if one.literals else with_drawn_values(one)).literals
        return max(values) == 100.0 and SHAPES[one.settings["_sizes"]][1] >= needs

    budget = MinimizeBudget(evaluations=200, seconds=60.0, clock=lambda: 0.0)
    found = minimize_case(
        case("17x3"), TASK, fails, literalize=with_drawn_values, budget=budget
    ).value
    assert found.settings["_sizes"] == expected
    assert max(found.literals[0][1]) == 100.0
