"""A user's KernelBench checkout as a suite: its problems listed, candidates judged, replayed."""

import json
import time
from collections import Counter

import pytest

from kerneltruth.engine.proof import NO_TIME, Proof
from kerneltruth.engine.requests import AuditRequest, result_of
from kerneltruth.engine.suite_audit import audit_suite

PROBLEM = '''
import torch
from torch import nn


class Model(nn.Module):
    """Adds a bias to each column and cuts off what is below 0."""

    def __init__(self, columns):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return torch.relu(x + self.bias)


rows = 4096
columns = 1024


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return [columns]
'''
RIGHT = PROBLEM.replace("class Model", "class ModelNew").replace("torch.relu(", "torch.relu_(")
WRONG = RIGHT.replace("torch.relu_(x + self.bias)", "(x + self.bias).abs()")
NAME = "level_1_problem_{}_sample_{}_kernel.py"
ARGUMENTS = ("--device", "cpu", "--cases", "6", "--stage", "exe", "--workers", 1)


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout" / "level1"
    folder.mkdir(parents=True)
    (folder / "4_Bias_and_cut.py").write_text(PROBLEM)
    (folder / "5_Missing.py").write_text("import no_such_package\n" + PROBLEM)
    return folder.parent


@pytest.fixture
def handed_in(tmp_path):
    folder = tmp_path / "model-x"
    folder.mkdir()
    (folder / NAME.format(4, 0)).write_text(RIGHT)
    (folder / NAME.format(4, 1)).write_text(WRONG)
    (folder / NAME.format(5, 0)).write_text(RIGHT)
    (folder / NAME.format(77, 0)).write_text(RIGHT)
    return folder


def run(kt, checkout, handed_in, out):
    suite = f"kernelbench:{checkout}"
    arguments = ("--suite", suite, "--candidates", handed_in, "--out", out, "--json", *ARGUMENTS)
    return kt("run", *arguments, "--peer-checks")


@pytest.mark.slow
def test_candidates_of_a_run_directory_are_judged_and_their_findings_replay(
    kt, checkout, handed_in, tmp_path
):
    ran = run(kt, checkout, handed_in, tmp_path / "run")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    lines = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    by_origin = {line["origin"]: line["stages"]["exe"] for line in map(json.loads, lines)}
    assert by_origin[NAME.format(4, 0)]["outcome"] == "pass"
    assert (by_origin[NAME.format(4, 1)]["outcome"], by_origin[NAME.format(4, 1)]["kind"]) == (
        "fail",
        "value",
    )
    assert by_origin[NAME.format(5, 0)]["outcome"] == "unrefereeable"
    checked = {line["origin"]: line.get("peer_checks") for line in map(json.loads, lines)}
    # At the problem's own sizes, with its own weights.
    assert checked[NAME.format(4, 0)]["kernelbench"]["verdict"] == "pass"
    assert checked[NAME.format(4, 1)]["kernelbench"]["verdict"] == "fail"
    assert "level1/77" in document["broken"][0]["why"]
    assert "no_such_package" in "".join(lines)

    again = kt("replay", tmp_path / "run", "--device", "cpu", "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["reproduced"] == 1

    problem = checkout / "level1" / "4_Bias_and_cut.py"
    problem.write_text(PROBLEM + "\n# another version\n")
    other = kt("replay", tmp_path / "run", "--device", "cpu")
    assert other.code == 2
    assert "is not the problem that was judged" in other.err


def test_problems_are_listed_without_being_run(kt, checkout):
    ran = kt("tasks", "--suite", f"kernelbench:{checkout}", "--json")
    assert ran.code == 0, ran.err
    keys = [task["key"] for task in json.loads(ran.out)["tasks"]]
    assert keys == ["kernelbench/level1/4", "kernelbench/level1/5"]


@pytest.mark.slow
def test_one_problem_is_shown_with_its_sets_of_constants(kt, checkout):
    ran = kt("tasks", "level1/4", "--suite", f"kernelbench:{checkout}", "--json")
    assert ran.code == 0, ran.err
    (task,) = json.loads(ran.out)["tasks"]
    assert len(task["attributes"]["_sizes"]) >= 3


@pytest.mark.slow
def test_one_file_is_checked_against_a_problem(kt, checkout, handed_in):
    file = handed_in / NAME.format(4, 1)
    suite = f"kernelbench:{checkout}"
    ran = kt("check", file, "--suite", suite, "--task", "level1/4", "--cases", 3, "--device", "cpu")
    assert ran.code == 1, ran.err


@pytest.mark.parametrize("name", ["4", "4_Bias_and_cut", "level1/4_Bias_and_cut"])
def test_a_problem_goes_by_its_number_and_by_its_files_name(kt, checkout, name):
    ran = kt("tasks", name, "--suite", f"kernelbench:{checkout}", "--json")
    assert ran.code == 0, ran.err
    assert [task["key"] for task in json.loads(ran.out)["tasks"]] == ["kernelbench/level1/4"]


def test_a_number_that_two_levels_have_needs_its_level(kt, checkout):
    second = checkout / "level2"
    second.mkdir()
    (second / "4_Other.py").write_text(PROBLEM)
    ran = kt("tasks", "4", "--suite", f"kernelbench:{checkout}")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "kernelbench/level1/4, kernelbench/level2/4" in ran.err


def test_a_file_of_a_run_says_by_its_name_which_problem_it_is_for(kt, checkout, handed_in):
    suite = ("--suite", f"kernelbench:{checkout}")
    short = ("--cases", 2, "--device", "cpu", "--json")
    ran = kt("check", handed_in / NAME.format(4, 0), *suite, *short)
    assert (ran.code, json.loads(ran.out)["task"]) == (0, "kernelbench/level1/4")
    other = handed_in / "mine.py"
    other.write_text(RIGHT)
    ran = kt("check", other, *suite, *short)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "'mine.py' does not say which of the 2 tasks" in ran.err
    # A suite of one problem leaves nothing to say.
    one = ("--suite", f"kernelbench:{checkout / 'level1' / '4_Bias_and_cut.py'}")
    assert kt("check", other, *one, *short).code == 0


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        ("kernelbench", "say where it is: kernelbench:PATH"),
        ("kernelbench:nowhere", "there is no such file or folder; name a checkout"),
        ("kernelbench:.", "no problems there"),
    ],
)
def test_a_suite_that_is_not_there_is_a_mistake_in_the_command(
    kt, tmp_path, monkeypatch, suite, said
):
    monkeypatch.chdir(tmp_path)
    ran = kt("tasks", "--suite", suite)
    assert ran.code == 2
    assert said in ran.err


