"""A profile that grows judgement by judgement; a function says which simpler cases fail alike."""

from dataclasses import dataclass, field

import pytest
import torch
from msgspec.structs import replace
from scripted import RELU, declare

from kerneltruth.cases.published import published_case
from kerneltruth.documents.profiles import NO_TURN
from kerneltruth.documents.records import Judgement, Mismatch
from kerneltruth.documents.verdict import (
    Crashed,
    Failed,
    Passed,
    RuntimeFault,
    TimedOut,
    UnsupportedHere,
)
from kerneltruth.oracle.contract import CONTRACTS
from kerneltruth.oracle.kinds import Kinds
from kerneltruth.oracle.outcome import UNREACHED, outcome_of
from kerneltruth.oracle.profile import (
    ALIKE,
    REFUSALS,
    REJECTIONS,
    SAME_WITHOUT,
    WRONG_AS_PUBLISHED,
    ProfileBuilder,
    obligations_of,
)
from kerneltruth.tasks.promises import Promises

PUBLISHED = published_case(RELU, seed=0, device="cpu")
KINDS = Kinds(RELU, PUBLISHED, "cpu")
STRIDED = replace(PUBLISHED, layout="strided", domain="extended")
TIES = replace(PUBLISHED, recipe="ties")
BOTH = replace(STRIDED, recipe="ties")
WRONG = Failed(kind="value", detail="wrong")
REFUSED = RuntimeFault(error="ValueError", detail="not contiguous")
DOUBLE = Mismatch(kind="dtype", output="out", detail="float64")


@dataclass
class Candidate:
    """Which cases fail, and those that it was asked about."""

    fails: object = lambda case: False
    asked: list = field(default_factory=list)

    def __call__(self, judgement, case):
        self.asked.append(case)
        return self.fails(case)


def is_strided(case):
    return case.layout == "strided"


def profile_of(*judged, fails=lambda case: False):
    """The builder after these cases and verdicts."""
    builder = ProfileBuilder(
        task=RELU,
        published=PUBLISHED,
        contract=CONTRACTS["core"],
        fails=Candidate(fails),
        kinds=KINDS,
    )
    for case, verdict in judged:
        add(builder, Judgement(case=case, verdict=verdict))
    return builder


def add(builder, judgement):
    """Count a judgement as the case loop does; the most ordinary case that fails alike."""
    failing = outcome_of(judgement.verdict) in ("broken", "refused")
    simplest = builder.simplest(judgement) if failing else judgement.case
    builder.add(judgement, judgement.case, simplest)
    return simplest


def status(builder, key):
    return builder.profile()[key].status


def test_a_right_case_holds_its_departures_and_memory_and_the_interface():
    builder = profile_of((BOTH, Passed()), (TIES, Passed()))
    held = {key: e.cases for key, e in builder.profile().items() if e.status == "held"}
    assert held == {"layouts": 1, "values": 2, "memory": 2, "interface": 2}
    assert status(builder, "published") == "not_tried"


def test_right_published_inputs_hold_the_published_obligation():
    assert profile_of((PUBLISHED, Passed())).profile()["published"].cases == 1


def test_calls_that_gave_the_same_again_are_counted():
    builder = profile_of()
    assert status(builder, "repeatable") == "not_tried"
    builder.add_repeated(2)
    assert builder.profile()["repeatable"].cases == 2


@pytest.mark.parametrize(
    ("case", "now", "counted"),
    [(PUBLISHED, "broken", 0), (STRIDED, "not_tried", 1)],
    ids=["core", "beyond"],
)
def test_right_values_in_another_form_break_the_interface_where_it_is_promised(case, now, counted):
    builder = profile_of()
    add(builder, Judgement(case=case, verdict=Passed(), interface=(DOUBLE,)))
    assert status(builder, "interface") == now
    add(builder, Judgement(case=PUBLISHED, verdict=Passed()))
    # Right cases after the first broken one earn nothing.
    assert builder.profile()["interface"].cases == counted


def test_another_form_beyond_the_prompt_breaks_what_departs_there():
    builder = profile_of((PUBLISHED, Passed()))
    add(builder, Judgement(case=BOTH, verdict=Passed(), interface=(DOUBLE,)))
    assert {key for key, e in builder.profile().items() if e.status == "broken"} == {"layouts"}
    assert builder.profile()["layouts"].failure.verdict.kind == "dtype"


