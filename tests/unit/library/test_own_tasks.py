"""Own tasks through the library: a reference, a file of declarations, and their mistakes."""

import pytest

import kerneltruth as kt

pytestmark = pytest.mark.processes

REFERENCE = """
import torch

def doubled(x):
    return x * {factor}

def inputs():
    return (torch.randn(8, 16),)
"""
KERNEL = "def mine(x):\n    return x + x\n"
FEW = {"cases": 8, "seed": 3}


@pytest.fixture(scope="module")
def judge():
    with kt.Judge(device="cpu", workers=1) as made:
        yield made


@pytest.fixture
def reference(tmp_path):
    path = tmp_path / "reference.py"
    path.write_text(REFERENCE.format(factor=2))
    return path


def test_a_reference_is_the_task(judge, reference):
    report = judge.check(KERNEL, reference=reference, **FEW)

    assert (report.passed, report.task) == (True, "reference/doubled")


def test_a_reference_that_was_edited_is_read_again(judge, reference):
    assert judge.check(KERNEL, reference=reference, **FEW).passed
    reference.write_text(REFERENCE.format(factor=3.5))

    assert judge.check(KERNEL, reference=reference, **FEW).kind == "value"
    assert judge.check("def relu(x): return x.clamp(min=0)", task="relu", **FEW).passed


def test_a_relative_reference_is_found_after_the_caller_has_moved(judge, reference, monkeypatch):
    monkeypatch.chdir(reference.parent)

    assert judge.check(KERNEL, reference="reference.py", **FEW).passed


def test_a_text_without_a_function_has_a_verdict(judge, reference):
    report = judge.check("x = 1\n", reference=reference, **FEW)

    assert (report.verdict, report.task) == ("compile_error", "reference/doubled")


def test_a_text_whose_task_nobody_says_is_the_users_mistake_alone_and_a_verdict_among_many(judge):
    with pytest.raises(kt.UserError, match="no function is named after a task"):
        judge.check("x = 1\n")
    (report,) = judge.check_many(["x = 1\n"])
    assert (report.verdict, report.task) == ("compile_error", "")


def test_two_suites_are_the_users_mistake(judge, reference):
    with pytest.raises(kt.UserError, match="suite and reference: each is a suite"):
        judge.check(KERNEL, suite="core", reference=reference)


def test_a_reference_that_is_not_there_is_the_users_mistake(judge):
    with pytest.raises(kt.UserError, match=r"nope\.py: No such file or directory"):
        judge.check(KERNEL, reference="nope.py")
