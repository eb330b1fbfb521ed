"""`bitwise=True` of a task: equal calls return the same bits."""

import json
import subprocess
import sys

import pytest

TASKS = """
from kerneltruth.tasks.spec import task

TWICE = task(
    "twice(x[M, N])",
    dims={"M": "batch", "N": "spatial"},
    reference=lambda x: 2 * x,
    bitwise=True,
)
"""
# Within the bound in each call.
JITTERS = """
calls = 0


def twice(x):
    global calls
    calls += 1
    return 2 * x * (1 + 1e-7 * (calls % 2))
"""
STEADY = JITTERS.replace("(calls % 2)", "0")
ON_CPU = ("--device", "cpu")


@pytest.fixture
def judge(kt, candidate, tmp_path):
    """Judge a source by the task, with the field or without it."""

    def judge(source, declared=TASKS):
        path = tmp_path / "my_tasks.py"
        path.write_text(declared)
        out = tmp_path / "run"
        given = ("--tasks", path, "--cases", 6, "--out", out, "--json", *ON_CPU)
        return json.loads(kt("check", candidate(source), *given).out), out

    return judge


def test_a_kernel_that_jitters_within_the_bound_breaks_repeatable_where_bits_are_promised(judge):
    document, _ = judge(JITTERS)
    assert (document["verdict"], document["kind"]) == ("fail", "other_bits")
    broken = {
        k for k, e in document["profile"].items() if e["status"] == "broken" and e["decisive"]
    }
    assert broken == {"repeatable"}


def test_the_same_kernel_passes_where_they_are_not(judge):
    document, _ = judge(JITTERS, TASKS.replace("    bitwise=True,\n", ""))
    assert document["verdict"] == "pass", document["detail"]


def test_a_kernel_with_the_same_bits_passes(judge):
    document, _ = judge(STEADY)
    assert document["verdict"] == "pass", document["detail"]
    assert document["profile"]["repeatable"]["status"] == "held"


@pytest.mark.slow
def test_its_finding_replays_and_its_script_shows_it(kt, judge):
    _, out = judge(JITTERS)
    (finding,) = (out / "findings").glob("*.json")
    (replayed,) = json.loads(kt("replay", finding, "--json", *ON_CPU).out)["results"]
    assert (replayed["kind"], replayed["verdict"]) == ("other_bits", "fail")
    assert kt("minimize", finding, *ON_CPU).code == 0
    script = finding.with_suffix(".py")
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert "the same call gives different results" in ended.stdout, ended.stdout + ended.stderr


def test_a_random_task_cannot_promise_the_same_bits(kt, candidate, tmp_path):
    path = tmp_path / "my_tasks.py"
    path.write_text(TASKS.replace("bitwise=True", "bitwise=True, random=True"))
    ran = kt("check", candidate(STEADY), "--tasks", path, *ON_CPU)
    assert ran.code == 2
    assert "two calls of a random task may differ; leave one out" in ran.err


def test_the_description_says_so_to_a_model(kt, tmp_path):
    path = tmp_path / "my_tasks.py"
    path.write_text(TASKS)
    (shown,) = json.loads(kt("tasks", "twice", "--tasks", path, "--json").out)["tasks"]
    assert "Equal calls return the same bits." in shown["description"]
