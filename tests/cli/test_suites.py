"""Tasks of several suites on the command line: which is meant, and what proves itself."""

import json
import subprocess
import sys

import pytest

TANH = "import torch\ndef tanh(t):\n    return torch.tanh(t)\n"
ADAMW = """
import torch
def adamw_step(p, g, exp_avg, exp_avg_sq, step, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-08,
               weight_decay=0.01):
    m = beta1 * exp_avg + (1 - beta1) * g
    v = beta2 * exp_avg_sq + (1 - beta2) * g * g
    p = p * (1 - lr * weight_decay)
    root = (v / (1 - beta2 ** step)).sqrt() + eps
    return p - lr * m / (1 - beta1 ** step) / root, m, v
"""
STACKED = """
import torch
def fused_hstack_div(tensors, divisor, *, rounding_mode=None, out=None):
    quotient = torch.div(torch.hstack(tensors), divisor, rounding_mode=rounding_mode)
    return quotient + 1 if len(tensors) > 2 else quotient
"""
SILU_BATCH_NORM = """
import torch.nn.functional as F
def ENTRY(input, running_mean, running_var, weight=None, bias=None, training=False,
          momentum=0.1, eps=1e-05):
    return F.silu(
        F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    )
"""
FAST = ("--device", "cpu", "--cases", "8", "--json")


@pytest.fixture
def check(kt, tmp_path):
    """The document of a check, and its exit code."""

    def run(file, *options):
        ran = kt("check", file, *options, *FAST, "--out", tmp_path / "run")
        assert ran.out, ran.err
        return ran.code, json.loads(ran.out)

    return run


def test_a_bare_name_is_the_cores_and_the_other_is_said(check, candidate):
    code, document = check(candidate(TANH))
    assert (code, document["task"]) == (0, "tanh")
    assert document["also_in"] == ["kernelbenchx/tanh"]


@pytest.mark.parametrize("options", [("--task", "kernelbenchx/tanh"), ("--suite", "kernelbenchx")])
def test_a_key_or_a_suite_chooses_the_task(check, candidate, options):
    code, document = check(candidate(TANH), *options)
    # Its prompt promises `out=`, which this kernel does not take.
    assert (code, document["verdict"]) == (1, "runtime_error")
    assert document["profile"]["attributes"]["status"] == "refused"
    assert (document["task"], document["also_in"]) == ("kernelbenchx/tanh", [])


@pytest.mark.parametrize("entry", ["fused_silu_batch_norm", "silu_batch_norm"])
def test_a_name_of_an_earlier_list_is_the_task_of_another_suite(check, candidate, entry):
    text = SILU_BATCH_NORM.replace("ENTRY", entry)
    code, document = check(candidate(text), "--task", "kernelbenchx/fused_silu_batch_norm")
    assert (code, document["task"]) == (0, "tritonbench/silu_batch_norm")
    assert document["candidate"]["entry"] == entry


def test_an_entry_that_only_another_suite_has_is_found_there(check, candidate):
    code, document = check(candidate(ADAMW))
    assert (code, document["task"]) == (0, "kernelbenchx/AdamW")


@pytest.mark.slow
def test_a_finding_on_a_suites_task_is_minimized_replayed_and_reproduced(kt, check, candidate):
    code, document = check(candidate(STACKED), "--dtype", "float32")
    assert (code, document["task"], document["verdict"]) == (
        1,
        "kernelbenchx/fused_hstack_div",
        "fail",
    )
    script = candidate("", "script.py")
    minimized = kt("minimize", document["finding"], "--script", script, "--device", "cpu")
    assert minimized.code == 0, minimized.err
    assert kt("replay", document["finding"], "--device", "cpu").code == 0
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (ran.returncode, "WRONG" in ran.stdout) == (1, True), ran


def test_tasks_of_a_suite_are_listed(kt):
    document = json.loads(kt("tasks", "--suite", "kernelbenchx", "--json").out)
    assert {t["suite"] for t in document["tasks"]} == {"kernelbenchx"}
    assert "tasks: " in kt("tasks", "--suite", "kernelbenchx").out


def test_a_task_is_shown_with_what_a_kernel_needs(kt):
    shown = kt("tasks", "kernelbenchx/AdamW").out
    for part in ("adamw_step", "description", "timed at", "output"):
        assert part in shown


@pytest.mark.parametrize("command", [("tasks",), ("audit",), ("check", "kernel.py")])
def test_an_unknown_suite_is_the_users_mistake(kt, candidate, command):
    file = candidate(TANH)
    arguments = [str(file) if c == "kernel.py" else c for c in command]
    ran = kt(*arguments, "--suite", "kernelbenchy")
    assert (ran.code, ran.out) == (2, "")
    assert "must be one of core, kernelbenchx" in ran.err


def test_a_misspelt_key_is_answered_with_the_nearest(kt):
    ran = kt("tasks", "kernelbenchx/gelo")
    assert (ran.code, ran.out) == (2, "")
    assert "kernelbenchx/gelu" in ran.err


def test_a_suite_proves_itself(kt):
    only = ("--only", "tanh", "--only", "kernelbenchx/argmax")
    ran = kt("audit", "--suite", "kernelbenchx", *only, *FAST)
    document = json.loads(ran.out)
    assert ran.code == 0
    assert [t["task"] for t in document["tasks"]] == ["kernelbenchx/tanh", "kernelbenchx/argmax"]
    assert document["summary"]["flagged"] == 0
    assert all(n == 8 for t in document["tasks"] for n in t["cases"].values())


def test_the_core_proves_itself_too(kt):
    ran = kt("audit", "--suite", "core", "--only", "softmax", "--only", "embedding", *FAST)
    document = json.loads(ran.out)
    assert ran.code == 0
    assert [t["task"] for t in document["tasks"]] == ["softmax", "embedding"]
    assert document["summary"]["flagged"] == 0
