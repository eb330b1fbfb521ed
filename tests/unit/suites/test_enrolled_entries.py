"""Submissions find their tasks: each of TritonBench-T's entries, under either benchmark's suite."""

import json

import pytest
from tritonbench_entries import ARGUMENTS, DOTTED, FUSED, NONE, OWN, SAME

from kerneltruth.documents.lines import Labels
from kerneltruth.errors import UserError
from kerneltruth.suites.entries import Entry, candidate_of, match_tasks, task_named
from kerneltruth.suites.reading import read_submissions
from kerneltruth.suites.submission import Broken
from kerneltruth.tasks.registry import Listed, accepted_by

SUITES = ("kernelbenchx", "tritonbench")
KEYS = {
    **{name: f"kernelbenchx/{name}" for name in SAME},
    **{name: f"kernelbenchx/fused_{name}" for name in FUSED},
    **{name: f"kernelbenchx/{task}" for name, task in ARGUMENTS.items()},
    **{name: f"tritonbench/{name}" for name in OWN},
}


@pytest.fixture(scope="module", params=SUITES)
def accepted(request):
    return accepted_by(request.param)


def entry_line(name):
    """How an instruction gives an entry."""
    if name in ARGUMENTS:
        return f"{name} (Tensor): the input"
    return f"def {DOTTED.get(name, name)}(input, *, out=None) -> Tensor"


def prediction(name, source):
    return {
        "instruction": f"Write it.\nWrapper Entry Information: {entry_line(name)}\nVerify it.",
        "predict": f"Here it is:\n```python\n{source}```\n",
    }


@pytest.fixture
def enrolled(tmp_path, accepted):
    """Prediction lines, by the names of entries, as entries of a run."""

    def enroll_all(sources):
        path = tmp_path / "predictions.jsonl"
        lines = [json.dumps(prediction(name, source)) for name, source in sources.items()]
        path.write_text("\n".join(lines))
        found = list(match_tasks(read_submissions(path), accepted, Labels()))
        return dict(zip(sources, found, strict=True))

    return enroll_all


def function(name):
    return f"import torch\n\ndef {name}(*given, **options):\n    return given\n"


def test_the_benchmark_has_166_entries():
    assert len(KEYS) + len(NONE) == 166
    assert len(SAME) + len(FUSED) + len(ARGUMENTS) + len(OWN) == len(KEYS)


def test_every_entry_is_enrolled_for_its_task(enrolled):
    found = enrolled({name: function(ARGUMENTS.get(name, name)) for name in KEYS})
    assert {n: e.task.key for n, e in found.items() if isinstance(e, Entry)} == KEYS


def test_the_function_of_that_name_is_called(enrolled):
    found = enrolled({name: function(ARGUMENTS.get(name, name)) for name in KEYS})
    called = {name: candidate_of(entry).entry for name, entry in found.items()}
    assert called == {name: ARGUMENTS.get(name, name) for name in KEYS}


def test_what_is_no_kernel_is_refused_and_says_so(enrolled):
    # Each has a helper that is named as a task.
    found = enrolled({name: function(name) + function("relu") for name in NONE})
    assert all(isinstance(item, Broken) for item in found.values())
    assert found["autocast"].reason.startswith("'autocast' is no kernel, but a context manager")
    assert "no kernel, but a conversion of a model" in found["quantize_dynamic"].reason


def test_an_optimizer_and_its_step_function_are_told_apart_by_definition(enrolled):
    made = enrolled({"SGD": "class SGD:\n    def __init__(self, params, lr=1e-3): ...\n"})["SGD"]
    assert made.task.key == "tritonbench/SGD"
    assert candidate_of(made).entry == "SGD"
    step = enrolled({"SGD": function("sgd_step")})["SGD"]
    assert step.task.key == "kernelbenchx/SGD"
    assert candidate_of(step).entry == "sgd_step"


def test_a_generic_entry_is_judged_for_the_suites_own_task(enrolled, accepted):
    entry = enrolled({"SGD": function("kernel_function")})["SGD"]
    assert entry.task is accepted["SGD"]
    assert candidate_of(entry).entry == "kernel_function"


def test_other_suites_do_not_take_these_tasks():
    assert not any(t.key.startswith("tritonbench/") for t in accepted_by("core").values())


def test_an_entry_printed_with_dots_may_be_defined_with_underscores(enrolled):
    found = enrolled({"eig": function("linalg_eig")})
    assert candidate_of(found["eig"]).entry == "linalg_eig"


def test_where_the_prompt_names_no_function_the_only_one_is_the_entry(enrolled):
    found = enrolled({"A": function("solve_system"), "input": function("a") + function("b")})
    assert candidate_of(found["A"]).entry == "solve_system"
    with pytest.raises(UserError, match="no entry for 'mean'"):
        candidate_of(found["input"])


def test_another_name_is_no_entry_where_the_prompt_names_one(enrolled):
    found = enrolled({"relu": function("my_relu")})
    with pytest.raises(UserError, match="no entry for 'relu'"):
        candidate_of(found["relu"])


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("fused_sigmoid_argmax", "tritonbench/sigmoid_argmax"),
        ("fused_silu_batch_norm", "tritonbench/silu_batch_norm"),
        ("gather", "earlier/gather"),
        ("mul_int8", "earlier/mul_int8"),
        ("l1_loss", "earlier/l1_loss"),
        ("max_pool2d", "earlier/max_pool2d"),
        ("tile_clamp", "earlier/tile_clamp"),
    ],
)
def test_tasks_of_kernelbenchxs_earlier_list_are_known(accepted, name, key):
    assert task_named(name, accepted).key == key


@pytest.mark.parametrize(
    ("name", "source", "taken"),
    [
        ("answer.py", "class ModelNew: ...", True),
        ("answer.py", "def other(x): ...", False),
        ("level_1_problem_24_sample_0_kernel.py", "class ModelNew: ...", False),
    ],
)
def test_a_suite_of_one_problem_takes_any_file_with_its_entry(tmp_path, name, source, taken):
    (tmp_path / name).write_text(source)
    only = Listed(key="kernelbench/level1/23", name="level1/23", entry="ModelNew", category="c")
    (found,) = match_tasks(read_submissions(tmp_path / name), {only.name: only}, Labels())
    assert isinstance(found, Entry) is taken
