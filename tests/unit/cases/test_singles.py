"""The order in which attribute values are tried."""

from dataclasses import replace

from kerneltruth.cases.singles import Single, grouped, singles_of
from kerneltruth.tasks.spec import task

TASK = task(
    "f(x[N], w[N]?, a=0, b=0)",
    category="Math",
    dims={"N": "batch"},
    reference=lambda x, w, a, b: x,
    description="x",
    flops="0",
    benchmark={"N": 4},
    attributes={"a": (1, 2, 3), "b": (1,)},
)


def absent(dtype=None, **more):
    return Single(absent=("w",), dtype=dtype, **more)


def value(**settings):
    return Single(settings=settings)


def test_every_attribute_has_its_first_turn_before_any_has_its_second():
    assert singles_of(TASK)[:5] == [
        value(a=1),
        value(b=1),
        absent(),
        value(a=2),
        value(a=3),
    ]


def test_an_optional_tensor_is_absent_in_every_dtype():
    assert singles_of(TASK)[-2:] == [absent("float16"), absent("bfloat16")]


def test_what_is_promised_comes_first():
    published = replace(TASK, suite="tritonbench", extended={"a": (1, 2)})
    found = singles_of(published)
    assert [s.settings for s in found if s.promised] == [{"b": 1}, {}, {"a": 3}]
    assert found[-2:] == [absent("float16", promised=False), absent("bfloat16", promised=False)]


def test_groups_hold_every_single_and_never_two_values_of_one_attribute():
    assert grouped(singles_of(TASK)[:5], lambda _: True, most=2) == [
        value(a=1, b=1),
        Single(settings={"a": 2}, absent=("w",)),
        value(a=3),
    ]


def test_what_is_not_promised_is_no_company_for_what_is():
    lax = Single(settings={"b": 1}, promised=False)
    assert grouped([value(a=1), lax], lambda _: True, most=2) == [value(a=1), lax]


def test_a_value_that_fits_with_another_only_takes_it_along():
    def fits(single):
        return single.settings.get("a") != 1 or single.settings.get("b") == 1

    assert grouped([value(a=1), value(b=1)], fits, most=1) == [value(a=1, b=1), value(b=1)]
    assert grouped([value(a=1)], fits, most=1) == []


def test_a_switch_has_a_case_of_its_own():
    singles = [value(p=1.0), value(training=False), value(p=0.0)]
    assert grouped(singles, lambda _: True, most=2) == singles
