"""Which tasks a generation asks for, and what a prompt may show of them."""

import json
from dataclasses import replace

import pytest

from kerneltruth.errors import UserError
from kerneltruth.generate.assignments import (
    briefs_of,
    keys_for,
    reference_source,
    tasks_chosen,
)
from kerneltruth.generate.prompts import load_prompts
from kerneltruth.generate.recording import read_recording
from kerneltruth.generate.requests import TaskSelection
from kerneltruth.suites.catalog import opened
from kerneltruth.tasks.registry import find


def test_tasks_are_chosen_by_name_and_category():
    chosen = tasks_chosen(
        "core", TaskSelection(tasks=("relu", "softmax"), categories=("Activation",))
    )
    assert "relu" in [task.name for task in chosen]


@pytest.mark.parametrize(
    ("asking", "says"),
    [
        (TaskSelection(categories=("Cooking",)), "--category 'Cooking': must be one of Activation"),
        (
            TaskSelection(tasks=("relu",), categories=("Reduce",)),
            "no task of core is left with these --task and --category; drop one of them",
        ),
    ],
)
def test_a_choice_without_tasks_names_the_rule(asking, says):
    with pytest.raises(UserError, match=says):
        tasks_chosen("core", asking)


def test_a_recording_of_other_tasks_is_refused(tmp_path):
    path = tmp_path / "replies.jsonl"
    path.write_text(json.dumps({"task": "no_task_of_core", "text": "x"}))
    with pytest.raises(UserError, match="no task of core has a recorded reply; name another"):
        keys_for("core", TaskSelection(), read_recording(path))


def test_the_reference_that_a_prompt_shows_is_plain_pytorch():
    assert "F.relu(" in reference_source(find("relu"))


@pytest.mark.slow
def test_a_task_that_its_reference_alone_states_needs_it_in_the_prompt(tmp_path):
    problem = tmp_path / "level1" / "1_relu.py"
    problem.parent.mkdir()
    problem.write_text(
        "import torch\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.relu(x)\n"
        "def get_inputs():\n"
        "    return [torch.rand(4, 4)]\n"
        "def get_init_inputs():\n"
        "    return []\n"
    )
    with opened(f"kernelbench:{tmp_path}") as suite:
        (key,) = keys_for(suite or "kernelbench", TaskSelection(), None)
        with pytest.raises(UserError) as caught:
            briefs_of([key], TaskSelection(), load_prompts())
    assert str(caught.value) == (
        f"{key}: only its reference says what it computes; pass --show-reference"
    )


def test_a_reference_without_source_is_not_shown():
    task = replace(find("relu"), name="own", suite="tritonbench", reference=len)
    with pytest.raises(UserError, match="--show-reference: tritonbench/own: its reference has no"):
        reference_source(task)
