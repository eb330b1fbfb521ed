"""What a contract makes of a task, with the sentences of its prompt."""

import pytest

from kerneltruth.oracle.contract import CONTRACTS
from kerneltruth.suites.terms import contract_of
from kerneltruth.tasks.registry import TASKS


def shown(key, contract="core"):
    return contract_of(TASKS[key], CONTRACTS[contract]).obligations


def test_a_promise_is_shown_with_the_sentence_that_makes_it():
    attributes = shown("kernelbenchx/gelu_fp16")["attributes"]
    assert attributes.decisive
    assert [p.promise for p in attributes.promises] == ["approximate"]
    assert "support for approximate='tanh'" in attributes.promises[0].sentence


def test_what_no_sentence_promises_decides_under_torch_alone():
    key = "kernelbenchx/fused_hstack_div"
    assert not shown(key)["dtypes.float16"].decisive
    assert shown(key)["dtypes.float16"].reason == "no sentence of the prompt promises it"
    assert shown(key, "torch")["dtypes.float16"].decisive


def test_a_promised_gradient_decides_by_its_sentence():
    gradients = shown("kernelbenchx/fused_hstack_div")["gradients"]
    assert gradients.decisive
    assert "autograd" in gradients.promises[0].sentence


@pytest.mark.parametrize("name", ["shapes", "values"])
def test_sizes_and_values_decide_by_the_projects_choice(name):
    obligation = shown("kernelbenchx/relu")[name]
    assert obligation.decisive
    assert obligation.reason is not None
    assert "this project's choice" in obligation.reason


def test_a_task_of_our_own_promises_what_its_declaration_says():
    promises = shown("softmax")["dtypes.float16"].promises
    assert [p.sentence for p in promises] == [
        "Data types that must be served: float32, float16, bfloat16."
    ]