def test_a_task_of_a_checkout_asks_for_its_suite(kt, handed_in):
    ran = kt("check", handed_in / NAME.format(4, 0), "--task", "kernelbench/level1/4")
    assert ran.code == 2
    assert "pass --suite kernelbench:PATH" in ran.err


def test_a_checkout_is_audited_with_its_own_models(kt, checkout):
    options = ("--cases", 2, "--workers", 1, "--device", "cpu")
    ran = kt("audit", "--suite", f"kernelbench:{checkout}", *options, "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    tasks = {task["task"]: task for task in document["tasks"]}
    assert tasks["kernelbench/level1/4"]["cases"]["float32"] == 2
    assert "No module named 'no_such_package'" in tasks["kernelbench/level1/5"]["trouble"]
    assert document["summary"]["flagged"] == 0


def audit_document(runners, checkout, prove, **how):
    """The document of an audit of the checkout in which a function proves each task."""
    request = AuditRequest(suite=f"kernelbench:{checkout}", device="cpu", **how)
    runner = runners(device="cpu", targets=())
    # The budget is not for the warm-up.
    runner.versions()
    return result_of(audit_suite(request, runner, time.monotonic(), prove=prove))


@pytest.mark.slow
def test_what_takes_forever_does_not_outlast_the_budget_and_what_was_judged_counts(
    runners, checkout
):
    """One problem is never laid out, one is judged without end, and one does not load."""

    def stay(task, candidate, *, tell, **_):
        if task.unrefereeable is not None:
            return Proof(task=task.key, category=task.category, trouble=task.unrefereeable)
        tell(Proof(task=task.key, category=task.category, cases={"float32": 3}))
        time.sleep(600)

    slow = PROBLEM.replace("    def forward", "    import time\n\n    def forward")
    slow = slow.replace("return torch.relu", "self.time.sleep(600)\n        return torch.relu")
    (checkout / "level1" / "6_Slow.py").write_text(slow)
    began = time.monotonic()
    document = audit_document(runners, checkout, stay, workers=3, budget_s=12.0)
    assert time.monotonic() - began < 60
    assert document.not_judged == ("kernelbench/level1/6",)
    four, five = document.tasks
    assert (four.cases, four.skipped) == ({"float32": 3}, {NO_TIME: 1})
    assert "no_such_package" in five.trouble


def test_a_problem_of_which_no_case_was_begun_in_time_is_not_judged(runners, checkout):
    def late(task, candidate, **_):
        return Proof(task=task.key, category=task.category, skipped=Counter({NO_TIME: 1}))

    document = audit_document(runners, checkout, late, workers=1, only=("level1/4",))
    assert (document.not_judged, document.tasks) == (("kernelbench/level1/4",), ())


def test_a_spent_budget_begins_no_problem_and_says_which_are_left(kt, checkout):
    ran = kt("audit", "--suite", f"kernelbench:{checkout}", "--budget", "0", "--device", "cpu")
    assert "not started: the budget was spent" in ran.out
    assert ran.code == 1
