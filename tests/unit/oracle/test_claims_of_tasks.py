"""Contracts, outputs under conditions, in place and complex: judged without a child process."""

from dataclasses import replace

import pytest
import torch

from kerneltruth.documents.case import Case
from kerneltruth.documents.verdict import Passed
from kerneltruth.oracle.arguments import lay_out
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import expect
from kerneltruth.oracle.judge import rule
from kerneltruth.runner.observation import Observation, OtherResult, TensorResult
from kerneltruth.tasks.spec import Claim, Output, task


def declare(signature, reference, **more):
    return task(
        signature,
        category="Test",
        dims={"M": "batch", "N": "spatial"},
        reference=reference,
        description="",
        flops="1",
        benchmark={"M": 3, "N": 5},
        **more,
    )


def case_of(declared, **settings):
    values = tuple((a.name, settings.get(a.name, a.default)) for a in declared.attributes)
    return Case(task=declared.key, dims=(("M", 3), ("N", 5)), attributes=values, seed=3)


def result(tensor, alias=None):
    name = str(tensor.dtype).removeprefix("torch.")
    data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    strides = tuple(tensor.contiguous().stride())
    shape = tuple(tensor.shape)
    return TensorResult(
        dtype=name, shape=shape, strides=strides, device="cpu", data=data, alias=alias
    )


def verdict_on(declared, answer, **settings):
    """The verdict on `answer(inputs)`: the results, and the inputs that were written."""
    expectation = expect(declared, case_of(declared, **settings), Policy())
    assert expectation.invalid is None
    placed = lay_out(declared, expectation.case, expectation.inputs).placed
    results, written = answer(expectation.inputs.tensors)
    buffers = {n: spot.buffer for n, spot in placed.items()}
    for name, tensor in written.items():
        spot = placed[name]
        start = spot.offset * tensor.element_size()
        raw = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        before = buffers[name]
        buffers[name] = before[:start] + raw + before[start + len(raw) :]
    observation = Observation(ended="returned", results=tuple(results), buffers=buffers)
    return rule(declared, expectation, placed, observation, deadline_s=1.0, device="cpu").verdict


def root_claims(evidence):
    (root,) = evidence.outputs
    error = (root.double().square() - evidence.inputs["x"]).abs().max()
    yield Claim("error of the square", float(error), 50 * evidence.eps)


EITHER_ROOT = declare(
    "root(x[M, N]: positive)",
    lambda x: x.sqrt(),
    outputs=(Output(compare="claims"),),
    claims=root_claims,
)


def test_every_answer_that_keeps_the_claims_is_right():
    for sign in (1, -1):
        verdict = verdict_on(
            EITHER_ROOT, lambda given, s=sign: ([result(s * given["x"].sqrt())], {})
        )
        assert verdict == Passed()


def test_a_broken_claim_is_a_wrong_value_with_its_name_value_and_limit():
    verdict = verdict_on(EITHER_ROOT, lambda given: ([result(given["x"])], {}))
    assert verdict.kind == "value"
    assert "error of the square: " in verdict.detail
    assert "at most 5.96e-06 is right" in verdict.detail


def test_every_broken_claim_is_named_also_before_one_that_cannot_be_computed():
    def three(evidence):
        yield Claim("kept", 0.0, 1.0)
        yield from root_claims(evidence)
        yield Claim("sign", 2.0, 0.0)
        raise torch.linalg.LinAlgError("no decomposition")

    declared = replace(EITHER_ROOT, claims=three)
    verdict = verdict_on(declared, lambda given: ([result(given["x"])], {}))
    first, second = verdict.detail.split("; ")
    assert first.startswith("error of the square: ")
    assert second == "sign: 2, where at most 0 is right"


def test_nan_breaks_a_claim():
    verdict = verdict_on(EITHER_ROOT, lambda given: ([result(given["x"] * torch.nan)], {}))
    assert verdict.kind == "value"


def test_claims_that_cannot_be_computed_are_broken():
    def raising(evidence):
        raise torch.linalg.LinAlgError("no decomposition of NaN")
        yield

    declared = replace(EITHER_ROOT, claims=raising)
    verdict = verdict_on(declared, lambda given: ([result(given["x"])], {}))
    assert "no decomposition of NaN" in verdict.detail


def test_claims_that_a_decoy_keeps_make_the_case_unrefereeable():
    lax = replace(EITHER_ROOT, claims=lambda evidence: [Claim("nothing", 0.0, 1.0)])
    expectation = expect(lax, case_of(lax), Policy())
    assert expectation.unrefereeable == "the claims let a decoy through: zeros"
    assert expect(EITHER_ROOT, case_of(EITHER_ROOT), Policy()).unrefereeable is None


