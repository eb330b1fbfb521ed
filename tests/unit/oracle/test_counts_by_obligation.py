"""What judged cases count for: right, broken, refused or rejected."""

import pytest
from counted import (
    BOTH,
    DOUBLE,
    PUBLISHED,
    REFUSED,
    STRIDED,
    TIES,
    WRONG,
    add,
    counted,
    counts_of,
    entry,
    is_strided,
    keys_with,
    status,
)
from msgspec.structs import replace

from kerneltruth.documents.records import Judgement
from kerneltruth.documents.verdict import Failed, Passed, RuntimeFault
from kerneltruth.oracle.counts_by_obligation import REJECTIONS
from kerneltruth.oracle.profile import profile_of


def test_a_right_case_holds_its_departures_and_memory_and_the_interface():
    blame = counted((BOTH, Passed()), (TIES, Passed()))
    held = {key: e.cases for key, e in profile_of(blame.counts).items() if e.status == "held"}
    assert held == {"layouts": 1, "values": 2, "memory": 2, "interface": 2}
    assert status(blame, "published") == "not_tried"


def test_right_published_inputs_hold_the_published_obligation():
    assert entry(counted((PUBLISHED, Passed())), "published").cases == 1


def test_right_cases_that_gave_the_same_when_repeated_are_counted():
    blame = counted()
    assert status(blame, "repeatable") == "not_tried"
    blame.counts.add_repeated()
    assert entry(blame, "repeatable").cases == 1


@pytest.mark.parametrize(
    ("case", "now", "cases"),
    [(PUBLISHED, "broken", 0), (STRIDED, "not_tried", 1)],
    ids=["core", "beyond"],
)
def test_right_values_in_another_form_break_the_interface_where_it_is_promised(case, now, cases):
    blame = counted()
    add(blame, Judgement(case=case, verdict=Passed(), interface=(DOUBLE,)))
    assert status(blame, "interface") == now
    add(blame, Judgement(case=PUBLISHED, verdict=Passed()))
    # Right cases after the first broken one earn nothing.
    assert entry(blame, "interface").cases == cases


def test_another_form_beyond_the_prompt_breaks_what_departs_there():
    blame = counted((PUBLISHED, Passed()))
    add(blame, Judgement(case=BOTH, verdict=Passed(), interface=(DOUBLE,)))
    assert keys_with(blame, "broken") == {"layouts"}
    assert entry(blame, "layouts").failure.verdict.kind == "dtype"


def test_another_form_of_promised_results_is_all_that_is_wrong_with_those_beyond():
    blame = counted()
    for case in (PUBLISHED, STRIDED):
        add(blame, Judgement(case=case, verdict=Passed(), interface=(DOUBLE,)))
    assert keys_with(blame, "broken") == {"interface"}


def test_the_first_failure_of_an_obligation_is_the_one_that_is_kept():
    first, later = WRONG, Failed(kind="value", detail="wrong again")
    blame = counted((STRIDED, first), (STRIDED, later), fails=is_strided)
    assert entry(blame, "layouts").failure.verdict == first


def test_the_first_refusal_is_the_reason():
    later = RuntimeFault(error="ValueError", detail="once more")
    blame = counted((STRIDED, REFUSED), (STRIDED, later), fails=is_strided)
    assert entry(blame, "layouts").reason == "ValueError: not contiguous"
    assert entry(blame, "layouts").failure.verdict == REFUSED


@pytest.mark.parametrize("order", [1, -1])
def test_a_wrong_result_outweighs_a_refusal(order):
    blame = counted(*[(STRIDED, REFUSED), (STRIDED, WRONG)][::order])
    found = entry(blame, "layouts")
    assert (found.status, found.failure.verdict) == ("broken", WRONG)


def test_a_refusal_outweighs_what_is_held():
    blame = counted((STRIDED, Passed()), (STRIDED, REFUSED))
    found = entry(blame, "layouts")
    assert (found.status, found.cases) == ("refused", 1)


def rejected(times):
    counts = counts_of(contract="torch")
    for seed in range(times):
        case = replace(PUBLISHED, recipe="nan_injected", domain="extended", seed=seed)
        counts.reject(case, "the operator rejects the case: not finite")
    return counts


def test_specials_that_the_operator_rejects_each_time_do_not_apply():
    counts = rejected(REJECTIONS)
    found = profile_of(counts)["specials"]
    assert (found.status, found.decisive) == ("not_applicable", False)
    assert found.reason == "the operator rejects the case: not finite"
    assert "specials" not in dict(counts.undecided())


def test_one_rejected_case_leaves_an_obligation_not_tried():
    counts = rejected(1)
    assert profile_of(counts)["specials"].status == "not_tried"
    assert "specials" in dict(counts.undecided())


def test_what_failed_is_listed_as_it_came_with_what_the_contract_asks():
    blame = counted(
        (STRIDED, REFUSED),
        (TIES, WRONG),
        fails=lambda case: case.layout != "contiguous" or case.recipe == "ties",
    )
    assert [(f.key, f.decides) for f in blame.counts.failed()] == [
        ("layouts", False),
        ("values", True),
    ]