def test_another_form_of_promised_results_is_all_that_is_wrong_with_those_beyond():
    builder = profile_of()
    for case in (PUBLISHED, STRIDED):
        add(builder, Judgement(case=case, verdict=Passed(), interface=(DOUBLE,)))
    assert {key for key, e in builder.profile().items() if e.status == "broken"} == {"interface"}


@pytest.mark.parametrize("verdict", [WRONG, Crashed(signal=11, detail=""), TimedOut(seconds=1.0)])
def test_what_is_broken_is_tried_no_more_and_what_else_a_case_asks_is(verdict):
    builder = profile_of((TIES, Passed()), (STRIDED, verdict))
    assert status(builder, "layouts") == "broken"
    assert builder.open_part(BOTH) == replace(BOTH, layout="contiguous")
    assert builder.open_part(TIES) == TIES


def test_the_first_failure_of_an_obligation_is_the_one_that_is_kept():
    first, later = WRONG, Failed(kind="value", detail="wrong again")
    builder = profile_of((STRIDED, first), (STRIDED, later), fails=is_strided)
    assert builder.profile()["layouts"].failure.verdict == first


def test_the_first_refusal_is_the_reason():
    later = RuntimeFault(error="ValueError", detail="once more")
    builder = profile_of((STRIDED, REFUSED), (STRIDED, later), fails=is_strided)
    assert builder.profile()["layouts"].reason == "ValueError: not contiguous"
    assert builder.profile()["layouts"].failure.verdict == REFUSED


@pytest.mark.parametrize("order", [1, -1])
def test_a_wrong_result_outweighs_a_refusal(order):
    builder = profile_of(*[(STRIDED, REFUSED), (STRIDED, WRONG)][::order])
    entry = builder.profile()["layouts"]
    assert (entry.status, entry.failure.verdict) == ("broken", WRONG)


def test_a_refusal_outweighs_what_is_held():
    builder = profile_of((STRIDED, Passed()), (STRIDED, REFUSED))
    entry = builder.profile()["layouts"]
    assert (entry.status, entry.cases) == ("refused", 1)


def test_a_departure_refused_again_and_again_is_tried_no_more():
    builder = profile_of(*[(STRIDED, REFUSED)] * (REFUSALS - 1))
    assert builder.open_part(STRIDED) == STRIDED
    add(builder, Judgement(case=STRIDED, verdict=REFUSED))
    assert builder.open_part(STRIDED) == replace(STRIDED, layout="contiguous")


def test_a_departure_held_once_is_tried_however_often_it_is_refused():
    builder = profile_of((STRIDED, Passed()), *[(STRIDED, REFUSED)] * REFUSALS)
    assert builder.open_part(STRIDED) == STRIDED


HALF = replace(PUBLISHED, dtype="float16")
LARGER = replace(PUBLISHED, dims=(("M", 7), ("N", 9)))


def test_a_departure_that_fails_alike_without_it_is_tried_alone_twice():
    builder = profile_of((PUBLISHED, WRONG), fails=lambda case: True)
    for _ in range(ALIKE):
        assert builder.open_part(STRIDED) == STRIDED
        add(builder, Judgement(case=STRIDED, verdict=WRONG))
    assert builder.open_part(STRIDED) is None
    assert status(builder, "published") == "broken"
    assert builder.profile()["layouts"].reason == SAME_WITHOUT


def test_sizes_that_break_the_memory_are_left_out_of_the_cases_that_follow():
    unwritten = Failed(kind="uninitialized", detail="not written")
    odd = TIES.with_dims(M=3, N=257)
    builder = profile_of(fails=lambda case: case.dims != PUBLISHED.dims)
    for _ in range(ALIKE):
        assert builder.open_part(odd) == odd
        add(builder, Judgement(case=odd, verdict=unwritten))
    assert builder.open_part(odd) == TIES
    add(builder, Judgement(case=TIES, verdict=Passed()))
    ended = {key: builder.profile()[key] for key in ("memory", "values", "shapes")}
    assert [e.status for e in ended.values()] == ["broken", "held", "not_tried"]
    assert ended["shapes"].reason == "its cases break `memory`"


