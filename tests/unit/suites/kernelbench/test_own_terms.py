"""A problem is judged as KernelBench runs it: its mode, its inputs, its sizes."""

import pytest
import torch

from kerneltruth.cases.materialize import materialize
from kerneltruth.cases.recipes import OWN
from kerneltruth.cases.strategies import generate
from kerneltruth.documents.case import SIZES
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import expect
from kerneltruth.suites.kernelbench.arguments import MODE
from kerneltruth.suites.kernelbench.reference import UPDATED

from .problems import DROPPED, LINEAR, NORMALIZED, PACKED, ROTARY, function
from .test_judging import attempt_of, candidate, schemas, suite_and_task

pytestmark = pytest.mark.processes

__all__ = ["schemas", "suite_and_task"]


def new(source, *changes):
    for before, after in changes:
        assert before in source
        source = source.replace(before, after)
    return candidate(source.replace("class Model(", "class ModelNew("))


BY_BATCH = (
    "self.norm(x)",
    "(x - x.mean(0)) * (x.var(0, unbiased=False) + 1e-5).rsqrt() * self.norm.weight "
    "+ self.norm.bias",
)


@pytest.mark.slow
def test_a_model_with_batch_normalization_passes_in_all_its_modes(runner, suite_and_task):
    suite, task = suite_and_task(NORMALIZED)
    assert task.beyond({MODE: "training"}) is None
    for mode in ("evaluation", UPDATED):
        assert task.beyond({MODE: mode}) == "KernelBench does not ask for it"
    attempt = attempt_of(runner, task, suite.own_function("level1/1"), 24)
    assert isinstance(attempt.verdict, Passed), attempt.failure
    assert attempt.declined == ()


@pytest.mark.slow
def test_what_takes_statistics_of_the_batch_and_keeps_none_passes_though_other_modes_break(
    runner, suite_and_task
):
    _, task = suite_and_task(NORMALIZED)
    attempt = attempt_of(runner, task, new(NORMALIZED, BY_BATCH), 48)
    assert isinstance(attempt.verdict, Passed), attempt.failure
    entry = attempt.profile["attributes.beyond"]
    assert (entry.status, entry.decisive) == ("broken", False)


@pytest.mark.slow
def test_a_mode_that_kernelbench_does_not_ask_for_may_be_refused(runner, suite_and_task):
    _, task = suite_and_task(NORMALIZED)
    loud = (BY_BATCH[0], f"{BY_BATCH[1]} if self.training else self.not_written")
    attempt = attempt_of(runner, task, new(NORMALIZED, loud), 48)
    assert isinstance(attempt.verdict, Passed), attempt.failure
    assert {case.settings[MODE] for case, _ in attempt.declined} == {"evaluation"}
    assert all("does not ask for it" in reason for _, reason in attempt.declined)


@pytest.mark.slow
def test_it_needs_no_place_for_running_statistics(runner, suite_and_task):
    _, task = suite_and_task(NORMALIZED)
    keeps = "self.norm = nn.BatchNorm1d(channels)"
    own = "self.norm = nn.BatchNorm1d(channels, track_running_stats=False)"
    attempt = attempt_of(runner, task, new(NORMALIZED, (keeps, own)), 8)
    assert isinstance(attempt.verdict, Passed), attempt.verdict


def test_what_uses_running_statistics_is_wrong_as_kernelbench_runs_it(runner, suite_and_task):
    _, task = suite_and_task(NORMALIZED)
    by_running = (
        "self.norm(x)",
        "nn.functional.batch_norm(x, self.norm.running_mean, self.norm.running_var, "
        "self.norm.weight, self.norm.bias, False)",
    )
    attempt = attempt_of(runner, task, new(NORMALIZED, by_running))
    assert isinstance(attempt.verdict, Failed)
    assert attempt.failure.case.settings[MODE] == "training"


def test_a_problem_whose_modes_agree_has_none(suite_and_task):
    _, task = suite_and_task(LINEAR)
    assert task.further == {}


BY_HAND = "self.layer(x) * (torch.rand_like(self.layer(x)) > 0.2) / 0.8"


@pytest.mark.slow
def test_a_random_problem_is_judged_by_what_its_model_draws(runner, suite_and_task):
    _, task = suite_and_task(DROPPED)
    assert task.unrefereeable is None
    right = new(DROPPED, ("self.dropout(self.layer(x))", BY_HAND))
    attempt = attempt_of(runner, task, right, 8)
    assert isinstance(attempt.verdict, Passed), attempt.failure


