"""Worked kernels in a prompt: of other operators, and none that gives the answer away."""

import re

import pytest

from kerneltruth.corpus import ENTRIES
from kerneltruth.corpus.entry import source
from kerneltruth.errors import UserError
from kerneltruth.generate.assignments import briefs_of
from kerneltruth.generate.prompts import load_prompts
from kerneltruth.generate.requests import TaskSelection
from kerneltruth.generate.shots import shots_of
from kerneltruth.tasks.registry import find, tasks_of

PROMPTS = load_prompts()


def shot_titles(name, count, text=""):
    said = shots_of(find(name), count, PROMPTS, text=text)
    return re.findall(r"^### (\w+)$", said, re.M)


def test_each_kernel_is_of_another_category():
    assert shot_titles("kernelbenchx/Adam", 4) == ["softmax", "rms_norm", "matmul", "attention"]


def test_the_kernels_are_the_corpuss_controls():
    said = shots_of(find("kernelbenchx/Adam"), 2, PROMPTS, text="")
    (control,) = (entry for entry in ENTRIES if entry.name == "softmax")
    code = re.findall(r"```python\n(.*?)```", said, re.S)
    assert code[0].strip() == "def softmax(input, dim=-1):"
    assert code[1].split() == source(control).split()


@pytest.mark.parametrize("suite", ["core", "kernelbenchx", "tritonbench"])
def test_no_operator_of_the_tasks_own_category_or_name_is_shown(suite):
    for task in tasks_of(suite).values():
        for name in shot_titles(task.key, 20):
            example = find(name)
            assert example.category != task.category, (task.key, name)
            assert not {*name.split("_")} & {*task.name.split("_")}, (task.key, name)


def test_an_operator_that_the_tasks_text_names_is_not_shown():
    task = "kernelbenchx/Adam"
    assert "softmax" in shot_titles(task, 6)
    assert "softmax" not in shot_titles(task, 6, "return torch.nn.functional.softmax(x)")
    assert "rms_norm" in shot_titles(task, 6)
    for text in ("y = RMSNorm(64)(x)", "y = rmsnorm(x)", "divide by the rms"):
        assert "rms_norm" not in shot_titles(task, 6, text)
    assert "rms_norm" not in shot_titles("kernelbenchx/fused_bmm_rmsnorm_gelu_dropout", 6)


def test_more_kernels_than_there_are_is_a_mistake():
    with pytest.raises(UserError, match=r"--shots 60: for kernelbenchx/relu there are \d+ kernels"):
        shot_titles("kernelbenchx/relu", 60)


def test_a_brief_has_them_where_they_are_asked_for():
    key = "kernelbenchx/relu"
    without = briefs_of([key], TaskSelection(), PROMPTS)[key]
    brief = briefs_of([key], TaskSelection(shots=1), PROMPTS)[key]
    assert "## Kernels for other operators" not in without
    before, _, rest = brief.partition("## Kernels for other operators")
    assert without.startswith(before.strip())
    assert "### rms_norm" in rest.partition("## What to hand in")[0]
