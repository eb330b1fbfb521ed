"""Large references answer from a child where candidates are judged; here that is a CPU, too."""

import json
from collections import defaultdict
from dataclasses import replace

import pytest
import torch

from kerneltruth.cases.materialize import materialize
from kerneltruth.cases.strategies import generate
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.documents.case import SIZES
from kerneltruth.documents.verdict import Failed
from kerneltruth.engine.proof import prove
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import ExpectationCache, expect, expect_timed
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.observation import Observation
from kerneltruth.suites.kernelbench.inside.stray import Stray
from kerneltruth.suites.kernelbench.suite import KernelBench

from .problems import LINEAR, problem
from .test_judging import attempt_of, schemas
from .test_own_terms import new

pytestmark = pytest.mark.processes

__all__ = ["schemas"]

# 1.3 million elements in and out.
LARGE = LINEAR.replace("rows = 64 * 4", "rows = 2**11")
SMALL_ROOM, ROOM = 2**20, 2**22
FILE = "rows=2048 features=512 outputs=128"


class Counting:
    """Another runner, as far as anyone can see, that says how many sessions it opened."""

    def __init__(self, runner):
        self._runner = runner
        self.opened = 0

    def __getattr__(self, name):
        return getattr(self._runner, name)

    def open(self, *args, **kwargs):
        self.opened += 1
        return self._runner.open(*args, **kwargs)


@pytest.fixture
def device(runner):
    return Counting(runner)


@pytest.fixture
def suite_and_task(runner, schemas, device):
    def make(source, *, room=ROOM, on_device=device):
        suite = KernelBench(
            {"level1/1": problem(source)}, runner, schemas, on_device=on_device, room=room
        )
        return suite, suite.task("level1/1")

    return make


def first_of(task):
    return next(generate(task, seed=1, count=1))


def test_the_first_case_is_the_files_own_where_there_is_room(suite_and_task):
    _, task = suite_and_task(LARGE)
    assert first_of(task).settings[SIZES] == FILE


def test_with_less_room_it_is_the_most_of_it_that_is_known(suite_and_task):
    _, huge = suite_and_task(LINEAR.replace("rows = 64 * 4", "rows = 2**22"), room=2**27)
    cut = "rows=65536 features=512 outputs=128, cut down from rows=4194304"
    assert first_of(huge).settings[SIZES] == cut
    _, task = suite_and_task(LARGE, room=SMALL_ROOM)
    assert first_of(task).settings[SIZES] == FILE


@pytest.mark.slow
def test_a_bound_from_the_device_is_that_of_evaluations_one_by_one(suite_and_task, device):
    before = device.opened
    _, task = suite_and_task(LARGE)
    there = expect(task, first_of(task), Policy()).outputs[0]
    assert device.opened == before + 1
    _, task = suite_and_task(LARGE, on_device=None)
    here = expect(task, first_of(task), Policy()).outputs[0]
    assert device.opened == before + 1
    assert torch.allclose(there.reference, here.reference, rtol=1e-12)
    assert torch.allclose(there.bound, here.bound, rtol=1e-5)
    assert float(there.bound.max()) < 0.1


def test_small_cases_do_not_run_on_the_device(suite_and_task, device):
    _, task = suite_and_task(LARGE)
    _, *others = generate(task, seed=1, count=4)
    before = device.opened
    for case in others:
        assert expect(task, case, Policy()).invalid is None
    assert device.opened == before


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_also_uses_the_devices_results(suite_and_task, runner, device, dtype):
    """Its libraries round at other places of every layer than those of a CPU."""
    _, there = suite_and_task(LINEAR)
    _, here = suite_and_task(LINEAR, on_device=None)
    case = next(generate(replace(there, first={}), seed=1, count=1, dtypes=(dtype,)))
    before = device.opened
    beside, alone = (expect(task, case, Policy()).outputs[0].bound for task in (there, here))
    assert device.opened == before + 1
    assert (beside >= alone).all()


@pytest.mark.slow
def test_a_model_is_judged_with_references_from_the_device(suite_and_task, runner):
    suite, task = suite_and_task(LARGE)
    attempt = attempt_of(runner, task, suite.own_function("level1/1"), 1)
    assert attempt.profile["published"].status == "held", attempt
    wrong = new(LARGE, ("self.layer(x))", "self.layer(x)) * 1.05"))
    assert isinstance(attempt_of(runner, task, wrong, 1).verdict, Failed)


