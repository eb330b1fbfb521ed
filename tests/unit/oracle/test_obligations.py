"""Which obligations a case tests, and which departures a failing case takes."""

import dataclasses

import pytest
import torch
from msgspec.structs import replace
from scripted import MATMUL, RELU, case_of, declare

from kerneltruth.cases.materialize import materialize
from kerneltruth.cases.published import published_case, smaller_cases
from kerneltruth.cases.recipes import RECIPES
from kerneltruth.cases.strategies import generate
from kerneltruth.documents.case import Case
from kerneltruth.oracle.obligations import (
    Departure,
    departures,
    most_ordinary,
    obligations_of,
    without,
)
from kerneltruth.tasks.promises import Promises
from kerneltruth.tasks.registry import TASKS, suites, tasks_of
from kerneltruth.tasks.spec import Benchmark, Variants

NAN = float("nan")
PUBLISHED = published_case(RELU, seed=0, device="cpu")
LEAKY = declare(
    "leaky(x[M, N], weight[N]?, slope=0.1)",
    lambda x, weight, slope: x,
    promises=Promises(layouts=("transposed",)),
    attributes={"slope": (0.1, 0.2)},
    extended={"slope": (0.2,)},
)


def keys(case, task=RELU):
    published = published_case(task, seed=0, device="cpu")
    return [d.key for d in departures(task, case, published)]


def test_the_published_inputs_depart_in_nothing():
    for suite in suites():
        for task in tasks_of(suite).values():
            assert departures(task, *[published_case(task, seed=0, device="cpu")] * 2) == ()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"N": 7}, "shapes"),
        ({"recipe": "ties"}, "values"),
        ({"recipe": "nan_injected"}, "specials"),
        ({"recipe": "uniform"}, "values"),
        ({"dtype": "float16"}, "dtypes.float16"),
        ({"layout": "strided"}, "layouts"),
        ({"M": 0}, "empty"),
        ({"literals": (("x", (1.0,) * 15),)}, "values"),
    ],
)
def test_each_departure_belongs_to_an_obligation(change, named):
    found = keys(case_of(RELU, **{"recipe": PUBLISHED.recipe, **change}))
    assert [key for key in found if key != "shapes" or "N" in change] == [named]


def test_what_the_prompt_does_not_promise_is_beyond_what_it_does():
    at = case_of(LEAKY, attributes=(("slope", 0.1),), recipe=PUBLISHED.recipe)
    assert keys(at, LEAKY) == []
    assert keys(replace(at, layout="transposed"), LEAKY) == ["layouts"]
    assert keys(replace(at, layout="strided"), LEAKY) == ["layouts.beyond"]
    assert keys(at.with_attributes(slope=0.2), LEAKY) == ["attributes.beyond"]
    assert keys(replace(at, absent=("weight",)), LEAKY) == ["attributes"]


BROADCAST = declare(
    "add(x[M, N], y[*shape])",
    lambda x, y: x + y,
    where={"shape": Variants("_other", {"same": "M, N", "row": "N", "column": "M, 1"})},
    extended={"_other": ("column",)},
)


def test_broadcasting_decides_where_a_sentence_promises_it_and_sizes_decide_beside_it():
    published = published_case(BROADCAST, seed=0, device="cpu")
    at = lambda **sizes: keys(published.with_dims(**sizes).with_attributes(_other=form), BROADCAST)
    form = "row"
    assert at() == at(N=7) == ["shapes"]
    form = "column"
    assert at() == ["shapes.beyond"]
    assert at(N=7) == ["shapes.beyond", "shapes"]
    known = {d.key: d.promised for d in obligations_of(BROADCAST)}
    assert (known["shapes"], known["shapes.beyond"]) == (True, False)
    assert "shapes.beyond" not in {d.key for d in obligations_of(RELU)}


