"""The judge: every way in which a call can end, and what outweighs what."""

from dataclasses import replace

import pytest
import torch
from scripted import Bench, declare, result, returned

from kerneltruth.documents.verdict import (
    CompileError,
    Crashed,
    Declined,
    Hack,
    Infra,
    Passed,
    RuntimeFault,
    TimedOut,
    UnsupportedHere,
)
from kerneltruth.runner.observation import Access, Observation, OtherResult
from kerneltruth.tasks.spec import Output

PAIR = declare(
    "pair(x[M, N])",
    lambda x: (x * 2, x * 3),
    outputs=(Output(name="twice"), Output(name="thrice")),
)
IN_PLACE = declare("double_(x[M, N])", lambda x: x * 2, mutates=("x",))


def test_the_right_result_passes():
    bench = Bench()
    assert bench.verdict(returned(*bench.right)) == Passed()


@pytest.mark.parametrize(
    ("ended", "domain", "verdict"),
    [
        ("timeout", "core", TimedOut),
        ("died", "core", Crashed),
        ("flooded", "core", Crashed),
        ("load_failed", "extended", CompileError),
        ("compile_failed", "core", CompileError),
        ("compile_failed", "extended", Declined),
        ("raised", "core", RuntimeFault),
        ("raised", "extended", Declined),
        ("unsupported", "core", UnsupportedHere),
        ("lost", "core", Infra),
    ],
)
def test_a_call_that_does_not_return_is_judged_by_how_it_ended(ended, domain, verdict):
    observation = Observation(ended=ended, error="ValueError", message="too odd")
    assert isinstance(Bench(domain=domain).verdict(observation), verdict)


def test_a_refusal_is_reported_with_the_error_and_its_message():
    observation = Observation(ended="raised", error="ValueError", message="too odd")
    assert Bench(domain="extended").verdict(observation).reason == "ValueError: too odd"


def test_a_timeout_names_the_deadline():
    assert Bench().verdict(Observation(ended="timeout")).seconds == 2.5


def test_a_write_beyond_an_allocation_fails_even_with_the_right_result():
    bench = Bench()
    verdict = bench.verdict(returned(*bench.right, guards_hit=("empty 1",)))
    assert (verdict.kind, "empty 1" in verdict.detail) == ("out_of_bounds", True)


def access(**more):
    usual = {"kernel": "k", "line": 7, "write": False, "program": (2, 0, 0), "buffer": "x"}
    return Access(**{**usual, "element": 15, "elements": 15, **more})


def test_an_access_that_the_interpreter_saw_is_reported_with_its_place():
    bench = Bench()
    verdict = bench.verdict(returned(*bench.right, accesses=(access(),)))
    assert (verdict.kind, verdict.detail) == (
        "out_of_bounds",
        "reads element 15 of x, which has 15 elements (line 7, in `k`, program (2, 0, 0)); "
        "no value is wrong in this call",
    )
    wrong = [bench.right[0] + 100]
    verdict = bench.verdict(returned(*wrong, accesses=(access(),)))
    assert verdict.detail.endswith("; 15 of 15 elements are wrong")


def test_one_write_of_several_accesses_is_reported_and_others_are_counted():
    bench = Bench()
    seen = (access(), access(write=True, line=None, element=-1, buffer="y", elements=1), access())
    verdict = bench.verdict(returned(*bench.right, accesses=seen))
    assert verdict.detail == (
        "wrote element -1 of y, which has 1 element (in `k`, program (2, 0, 0)), "
        "and 2 more such places"
    )


@pytest.mark.parametrize("byte", [-1, 3 * 5 * 4])
def test_a_write_beside_the_elements_of_an_input_is_out_of_bounds(byte):
    bench = Bench()
    verdict = bench.verdict(returned(*bench.right, buffers=bench.written(byte)))
    assert (verdict.kind, verdict.detail) == (
        "out_of_bounds",
        "wrote outside of the elements of x",
    )


def test_a_written_input_fails_even_with_the_right_result():
    bench = Bench()
    verdict = bench.verdict(returned(*bench.right, buffers=bench.written(0)))
    assert (verdict.kind, verdict.detail) == ("input_mutated", "wrote to its input `x`")


LATER = {
    "a result": ({"results_changed": True}, "nondeterministic"),
    "its input `x`": ({"inputs_changed": ("x",)}, "input_mutated"),
}


@pytest.mark.parametrize(("what", "later"), LATER.items(), ids=LATER)
def test_what_was_right_when_it_was_read_and_changes_later_is_a_hack(what, later):
    bench = Bench()
    verdict = bench.verdict(returned(*bench.right, **later[0]))
    assert isinstance(verdict, Hack)
    said = f"{what} changed after the call returned: work that it left running wrote to it"
    assert (verdict.word, verdict.kind) == ("hack", "changed_later")
    assert verdict.detail == f"right when the judge read it, but {said}"


@pytest.mark.parametrize(("what", "later"), LATER.items(), ids=LATER)
def test_what_is_late_and_wrong_at_first_may_be_a_mistake(what, later):
    bench = Bench()
    verdict = bench.verdict(returned(bench.right[0] + 1, **later[0]))
    assert (verdict.word, verdict.kind) == ("fail", later[1])
    assert (
        verdict.detail
        == f"{what} changed after the call returned: work that it left running wrote to it"
    )


def test_a_right_result_in_an_earlier_calls_result_is_kept_state():
    bench = Bench()
    verdict = bench.verdict(returned(*bench.right, reused=(0,)))
    assert (verdict.kind, verdict.detail) == (
        "kept_state",
        "the output shares memory with an earlier call's result",
    )