@pytest.mark.slow
def test_a_random_result_that_no_run_gives_is_wrong(runner, suite_and_task):
    _, task = suite_and_task(DROPPED)
    wrong = {
        "never dropped": "self.layer(x)",
        "too often": "nn.functional.dropout(self.layer(x), 0.5)",
        "not scaled": BY_HAND.removesuffix(" / 0.8"),
        "rows alike": BY_HAND.replace("rand_like(self.layer(x))", "rand_like(self.layer(x)[:1])"),
        "another layer": "self.dropout(self.layer(x * 1.2))",
    }
    passed = [
        name
        for name, instead in wrong.items()
        if not is_failed(
            attempt_of(runner, task, new(DROPPED, ("self.dropout(self.layer(x))", instead)), 2)
        )
    ]
    assert passed == []


def is_failed(attempt):
    return isinstance(attempt.verdict, Failed)


RANDOM = function("return a0 + torch.rand_like(a0)", "torch.rand(n, m)")


@pytest.mark.slow
def test_a_problem_that_is_random_in_both_modes(runner, suite_and_task):
    suite, task = suite_and_task(RANDOM)
    attempt = attempt_of(runner, task, suite.own_function("level1/1"), 4)
    assert isinstance(attempt.verdict, Passed), attempt.failure
    wrong = new(RANDOM, ("torch.rand_like(a0)", "torch.randn_like(a0)"))
    assert isinstance(attempt_of(runner, task, wrong).verdict, Failed)


def test_the_files_own_inputs_come_first(suite_and_task):
    _, task = suite_and_task(LINEAR.replace("rows = 64 * 4", "rows = 64"))
    first, *others = generate(task, seed=1, count=12)
    assert first.recipe == OWN
    assert first.domain == "core"
    assert first.settings[SIZES] == "rows=64 features=512 outputs=128"
    assert all(case.settings[SIZES] != first.settings[SIZES] for case in others)
    inputs = materialize(task, first).tensors
    assert inputs["x"].shape == (64, 512)
    assert float(inputs["x"].min()) >= 0
    assert float(inputs["x"].max()) < 1
    # As the constructor of a linear layer draws them.
    assert float(inputs["weights.layer.weight"].abs().max()) <= 512**-0.5
    again = materialize(task, first).tensors
    assert all(torch.equal(inputs[n], again[n]) for n in inputs)


def test_a_file_too_large_for_a_cpu_is_cut_down_and_the_case_says_so(suite_and_task):
    _, task = suite_and_task(LINEAR.replace("rows = 64 * 4", "rows = 2**20"))
    first = next(generate(task, seed=1, count=1))
    assert first.settings[SIZES] == (
        "rows=128 features=256 outputs=128, cut down from rows=1048576 features=512"
    )


def test_bounds_of_random_integers_and_numbers_of_levels_are_no_sizes(suite_and_task):
    _, task = suite_and_task(PACKED)
    for case in generate(task, seed=1, count=24):
        inputs = materialize(task, case)
        assert inputs.tensors["packed"].dtype == torch.uint8
        assert inputs.scalars["get_init_inputs()"] == "[256]"
    found = [materialize(task, case).tensors["packed"] for case in generate(task, seed=1, count=9)]
    assert max(int(t.max()) for t in found) == 255


def test_an_unpacking_that_drops_the_top_bit_fails(runner, suite_and_task):
    suite, task = suite_and_task(PACKED)
    assert isinstance(attempt_of(runner, task, suite.own_function("level1/1")).verdict, Passed)
    wrong = new(PACKED, ("(packed >> 4) & 15", "(packed >> 4) & 7"))
    assert isinstance(attempt_of(runner, task, wrong).verdict, Failed)


def test_sizes_at_which_the_reference_broadcasts_by_accident_are_not_tried(suite_and_task):
    _, task = suite_and_task(ROTARY)
    for case in generate(task, seed=1, count=40):
        rows, dim = materialize(task, case).tensors["x"].shape
        assert dim % 2 == 0
        assert rows >= 1


OF_LAYOUT = function("return a0 * (1.0 if a0.is_contiguous() else 1.05)", "torch.rand(n, m)")


def test_in_half_precision_pytorch_itself_may_differ_with_the_strides_of_its_inputs(suite_and_task):
    _, task = suite_and_task(OF_LAYOUT)
    for dtype, wide in (("float32", False), ("float16", True)):
        cases = generate(task, seed=1, count=12, dtypes=(dtype,))
        made_of = (expect(task, case, Policy()) for case in cases)
        shown = next(e for e in made_of if min(e.outputs[0].shape) > 1)
        (output,) = shown.outputs
        assert output.rejects(output.rounded * 1.05) is not wide


MANY = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(features, features) for _ in range(40))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x

features = 8

def get_inputs():
    return [torch.randn(4, features)]

def get_init_inputs():
    return [features]
"""


@pytest.mark.slow
def test_a_model_of_many_weights_is_judged_on_its_own_ones(runner, suite_and_task):
    suite, task = suite_and_task(MANY)
    attempt = attempt_of(runner, task, suite.own_function("level1/1"), 2)
    assert isinstance(attempt.verdict, Passed), attempt.failure