@pytest.mark.parametrize(
    ("key", "form", "named"),
    [
        # Another type, another value, None in its place.
        ("kernelbenchx/adaptive_avg_pool2d", {"_size": "int"}, "attributes"),
        ("kernelbenchx/expand_where", {"_kept": True}, "attributes.beyond"),
        ("kernelbenchx/fused_layer_norm_relu_linear", {"_trailing": 2}, "attributes"),
        ("kernelbenchx/interpolate", {"_factor": 2.0}, "attributes"),
        ("kernelbenchx/interpolate", {"_factor": 1.7}, "attributes.beyond"),
        ("kernelbenchx/fused_fractional_max_pool2d_with_relu", {"_by": "ratio"}, "attributes"),
        # The tensors change as well, but the argument follows from no size.
        ("tritonbench/tensordot", {"_dims": "one"}, "attributes"),
        ("tritonbench/tensordot", {"_dims": "lists"}, "attributes"),
        # The argument stays, or has one size more, as the tensors have.
        ("tritonbench/tensordot", {"_dims": "stretched"}, "shapes"),
        ("kernelbenchx/expand_where", {"_lead": True}, "shapes"),
        ("kernelbenchx/layernorm_w8a8", {"_rank": 2}, "shapes.beyond"),
        ("kernelbenchx/rand", {"_rank": 3}, "shapes"),
        # All shapes stay, and so do the arguments: another form of a matrix.
        ("kernelbenchx/cholesky", {"_matrix": "spread"}, "values"),
        ("tritonbench/solve_multiple_lu", {"_matrix": "spread"}, "values"),
    ],
)
def test_a_hidden_attribute_is_of_what_it_changes_in_a_call(key, form, named):
    task = TASKS[key]
    published = published_case(task, seed=0, device="cpu")
    assert keys(published.with_attributes(**form), task) == [named]


def test_what_a_case_departs_in_is_an_obligation_of_its_task():
    for task in (t for suite in suites() for t in tasks_of(suite).values()):
        published = published_case(task, seed=0, device="cpu")
        known = {d.key for d in obligations_of(task)}
        for a in task.attributes:
            found = (keys(published.with_attributes(**{a.name: v}), task) for v in a.values)
            assert {key for several in found for key in several} <= known, (task.key, a.name)


def test_a_kernel_that_is_wrong_at_a_size_is_so_whatever_goes_beyond_the_prompt_beside_it():
    published = published_case(BROADCAST, seed=0, device="cpu")
    case = published.with_dims(N=7).with_attributes(_other="column")
    at = lambda fails: keys(most_ordinary(BROADCAST, case, published, fails), BROADCAST)
    assert at(lambda c: c.sizes["N"] == 7) == ["shapes"]
    assert at(lambda c: c.settings["_other"] == "column") == ["shapes.beyond"]
    assert at(lambda c: c == case) == ["shapes.beyond", "shapes"]


def test_what_goes_beyond_the_prompt_goes_with_what_it_needs():
    scaled = declare(
        "scaled(x[M, N], mode='a', corners=False)",
        lambda x, mode, corners: x,
        attributes={"mode": ("b",), "corners": (True,)},
        extended={"mode": ("b",)},
        constraints=("mode == 'b' or not corners",),
    )
    published = published_case(scaled, seed=0, device="cpu")
    both = published.with_attributes(mode="b", corners=True)
    assert keys(both, scaled) == ["attributes.beyond", "attributes"]
    assert most_ordinary(scaled, both, published, lambda c: True) == published
    assert without(scaled, both, departures(scaled, both, published)[0], published) == published


@pytest.mark.slow
@pytest.mark.parametrize("suite", suites())
def test_a_case_is_of_the_core_exactly_if_all_of_its_departures_are_promised(suite):
    for task in tasks_of(suite).values():
        published = published_case(task, seed=0, device="cpu")
        for case in generate(task, seed=0, count=24):
            promised = all(d.promised for d in departures(task, case, published))
            assert promised == (case.domain == "core"), case.summary()