def test_sizes_that_hold_too_are_still_tried_after_they_break_the_memory():
    unwritten = Failed(kind="uninitialized", detail="not written")
    odd, even = (PUBLISHED.with_dims(M=3, N=n) for n in (257, 258))
    builder = profile_of((even, Passed()), fails=lambda case: case.dims == odd.dims)
    for _ in range(ALIKE):
        add(builder, Judgement(case=odd, verdict=unwritten))
    assert builder.open_part(odd) == odd
    assert status(builder, "shapes") == "held"


def test_where_published_inputs_fail_a_case_departs_in_what_was_tried_least():
    builder = profile_of((PUBLISHED, WRONG), (TIES, WRONG), fails=lambda case: True)
    assert builder.open_part(BOTH) == STRIDED
    assert builder.open_part(TIES) == TIES


def test_where_published_inputs_fail_a_case_keeps_the_departures_that_hold():
    builder = profile_of((PUBLISHED, WRONG), (HALF, Passed()))
    both = replace(BOTH, dtype="float16")
    assert builder.open_part(both) == replace(TIES, dtype="float16", domain="extended")
    # Without what holds it would fail as the published inputs do, so the rest is to blame.
    add(builder, Judgement(case=replace(STRIDED, dtype="float16"), verdict=WRONG))
    assert status(builder, "layouts") == "broken"
    assert status(builder, "dtypes.float16") == "held"


def test_it_is_over_when_each_departure_fails_as_the_published_inputs_do():
    ways = [
        replace(PUBLISHED, dtype="bfloat16"),
        replace(PUBLISHED, recipe="nan_injected"),
        replace(PUBLISHED, dims=(("M", 0), ("N", 5))),
        *(HALF, TIES, STRIDED, LARGER),
    ]
    builder = profile_of((PUBLISHED, WRONG), fails=lambda case: True)
    for case in ways:
        assert not builder.is_over
        add(builder, Judgement(case=case, verdict=WRONG))
    # No other departure has cases that differ as much.
    assert not builder.is_over
    add(builder, Judgement(case=LARGER, verdict=WRONG))
    assert builder.is_over
    assert builder.profile()["memory"].reason == WRONG_AS_PUBLISHED


def test_a_result_that_does_not_repeat_says_nothing_of_the_other_obligations():
    kept = Failed(kind="kept_state", detail="")
    builder = profile_of((TIES, kept), (STRIDED, kept))
    assert status(builder, "repeatable") == "broken"
    assert not builder.is_over
    assert builder.profile()["shapes"].reason == UNREACHED


def test_what_several_calls_show_is_not_tried_on_simpler_cases():
    builder = profile_of()
    judgement = Judgement(case=BOTH, verdict=Failed(kind="kept_state", detail=""))
    assert add(builder, judgement) == PUBLISHED
    assert builder.fails.asked == []


def test_published_inputs_that_failed_alike_are_not_tried_again():
    builder = profile_of((PUBLISHED, WRONG), fails=lambda case: True)
    assert add(builder, Judgement(case=TIES, verdict=WRONG)) == replace(PUBLISHED, seed=TIES.seed)
    assert builder.fails.asked == []
    # A refusal is not alike.
    add(builder, Judgement(case=TIES, verdict=REFUSED))
    assert len(builder.fails.asked) == 1


@pytest.mark.parametrize(
    ("held", "other", "blamed"), [(STRIDED, "layouts", "values"), (TIES, "values", "layouts")]
)
def test_a_call_that_does_not_return_is_the_fault_of_what_never_held(held, other, blamed):
    builder = profile_of((held, Passed()), (BOTH, TimedOut(seconds=1.0)))
    assert status(builder, blamed) == "broken"
    assert status(builder, other) == "held"
    # To ask again would take as long.
    assert builder.fails.asked == []


def test_a_call_that_does_not_return_is_the_fault_of_the_sizes_if_it_returns_without_them():
    builder = profile_of((LARGER, Passed()))
    odd = replace(BOTH, dims=(("M", 3), ("N", 9)))
    add(builder, Judgement(case=odd, verdict=TimedOut(seconds=1.0)))
    assert status(builder, "shapes") == "broken"
    assert status(builder, "values") == status(builder, "layouts") == "not_tried"
    assert builder.fails.asked == [replace(odd, dims=PUBLISHED.dims)]