def test_a_written_input_outweighs_a_wrong_value():
    bench = Bench()
    wrong = bench.right[0] + 1
    assert bench.verdict(returned(wrong, buffers=bench.written(0))).kind == "input_mutated"


def test_an_operator_in_place_is_judged_by_what_it_wrote():
    bench = Bench(IN_PLACE)
    spot = bench.placed["x"]
    start, data = spot.offset * 4, result(bench.right[0]).data
    after = spot.buffer[:start] + data + spot.buffer[start + len(data) :]
    assert bench.verdict(returned(buffers={"x": after})) == Passed()
    assert bench.verdict(returned(buffers={"x": spot.buffer})).kind == "value"


def test_the_number_of_outputs_counts():
    bench = Bench(PAIR)
    verdict = bench.verdict(returned(bench.right[0]))
    assert (verdict.kind, verdict.detail) == ("count", "returned 1 output; the task has 2")


def test_a_container_of_another_class_is_of_the_wrong_type_for_several_outputs():
    late = OtherResult(type="L", text="<L>")
    verdict = Bench(PAIR).verdict(Observation(ended="returned", results=(late,)))
    said = "returned an object of the class `L`; expected 2 tensors"
    assert (verdict.kind, verdict.detail) == ("type", said)


@pytest.mark.parametrize(
    ("name", "noun"),
    [("float", "a float"), ("int", "an int"), ("ndarray", "an object of the class `ndarray`")],
)
def test_what_is_no_tensor_is_of_the_wrong_type(name, noun):
    results = (OtherResult(type=name, text="1.0"),)
    verdict = Bench().verdict(Observation(ended="returned", results=results))
    assert (verdict.kind, verdict.detail) == ("type", f"returned {noun}; expected a tensor")


def test_a_result_that_the_next_call_overwrites_is_kept_state():
    bench = Bench()
    verdict = bench.verdict(replace(returned(*bench.right), earlier_changed=True))
    said = "a call overwrites the result of the call before"
    assert (verdict.kind, verdict.detail) == ("kept_state", said)


def test_of_many_allocations_whose_bands_were_written_the_first_few_are_named():
    hit = Observation(ended="returned", guards_hit=tuple(f"a{i}" for i in range(3000)))
    assert Bench().verdict(hit).detail == (
        "wrote beyond memory that it allocated: a0, a1, a2, a3, a4, and 2995 more"
    )


def test_a_tensor_that_cannot_be_read_is_not_said_to_be_none():
    results = (OtherResult(type="meta tensor", text="tensor(..., device='meta')"),)
    verdict = Bench().verdict(Observation(ended="returned", results=results))
    said = "returned a meta tensor; expected an ordinary one"
    assert (verdict.kind, verdict.detail) == ("type", said)


def test_none_among_several_outputs_is_said_to_be():
    bench = Bench(PAIR)
    none = OtherResult(type="NoneType", text="None")
    results = (result(bench.right[0]), none)
    verdict = bench.verdict(Observation(ended="returned", results=results))
    said = "returned None; expected a tensor"
    assert (verdict.detail, verdict.output) == (said, "thrice")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda right: result(right[:, :4]), "shape"),
        (lambda right: replace(result(right), dtype="complex32", data=b""), "dtype"),
        (lambda right: result(right, device="cuda:0"), "device"),
        (lambda right: result(right, alias="x"), "aliased_output"),
    ],
)
def test_an_output_of_the_wrong_form_is_named_by_what_is_wrong(change, kind):
    bench = Bench()
    observation = Observation(ended="returned", results=(change(bench.right[0]),))
    verdict = bench.verdict(observation, device="cpu")
    assert (verdict.kind, verdict.output) == (kind, "out")


def test_the_device_is_not_looked_at_unless_it_is_known():
    bench = Bench()
    elsewhere = result(bench.right[0], device="cuda:0")
    assert bench.verdict(Observation(ended="returned", results=(elsewhere,))) == Passed()


def test_an_empty_output_may_share_memory():
    bench = Bench(M=0)
    shared = result(bench.right[0], alias="x")
    assert bench.verdict(Observation(ended="returned", results=(shared,))) == Passed()


@pytest.mark.parametrize(
    ("value", "kind"), [(7.0, "value"), (float("nan"), "nan"), (float("inf"), "inf")]
)
def test_a_wrong_element_is_a_wrong_value_unless_it_is_not_finite(value, kind):
    bench = Bench()
    wrong = bench.right[0].clone()
    wrong[1, 2] = value
    ruling = bench.ruling(returned(wrong))
    assert (ruling.verdict.kind, ruling.verdict.output) == (kind, "out")
    assert ruling.verdict.detail.startswith("1 of 15 elements is wrong")
    assert ruling.stats.worst_index == (1, 2)


def test_the_first_wrong_output_is_named_and_the_worst_one_measured():
    bench = Bench(PAIR)
    first, second = bench.right
    ruling = bench.ruling(returned(first + 0.5, second + 50))
    assert ruling.verdict.output == "twice"
    assert ruling.stats.max_abs == pytest.approx(50)


def test_any_accepted_answer_is_right():
    def index_of_largest(inputs, outputs, references):
        rows, at = inputs["x"], outputs[0].long()
        return rows.gather(1, at.unsqueeze(1)) == rows.amax(1, keepdim=True)

    declared = declare(
        "largest(x[M, N])",
        lambda x: x.argmax(1),
        outputs=(Output(dtype="int64", compare="accept", accept=index_of_largest),),
    )
    bench = Bench(declared, recipe="ones")
    assert bench.verdict(returned(torch.tensor([4, 0, 2]))) == Passed()
    bench = Bench(declared)
    verdict = bench.verdict(returned(bench.right[0].add(1) % 5))
    assert (verdict.kind, verdict.detail) == ("value", "3 of 3 elements are not an accepted answer")