@pytest.mark.slow
@pytest.mark.parametrize("suite", suites())
def test_a_departure_that_is_taken_out_is_gone(suite):
    for task in tasks_of(suite).values():
        published = published_case(task, seed=0, device="cpu")
        for case in generate(task, seed=0, count=24):
            for departure in departures(task, case, published):
                simpler = without(task, case, departure, published)
                assert simpler is None or departure not in departures(task, simpler, published)


def test_a_failing_case_keeps_the_departures_that_it_takes():
    case = case_of(RELU, N=9, dtype="float16", layout="strided", recipe="ties")
    fails_if = lambda *needs: lambda c: set(needs) <= {c.dtype, c.layout, c.recipe}
    at = lambda *needs: keys(most_ordinary(RELU, case, PUBLISHED, fails_if(*needs)))
    assert at("strided") == ["layouts"]
    assert at("float16", "ties") == ["dtypes.float16", "values"]
    assert at() == []


def test_a_case_stays_as_it_is_where_the_task_has_none_without_the_departure():
    square = declare("square(x[M, N])", lambda x: x, constraints=("M == N", "M != 4"))
    published = case_of(square, M=3, N=3)
    case = case_of(square, M=5, N=5, dtype="float16")
    assert most_ordinary(square, case, published, lambda c: c.dtype == "float16") == replace(
        case, dims=published.dims
    )


@pytest.mark.parametrize("recipe", [n for n, r in RECIPES.items() if r.domain != "core"])
def test_special_values_give_way_to_large_finite_ones(recipe):
    case = case_of(RELU, recipe=recipe)
    finite = without(RELU, case, Departure(obligation="specials", promised=False), PUBLISHED)
    assert finite == replace(case, recipe=RECIPES[recipe].finite[0])
    assert all(torch.isfinite(t).all() for t in materialize(RELU, finite).tensors.values())
    assert keys(finite) == ["values"]


def test_a_kernel_that_is_wrong_on_the_finite_values_breaks_values_and_not_specials():
    case = case_of(RELU, M=PUBLISHED.sizes["M"], N=PUBLISHED.sizes["N"], recipe="adversarial")
    at = lambda *wrong: keys(most_ordinary(RELU, case, PUBLISHED, lambda c: c.recipe in wrong))
    assert at("adversarial") == ["specials"]
    assert at("adversarial", "large") == ["values"]
    # A kernel may be wrong on small negative values, and large ones may show nothing.
    assert at("adversarial", "uniform") == ["values"]
    # Zeros stand among special values, and are finite.
    assert at("adversarial", "signed_zeros") == ["values"]
    assert at("adversarial", "large", PUBLISHED.recipe) == []


def test_a_nan_among_attributes_is_the_published_one_if_both_are():
    filled = declare(
        "filled(x[M, N], value=0.0)", lambda x, value: x, attributes={"value": (0.0, NAN)}
    )
    at = published_case(filled, seed=0, device="cpu")
    nan = at.with_attributes(value=float("nan"))
    assert departures(filled, nan, at.with_attributes(value=NAN)) == ()
    assert [d.key for d in departures(filled, at, nan)] == ["attributes"]


@pytest.mark.parametrize("promised", [True, False])
def test_empty_tensors_are_promised_where_the_prompt_mentions_them(promised):
    declared = declare("relu(x[M, N])", torch.relu, promises=Promises(empty=promised))
    published = published_case(declared, seed=0, device="cpu")
    (departure,) = departures(declared, published.with_dims(M=0, N=5), published)[:1]
    assert (departure.obligation, departure.promised) == ("empty", promised)


def test_values_are_taken_out_whether_a_recipe_drew_them_or_they_are_literals():
    case = replace(PUBLISHED, recipe="ties", literals=(("x", (1.0,)),))
    assert without(RELU, case, Departure(obligation="values"), PUBLISHED) == PUBLISHED


