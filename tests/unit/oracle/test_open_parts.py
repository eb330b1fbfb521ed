"""Which part of a case is still tried, after what was counted."""

import pytest
from counted import (
    BOTH,
    HALF,
    LARGER,
    PUBLISHED,
    REFUSED,
    STRIDED,
    TIES,
    WRONG,
    add,
    counted,
    entry,
    status,
)
from msgspec.structs import replace

from kerneltruth.documents.records import Judgement
from kerneltruth.documents.verdict import Crashed, Failed, Passed, TimedOut
from kerneltruth.oracle.open_parts import ALIKE, REFUSALS, is_over, open_part
from kerneltruth.oracle.profile import SAME_WITHOUT, WRONG_AS_PUBLISHED


@pytest.mark.parametrize("verdict", [WRONG, Crashed(signal=11, detail=""), TimedOut(seconds=1.0)])
def test_what_is_broken_is_tried_no_more_and_what_else_a_case_asks_is(verdict):
    blame = counted((TIES, Passed()), (STRIDED, verdict))
    assert status(blame, "layouts") == "broken"
    assert open_part(blame.counts, BOTH) == replace(BOTH, layout="contiguous")
    assert open_part(blame.counts, TIES) == TIES


def test_a_departure_refused_again_and_again_is_tried_no_more():
    blame = counted(*[(STRIDED, REFUSED)] * (REFUSALS - 1))
    assert open_part(blame.counts, STRIDED) == STRIDED
    add(blame, Judgement(case=STRIDED, verdict=REFUSED))
    assert open_part(blame.counts, STRIDED) == replace(STRIDED, layout="contiguous")


def test_a_departure_held_once_is_tried_however_often_it_is_refused():
    blame = counted((STRIDED, Passed()), *[(STRIDED, REFUSED)] * REFUSALS)
    assert open_part(blame.counts, STRIDED) == STRIDED


def test_a_departure_that_fails_alike_without_it_is_tried_alone_twice():
    blame = counted((PUBLISHED, WRONG), fails=lambda case: True)
    for _ in range(ALIKE):
        assert open_part(blame.counts, STRIDED) == STRIDED
        add(blame, Judgement(case=STRIDED, verdict=WRONG))
    assert open_part(blame.counts, STRIDED) is None
    assert status(blame, "published") == "broken"
    assert entry(blame, "layouts").reason == SAME_WITHOUT


def test_sizes_that_break_the_memory_are_left_out_of_the_cases_that_follow():
    unwritten = Failed(kind="uninitialized", detail="not written")
    odd = TIES.with_dims(M=3, N=257)
    blame = counted(fails=lambda case: case.dims != PUBLISHED.dims)
    for _ in range(ALIKE):
        assert open_part(blame.counts, odd) == odd
        add(blame, Judgement(case=odd, verdict=unwritten))
    assert open_part(blame.counts, odd) == TIES
    add(blame, Judgement(case=TIES, verdict=Passed()))
    ended = {key: entry(blame, key) for key in ("memory", "values", "shapes")}
    assert [e.status for e in ended.values()] == ["broken", "held", "not_tried"]
    assert ended["shapes"].reason == "its cases break `memory`"


def test_sizes_that_hold_too_are_still_tried_after_they_break_the_memory():
    unwritten = Failed(kind="uninitialized", detail="not written")
    odd, even = (PUBLISHED.with_dims(M=3, N=n) for n in (257, 258))
    blame = counted((even, Passed()), fails=lambda case: case.dims == odd.dims)
    for _ in range(ALIKE):
        add(blame, Judgement(case=odd, verdict=unwritten))
    assert open_part(blame.counts, odd) == odd
    assert status(blame, "shapes") == "held"


def test_where_published_inputs_fail_a_case_departs_in_what_was_tried_least():
    blame = counted((PUBLISHED, WRONG), (TIES, WRONG), fails=lambda case: True)
    assert open_part(blame.counts, BOTH) == STRIDED
    assert open_part(blame.counts, TIES) == TIES


def test_where_published_inputs_fail_a_case_keeps_the_departures_that_hold():
    blame = counted((PUBLISHED, WRONG), (HALF, Passed()))
    both = replace(BOTH, dtype="float16")
    assert open_part(blame.counts, both) == replace(TIES, dtype="float16", domain="extended")
    # Without what holds it would fail as the published inputs do, so the rest is to blame.
    add(blame, Judgement(case=replace(STRIDED, dtype="float16"), verdict=WRONG))
    assert status(blame, "layouts") == "broken"
    assert status(blame, "dtypes.float16") == "held"


def test_it_is_over_when_each_departure_fails_as_the_published_inputs_do():
    ways = [
        replace(PUBLISHED, dtype="bfloat16"),
        replace(PUBLISHED, recipe="nan_injected"),
        replace(PUBLISHED, dims=(("M", 0), ("N", 5))),
        *(HALF, TIES, STRIDED, LARGER),
    ]
    blame = counted((PUBLISHED, WRONG), fails=lambda case: True)
    for case in ways:
        assert not is_over(blame.counts)
        add(blame, Judgement(case=case, verdict=WRONG))
    # No other departure has cases that differ as much.
    assert not is_over(blame.counts)
    add(blame, Judgement(case=LARGER, verdict=WRONG))
    assert is_over(blame.counts)
    assert entry(blame, "memory").reason == WRONG_AS_PUBLISHED