def test_a_spared_decoy_need_not_break_a_claim():
    names = ("zeros", "constant", "copy of x", "gain")
    spared = Output(compare="claims", spared=names)
    lax = replace(EITHER_ROOT, claims=lambda e: [], outputs=(spared,))
    assert expect(lax, case_of(lax), Policy()).unrefereeable is None


RUNNING = declare(
    "f(x[M, N], mean[N], training=False)",
    lambda x, mean, training: (x + 1, (mean + x.mean(0)) / 2) if training else x + 1,
    attributes={"training": (True,)},
    outputs=(Output(), Output(name="mean", when="training")),
    mutates={"mean": "training"},
)


def halfway(given):
    return (given["mean"] + given["x"].mean(0)) / 2


def test_an_input_that_must_be_written_is_compared_where_it_lies():
    verdict = verdict_on(
        RUNNING,
        lambda given: ([result(given["x"] + 1)], {"mean": halfway(given)}),
        training=True,
    )
    assert verdict == Passed()


def test_an_input_that_must_be_written_and_is_not_is_wrong():
    verdict = verdict_on(RUNNING, lambda given: ([result(given["x"] + 1)], {}), training=True)
    assert (verdict.kind, verdict.output) == ("value", "mean")


def test_returning_it_in_addition_does_not_replace_writing_it():
    def answer(given):
        return [result(given["x"] + 1), result(halfway(given))], {}

    verdict = verdict_on(RUNNING, answer, training=True)
    assert (verdict.kind, verdict.output) == ("value", "mean")


def test_an_input_written_where_the_condition_does_not_hold_is_mutated():
    def answer(given):
        return [result(given["x"] + 1)], {"mean": halfway(given)}

    assert verdict_on(RUNNING, answer, training=False).kind == "input_mutated"


IN_PLACE = declare(
    "relu(x[M, N], inplace=False)",
    lambda x, inplace: x.relu(),
    attributes={"inplace": (True,)},
    may_overwrite={"x": "inplace"},
)


@pytest.mark.parametrize("writes", [True, False])
def test_an_input_that_may_be_overwritten_may_be_returned_or_not(writes):
    def answer(given):
        y = given["x"].relu()
        return ([result(y, "x")], {"x": y}) if writes else ([result(y)], {})

    assert verdict_on(IN_PLACE, answer, inplace=True) == Passed()


def test_it_may_not_be_overwritten_unasked():
    def answer(given):
        y = given["x"].relu()
        return [result(y, "x")], {"x": y}

    assert verdict_on(IN_PLACE, answer, inplace=False).kind == "input_mutated"


LEAST = declare(
    "least(x[M, N], dim=None)",
    lambda x, dim: x.min() if dim is None else tuple(x.min(dim)),
    attributes={"dim": (0,)},
    outputs=(Output(), Output(name="indices", dtype="int64", compare="exact", when="dim != None")),
)


def test_an_output_is_expected_only_when_its_condition_holds():
    one = verdict_on(LEAST, lambda given: ([result(given["x"].min())], {}))
    both = verdict_on(LEAST, lambda given: (list(map(result, given["x"].min(0))), {}), dim=0)
    short = verdict_on(LEAST, lambda given: ([result(given["x"].min(0)[0])], {}), dim=0)
    assert (one, both) == (Passed(), Passed())
    assert short.kind == "count"


SPECTRUM = declare("fft(x[M, N])", lambda x: torch.fft.fft(x), outputs=(Output(dtype="complex"),))


def test_a_complex_output_is_compared_by_its_parts():
    right = verdict_on(SPECTRUM, lambda given: ([result(torch.fft.fft(given["x"]))], {}))
    wrong = verdict_on(
        SPECTRUM, lambda given: ([result(torch.fft.fft(given["x"]).conj_physical())], {})
    )
    assert right == Passed()
    assert wrong.kind == "value"


def test_a_real_tensor_lacks_the_imaginary_parts_of_a_complex_one():
    verdict = verdict_on(SPECTRUM, lambda given: ([result(given["x"])], {}))
    assert verdict.kind == "value"


def test_something_else_than_a_tensor_is_of_the_wrong_type():
    verdict = verdict_on(SPECTRUM, lambda given: ([OtherResult(type="float", text="1.0")], {}))
    assert verdict.kind == "type"
