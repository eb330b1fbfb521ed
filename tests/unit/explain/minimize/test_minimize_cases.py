import functools
import itertools
import math
from functools import partial

import pytest
from msgspec.structs import replace

from kerneltruth.documents.case import Case
from kerneltruth.explain.diagnosis import DiagnosisEffort
from kerneltruth.explain.minimize import boxes, shapes, values
from kerneltruth.explain.minimize.cases import domain, key, minimize_case, settings
from kerneltruth.explain.minimize.search import MinimizeBudget
from kerneltruth.tasks.spec import task

EVALUATIONS = DiagnosisEffort().evaluations


def operator(*dims, constraints=(), signature=None, **more):
    return task(
        signature or f"op(x[{', '.join(dims)}])",
        category="Math",
        dims=dict.fromkeys(dims, "batch"),
        reference=lambda x, **_: x,
        description="",
        flops="1",
        benchmark=dict.fromkeys(dims, 8),
        constraints=constraints,
        **more,
    )


def shrink(predicate, start, *, spec=None, evaluations=EVALUATIONS, literalize=lambda c: c, **case):
    spec = spec or operator(*start)
    return minimize_case(
        Case(task="op", dims=tuple(start.items()), **case),
        spec,
        predicate,
        literalize=literalize,
        budget=MinimizeBudget(evaluations=evaluations, seconds=1.0, clock=lambda: 0.0),
    )


@functools.cache
def smallest(predicate, symbols, most, allows=lambda **_: True):
    every = itertools.product(range(1, most + 1), repeat=len(symbols))
    failing = (
        sizes
        for sizes in every
        if predicate(**dict(zip(symbols, sizes, strict=True)))
        and allows(**dict(zip(symbols, sizes, strict=True)))
    )
    return min(failing, key=lambda sizes: (math.prod(sizes), sizes))


FAULTS = [
    (lambda N: N % 16 != 0, {"N": 1023}, 40),
    (lambda N: N > 1024, {"N": 4096}, 1100),
    (lambda N: N > 1000, {"N": 4096}, 1100),
    (lambda N: N > 1024 and N % 256 == 1, {"N": 2049}, 1100),
    (lambda N: N > 1100 and N % 256 == 1, {"N": 2049}, 1300),
    (lambda N: N % 12 == 11, {"N": 1031}, 40),
    (lambda M, N: N > 1024, {"M": 33, "N": 1281}, 1100),
    (lambda M, N: N > 256 and N % 128 == 1, {"M": 7, "N": 641}, 400),
    (lambda M, N: M > 3 and N > 5, {"M": 64, "N": 300}, 40),
    (lambda M, N: M * N > 100, {"M": 64, "N": 64}, 110),
    (lambda M, N: M * N > 100, {"M": 3, "N": 1025}, 110),
    (lambda M, N: N >= 11, {"M": 33, "N": 65}, 40),
    (lambda M, N: M != N, {"M": 64, "N": 48}, 40),
    (lambda M, N: M == N and M > 1, {"M": 64, "N": 64}, 40),
    (lambda M, N: M * N % 2 == 1, {"M": 63, "N": 63}, 40),
    (lambda M, N: M * N % 2 == 1 and M > 2 and N > 1, {"M": 63, "N": 63}, 40),
    (lambda M, N: M >= 16 and M % 16 == 0, {"M": 256, "N": 63}, 40),
    (lambda M, N: M > N + 5, {"M": 300, "N": 280}, 40),
    (lambda M, N, K: K % 32 != 0, {"M": 64, "N": 65, "K": 48}, 20),
    (lambda M, N, K: K > 32 and M > 1 and N > 16, {"M": 33, "N": 31, "K": 65}, 40),
    (lambda M, N, K: M * N * K > 64 and N > 1, {"M": 33, "N": 31, "K": 65}, 66),
]


@pytest.mark.slow
@pytest.mark.parametrize(("predicate", "start", "most"), FAULTS)
def test_a_shape_fault_shrinks_to_what_exhaustive_search_finds(predicate, start, most):
    shrunk = shrink(lambda c: predicate(**c.sizes), start)
    assert tuple(shrunk.value.sizes.values()) == smallest(predicate, tuple(start), most)
    assert not shrunk.exhausted


