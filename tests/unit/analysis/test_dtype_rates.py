"""Rates by dtype from profiles; those of earlier versions are in `test_metrics`."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from results_for_tests import counted, result, timed

from kerneltruth.analysis.dtype_rates import outcome_in
from kerneltruth.analysis.metrics import rates
from kerneltruth.analysis.results import WHEN_TIMED, Obliged
from kerneltruth.documents.records import Status

DTYPES = ("float32", "float16", "bfloat16")


def stands(found):
    return [outcome_in(found, dtype) for dtype in ("float32", "float16")]


ABOUT = {"contract": "core", "dtypes": counted(float32=0, float16=0)}


def judged_as(outcome, **profile):
    """A result with a profile; float32 is the dtype of its published inputs."""
    half = profile.pop("half", "held")
    decides = profile.pop("half_decides", False)
    known = {"published": "held", "shapes": "held", **profile}
    entries = {name: Obliged(status) for name, status in known.items()}
    entries["dtypes.float16"] = Obliged(half, decides, decides)
    return result("relu", outcome, profile=entries, **ABOUT)


def test_a_hazard_in_a_dtype_fails_there_and_nowhere_else():
    for half in ("broken", "refused"):
        assert stands(judged_as("pass", half=half)) == ["right", "failed"]


def test_what_decides_and_fails_in_one_dtype_alone_is_right_in_the_other():
    assert stands(judged_as("fail", half="broken", half_decides=True)) == ["right", "failed"]


def test_what_decides_in_every_dtype_fails_in_every_dtype():
    assert stands(judged_as("fail", shapes="broken")) == ["failed", "failed"]


def test_a_hazard_that_is_not_about_dtypes_fails_in_none():
    found = judged_as("pass")
    found.profile["layouts"] = Obliged("broken", False, False)
    assert stands(found) == ["right", "right"]


def test_a_dtype_that_was_not_tried_is_open_in_it_alone():
    for half in ("not_tried", "not_applicable"):
        assert stands(judged_as("pass", half=half)) == ["right", "open"]
    assert stands(judged_as("unsupported_here", shapes="not_tried")) == ["open", "open"]
    assert stands(judged_as("pass", published="not_tried")) == ["open", "open"]


def test_a_kernel_that_is_wrong_outside_its_profile_fails_in_every_dtype():
    unloaded = result(outcome="call:compile_error", contract="core")
    assert stands(unloaded) == ["failed", "failed"]
    slow = result(outcome="fail", kind=WHEN_TIMED, profile={"published": Obliged("held")})
    assert stands(slow) == ["failed", "failed"]


def test_where_everything_was_tried_the_two_bounds_are_one():
    halves = ("held", "broken", "refused")
    results = [judged_as("pass", half=half) for half in halves]
    half, single = rates(results, ("dtype",))
    assert (half.exe.numerator, half.exe) == (1, half.exe_most)
    assert (half.failed.numerator, half.stopped_before) == (2, 0)
    assert (single.exe.numerator, single.exe_most.numerator) == (3, 3)


def test_the_dtypes_of_a_profile_have_a_row_though_no_case_came_to_them():
    found = result(contract="core", dtypes=counted(float32=0), profile=PROFILE)
    assert [row.dtype for row in rates([found], ("dtype",))] == ["float16", "float32"]


PROFILE = {"published": Obliged("held"), "dtypes.float16": Obliged("not_tried")}
entry = st.builds(Obliged, st.sampled_from(get_args(Status)), st.booleans(), st.booleans())
names = st.sampled_from(("published", "shapes", "layouts", "dtypes.float16", "dtypes.bfloat16"))
outcomes = ("pass", "fail", "crash", "unsupported_here", "call:compile_error", "call:infra")
attempt = st.builds(
    result,
    outcome=st.sampled_from(outcomes),
    profile=st.dictionaries(names, entry),
    contract=st.sampled_from(("", "core")),
    dtypes=st.dictionaries(st.sampled_from(DTYPES), st.integers(0, 2)).map(
        lambda failed: counted(**failed)
    ),
    timing=st.none() | st.just(timed(2.0)),
)


@given(st.lists(attempt, min_size=1, max_size=8))
def test_each_attempt_is_failed_or_right_or_open_in_each_dtype(attempts):
    for row in rates(attempts, ("dtype",), {"relu": DTYPES}):
        open_ = row.not_judged + row.stopped_before
        assert row.failed.numerator + row.exe.numerator + open_ == row.attempts == len(attempts)
        assert row.exe_most.numerator == row.exe.numerator + open_
        assert row.call.numerator <= row.call_most.numerator


@given(attempt, st.sampled_from(DTYPES))
def test_one_more_broken_obligation_that_decides_never_makes_a_dtype_right(found, dtype):
    order = ("failed", "open", "right")
    before = outcome_in(found, dtype)
    found.profile["shapes"] = Obliged("broken")
    assert order.index(outcome_in(found, dtype)) <= order.index(before)
