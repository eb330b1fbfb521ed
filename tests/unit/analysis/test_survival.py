"""Survival: the certified kernels that remain after each obligation."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from results_for_tests import result, study

from kerneltruth.analysis.illusions import place_of
from kerneltruth.analysis.results import TORCH_ONLY, Obliged
from kerneltruth.analysis.survival import curve, fate, illusion_places, survival
from kerneltruth.documents.records import OBLIGATIONS

STATUSES = ("held", "broken", "refused", "not_tried", "not_applicable")
entries = st.builds(Obliged, st.sampled_from(STATUSES), st.booleans(), st.booleans())
profiles = st.dictionaries(st.sampled_from((*OBLIGATIONS, "layouts.beyond")), entries)


def kernel(number=0, contract="core", **statuses):
    """A certified kernel that holds every obligation but those named here."""
    parts = {o: Obliged("held") for o in OBLIGATIONS} | statuses
    return result("a", number=number, profile=parts, contract=contract, checks={"kb": "pass"})


def kernels(found):
    return [result("a", number=i, profile=p, contract="core") for i, p in enumerate(found)]


def step(found, obligation):
    return found.steps[OBLIGATIONS.index(obligation)]


@given(st.lists(profiles, max_size=6))
def test_a_survival_curve_never_rises(found):
    steps = curve("kb", kernels(found)).steps
    counts = [s.remain.numerator for s in steps]
    assert counts == sorted(counts, reverse=True)
    most = [s.remain_most.numerator for s in steps]
    assert most == sorted(most, reverse=True)


@given(st.lists(profiles, max_size=6))
def test_at_each_step_kernels_remain_are_lost_or_were_not_tried(found):
    for s in curve("kb", kernels(found)).steps:
        assert s.remain.numerator + s.lost_so_far + s.not_tried == len(found)
        assert s.remain_most.numerator == len(found) - s.lost_so_far


@given(st.lists(profiles, max_size=6))
def test_every_loss_counts_once_at_the_first_obligation_that_loses_the_kernel(found):
    members = kernels(found)
    firsts = [next((o for o in OBLIGATIONS if fate(r, o) == "lost"), None) for r in members]
    for s in curve("kb", members).steps:
        assert s.lost == firsts.count(s.obligation)


def test_a_refusal_loses_a_kernel_where_it_decides_and_is_noted_elsewhere():
    members = [
        kernel(0, shapes=Obliged("refused", True, True)),
        kernel(1, layouts=Obliged("refused", False, False)),
    ]
    found = curve("kb", members)
    assert (step(found, "shapes").lost, step(found, "shapes").refused) == (1, 0)
    assert (step(found, "layouts").lost, step(found, "layouts").refused) == (0, 1)
    assert found.steps[-1].remain.numerator == 1


def test_an_obligation_that_was_not_tried_is_no_survival_until_a_later_one_loses_the_kernel():
    untried = kernel(values=Obliged("not_tried"), memory=Obliged("broken"))
    found = curve("kb", [untried])
    assert [step(found, "values").not_tried, step(found, "memory").not_tried] == [1, 0]
    assert step(found, "values").remain.numerator == 0
    assert step(found, "values").remain_most.numerator == 1
    assert step(found, "memory").lost == 1


@given(st.lists(profiles))
def test_at_each_step_those_are_at_risk_that_no_earlier_one_has_lost(found):
    steps = curve("kb", kernels(found)).steps
    assert steps[0].at_risk == len(found)
    for before, after in pairwise(steps):
        assert after.at_risk == before.at_risk - before.lost
    assert all(s.lost <= s.at_risk for s in steps)


def test_gradients_that_no_prompt_promises_do_not_apply():
    assert fate(kernel(gradients=Obliged("not_tried", False, False)), "gradients") == "remains"
    assert fate(kernel(gradients=Obliged("not_tried", True, True)), "gradients") == "not_tried"


def test_the_worst_part_of_an_obligation_is_its_fate():
    parts = {"dtypes.float16": Obliged("refused", False, False), "dtypes.int8": Obliged("broken")}
    assert fate(kernel(dtypes=Obliged("held"), **parts), "dtypes") == "lost"


def test_a_kernel_whose_profile_is_empty_was_tried_on_nothing():
    found = curve("kb", [result(contract="core")])
    assert (found.no_profile, found.steps[0].not_tried) == (0, 1)


def test_kernels_of_an_earlier_version_have_no_profile_and_are_in_no_step():
    old = result("b", checks={"kb": "pass"})
    (found,) = survival(study(kernel(), old))
    assert (found.certified, found.no_profile) == (2, 1)
    assert step(found, "published").remain.denominator == 1


def test_only_kernels_that_the_check_certifies_are_counted_by_check_and_group():
    members = [
        result("a", method="x", contract="core", checks={"kb": "pass", "tb": "fail"}),
        result("b", method="y", contract="core", checks={"kb": "error", "tb": "pass"}),
    ]
    found = survival(study(*members), ("method",))
    assert [(c.check, c.method, c.certified) for c in found] == [("kb", "x", 1), ("tb", "y", 1)]


def test_torch_only_kernels_are_counted_beside_the_curve():
    plain = result(contract="core", language=TORCH_ONLY)
    assert curve("kb", [plain, kernel()]).torch_only == 1


@pytest.mark.parametrize(
    ("statuses", "place"),
    [
        ({"published": Obliged("broken"), "layouts": Obliged("broken", False, False)}, "published"),
        ({"shapes": Obliged("refused")}, "core"),
        ({"layouts": Obliged("broken", False, False), "values": Obliged("broken")}, "core"),
        ({"layouts": Obliged("broken", False, False)}, "beyond"),
        ({"layouts": Obliged("refused", False, False)}, None),
        ({"kernel": Obliged("broken", False, False)}, None),
    ],
)
def test_a_kernel_is_wrong_at_the_place_that_promises_most(statuses, place):
    assert place_of(kernel(**statuses)) == place


def test_a_kernel_that_is_rejected_without_a_profile_is_wrong_at_an_unknown_place():
    assert place_of(result("a", "fail")) == "unknown"


def test_places_are_counted_by_check_and_contract():
    members = [kernel(0), kernel(1, published=Obliged("broken")), kernel(2, contract="torch")]
    rows = illusion_places(study(*members))
    assert [(r.contract, r.certified, r.published.numerator) for r in rows] == [
        ("core", 2, 1),
        ("torch", 1, 0),
    ]
