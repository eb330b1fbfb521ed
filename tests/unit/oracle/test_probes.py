"""Probes: what each wrong element depends on beside its inputs, told by asking again."""

import itertools

import pytest
import torch
from scripted import MATMUL, RELU, case_of, declare, returned, session_of, tensor_in

from kerneltruth.documents.verdict import Cause, Crashed, Failed, Passed
from kerneltruth.oracle.probes import REPEATS, Probes, depends, probe
from kerneltruth.runner.observation import Observation
from kerneltruth.tasks.spec import Claim, Output


def probed(answer, declared=RELU, **case):
    session = session_of(declared, answer)
    expectation = session.cache.get(declared, case_of(declared, **case))
    ruling, _, _ = session.call(expectation)
    session.runner.calls.clear()
    found = probe(session, expectation, ruling, config=2)
    return found, found.refine(ruling.verdict), session.runner.calls


def shares(found):
    return {cause.kind: cause.elements for cause in found.causes}


def wrong(call):
    return call.tensors["x"] + 100


def poisoned(call):
    """A number that depends on what uninitialized memory holds."""
    return 1.5 if call.small_poison else torch.nan


def guarding(call):
    """A number that lies before the first element."""
    argument = call.arguments[0]
    return torch.frombuffer(bytearray(argument.buffer[:4]), dtype=torch.float32).item()


def test_what_is_wrong_in_the_same_way_each_time_depends_on_nothing_else():
    found, verdict, _ = probed(wrong)
    assert found == Probes()
    assert verdict.kind == "value"


def test_an_output_that_changes_by_itself_is_nondeterministic():
    count = itertools.count()
    found, verdict, calls = probed(lambda call: wrong(call) + next(count))
    assert shares(found) == {"nondeterministic": 15}
    assert verdict.kind == "nondeterministic"
    assert len(calls) == 1


def test_an_output_that_changes_once_in_a_few_repeats_is_nondeterministic():
    turns = iter([0, 0, 1])
    found, _, calls = probed(lambda call: wrong(call) + next(turns))
    assert shares(found) == {"nondeterministic": 15}
    assert len(calls) == REPEATS


def test_rounding_that_differs_from_call_to_call_is_no_cause():
    count = itertools.count()
    found, verdict, _ = probed(lambda call: wrong(call) + 1e-6 * next(count))
    assert found == Probes()
    assert verdict.kind == "value"


def test_an_output_that_follows_the_poison_was_never_written():
    _, verdict, _ = probed(lambda call: wrong(call) + poisoned(call))
    assert verdict.kind == "uninitialized"
    assert verdict.causes == (Cause(kind="uninitialized", elements=15, share=1.0),)


@pytest.mark.parametrize("spoiled", [1.0, torch.nan])
def test_an_output_that_follows_the_guards_was_read_out_of_bounds(spoiled):
    # NaN and huge numbers may all give the same NaN; small ones do not.
    def beyond(call):
        read = guarding(call)
        wild = not 1 <= abs(read) < 2
        return tensor_in(call.arguments[0]) + (spoiled * 100 if wild else read)

    _, verdict, _ = probed(beyond)
    assert verdict.kind == "out_of_bounds"


def test_every_cause_is_reported_with_its_share_and_the_largest_gives_the_kind():
    count = itertools.count()

    def mixed(call):
        out = wrong(call)
        out[0, 0] += next(count)
        out[:2, 1:] += poisoned(call)
        out[2, :2] = guarding(call)
        return out

    found, verdict, _ = probed(mixed)
    assert list(shares(found).items()) == [
        ("uninitialized", 8),
        ("value", 4),
        ("out_of_bounds", 2),
        ("nondeterministic", 1),
    ]
    assert verdict.kind == "uninitialized"
    assert "8 (53.3%) change with the contents of uninitialized memory" in verdict.detail
    assert "4 (26.7%) do not change" in verdict.detail
    assert "1 (6.67%) changes with each repetition of the call" in verdict.detail


def test_few_elements_that_change_by_themselves_do_not_hide_many_that_were_never_written():
    count = itertools.count()

    def unwritten(call):
        out = torch.full((3, 5), poisoned(call))
        out[0, 0] = 50.0 + next(count)
        return out

    _, verdict, _ = probed(unwritten)
    assert verdict.kind == "uninitialized"
    assert [(c.kind, c.elements) for c in verdict.causes] == [
        ("uninitialized", 14),
        ("nondeterministic", 1),
    ]


def test_a_few_elements_that_change_by_themselves_are_not_what_is_wrong_with_all():
    count = itertools.count()

    def restless(call):
        out = wrong(call)
        out[0, 0] += next(count)
        return out

    _, verdict, _ = probed(restless)
    assert verdict.kind == "value"
    assert [c.kind for c in verdict.causes] == ["value", "nondeterministic"]


@pytest.mark.parametrize("elsewhere", [torch.nan, torch.inf, 100.0])
def test_few_elements_from_beyond_an_input_do_not_name_what_is_wrong_with_all(elsewhere):
    def beyond(call):
        out = wrong(call) * elsewhere
        out[0, 0] = guarding(call)
        return out

    _, verdict, _ = probed(beyond)
    kind = {torch.nan: "nan", torch.inf: "inf"}.get(elsewhere, "value")
    assert [(c.kind, c.elements) for c in verdict.causes] == [(kind, 14), ("out_of_bounds", 1)]
    assert verdict.kind == kind


def test_a_nan_of_fresh_memory_does_not_name_many_wrong_numbers():
    def beyond(call):
        out = wrong(call)
        out[0, 0] = poisoned(call)
        return out

    _, verdict, _ = probed(beyond)
    assert verdict.kind == "value"
    assert verdict.causes[1] == Cause(kind="uninitialized", elements=1, share=1 / 15)