def test_a_call_that_does_not_return_without_its_sizes_either_is_not_their_fault():
    odd = replace(TIES, dims=(("M", 3), ("N", 9)))
    builder = profile_of((odd, TimedOut(seconds=1.0)), fails=lambda case: True)
    assert status(builder, "values") == "broken"
    assert status(builder, "shapes") == "not_tried"


def parts(task, obligation):
    return {d.part: d.promised for d in obligations_of(task) if d.obligation == obligation}


def test_every_dtype_but_that_of_the_published_inputs_is_an_obligation_of_its_own():
    assert parts(RELU, "dtypes") == {"float16": True, "bfloat16": True}


def test_layouts_beyond_the_promised_ones_are_an_obligation_of_their_own():
    named = declare("relu(x[M, N])", torch.relu, promises=Promises(layouts=("transposed",)))
    assert parts(named, "layouts") == {"": True, "beyond": False}
    assert parts(RELU, "layouts") == {"": False}


def test_entries_stand_in_the_order_of_the_obligations():
    keys = list(profile_of().profile())
    assert keys[:3] == ["published", "shapes", "values"]
    assert keys.index("attributes") < keys.index("layouts") < keys.index("specials")
    assert profile_of().profile()["attributes"].status == "not_applicable"


def test_the_published_inputs_say_where_they_are_smaller_than_the_benchmarks():
    small = replace(PUBLISHED, dims=(("M", 2), ("N", 4)))
    builder = ProfileBuilder(
        task=RELU, published=small, contract=CONTRACTS["core"], fails=Candidate(), kinds=KINDS
    )
    add(builder, Judgement(case=small, verdict=Passed()))
    entry = builder.profile()["published"]
    own = " ".join(f"{symbol}={n}" for symbol, n in RELU.benchmark.dims.items())
    assert entry.status == "held"
    assert entry.reason == f"tried at M=2 N=4; the benchmark has {own}"


def test_the_published_inputs_at_the_benchmarks_sizes_say_nothing():
    assert profile_of((PUBLISHED, Passed())).profile()["published"].reason is None


def _rejected(times, contract="torch"):
    builder = ProfileBuilder(
        task=RELU,
        published=PUBLISHED,
        contract=CONTRACTS[contract],
        fails=Candidate(),
        kinds=KINDS,
    )
    for seed in range(times):
        case = replace(PUBLISHED, recipe="nan_injected", domain="extended", seed=seed)
        builder.reject(case, "the operator rejects the case: not finite")
    return builder


def test_specials_that_the_operator_rejects_each_time_do_not_apply():
    builder = _rejected(REJECTIONS)
    entry = builder.profile()["specials"]
    assert (entry.status, entry.decisive) == ("not_applicable", False)
    assert entry.reason == "the operator rejects the case: not finite"
    assert "specials" not in dict(builder.undecided())


def test_one_rejected_case_leaves_an_obligation_not_tried():
    builder = _rejected(1)
    assert builder.profile()["specials"].status == "not_tried"
    assert "specials" in dict(builder.undecided())


def untried(builder, key):
    return builder.profile()[key].untried


def test_an_obligation_names_the_kinds_that_had_no_turn_where_others_held():
    builder = profile_of((STRIDED, Passed()), (BOTH, Passed()))
    others = ("transposed", "row_gaps", "expanded", "misaligned", "offset")
    assert untried(builder, "layouts") == dict.fromkeys(others, NO_TURN)
    assert "ties" not in untried(builder, "values")
    assert "zero_rows" in untried(builder, "values")
    # None of its kinds has held, and its status says so.
    assert untried(builder, "specials") == {}


def test_a_kind_whose_case_could_not_be_judged_says_why():
    builder = profile_of((STRIDED, Passed()))
    builder.leave_out(replace(STRIDED, layout="offset"), UnsupportedHere(reason="too large"))
    assert untried(builder, "layouts")["offset"] == "too large"


def test_the_largest_size_of_a_dim_is_a_kind_of_its_own():
    most = {"M": 129, "N": 21847}
    builder = profile_of((LARGER, Passed()))
    assert [*untried(builder, "shapes")] == [f"{symbol}={n}" for symbol, n in most.items()]
    add(builder, Judgement(case=LARGER.with_dims(N=most["N"]), verdict=Passed()))
    assert [*untried(builder, "shapes")] == ["M=129"]