class Watched(ExpectationCache):
    """Keeps the cases that were asked for, by dtype."""

    def __init__(self, policy):
        super().__init__(policy)
        self.cases = defaultdict(list)

    def get(self, task, case):
        if case not in self.cases[case.dtype]:
            self.cases[case.dtype].append(case)
        return super().get(task, case)


@pytest.mark.slow
def test_an_audit_tries_the_files_own_sizes_in_its_own_dtype(suite_and_task, runner):
    """In the others, too, they would take most of an audit's time."""
    suite, task = suite_and_task(LARGE)
    cache = Watched(Policy())
    prove(task, suite.own_function("level1/1"), runner, cache, plan=Plan(cases=2))
    own = {d: [c.settings[SIZES] == FILE for c in cases] for d, cases in cache.cases.items()}
    assert {d: whether[:2] for d, whether in own.items()} == {
        "float32": [True, False],
        "float16": [False, False],
        "bfloat16": [False, False],
    }
    assert sum(map(sum, own.values())) == 1


def test_expected_results_of_timed_calls_come_from_the_device_too(suite_and_task, device):
    _, task = suite_and_task(LARGE)
    case = timed_cases(task)[-1]
    before = device.opened
    (output,) = expect_timed(task, case, materialize(task, case)).outputs
    assert device.opened == before + 1
    assert output.shape == (2048, 128)
    assert not output.rejects(output.rounded)
    assert output.rejects(output.rounded * 1.05)


IN_CHILD = Observation(ended="raised", error="OutOfMemoryError", message="CUDA out of memory.")
IN_KEEPER = Observation(ended="lost", message="cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY")


class WithoutMemory(Counting):
    """A device without memory, as a child or the judge's keeper says; keeps the requests."""

    def __init__(self, runner, said=IN_CHILD):
        super().__init__(runner)
        self.said = said
        self.requests = []

    def open(self, *args, **kwargs):
        return self

    def call(self, arguments, **how):
        self.requests.append(json.loads(arguments[0].value)["what"])
        return self.said

    def close(self, *, wait=True):
        pass


@pytest.mark.parametrize("said", [IN_CHILD, IN_KEEPER])
def test_a_device_without_memory_is_tried_twice_and_then_the_cpu(suite_and_task, runner, said):
    full = WithoutMemory(runner, said)
    _, task = suite_and_task(LARGE, on_device=full)
    expectation = expect(task, first_of(task), Policy())
    assert expectation.invalid is None
    assert full.requests == ["with_spread", "with_spread"]


@pytest.mark.slow
def test_what_no_cpu_can_do_is_refused_with_both_reasons(suite_and_task, runner):
    many = LARGE.replace("self.layer(x)", "sum(self.layer(x) for _ in range(600))")
    _, task = suite_and_task(many, on_device=WithoutMemory(runner))
    said = expect(task, first_of(task), Policy()).invalid
    assert "out of memory" in said
    assert "too many operations for float64 on a CPU" in said


def test_a_spread_is_the_largest_deviation_and_not_a_number_where_classes_differ():
    inf = float("inf")
    stray = Stray(torch.tensor([1.0, 2.0, 3.0, inf, 5.0], dtype=torch.float64))
    stray.add(torch.tensor([1.5, 2.0, inf, inf, inf]), None, settles=False)
    stray.add(torch.tensor([0.75, 2.25, 3.0, inf, 5.0]), None, settles=True)
    assert stray.spread().tolist() == [0.5, 0.25, 0, 0, 0]
    stray.add(torch.tensor([1.0, 2.0, inf, 1.0, 5.0]), "float16", settles=True)
    assert stray.spread()[:2].tolist() == [0.5, 0.25]
    assert stray.spread().isnan().tolist() == [False, False, True, True, False]
    stray.add(torch.tensor([1.0, 2.0, 3.0, inf, 5.0]), None, settles=True)
    assert stray.spread().isnan().tolist() == [False, False, True, True, False]


def test_what_overflows_in_the_promised_dtype_is_settled_where_it_is_infinite():
    stray = Stray(torch.tensor([1e6, 1e6, 1e6], dtype=torch.float64))
    stray.add(torch.tensor([float("inf"), 1e6, float("nan")]), "float16", settles=True)
    assert stray.spread().isnan().tolist() == [False, False, True]


def test_the_spread_of_integers_is_how_far_they_are_moved():
    stray = Stray(torch.tensor([3, 4]))
    stray.add(torch.tensor([3, 7]), "int64", settles=True)
    assert stray.spread().tolist() == [0, 3]