def elementwise(evidence):
    broken = ~((evidence.outputs[0] >= 0) & (evidence.outputs[0] < 1))
    yield Claim("outside of [0, 1)", float(broken.sum()), 0.0, where=broken)


NOISE = declare(
    "noise(x[M, N])",
    lambda x: torch.full_like(x, 0.5),
    outputs=(Output(compare="claims", spared=("constant",)),),
    claims=elementwise,
    random=True,
)


def half(fill, count=None):
    """A random result whose last row is something else; with a count each call draws anew."""
    out = torch.rand(3, 5, generator=torch.Generator().manual_seed(next(count) if count else 0))
    out[2] = fill
    return out


@pytest.mark.parametrize("count", [None, itertools.count()])
def test_unwritten_elements_of_a_random_kernel_are_found_at_any_count(count):
    _, verdict, _ = probed(lambda call: half(poisoned(call), count), NOISE)
    assert verdict.causes == (Cause(kind="uninitialized", elements=5, share=1.0),)
    assert verdict.kind == "uninitialized"


def test_reads_of_a_random_kernel_beyond_an_input_are_found():
    _, verdict, _ = probed(lambda call: half(guarding(call) + 3), NOISE)
    assert verdict.kind == "out_of_bounds"


@pytest.mark.parametrize("fill", [torch.nan, 7.0])
@pytest.mark.parametrize("count", [None, itertools.count()])
def test_what_a_random_kernel_gets_wrong_by_itself_depends_on_nothing(fill, count):
    found, verdict, _ = probed(lambda call: half(fill, count), NOISE)
    assert found == Probes()
    assert verdict.kind == "value"


def test_a_seed_from_a_clock_is_no_dependence():
    calls = itertools.count()

    def clocked(call):
        out = half(7.0)
        out[2] += next(calls) // 3
        return out

    found, _, _ = probed(clocked, NOISE)
    assert found == Probes()


def test_every_probe_asks_for_the_configuration_that_failed():
    _, _, calls = probed(wrong, layout="transposed")
    assert {call.config for call in calls} == {2}


def test_without_an_output_there_is_nothing_to_probe():
    found, _, calls = probed(lambda call: Observation(ended="died", signal=11))
    assert found == Probes()
    assert calls == []


def test_what_is_no_symptom_of_a_dependence_stays_as_it_is():
    found = Probes(causes=(Cause(kind="nondeterministic", elements=1, share=1.0),))
    for verdict in (Passed(), Crashed(signal=11, detail=""), Failed(kind="shape", detail="")):
        assert found.refine(verdict) == verdict


def test_a_nan_that_repeats_is_no_dependence():
    _, verdict, _ = probed(lambda call: torch.full((3, 5), torch.nan))
    assert verdict.kind == "nan"


def test_a_probe_for_one_cause_looks_at_wrong_elements_alone():
    def unwritten(call):
        out = call.tensors["x"].clamp(min=0)
        out[0, 0] = poisoned(call)
        return out

    session = session_of(RELU, unwritten)
    expectation = session.cache.get(RELU, case_of(RELU))
    ruling, _, _ = session.call(expectation)
    assert depends(session, expectation, ruling, "uninitialized", config=0)
    assert not depends(session, expectation, ruling, "out_of_bounds", config=0)


def flat(argument, shape):
    """The elements from the first on, one after the other, whatever the strides."""
    buffer = torch.frombuffer(bytearray(argument.buffer), dtype=torch.float32)
    count = torch.Size(shape).numel()
    return buffer[argument.offset : argument.offset + count].reshape(shape)


@pytest.mark.parametrize("layout", ["transposed", "strided", "row_gaps"])
def test_a_kernel_that_takes_its_input_for_contiguous_is_named_so(layout):
    _, verdict, _ = probed(lambda call: flat(call.arguments[0], (3, 5)).relu(), layout=layout)
    assert (verdict.kind, verdict.inputs) == ("assumes_contiguous", ("x",))
    assert "right where x is contiguous, wrong with strides (" in verdict.detail
    assert verdict.causes[0].kind == "assumes_contiguous"


@pytest.mark.parametrize("layout", ["transposed", "contiguous"])
def test_a_kernel_that_is_wrong_on_contiguous_inputs_too_assumes_nothing(layout):
    _, verdict, _ = probed(wrong, layout=layout)
    assert (verdict.kind, verdict.inputs) == ("value", ())


def test_the_input_whose_layout_alone_breaks_it_is_named():
    def one_of_two(call):
        a, b = call.arguments
        return tensor_in(a) @ flat(b, (4, 5))

    _, verdict, _ = probed(one_of_two, MATMUL, layout="transposed")
    assert verdict.inputs == ("b",)


def test_inputs_that_break_it_together_are_all_named():
    def both(call):
        a, b = call.arguments
        contiguous = a.strides == (4, 1) or b.strides == (5, 1)
        return tensor_in(a) @ tensor_in(b) + (0.0 if contiguous else 50.0)

    _, verdict, _ = probed(both, MATMUL, layout="transposed")
    assert verdict.inputs == ("a", "b")
    assert "right where a and b are contiguous" in verdict.detail


def test_a_write_that_comes_of_strides_is_named_with_both():
    def writes(call):
        out = tensor_in(call.arguments[0]).relu()
        hit = () if call.arguments[0].strides == (5, 1) else ("float32[3, 5] #0, after it",)
        return Observation(ended="returned", results=returned(out).results, guards_hit=hit)

    _, verdict, _ = probed(writes, layout="transposed")
    assert verdict.kind == "assumes_contiguous"
    assert "wrote beyond memory that it allocated" in verdict.detail
    assert verdict.causes == ()
