"""Expectations: results of a case, whether its bound rejects decoys, and what is kept of it."""

from dataclasses import replace

import pytest
import torch
from scripted import MATMUL, RELU, SUM, case_of, declare

from kerneltruth.cases.materialize import materialize
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation import tensors_digest
from kerneltruth.oracle.expectation_builder import ExpectationCache, expect, expect_on
from kerneltruth.oracle.right_results import LARGE
from kerneltruth.tasks.spec import Output


def expected(declared, **case):
    return expect(declared, case_of(declared, **case), Policy())


def test_the_reference_is_float64_and_its_rounding_has_the_dtype_of_the_case():
    (output,) = expected(RELU, dtype="bfloat16").outputs
    assert (output.reference.dtype, output.rounded.dtype) == (torch.float64, torch.bfloat16)
    assert torch.equal(output.rounded, output.reference.bfloat16())


def test_the_rounded_reference_is_within_the_bound():
    for dtype in ("float32", "float16", "bfloat16"):
        (output,) = expected(SUM, dtype=dtype, N=200).outputs
        assert not output.rejects(output.rounded)
        assert output.difference(output.rounded).stats.num_exceeding == 0


def test_an_error_far_beyond_the_spread_is_rejected():
    (output,) = expected(SUM, N=200).outputs
    wrong = output.rounded.clone()
    wrong[1] += 1
    assert output.rejects(wrong)
    assert output.difference(wrong).wrong.tolist() == [False, True, False]


def test_a_quick_look_rejects_what_a_close_look_rejects():
    (output,) = expected(SUM, N=200).outputs
    wrong = output.rounded * 2
    assert output.rejects_each([wrong, wrong + 1])
    assert not output.rejects_each([wrong, output.rounded])
    assert output.rejects_each([])


def test_an_output_that_is_no_float_is_not_rejected_by_a_quick_look():
    signs = declare("signs(x[M, N])", lambda x: x > 0, outputs=(Output(dtype="bool"),))
    (output,) = expected(signs).outputs
    assert not output.rejects_each([~output.rounded])
    assert output.rejects(~output.rounded)


def test_an_input_that_the_operator_refuses_makes_the_case_invalid():
    def refusing(x):
        raise ValueError("x is too plain\nsecond line")

    found = expected(declare("refusing(x[M, N])", refusing))
    assert found.invalid == "ValueError: x is too plain"
    assert found.outputs == ()


def test_a_bound_that_lets_a_decoy_through_makes_the_case_unrefereeable():
    noisy = declare("noisy(x[M, N])", lambda x: x, admissible=(lambda x: x * 3,))
    assert expected(noisy).unrefereeable == "the bound lets a decoy through: zeros"
    assert expected(RELU).unrefereeable is None


def test_a_decoy_that_is_right_does_not_speak_against_the_bound():
    zeros = declare("zeros(x[M, N])", lambda x: x * 0)
    assert expected(zeros).unrefereeable is None


def test_a_spared_decoy_is_not_tried():
    names = ("zeros", "constant", "copy of x", "gain")
    noisy = declare(
        "noisy(x[M, N])",
        lambda x: x,
        admissible=(lambda x: x * 3,),
        outputs=(Output(spared=names),),
    )
    assert expected(noisy).unrefereeable is None


def test_an_empty_case_has_nothing_to_judge_and_passes_the_decoys():
    found = expected(RELU, M=0)
    assert found.unrefereeable is None
    assert found.outputs[0].reference.shape == (0, 5)


def test_stored_inputs_are_judged_as_they_are():
    case = case_of(RELU)
    inputs = replace(materialize(RELU, case), tensors={"x": torch.full((3, 5), -1.0)})
    (output,) = expect_on(RELU, case, inputs, Policy()).outputs
    assert output.rounded.eq(0).all()


def test_expecting_leaves_gradients_as_they_were():
    expected(RELU)
    assert torch.is_grad_enabled()


def test_the_digest_is_of_the_rounded_outputs_whatever_their_strides():
    values = torch.arange(6.0).reshape(2, 3)
    strided = values.t().contiguous().t()
    assert tensors_digest((values,)) == tensors_digest((strided,))
    assert tensors_digest((values,)) != tensors_digest((values + 1,))


def test_a_case_is_expected_once():
    cache = ExpectationCache(Policy())
    case = case_of(RELU)
    assert cache.get(RELU, case) is cache.get(RELU, case)


def test_the_same_inputs_under_another_strategy_keep_their_own_case():
    cache = ExpectationCache(Policy())
    first = cache.get(RELU, case_of(RELU))
    other = cache.get(RELU, case_of(RELU, strategy="boundary"))
    assert other.case.strategy == "boundary"
    assert other.inputs is first.inputs


@pytest.mark.slow
@pytest.mark.parametrize("columns", [5, LARGE])
def test_partial_sums_that_overflow_settle_nothing_however_large_the_inputs(columns):
    declared = replace(MATMUL, foreign=True)
    case = case_of(declared, M=1, K=2, N=columns)
    inputs = materialize(declared, case)
    inputs.tensors["a"].fill_(1e30)
    inputs.tensors["b"].copy_(torch.tensor([[1e30], [-1e30]]).expand(2, columns))
    (output,) = expect_on(declared, case, inputs, Policy()).outputs
    assert output.reference.eq(0).all()
    assert not output.rejects(torch.full_like(output.rounded, float("nan")))


def test_the_digest_of_a_single_element_does_not_depend_on_its_stride():
    strided = torch.tensor([[3 + 1j]], dtype=torch.complex64).real
    assert tensors_digest((strided,)) == tensors_digest((torch.tensor([[3.0]]),))


@pytest.mark.parametrize(
    ("strayed", "why"), [(0.01, None), (0.5, "the bound lets a decoy through: zeros")]
)
def test_a_bound_of_a_few_right_results_that_zeros_are_within_judges_nothing(strayed, why):
    def with_spread(given, **_):
        truth = torch.full((3, 5), 2.0, dtype=torch.float64)
        return (truth,), (torch.full_like(truth, 2 * strayed),)

    assert expected(replace(RELU, with_spread=with_spread)).unrefereeable == why
