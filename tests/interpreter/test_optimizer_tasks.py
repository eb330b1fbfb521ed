"""What submissions of optimizers may look like, judged in a child as theirs are."""

import subprocess
import sys
import textwrap

import pytest

from kerneltruth.cases.layouts import place
from kerneltruth.documents.case import Case
from kerneltruth.documents.verdict import Failed
from kerneltruth.explain.reproducer.script import script
from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation_builder import ExpectationCache, expect
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.kernelbenchx.optimizer import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}

ADAM = """\
import torch


class Adam(torch.optim.Optimizer):
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                grad = p.grad + group["weight_decay"] * p
                state["t"] += 1
                state["m"] = state["m"].lerp(grad, 1 - first)
                state["v"] = state["v"].lerp(grad * grad, 1 - second)
                m = state["m"] / (1 - first ** state["t"])
                v = state["v"] / (1 - second ** state["t"])
                p -= group["lr"] * m / (v.sqrt() + group["eps"])
"""
FACTORY = """\
import torch


def Adam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0):
    return torch.optim.Adam(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
"""
WRONG = {
    "no correction of the first average": ADAM.replace("/ (1 - first ** state", "/ (1 + 0 * state"),
    "a correction as of the first step": ADAM.replace('second ** state["t"]', "second"),
    "a decay beside the gradient": FACTORY.replace("optim.Adam(", "optim.AdamW("),
    "one average for all parameters": ADAM.replace("self.state[p]", "self.state['all']"),
    "no steps": FACTORY.replace("torch.optim.Adam(params, ", "dict("),
    "the step does nothing": ADAM.replace("p -= ", "p - "),
}
SGD = """\
import torch


def sgd_step(param, grad, momentum_buffer=None, lr=0.1, momentum=0.9, weight_decay=0.0,
             dampening=0.0, nesterov=False):
    grad = grad + weight_decay * param
    if momentum == 0:
        return WITHOUT
    if momentum_buffer is None:
        momentum_buffer = torch.zeros_like(param)
    buffer = momentum * momentum_buffer + (1 - dampening) * grad
    return param - lr * (grad + momentum * buffer if nesterov else buffer), buffer
"""


def verdict(runner, name, source):
    task = TASKS[name]
    candidate = read_candidate(
        textwrap.dedent(source), "c.py", task_names=(task.entry,), task=task.entry
    )
    plan = Plan(cases=32, stop_at_first=True, compile=False)
    with CandidateSession(
        task, candidate, runner, ExpectationCache(Policy()), deadline_s=20
    ) as session:
        (ended,) = [e for e in judge_cases(session, plan) if isinstance(e, AttemptEnded)]
    return ended.attempt.verdict.word


@pytest.mark.slow
@pytest.mark.parametrize("source", [ADAM, FACTORY], ids=["class", "function"])
def test_an_optimizer_may_be_a_class_or_come_from_a_function(runner, source):
    assert verdict(runner, "Adam", source) == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("source", WRONG.values(), ids=list(WRONG))
def test_a_wrong_optimizer_is_found(runner, source):
    assert verdict(runner, "Adam", source) not in ("pass", "infra", "unrefereeable")


@pytest.mark.parametrize("without", ["param - lr * grad, None", "param - lr * grad"])
def test_a_buffer_that_is_not_expected_may_be_none_or_missing(runner, without):
    assert verdict(runner, "SGD", SGD.replace("WITHOUT", without)) == "pass"


def test_a_buffer_that_is_not_expected_is_not_returned(runner):
    source = SGD.replace("WITHOUT", "param - lr * grad, momentum_buffer")
    assert verdict(runner, "SGD", source) == "fail"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "answer"), [(FACTORY, "RIGHT"), (WRONG["the step does nothing"], "WRONG")]
)
def test_a_reproducer_takes_the_steps_too(tmp_path, source, answer):
    task = TASKS["Adam"]
    case = Case(
        task=task.key,
        dims=(("S", 2), ("M", 2), ("N", 3), ("K", 4)),
        attributes=(("lr", 0.1), ("betas", (0.5, 0.9)), ("eps", 0.1), ("weight_decay", 0.01)),
    )
    expectation = expect(task, case, Policy())
    candidate = read_candidate(source, "c.py", task_names=("Adam",), task="Adam")
    placed = {
        n: place(t, "contiguous", seed=1, guard_bytes=256)
        for n, t in expectation.inputs.tensors.items()
        if t is not None
    }
    failed = Failed(kind="value", detail="as a test")
    text = script(
        task=task, candidate=candidate, expectation=expectation, placed=placed, verdict=failed
    )
    path = tmp_path / "reproducer.py"
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.splitlines()[-1] == answer, done.stdout + done.stderr
