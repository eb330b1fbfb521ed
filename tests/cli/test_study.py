"""The small study: its recorded answers are those that its scripts write, and its commands work."""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

STUDY = Path(__file__).resolve().parents[2] / "examples" / "study"


@pytest.fixture(scope="module")
def study():
    """The modules of the study, by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(STUDY))
        found = {}
        for name in ("faults", "plan", "record"):
            spec = importlib.util.spec_from_file_location(name, STUDY / f"{name}.py")
            found[name] = importlib.util.module_from_spec(spec)
            patch.setitem(sys.modules, name, found[name])
            spec.loader.exec_module(found[name])
        yield found


def test_the_recorded_answers_are_those_that_the_script_writes(study):
    for method in study["record"].METHODS:
        recorded = (STUDY / "replies" / f"{method}.jsonl").read_text(encoding="utf-8")
        assert recorded == study["record"].lines_of(method)


def test_every_fault_is_an_edit_of_its_kernel(study):
    for task, faults in study["faults"].FAULTS.items():
        right = study["record"].faulty(task, "right")
        sources = {name: study["record"].faulty(task, name) for name in faults}
        assert right not in sources.values()
        assert len(set(sources.values())) == len(sources), task


def test_it_has_three_methods_twenty_tasks_and_eight_categories(study):
    from kerneltruth.tasks.registry import find

    tasks = [find(name, "kernelbenchx") for name in study["plan"].PLAN]
    assert len(study["record"].METHODS) == 3
    assert len(tasks) >= 20
    assert len({task.category for task in tasks}) >= 8


def test_it_has_answers_that_are_no_kernels(study):
    kinds = {v for one, more, chain in study["plan"].PLAN.values() for v in (one, *more, *chain)}
    assert {"prose", "cut_off", "refusal", "other_name", "kernel_only", "no_such_function"} <= kinds


def test_chains_end_right_for_most_tasks_and_never_for_some(study):
    ends = {task: chain[-1] for task, (_, _, chain) in study["plan"].PLAN.items()}
    never = set(study["faults"].NEVER_RIGHT)
    assert sum(end in ("right", "by_root") for t, end in ends.items() if t not in never) >= 20
    assert {t for t, end in ends.items() if end != "right"} - never


def test_the_commands_of_the_script_are_commands(kt):
    text = (STUDY / "study.sh").read_text().replace("\\\n", " ")
    assert subprocess.run(["sh", "-n", STUDY / "study.sh"], check=False).returncode == 0
    for command in ("generate", "run", "analyze", "report"):
        used = [line for line in text.splitlines() if f'"$kt" {command} ' in line]
        shown = kt(command, "--help").out
        assert len(used) == 1
        for option in {w for w in shlex.split(used[0]) if re.fullmatch(r"--?[a-z]+", w)}:
            assert option in shown


@pytest.mark.slow
def test_a_part_of_it_comes_out_as_planned(kt, study, tmp_path):
    tasks = ("relu", "fused_mul_sub", "permute_copy")
    chosen = [word for name in tasks for word in ("--task", name)]
    for method, more in (
        ("one_shot", ()),
        ("refine", ("--rounds", 3, "--cases", 12, "--contract", "torch")),
    ):
        model = f"replay:{STUDY / 'replies' / method}.jsonl"
        ran = kt(
            *("generate", "--suite", "kernelbenchx", "--method", method, "--model", model),
            *(*chosen, *more, "--device", "cpu", "--out", tmp_path / "answers" / method),
        )
        assert ran.code == 0, ran
    ran = kt(
        *("run", "--candidates", tmp_path / "answers", "--cases", 12, "--contract", "torch"),
        *("--device", "cpu"),
        *("--out", tmp_path / "run", "--no-explain"),
    )
    assert ran.code == 0, ran
    found = {}
    for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines():
        result = json.loads(line)
        place = (result["labels"]["method"], result["task"].partition("/")[2])
        found.setdefault(place, {})[result["labels"]["round"]] = result["stages"]["exe"]["outcome"]
        assert result["labels"]["model"] == "hand-written"
    for task in tasks:
        assert found["one_shot", task] == {0: "fail"}
        assert found["refine", task] == {0: "fail", 1: "pass"}
