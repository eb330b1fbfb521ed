"""Every promise of every task is tried, in the default number of cases."""

import pytest

from kerneltruth.cases.promised import Promise, promises_of, untried
from kerneltruth.cases.strategies import enough_cases, generate
from kerneltruth.commands.run import CASES
from kerneltruth.tasks.registry import TASKS

# What `run` judges at most of one candidate: more would cost its throughput.
MOST = 40


@pytest.mark.parametrize("key", TASKS)
def test_every_promise_is_tried(key):
    task = TASKS[key]
    count = enough_cases(task, least=CASES, seed=0, device="cuda")
    cases = list(generate(task, seed=0, count=count, device="cuda"))
    assert promises_of(task)
    assert [str(promise) for promise in untried(task, cases)] == []
    assert count <= MOST


def test_a_promise_is_listed_with_the_cases_that_try_it():
    task = TASKS["kernelbenchx/conv2d"]
    cases = list(generate(task, seed=0, count=40))
    tried = {str(p): [c.summary() for c in cases if p.tried_by(c)] for p in promises_of(task)}
    assert tried["dtype float32"]
    assert tried["bias=None in float32"]
    assert tried["stride=2"]
    assert all("float32" in case for each in tried.values() for case in each)


def test_what_no_prompt_promises_is_tried_but_may_be_refused():
    task = TASKS["kernelbenchx/conv2d"]
    half = [c for c in generate(task, seed=0, count=40) if c.dtype == "float16"]
    assert half
    assert {c.domain for c in half} == {"extended"}
    assert not any(Promise(kind="dtype", name="float16").tried_by(c) for c in half)


def test_a_name_that_says_a_dtype_promises_it():
    assert TASKS["kernelbenchx/matmul_fp16"].promised_dtypes == ("float16",)
    assert TASKS["kernelbenchx/gelu_int8"].promised_dtypes == ("int8",)
    assert TASKS["softmax"].promised_dtypes == ("float32", "float16", "bfloat16")


@pytest.mark.parametrize("name", ["bitwise_and", "fused_mul_sub", "fused_sub_gelu", "zeta"])
def test_broadcasting_that_no_prompt_names_may_be_refused(name):
    task = TASKS[f"kernelbenchx/{name}"]
    forms = {"row", "column", "single", "outer", "deep"}
    tried = [c for c in generate(task, seed=0, count=40) if forms & {*c.settings.values()}]
    assert tried
    assert {c.domain for c in tried} == {"extended"}
