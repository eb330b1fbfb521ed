"""`import kerneltruth`: a kernel judged in a few lines, with nothing of the caller changed."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import kerneltruth as kt

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("warm_servers")]

RIGHT = """
import torch

def relu(x):
    return x.clamp(min=0)
"""
CLIPPED = RIGHT.replace("min=0", "min=0.25")
ENDLESS = RIGHT.replace("    return", "    while True:\n        pass\n    return")
FEW = {"device": "cpu", "cases": 8, "seed": 3}


@pytest.mark.slow
def test_a_source_text_is_judged():
    report = kt.check(RIGHT, task="relu", **FEW)

    assert (report.passed, report.verdict, report.cases) == (True, "pass", 8)
    assert report.score > 0.9
    assert report.profile["published"].status == "held"
    assert report.seed == 3


@pytest.mark.slow
def test_a_kernel_that_does_not_return_says_which_call_and_after_how_long():
    report = kt.check(ENDLESS, task="relu", timeout=0.5, **FEW)

    called = f"A call did not return within 0.5 s: {report.document.failing_summary}."
    assert (report.verdict, report.detail) == ("timeout", called)
    assert str(report).count("did not return") == 1
    assert report.findings[0].detail == "did not return within 0.5 s"


@pytest.mark.slow
def test_a_path_is_judged_and_named(tmp_path):
    path = tmp_path / "relu.py"
    path.write_text(RIGHT)

    report = kt.check(path, **FEW)

    assert report.passed
    assert report.name == "relu.py"
    assert report.document.candidate.path == str(path)


@pytest.mark.slow
def test_a_wrong_kernel_has_a_finding_and_a_script_that_shows_it(tmp_path):
    report = kt.check(CLIPPED, task="relu", **FEW)

    assert (report.verdict, report.kind) == ("fail", "value")
    first = report.findings[0]
    assert first.case == report.document.failing
    assert first.obligations == ("published",)
    assert first.minimal.summary() == "M=1 N=1 float32 zeros"
    # The sentence is about the first failing case, not about the smallest, which the script has.
    assert f"On {first.case.summary()}: {first.explanation}" in " ".join(first.script.split())
    script = tmp_path / "shows.py"
    script.write_text(first.script)
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "0.25" in ran.stdout


@pytest.mark.slow
def test_the_report_is_the_document_of_the_command():
    report = kt.check(CLIPPED, task="relu", **FEW)

    assert '"schema":2' in report.to_json()
    assert report.document.run is None
    assert report.document.finding == f"{report.findings[0].id}.json"


def test_a_source_that_is_no_candidate_for_a_known_task_has_a_verdict():
    report = kt.check("def (:\n", task="relu", **FEW)

    assert report.verdict == "compile_error"
    assert "is not Python" in report.detail
    assert report.score == 0.0


def test_a_kernel_whose_file_judges_it_when_imported_is_not_judged_for_ever():
    text = CLIPPED + "\nimport kerneltruth as kt\nkt.check(relu, task='relu')\n"
    report = kt.check(text, task="relu", **FEW)

    assert report.verdict == "compile_error"
    assert 'its own file is imported; put the call under `if __name__ == "__main__":`' in (
        report.detail
    )


@pytest.fixture
def folder(tmp_path):
    """A plain folder with a kernel in two modules."""
    made = tmp_path / "mine"
    made.mkdir()
    (made / "low.py").write_text("def least(x): return x.clamp(min=0)\n")
    (made / "ops.py").write_text("from low import least\ndef relu(x): return least(x)\n")
    return made


def test_a_folder_is_judged_by_its_entry(folder):
    report = kt.check(folder, task="relu", entry="ops:relu", **FEW)

    assert (report.passed, report.name) == (True, "mine")
    assert report.document.candidate.reads == ("low.py", "ops.py")


def test_a_named_candidate_brings_its_entry(folder):
    named = kt.NamedCandidate(folder, name="mine", entry="ops:relu")
    with kt.Judge(device="cpu") as judge:
        (report,) = judge.check_many([named], task="relu", cases=2)
    assert (report.passed, report.document.candidate.reads) == (True, ("low.py", "ops.py"))


def test_an_installed_package_is_judged_by_its_name(folder, monkeypatch):
    (folder / "__init__.py").touch()
    (folder / "ops.py").write_text("from .low import least\ndef relu(x): return least(x)\n")
    monkeypatch.syspath_prepend(folder.parent)

    assert kt.check("mine", task="relu", entry="mine.ops:relu", **FEW).passed


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (None, "it is a folder; name its entry, such as entry='ops:softmax', or a file in it"),
        ("relu", "it is a folder; name its entry"),
        ("ops:gelu", "entry 'ops:gelu': ops.py defines no 'gelu'; it has relu"),
    ],
)
def test_a_folder_without_its_entry_is_one_line(folder, entry, said):
    with pytest.raises(kt.UserError) as caught:
        kt.check(folder, task="relu", entry=entry, **FEW)
    assert said in str(caught.value)
    assert "--" not in str(caught.value)


def test_an_unknown_task_is_the_users_mistake():
    with pytest.raises(kt.UserError, match="unknown task 'rleu'"):
        kt.check(RIGHT, task="rleu", **FEW)


def test_an_unknown_option_is_named():
    with pytest.raises(kt.UserError, match="there is no option 'case'"):
        kt.check(RIGHT, task="relu", device="cpu", case=8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cases": 0}, "cases=0: must be from 1"),
        (
            {"cases": "8"},
            "check: Expected `int | null`, got `str` - at `$.cases`; see the arguments",
        ),
        ({"seed": -1}, "seed=-1: must be from 0"),
        ({"timeout": 0.0}, "timeout=0.0: must be from 0.1"),
        ({"explain": "brif"}, "explain='brif': must be one of full, brief, none"),
        ({"contract": "cor"}, "contract 'cor'"),
        ({"strategies": "rnd"}, "'rnd'"),
        ({"task": 3}, "Expected `str | null`, got `int`"),
        ({"task": len}, "check: builtin_function_or_method has no JSON form; give text, numbers"),
        ({"entry": 3}, "entry=3: name a function, or 'MODULE:FUNCTION' of a folder"),
        ({"task": None, "reference": len}, "it is a builtin_function_or_method; give the path"),
    ],
)
def test_a_wrong_option_is_one_line_and_leaves_the_judge_usable(options, said):
    with pytest.raises(kt.UserError) as caught:
        kt.check(RIGHT, **{"task": "relu", **FEW, **options})

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert kt.check(RIGHT, task="relu", **FEW).passed


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_candidate_is_one_line(empty):
    with pytest.raises(kt.UserError, match=r"it is empty; give a path, a source text, or a func"):
        kt.check(empty, task="relu", **FEW)


@pytest.mark.parametrize("empty", ["\n", ("answer", ""), kt.NamedCandidate(" ", name="answer")])
def test_an_answer_without_text_is_a_candidate(empty):
    report = kt.check(empty, task="relu", **FEW)
    assert (report.verdict, "it defines nothing" in report.detail) == ("compile_error", True)


@pytest.mark.slow
def test_an_empty_answer_among_many_ends_no_batch():
    async def verdicts(judge):
        given = judge.acheck_many(["", RIGHT], task="relu", cases=2)
        return sorted([report.verdict async for report in given])

    with kt.Judge(device="cpu", workers=1) as judge:
        found = judge.check_many(["", RIGHT], task="relu", cases=2)
        assert sorted(report.verdict for report in found) == ["compile_error", "pass"]
        assert asyncio.run(verdicts(judge)) == ["compile_error", "pass"]


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        ("softmax.py", "candidates are one str; give a list of candidates, or call check"),
        (Path("softmax.py"), "candidates are one PosixPath; give a list"),
        (len, "candidates are one builtin_function_or_method; give a list"),
        ({"mine": "softmax.py"}, r"candidates are a mapping; give its .items\(\)"),
    ],
)
def test_one_candidate_is_not_many(candidates, said):
    judge = kt.Judge(device="cpu")
    with pytest.raises(kt.UserError, match=f"check_many: {said}"):
        judge.check_many(candidates, task="softmax")


@pytest.mark.parametrize("wrong", [{"workers": "2"}, {"workers": 0}, {"seed": "1"}, {"seed": -1}])
def test_a_judge_says_which_number_is_none(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(kt.UserError, match=f"Judge: {name}={value!r}: must be a whole number"):
        kt.Judge(device="cpu", **wrong)


def test_a_judge_takes_one_of_device_and_devices():
    with pytest.raises(kt.UserError, match="Judge: give device or devices, not both"):
        kt.Judge(device="cpu", devices=["cpu"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"task": len}, "time: builtin_function_or_method has no JSON form"),
        ({"budget": "1"}, "time: Expected"),
        ({"budget": -1.0}, "budget=-1.0: must be from 0"),
        ({"against": "slow"}, "'slow'"),
    ],
)
def test_a_wrong_option_of_time_is_one_line_and_leaves_the_judge_usable(options, said):
    with kt.Judge(device="cpu") as judge:
        with pytest.raises(kt.UserError) as caught:
            judge.time(RIGHT, **{"task": "relu", **options})

        assert said in str(caught.value)
        assert "\n" not in str(caught.value)
        assert judge.check(RIGHT, task="relu", cases=2).passed


@pytest.mark.slow
def test_the_command_says_the_same(tmp_path):
    path = tmp_path / "relu.py"
    path.write_text(CLIPPED)
    command = [sys.executable, "-m", "kerneltruth", "check", "relu.py", "--json", "--device", "cpu"]
    ran = subprocess.run(
        [*command, "--seed", "3", "--cases", "8"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    said = json.loads(ran.stdout)
    ours = json.loads(kt.check(path, explain="full", **FEW).to_json())

    differing = {key for key, value in said.items() if ours[key] != value}
    assert differing == {"candidate", "finding", "run", "seconds"}
    assert said["candidate"] | {"path": str(path)} == ours["candidate"]


@pytest.mark.slow
def test_devices_and_targets_may_be_one_name_or_an_object_of_torch():
    cpu = torch.device("cpu")
    with kt.Judge(devices="cpu", targets="sm_80", workers=1) as judge:
        assert judge.check(RIGHT, task="relu", cases=2).passed
    assert kt.check(RIGHT, task="relu", **FEW | {"device": cpu}).passed


def test_a_target_that_no_compiler_knows_is_the_users_mistake():
    with (
        pytest.raises(kt.UserError, match="targets 'sm_1': must be one of"),
        kt.Judge(targets="sm_1"),
    ):
        pass


def test_a_mistake_names_the_argument_and_not_the_commands_option():
    with pytest.raises(kt.UserError, match=r"^dtypes 'int99': relu has"):
        kt.check(RIGHT, task="relu", dtypes=("int99",), **FEW)
    with pytest.raises(kt.UserError, match=r"kernel_function and pass task$"):
        kt.check("def no_such_operator(x):\n    return x\n", **FEW)


def test_the_reason_of_a_verdict_names_arguments_too():
    report = kt.check(RIGHT, task="relu", require_kernel=True, **FEW)

    assert report.verdict == "fail"
    assert "or judge without require_kernel" in report.detail


def test_assert_correct_raises_with_the_finding():
    with pytest.raises(kt.KernelIncorrect, match="smallest: M=1 N=1 float32 zeros") as caught:
        kt.assert_correct(CLIPPED, task="relu", **FEW)

    assert caught.value.report.kind == "value"
    assert "  breaks published\n" in str(caught.value)


FLAT = """
import torch