@pytest.mark.slow
@pytest.mark.parametrize(("predicate", "start", "most"), FAULTS)
def test_half_the_budget_is_enough_to_reach_the_smallest_shape(predicate, start, most):
    shrunk = shrink(lambda c: predicate(**c.sizes), start, evaluations=EVALUATIONS // 2)
    assert tuple(shrunk.value.sizes.values()) == smallest(predicate, tuple(start), most)


def test_a_single_dim_fault_takes_under_sixty_evaluations():
    assert shrink(lambda c: c.sizes["N"] > 1024, {"M": 33, "N": 4096}).evaluations < 60


def test_constraints_are_kept_while_shrinking():
    spec = operator("C", "G", constraints=("C % G == 0", "C > G"))
    shrunk = shrink(lambda c: c.sizes["G"] > 2, {"C": 64, "G": 8}, spec=spec)
    assert shrunk.value.sizes == {"C": 6, "G": 3}
    assert all(spec.allows(c.sizes, {}) for c in shrunk.trail)


def test_dims_tied_by_a_constraint_are_lowered_together():
    spec = operator("A", "B", constraints=("A == 2 * B",))
    shrunk = shrink(lambda c: c.sizes["A"] > 20, {"A": 64, "B": 32}, spec=spec)
    assert shrunk.value.sizes == {"A": 22, "B": 11}


def test_a_block_that_is_no_power_of_two_is_tried_early():
    sizes = []

    def fails(case):
        sizes.append(case.sizes["N"])
        return case.sizes["N"] > 96

    minimize_case(
        Case(task="op", dims=(("N", 1000),)),
        operator("N"),
        fails,
        literalize=lambda c: c,
        budget=MinimizeBudget(evaluations=20, seconds=1.0, clock=lambda: 0.0),
        blocks=(96,),
    )
    assert 97 in sizes
    assert 129 not in sizes


def test_an_ordinary_shape_is_never_shrunk_to_an_empty_one():
    shrunk = shrink(lambda c: True, {"M": 5, "N": 7})
    assert shrunk.value.sizes == {"M": 1, "N": 1}


def test_an_empty_shape_stays_empty_only_where_the_fault_needs_it():
    needs = shrink(lambda c: c.sizes["M"] == 0, {"M": 0, "N": 7})
    assert needs.value.sizes == {"M": 0, "N": 1}
    needless = shrink(lambda c: True, {"M": 0, "N": 7})
    assert needless.value.sizes == {"M": 1, "N": 1}


def test_bisection_goes_on_where_it_was_after_each_success():
    first = list(shapes.lower_sizes(1300))
    cell = first[: first.index(1281) + 1]
    assert cell[-2:] == [1025, 1281]
    assert list(shapes.lower_sizes(1281))[: len(cell) - 1] == cell[:-1]


RICH = operator(
    "N",
    signature="op(x[N], bias[N]?, eps=1e-5, mode='a')",
    attributes={"eps": (1.0,), "mode": ("b", "c")},
    extended_dtypes=("float64",),
)


def rich_case(**changes):
    case = Case(
        task="op",
        dims=(("N", 5),),
        attributes=(("eps", 1.0), ("mode", "c")),
        dtype="bfloat16",
        layout="transposed",
        recipe="ties",
    )
    return replace(case, **changes)


def shrink_rich(predicate, case, evaluations=EVALUATIONS, literalize=lambda c: c):
    return minimize_case(
        case,
        RICH,
        predicate,
        literalize=literalize,
        budget=MinimizeBudget(evaluations=evaluations, seconds=1.0, clock=lambda: 0.0),
    )


def test_all_that_does_not_matter_becomes_plain():
    assert shrink_rich(lambda c: True, rich_case()).value == Case(
        task="op",
        dims=(("N", 1),),
        attributes=(("eps", 1e-5), ("mode", "a")),
        dtype="float32",
        layout="contiguous",
        recipe="zeros",
        absent=("bias",),
    )


@pytest.mark.parametrize(
    ("needed", "value"),
    [
        ("dtype", "bfloat16"),
        ("layout", "transposed"),
        ("recipe", "ties"),
        ("absent", ()),
        ("attributes", (("eps", 1.0), ("mode", "c"))),
    ],
)
def test_what_the_fault_needs_stays(needed, value):
    shrunk = shrink_rich(lambda c: getattr(c, needed) == value, rich_case())
    assert getattr(shrunk.value, needed) == value
    assert shrunk.value.sizes == {"N": 1}


def test_an_attribute_goes_back_alone_when_another_matters():
    shrunk = shrink_rich(lambda c: c.settings["mode"] != "a", rich_case())
    assert shrunk.value.settings == {"eps": 1e-5, "mode": "b"}


def test_settings_are_simpler_by_the_key():
    here = key(rich_case(), RICH)
    assert all(key(c, RICH) < here for c in settings(rich_case(), RICH) if c != rich_case())


def test_the_key_tells_different_cases_apart():
    cases = {rich_case(), *settings(rich_case(), RICH), *settings(rich_case(dtype="float16"), RICH)}
    assert len({key(c, RICH) for c in cases}) == len(cases)


def test_integer_operators_keep_a_dtype_they_have():
    spec = operator("N", dtypes=("int32", "int64"))
    shrunk = shrink(lambda c: True, {"N": 9}, spec=spec, dtype="int64")
    assert shrunk.value.dtype == "int32"


def with_literals(case, drawn=(88.72283935546875, 3.25, -7.5)):
    n = case.sizes["N"]
    return replace(case, literals=(("x", (drawn * n)[:n]),))


def test_values_shrink_to_zeros_ones_and_round_numbers():
    shrunk = shrink(
        lambda c: c.recipe != "zeros" and (not c.literals or max(c.literals[0][1]) > 88),
        {"N": 3},
        literalize=with_literals,
    )
    assert shrunk.value.sizes == {"N": 1}
    assert shrunk.value.literals == (("x", (100.0,)),)


def test_a_plainer_recipe_that_needs_a_larger_shape_is_not_taken():
    least = {"uniform": 14, "ones": 260}
    shrunk = shrink(lambda c: c.sizes["N"] >= least.get(c.recipe, 999), {"N": 513})
    assert (shrunk.value.sizes, shrunk.value.recipe) == ({"N": 14}, "uniform")


def test_zeros_need_not_be_written_out():
    def zeros(case):
        return replace(case, literals=(("x", (0.0,) * case.sizes["N"]),))

    shrunk = shrink(lambda c: c.sizes["N"] == 3, {"N": 9}, literalize=zeros)
    assert (shrunk.value.recipe, shrunk.value.literals) == ("zeros", ())


def test_only_the_elements_that_matter_keep_their_values():
    literals = tuple(float(n) + 0.5 for n in range(16))
    case = Case(task="op", dims=(("N", 16),), literals=(("x", literals),))
    shrunk = minimize_case(
        case,
        operator("N"),
        lambda c: c.sizes["N"] == 16 and c.literals[0][1][5] == 5.5 and c.literals[0][1][9] > 0,
        literalize=lambda c: c,
        budget=MinimizeBudget(evaluations=EVALUATIONS, seconds=1.0, clock=lambda: 0.0),
    )
    assert shrunk.value.literals[0][1] == (0.0,) * 5 + (5.5, 0, 0, 0, 1.0) + (0.0,) * 6


def shrink_written(predicate, spec, evaluations=EVALUATIONS, **changes):
    return minimize_case(
        Case(task="op", **changes),
        spec,
        predicate,
        literalize=lambda c: c,
        budget=MinimizeBudget(evaluations=evaluations, seconds=1.0, clock=lambda: 0.0),
    )


def test_one_element_that_matters_is_left_alone_within_a_small_budget():
    values_of = tuple(89.5 if n == 37 else float(n % 7) for n in range(60))
    shrunk = shrink_written(
        lambda c: max(c.literals[0][1]) > 50,
        operator("M", "N"),
        dims=(("M", 5), ("N", 12)),
        literals=(("x", values_of),),
        evaluations=30,
    )
    assert shrunk.value.sizes == {"M": 1, "N": 1}
    assert shrunk.value.literals == (("x", (100.0,)),)


def test_two_elements_that_matter_together_are_found_apart():
    shrunk = shrink_written(
        lambda c: {3.25, 7.25} <= set(c.literals[0][1]),
        operator("N"),
        dims=(("N", 12),),
        literals=(("x", tuple(n + 0.25 for n in range(12))),),
    )
    assert shrunk.value.literals == (("x", (3.25, 7.25)),)


def test_all_tensors_of_a_symbol_keep_the_same_places():
    spec = operator("M", "N", signature="op(x[M, N], w[N], s[M, 1])")
    x = tuple(10.0 * m + n for m in range(2) for n in range(3))
    shrunk = shrink_written(
        lambda c: 12.0 in c.literals[0][1] and 7.0 in c.literals[1][1] and 5.0 in c.literals[2][1],
        spec,
        dims=(("M", 2), ("N", 3)),
        literals=(("x", x), ("w", (3.0, 4.0, 7.0)), ("s", (2.0, 5.0))),
    )
    assert shrunk.value.sizes == {"M": 1, "N": 1}
    assert shrunk.value.literals == (("x", (12.0,)), ("w", (7.0,)), ("s", (5.0,)))


def test_a_symbol_inside_an_expression_is_not_cut():
    spec = operator("M", "N", signature="op(x[M, N], y[2 * N])")
    case = Case(
        task="op", dims=(("M", 2), ("N", 2)), literals=(("x", (0.0,) * 4), ("y", (0.0,) * 4))
    )
    assert boxes.sliceable(case, spec) == ["M"]


def test_indices_still_point_into_what_is_left():
    spec = operator("K", "N", signature="op(x[N], i[K]: index(N))")
    case = Case(
        task="op",
        dims=(("K", 3), ("N", 4)),
        literals=(("x", (1.0, 2.0, 3.0, 4.0)), ("i", (3.0, 0.0, 2.0))),
    )
    smaller = boxes.keep(case, spec, "N", (2, 3))
    assert smaller.literals == (("x", (3.0, 4.0)), ("i", (1.0, 0.0, 0.0)))


def test_constraints_are_kept_while_cutting():
    spec = operator("C", "G", constraints=("C % G == 0",), signature="op(x[C, G])")
    case = Case(task="op", dims=(("C", 4), ("G", 2)), literals=(("x", (0.5,) * 8),))
    offered = [tuple(c.sizes.values()) for c in boxes.sliced(case, spec)]
    assert (3, 2) not in offered
    assert (2, 2) in offered


def test_written_values_keep_their_shape_where_it_matters():
    literals = (("x", (1.0, 2.0, 3.0)),)
    shrunk = shrink(lambda c: c.sizes["N"] == 3, {"N": 3}, literals=literals)
    assert shrunk.value.literals == (("x", (0.0, 0.0, 0.0)),)


def test_large_tensors_stay_drawn():
    cases = []

    def literalize(case):
        cases.append(case)
        return with_literals(case)

    shrunk = shrink(lambda c: c.sizes["N"] >= 65, {"N": 65}, literalize=literalize)
    assert cases == []
    assert shrunk.value.literals == ()


@pytest.mark.parametrize(
    ("kind", "zero_allowed"),
    [("real", True), ("positive", False), ("mask", False), ("bool", True)],
)
def test_values_stay_in_the_range_of_their_kind(kind, zero_allowed):
    spec = operator("N", signature=f"op(x[N]: {kind})" if kind != "real" else "op(x[N])")
    case = Case(task="op", dims=(("N", 2),), literals=(("x", (1.0, 1.0)),))
    offered = {v for c in values.simpler(case, spec) for v in c.literals[0][1]}
    assert (0.0 in offered) == zero_allowed


def test_values_that_are_never_positive_stay_so():
    spec = operator("N", signature="op(x[N]: negative)")
    case = Case(task="op", dims=(("N", 2),), literals=(("x", (-1.5, -7.25)),))
    offered = {v for c in values.simpler(case, spec) for v in c.literals[0][1]}
    assert max(offered) == 0.0


def test_indices_are_left_alone():
    spec = operator("N", signature="op(x[N]: index(N))")
    case = Case(task="op", dims=(("N", 2),), literals=(("x", (1.0, 0.0)),))
    assert {c.literals for c in values.simpler(case, spec)} <= {case.literals}


def test_values_stay_in_the_range_of_the_operator():
    spec = operator("N", values=(0.5, 2.0))
    case = Case(task="op", dims=(("N", 2),), literals=(("x", (1.5, 1.75)),))
    offered = {v for c in values.simpler(case, spec) for v in c.literals[0][1]}
    assert min(offered) == 0.5
    assert max(offered) <= 2.0


def test_numbers_are_ordered_by_how_hard_they_are_to_read():
    simplest_first = [0.0, -0.0, 1.0, -1.0, 2.0, 100.0, 0.5, 89.0, 88.7, math.inf, math.nan]
    ranked = sorted(simplest_first, key=values.complexity)
    assert [repr(v) for v in ranked] == [
        *("0.0", "-0.0", "1.0", "-1.0", "0.5", "2.0", "100.0", "89.0", "88.7", "inf", "nan")
    ]


def test_the_same_fault_shrinks_the_same_way_twice():
    ask = partial(shrink, lambda c: c.sizes["N"] > 17, {"M": 9, "N": 99})
    assert ask() == ask()


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({}, "core"),
        ({"dtype": "float64"}, "extended"),
        ({"layout": "transposed"}, "extended"),
        ({"dims": (("N", 0),)}, "extended"),
        ({"recipe": "nan_injected"}, "extended"),
        ({"recipe": "nan_injected", "literals": (("x", (1.0,)),)}, "core"),
        ({"recipe": "adversarial", "literals": (("x", (3e37,)),)}, "extended"),
        ({"literals": (("x", (math.nan,)),)}, "extended"),
    ],
)
def test_a_case_is_core_by_what_it_holds(changes, where):
    plain = {"dims": (("N", 1),), "attributes": (), "dtype": "float32", "layout": "contiguous"}
    assert domain(rich_case(**{**plain, "recipe": "uniform", **changes}), RICH) == where


def test_a_main_dtype_is_not_left_for_one_that_a_kernel_may_refuse():
    shrunk = shrink_rich(lambda c: c.dtype != "float32", rich_case(dtype="bfloat16"))
    assert shrunk.value.dtype == "float16"
