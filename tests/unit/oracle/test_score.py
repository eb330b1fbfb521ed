"""The score of a profile."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from kerneltruth.documents.records import ProfileEntry
from kerneltruth.oracle.score import score

HELD = ProfileEntry(status="held", promised=True, decisive=True, cases=3)
BEYOND = replace(HELD, promised=False)
entries = st.builds(
    ProfileEntry,
    status=st.sampled_from(["held", "refused", "broken", "not_tried", "not_applicable"]),
    promised=st.booleans(),
    decisive=st.booleans(),
    cases=st.integers(0, 40),
)
profiles = st.dictionaries(
    st.sampled_from(
        ["published", "shapes", "values", "layouts", "specials", "gradients", "kernel"]
    ),
    entries,
)


def test_a_kernel_that_holds_everything_scores_1():
    assert score({"published": HELD, "layouts": BEYOND}) == 1


def test_gradients_that_no_prompt_promises_cost_nothing():
    untried = ProfileEntry(status="not_tried", promised=False)
    assert score({"published": HELD, "layouts": BEYOND, "gradients": untried}) == 1


@pytest.mark.parametrize("status", ["refused", "broken", "not_tried"])
def test_one_broken_promise_scores_below_every_kernel_that_keeps_its_prompt(status):
    fails = {str(i): HELD for i in range(20)} | {
        "shapes": ProfileEntry(status=status, promised=True, decisive=True, cases=40),
        "layouts": BEYOND,
    }
    passes = {"published": HELD, "layouts": ProfileEntry(status="not_tried", promised=False)}
    assert score(fails) < score(passes)


def test_a_refusal_is_better_than_a_wrong_result_and_worse_than_a_right_one():
    of = lambda status: score(
        {"a": HELD, "b": ProfileEntry(status=status, promised=True, decisive=True)}
    )
    assert of("not_tried") <= of("broken") < of("refused") < of("held")


def test_more_right_cases_before_the_first_wrong_one_score_more():
    of = lambda cases: score(
        {"a": ProfileEntry(status="broken", promised=True, decisive=True, cases=cases)}
    )
    assert of(0) < of(1) < of(20) < 0.25


@pytest.mark.parametrize("status", ["broken", "not_tried"])
@pytest.mark.parametrize(("required", "most"), [(True, 0.1), (False, 1.0)])
def test_work_not_shown_to_be_its_own_scores_little_where_a_kernel_is_required(
    required, most, status
):
    others = ProfileEntry(status=status, promised=required, decisive=required)
    assert score({"published": HELD, "layouts": BEYOND, "kernel": others}) == most


@given(profiles)
def test_a_score_lies_between_0_and_1(profile):
    assert 0 <= score(profile) <= 1


@given(profiles, st.data())
def test_to_break_one_more_obligation_never_raises_it(profile, data):
    held = [key for key, entry in profile.items() if entry.status in ("held", "refused")]
    if not held:
        return
    key = data.draw(st.sampled_from(held))
    broken = replace(profile[key], status="broken")
    assert score(profile | {key: broken}) <= score(profile)


BROKEN = ProfileEntry(status="broken", promised=False, decisive=True, cases=2)


@given(profiles)
@example(
    {
        "published": HELD,
        "shapes": HELD,
        "values": BROKEN,
        "layouts": replace(BEYOND, decisive=False),
        "gradients": replace(BROKEN, decisive=False, promised=True, cases=15),
        "specials": BROKEN,
        "kernel": BROKEN,
    }
)
@example(
    {
        "published": HELD,
        "shapes": HELD,
        "values": BROKEN,
        "layouts": replace(BROKEN, decisive=False, cases=15),
        "specials": BROKEN,
        "gradients": BROKEN,
    }
)
def test_the_order_of_a_profile_does_not_change_its_score(profile):
    assert score(dict(reversed(profile.items()))) == score(profile) == score(profile)


@given(profiles, st.data())
def test_an_obligation_that_was_not_tried_earns_no_more_than_any_other_end(profile, data):
    tried = [key for key, e in profile.items() if e.status in ("held", "refused", "broken")]
    if tried:
        key = data.draw(st.sampled_from(tried))
        untried = replace(profile[key], status="not_tried")
        assert score(profile | {key: untried}) <= score(profile)


@given(profiles, st.data())
def test_a_refusal_never_scores_below_a_wrong_result(profile, data):
    broken = [key for key, entry in profile.items() if entry.status == "broken"]
    if broken:
        key = data.draw(st.sampled_from(broken))
        refused = replace(profile[key], status="refused")
        assert score(profile | {key: refused}) >= score(profile)