def relu(x):
    return x if not x.is_contiguous() else x.clamp(min=0)
"""


def test_a_report_in_words_tells_what_decides_from_hazards():
    assert str(kt.check(RIGHT, task="relu", **FEW)).splitlines() == [
        "<source>: pass for relu, torch-only",
        "  8 cases, 0 failed, seed 3",
    ]

    lines = str(kt.check(FLAT, task="relu", device="cpu", cases=48, seed=3)).splitlines()

    assert lines[0] == "<source>: pass for relu, torch-only"
    assert lines[1].startswith("  hazard: silently wrong")
    assert not any("breaks" in line for line in lines)


def test_assert_correct_says_why_there_is_no_judgement():
    native = "from torch.utils.cpp_extension import load_inline\ndef relu(input): return input\n"
    with pytest.raises(kt.EnvironmentFault, match="unsupported_here: a CUDA source needs a CUDA"):
        kt.assert_correct(native, task="relu", **FEW)


def test_assert_correct_returns_the_report_of_a_right_kernel():
    assert kt.assert_correct(RIGHT, task="relu", **FEW).passed


def test_a_run_is_written_where_one_is_asked_for(tmp_path):
    report = kt.check(CLIPPED, task="relu", out=tmp_path / "run", **FEW)

    stored = tmp_path / "run" / "findings" / f"{report.findings[0].id}.json"
    assert stored.read_text() == report.findings[0].to_json() + "\n"
    assert kt.check(CLIPPED, task="relu", out=tmp_path / "run", **FEW).findings == report.findings


def test_nothing_is_written_where_no_run_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with kt.Judge(device="cpu") as judge:
        judge.check(CLIPPED, task="relu", cases=4)

    assert list(tmp_path.iterdir()) == []
