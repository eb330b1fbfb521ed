"""Tasks that a user declares in a file: `--tasks FILE` with every command that takes a suite."""

import json

import pytest

TASKS = """
import torch

from kerneltruth.tasks.spec import Dim, task

ROW_RMS = task(
    "row_rms(x[M, N], eps=1e-6)",
    category="Reduce",
    dims={"M": "batch", "N": Dim(symbol="N", role="reduced", low=1)},
    reference=lambda x, eps: torch.sqrt(x.square().mean(-1) + eps),
    description="The root mean square of each row, with eps under the root.",
    flops="2*M*N",
    benchmark={"M": 32, "N": 256},
    attributes={"eps": (1e-2,)},
)
"""
RIGHT = """
import torch


def row_rms(x, eps=1e-6):
    return torch.sqrt(x.float().square().mean(-1) + eps).to(x.dtype)
"""
WRONG = RIGHT.replace(".mean(-1)", ".sum(-1)")
ON_CPU = ("--device", "cpu")


@pytest.fixture
def tasks(tmp_path):
    path = tmp_path / "my_tasks.py"
    path.write_text(TASKS)
    return path


@pytest.fixture
def finding_run(kt, tasks, candidate, tmp_path):
    """A run with a finding of a wrong kernel."""
    out = tmp_path / "run"
    ran = kt("check", candidate(WRONG), "--tasks", tasks, "--cases", 6, "--out", out, *ON_CPU)
    assert ran.code == 1, ran.err
    return out


def test_a_kernel_is_judged_by_a_task_of_the_users_own_file(kt, tasks, candidate, tmp_path):
    given = ("--tasks", tasks, "--cases", 12, "--out", tmp_path / "run", "--json", *ON_CPU)
    document = json.loads(kt("check", candidate(RIGHT), *given).out)
    assert (document["task"], document["verdict"]) == ("my_tasks/row_rms", "pass")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (RIGHT.replace("row_rms", "mine"), "pass"),
        (RIGHT.replace("row_rms", "_inner") + "row_rms = torch.no_grad()(_inner)\n", "pass"),
        (WRONG.replace("row_rms", "mine"), "fail"),
        (RIGHT.replace("row_rms", "mine") + "def more(x): return x\n", "pass --entry NAME"),
        (RIGHT.replace("row_rms(x, eps=1e-6)", "mine()"), "does not fit the arguments x, eps"),
    ],
)
def test_the_function_of_a_kernel_has_any_name(kt, tasks, candidate, tmp_path, source, said):
    given = ("--tasks", tasks, "--cases", 6, "--out", tmp_path / "run", *ON_CPU)
    ran = kt("check", candidate(source), *given)
    assert said in ran.out + ran.err
    assert "Traceback" not in ran.err


def test_a_kernel_says_which_of_several_tasks_it_is_for(kt, tasks, candidate, tmp_path):
    tasks.write_text(TASKS + TASKS.replace("row_rms", "again").replace("ROW_RMS", "AGAIN"))
    kernel = candidate(RIGHT.replace("row_rms", "mine"))
    given = ("--tasks", tasks, "--cases", 6, "--out", tmp_path / "run", *ON_CPU)
    assert "pass --task NAME, such as row_rms, again" in kt("check", kernel, *given).err
    assert kt("check", kernel, "--task", "again", *given).code == 0


def test_a_task_of_a_file_is_shown_with_its_contract(kt, tasks):
    (shown,) = json.loads(kt("tasks", "row_rms", "--tasks", tasks, "--json").out)["tasks"]
    assert shown["signature"] == "row_rms(x[M, N], eps=1e-6)"
    assert shown["contract"]["obligations"]["shapes"]["decisive"]


def test_the_tasks_of_a_file_are_listed_with_their_dims(kt, tasks):
    (listed,) = json.loads(kt("tasks", "--tasks", tasks, "--json").out)["tasks"]
    assert (listed["key"], [*listed["dims"]]) == ("my_tasks/row_rms", ["M", "N"])


def test_many_candidates_are_judged_by_a_file_of_tasks(kt, tasks, tmp_path):
    folder = tmp_path / "candidates"
    for name, source in (("one", RIGHT.replace("row_rms", "mine")), ("two", WRONG)):
        (folder / name).mkdir(parents=True)
        (folder / name / "row_rms.py").write_text(source)
    given = ("--tasks", tasks, "--candidates", folder, "--out", tmp_path / "run", "--workers", 1)
    ran = kt("run", *given, "--stage", "exe", "--cases", 6, "--json", *ON_CPU)
    assert ran.code == 0, ran.err
    lines = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    ended = {line["origin"]: line["stages"]["exe"]["outcome"] for line in map(json.loads, lines)}
    assert ended == {"one/row_rms.py": "pass", "two/row_rms.py": "fail"}


def test_the_reference_proves_itself_in_an_audit(kt, tasks):
    given = ("--tasks", tasks, "--cases", 3, "--workers", 1, "--json", *ON_CPU)
    document = json.loads(kt("audit", *given).out)
    assert document["summary"]["good"]


def test_a_finding_replays_without_the_option(kt, finding_run):
    assert kt("replay", finding_run, *ON_CPU).code == 0


def test_a_finding_says_so_if_the_file_of_its_task_has_changed(kt, finding_run, tasks):
    tasks.write_text(TASKS + "\n# Another version.\n")
    ran = kt("replay", finding_run, *ON_CPU)
    assert ran.code == 2
    assert "my_tasks.py is not the file that my_tasks/row_rms was judged by" in ran.err


def test_a_finding_replays_by_a_copy_of_the_file_of_its_task(kt, finding_run, tasks, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    moved = tasks.rename(tmp_path / "elsewhere" / "my_tasks.py")
    assert kt("replay", finding_run, "--tasks", moved, *ON_CPU).code == 0


@pytest.mark.slow
def test_the_reference_is_the_eager_baseline(kt, tasks, candidate):
    given = ("--tasks", tasks, "--against", "eager", "--budget", 0, "--json", *ON_CPU)
    (shape,) = json.loads(kt("time", candidate(RIGHT), *given).out)["shapes"]
    assert shape["baselines"]["eager"]["us"] > 0


def test_a_file_of_tasks_goes_with_no_other_suite(kt, tasks, candidate):
    ran = kt("check", candidate(RIGHT), "--tasks", tasks, "--suite", "tritonbench")
    assert ran.code == 2
    assert "leave out --suite tritonbench" in ran.err


def test_a_mistake_in_a_file_of_tasks_is_the_users_and_takes_one_line(kt, tasks, candidate):
    tasks.write_text(TASKS.replace('"batch"', '"rows"'))
    ran = kt("check", candidate(RIGHT), "--tasks", tasks, *ON_CPU)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"kerneltruth: {tasks}:6: dim 'M': 'rows' is not a role; use one of batch, reduced, "
        "contracted, channel, spatial\n"
    )
