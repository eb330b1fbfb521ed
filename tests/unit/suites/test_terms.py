"""What a contract makes of a task, with the sentences of its prompt."""

import pytest

from kerneltruth.errors import DeclarationError
from kerneltruth.suites.catalog import terms_of
from kerneltruth.suites.terms import Terms, contract_of
from kerneltruth.tasks.registry import TASKS


def obligations_of(key, contract="core", terms=None):
    terms = terms or terms_of(TASKS[key].suite)
    return contract_of(TASKS[key], contract, terms).obligations


def test_a_promise_is_shown_with_the_sentence_that_makes_it():
    attributes = obligations_of("kernelbenchx/gelu_fp16")["attributes"]
    assert attributes.decisive
    assert [p.promise for p in attributes.promises] == ["approximate"]
    assert "support for approximate='tanh'" in attributes.promises[0].sentence


def test_an_argument_that_follows_from_a_form_has_a_sentence_of_its_own():
    found = obligations_of("tritonbench/tensordot")
    (lists,), (stretched,) = found["attributes"].promises, found["shapes"].promises
    assert (lists.promise, stretched.promise) == ("dims", "dims")
    assert "explicit lists of dimensions" in lists.sentence
    assert "broadcasted" in stretched.sentence


def test_what_no_sentence_promises_decides_under_torch_alone():
    key = "kernelbenchx/fused_hstack_div"
    assert not obligations_of(key)["dtypes.float16"].decisive
    assert obligations_of(key)["dtypes.float16"].reason == "no sentence of the prompt promises it"
    assert obligations_of(key, "torch")["dtypes.float16"].decisive


def test_a_promised_gradient_decides_by_its_sentence():
    gradients = obligations_of("kernelbenchx/fused_hstack_div")["gradients"]
    assert gradients.decisive
    assert "autograd" in gradients.promises[0].sentence


@pytest.mark.parametrize("name", ["shapes", "values"])
def test_sizes_and_values_decide_by_the_projects_choice(name):
    obligation = obligations_of("kernelbenchx/relu")[name]
    assert obligation.decisive
    assert obligation.reason is not None
    assert "this project's choice" in obligation.reason


def test_a_task_of_our_own_promises_what_its_declaration_says():
    promises = obligations_of("softmax")["dtypes.float16"].promises
    assert [p.sentence for p in promises] == [
        "Data types that must be served: float32, float16, bfloat16."
    ]


def test_what_a_benchmark_demands_decides_in_its_words_except_under_torch():
    rule = "rule 3 of the contest"
    terms = Terms(demands={"kernel": rule, "layouts": rule})
    for contract in ("published", "core"):
        found = obligations_of("relu", contract, terms)
        assert found["kernel"].decisive
        assert found["layouts"].decisive
        assert found["layouts"].reason == rule
    assert not obligations_of("relu", "torch", terms)["kernel"].decisive


def test_what_a_task_does_not_have_is_not_demanded_of_it():
    integers = next(t for t in TASKS.values() if t.key == "kernelbenchx/bitwise_and")
    found = contract_of(integers, "core", Terms(demands={"gradients": "a rule"})).obligations
    assert "gradients" not in found


def test_an_unknown_obligation_is_no_demand():
    with pytest.raises(DeclarationError, match="'speed' is no obligation; demand one of published"):
        Terms(demands={"speed": "a rule"})


def test_each_suite_says_where_its_own_check_is_stated():
    text = terms_of("kernelbenchx").text("published")
    assert "need not launch a kernel" in text.asks
    assert "impl_must_export_kernel" in text.source
    assert terms_of("core") == Terms()