def test_the_published_case_is_as_large_as_a_device_allows():
    large = declare("large(x[M, N])", lambda x: x, benchmark={"M": 4096, "N": 4096})
    here, there = (published_case(large, seed=0, device=d) for d in ("cpu", "cuda:0"))
    assert here.sizes["M"] * here.sizes["N"] < there.sizes["M"] * there.sizes["N"]
    assert published_case(MATMUL, seed=0, device="cpu").sizes == MATMUL.benchmark.dims


def _sizes_on_a_cpu(**dims):
    made = declare("large(x[M, N])", lambda x: x, benchmark=dims)
    return published_case(made, seed=0, device="cpu").sizes


def test_only_those_sizes_of_the_published_case_are_halved_that_cost_too_much():
    assert _sizes_on_a_cpu(M=16, N=256) == {"M": 16, "N": 256}
    # Shorter rows would not make a case of 1024 rows affordable.
    assert _sizes_on_a_cpu(M=1024, N=256) == {"M": 16, "N": 256}
    assert _sizes_on_a_cpu(M=4, N=4096) == {"M": 4, "N": 1024}


def test_sizes_that_depend_on_each_other_are_halved_together():
    same = declare(
        "same(x[M, N])",
        lambda x: x,
        {"M": "spatial", "N": "spatial"},
        benchmark={"M": 256, "N": 256},
        constraints=("M == N",),
    )
    assert published_case(same, seed=0, device="cpu").sizes == {"M": 64, "N": 64}


def _smaller(task):
    return [c.sizes for c in smaller_cases(task, published_case(task, seed=0, device="cpu"))]


def test_smaller_cases_have_fewer_rows_first_and_each_is_twice_as_large_as_the_one_before():
    rows = declare("rows(x[M, N])", lambda x: x, benchmark={"M": 16, "N": 256})
    assert [(s["M"], s["N"]) for s in _smaller(rows)] == [
        (1, 128),
        (1, 256),
        (2, 256),
        (4, 256),
        (8, 256),
    ]


def test_smaller_cases_obey_the_tasks_constraints():
    square = declare(
        "square(x[M, N])",
        lambda x: x,
        {"M": "spatial", "N": "spatial"},
        benchmark={"M": 64, "N": 64},
        constraints=("M == N", "M >= 16"),
    )
    assert _smaller(square) == [{"M": n, "N": n} for n in (16, 32)]


def test_without_dims_smaller_cases_are_the_smaller_forms_that_are_promised():
    formed = declare(
        "formed(x[*shape])",
        lambda x: x,
        where={"shape": Variants("_sizes", {"own": "64", "half": "32", "odd": "7", "few": "4"})},
        extended={"_sizes": ("odd",)},
    )
    # As suites declare tasks whose shapes are in a hidden attribute.
    formed = dataclasses.replace(formed, dims=(), benchmark=Benchmark(dims={}))
    published = Case(task=formed.key, dims=(), seed=0, attributes=(("_sizes", "own"),))
    found = smaller_cases(formed, published)
    assert [c.settings["_sizes"] for c in found] == ["few", "half"]


def test_published_sizes_are_the_benchmarks_own_on_a_gpu():
    tasks = [t for suite in suites() for t in tasks_of(suite).values()]
    made = {t.key: published_case(t, seed=0, device="cuda:0").sizes for t in tasks}
    assert made == {t.key: t.benchmark.dims for t in tasks}


def parts(task, obligation):
    return {d.part: d.promised for d in obligations_of(task) if d.obligation == obligation}


def test_every_dtype_but_that_of_the_published_inputs_is_an_obligation_of_its_own():
    assert parts(RELU, "dtypes") == {"float16": True, "bfloat16": True}


def test_layouts_beyond_the_promised_ones_are_an_obligation_of_their_own():
    named = declare("relu(x[M, N])", torch.relu, promises=Promises(layouts=("transposed",)))
    assert parts(named, "layouts") == {"": True, "beyond": False}
    assert parts(RELU, "layouts") == {"": False}
