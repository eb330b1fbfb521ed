"""Many candidates in one run: every attempt has one outcome, whatever is handed in."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from kerneltruth.runs.store import RunStore, load_snapshot

RIGHT = "import torch\ndef relu(input):\n    return torch.relu(input)\n"
WRONG = "import torch\ndef relu(input):\n    return input.abs()\n"
RAISES = "def relu(input):\n    raise ValueError('no')\n"
DIES = "import os\nos.kill(os.getpid(), 9)\ndef relu(input): return input\n"
ARGUMENTS = ("--suite", "core", "--device", "cpu", "--cases", "3", "--stage", "exe", "--workers", 1)


def lines_of(run):
    return [json.loads(raw) for raw in (run / "results.jsonl").read_text().splitlines()]


def outcomes(run):
    return {
        line["key"]: (line["stages"]["call"]["outcome"], line["stages"]["exe"]["outcome"])
        for line in lines_of(run)
    }


@pytest.fixture
def handed_in(tmp_path):
    """A prediction file of every sort of answer."""

    def line(source, **more):
        return json.dumps({"file": "Activation/relu.py", "predict": source, **more})

    path = tmp_path / "answers.jsonl"
    path.write_text(
        "\n".join(
            [
                line(f"Here:\n```python\n{RIGHT}```\n", model="m", sample=0),
                line(WRONG, model="m", sample=1),
                line(RAISES),
                line(DIES),
                line("I am sorry, I cannot."),
                line("x = 1\n"),
                line(RIGHT, model="other"),
                line(RIGHT + "def kernel_function(x): return x\ndef relu(x): return x\n"),
                "{broken",
                json.dumps({"file": "reluu.py", "predict": "y = 2"}),
            ]
        )
    )
    return path


def test_each_answer_has_one_outcome_by_stage(kt, handed_in, tmp_path):
    run = tmp_path / "run"
    ran = kt("run", "--candidates", handed_in, "--out", run, "--json", *ARGUMENTS)
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert document["attempts"] == 8
    assert document["stages"]["call"] == {
        "pass": 3,
        "compile_error": 3,
        "runtime_error": 1,
        "crash": 1,
    }
    assert document["stages"]["exe"] == {"pass": 2, "fail": 1, "not_run": 5}
    assert document["stages"]["perf"] == {"not_run": 8}
    assert document["repeated_sources"] == 1
    plain = [line["origin"] for line in lines_of(run) if line.get("torch_only")]
    assert document["torch_only"] == {"attempts": len(plain), "pass": 2}
    assert document["by_category"] == {"Activation": {"attempts": 8, "pass": 2}}
    where = [b["where"] for b in document["broken"]]
    assert where == ["answers.jsonl:9", "answers.jsonl:10"]
    assert "nearest: relu" in document["broken"][1]["why"]
    labels = {line["origin"]: line["labels"] for line in lines_of(run)}
    assert labels["answers.jsonl:2"] == {"method": None, "model": "m", "sample": 1, "round": None}


def test_a_run_again_changes_nothing(kt, handed_in, tmp_path):
    run = tmp_path / "run"
    kt("run", "--candidates", handed_in, "--out", run, *ARGUMENTS)
    before = (run / "results.jsonl").read_bytes()
    ran = kt("run", "--candidates", handed_in, "--out", run, "--json", *ARGUMENTS)
    assert ran.code == 0, ran.err
    assert (run / "results.jsonl").read_bytes() == before
    assert json.loads(ran.out)["attempts"] == 8


def test_a_run_draws_its_seed_and_keeps_it_when_it_goes_on(kt, candidate, tmp_path):
    arguments = ["run", "--candidates", candidate(RIGHT, "relu.py"), "--json", *ARGUMENTS]
    seeds = []
    for out in ("one", "one", "other"):
        ran = kt(*arguments, "--out", tmp_path / out, fixed=False)
        assert ran.code == 0, ran.err
        seeds.append(json.loads(ran.out)["seed"])
    assert seeds[0] == seeds[1] != seeds[2]


def test_labels_given_by_the_user_fill_what_the_format_leaves_open(kt, handed_in, tmp_path):
    run = tmp_path / "run"
    given = ("--method", "one-shot", "--model", "mine")
    kt("run", "--candidates", handed_in, "--out", run, *given, *ARGUMENTS)
    models = [line["labels"]["model"] for line in lines_of(run)]
    assert sorted(set(models)) == ["m", "mine", "other"]
    assert {line["labels"]["method"] for line in lines_of(run)} == {"one-shot"}


def test_a_wrong_answer_leaves_a_finding_that_replays(kt, handed_in, tmp_path):
    run = tmp_path / "run"
    kt("run", "--candidates", handed_in, "--out", run, *ARGUMENTS)
    ran = kt("replay", run, "--device", "cpu", "--json")
    results = json.loads(ran.out)["results"]
    assert [r["reproduced"] for r in results] == [True] * len(results)
    assert len(results) >= 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--suite", "nonsense"), "must be one of"),
        (("--suite", "core", "--stage", "timing"), "must be one of call, exe, perf"),
        (("--suite", "core", "--executor", "slurm"), "must be one of local, ray"),
        (("--suite", "core", "--against", "eagre"), "'eagre': must be one of eager, compile"),
        (
            ("--suite", "core", "--against", "eager", "--stage", "exe"),
            "the stage exe times nothing",
        ),
        (("--suite", "core", "--candidates", "/no/such/folder"), "no such file or folder"),
        (("--suite", "core", "--contract", "strict"), "must be one of published, core, torch"),
    ],
)
def test_a_wrong_option_is_one_line(kt, handed_in, tmp_path, arguments, says):
    given = () if "--candidates" in arguments else ("--candidates", handed_in)
    ran = kt("run", *given, "--device", "cpu", "--out", tmp_path / "run", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_run_that_timed_against_others_is_not_taken_up(kt, handed_in, tmp_path):
    run = tmp_path / "run"
    timed = (*ARGUMENTS[:6], "--workers", 1)
    common = ("run", "--candidates", handed_in, "--out", run, *timed)
    assert kt(*common, "--against", "eager", "--against", "compile").code == 0
    ran = kt(*common)
    assert ran.code == 2
    assert "it holds a different run" in ran.err
    # In whatever order they are named.
    assert kt(*common, "--against", "compile", "--against", "eager").code == 0


def test_nothing_to_judge_is_reported_with_the_first_reason(kt, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "thing.py").write_text("x = 1")
    ran = kt("run", "--candidates", tmp_path, *ARGUMENTS)
    assert ran.code == 2
    assert "unknown task 'thing'" in ran.err


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_outcomes(kt, environment, handed_in, tmp_path):
    plain, killed = tmp_path / "plain", tmp_path / "killed"
    command = ("run", "--candidates", handed_in, "--seed", 0, *ARGUMENTS)
    assert kt(*command, "--out", plain).code == 0
    kill_after(b"\n", (*command, "--out", killed), environment)
    assert kt(*command, "--out", killed).code == 0
    assert outcomes(killed) == outcomes(plain)
    assert len(lines_of(killed)) == 8


def kill_after(text, command, environment):
    """Begin a run, and kill it once its results have this; what they then hold."""
    begun = subprocess.Popen(
        [sys.executable, "-m", "kerneltruth", *map(str, command)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    results = command[-1] / "results.jsonl"
    end = time.monotonic() + 120
    while not (results.exists() and text in results.read_bytes()) and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(begun.pid, signal.SIGKILL)
    begun.wait(60)
    return results.read_bytes()


# It still loads when the kernels before it are judged and the run is killed.
SLOW = f"import time\ntime.sleep(0.5)\n{RIGHT}"
ON_TRANSPOSED = RIGHT.replace("torch.relu(input)", "torch.relu(input) * input.is_contiguous()")


@pytest.mark.slow
def test_a_resumed_run_keeps_its_profiles_and_adds_those_of_an_uninterrupted_one(
    kt, environment, tmp_path
):
    path = tmp_path / "answers.jsonl"
    sources = (WRONG, ON_TRANSPOSED, RIGHT, SLOW, RAISES, f"{WRONG}# again\n")
    path.write_text("".join(json.dumps({"file": "relu.py", "predict": s}) + "\n" for s in sources))
    command = ("run", "--candidates", path, "--seed", 0, *ARGUMENTS, "--cases", 16, "--out")
    assert kt(*command, tmp_path / "plain").code == 0
    kept = kill_after(b'"answers.jsonl:3"', (*command, tmp_path / "killed"), environment)
    assert kt(*command, tmp_path / "killed").code == 0
    assert kept.count(b"\n") == 3
    assert all(json.loads(line)["attempt"]["profile"] for line in kept.splitlines())
    assert (tmp_path / "killed" / "results.jsonl").read_bytes().startswith(kept)
    plain, killed = (
        {x["key"]: attempt_without_seconds(x) for x in lines_of(tmp_path / n)}
        for n in ("plain", "killed")
    )
    assert len(plain) == len(sources)
    assert killed == plain
    statuses = {entry["status"] for a in plain.values() for entry in a["profile"].values()}
    assert {"held", "broken", "refused"} <= statuses


def attempt_without_seconds(line):
    """What a line says of its kernel, but for the seconds that its cases took."""
    return json.loads(
        json.dumps(line["attempt"]),
        object_hook=lambda found: {k: v for k, v in found.items() if k != "seconds"},
    )


def test_a_mistake_that_is_found_late_leaves_no_run_behind(kt, handed_in, tmp_path):
    run = tmp_path / "run"
    how = ("run", "--candidates", handed_in, "--out", run, *ARGUMENTS)
    ran = kt(*how, "--strategy", "nope")
    assert ran.code == 2
    assert "unknown strategy 'nope'" in ran.err
    assert not run.exists()
    assert kt(*how, "--strategy", "boundary").code == 0
    ran = kt(*how, "--strategy", "boundary", "--contract", "published")
    assert ran.code == 2
    assert "it leaves out the published inputs" in ran.err


def test_what_is_no_python_has_a_word_for_every_stage(kt, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "relu.py").write_text("def relu(x:")
    suite = ("--suite", "core", "--device", "cpu", "--workers", "1")
    kt("run", "--candidates", tmp_path / "in", "--out", tmp_path / "run", *suite)
    (line,) = lines_of(tmp_path / "run")
    assert {n: s["outcome"] for n, s in line["stages"].items()} == {
        "call": "compile_error",
        "exe": "not_run",
        "perf": "not_run",
    }


def test_what_does_not_load_scores_0_and_names_the_contract(kt, tmp_path):
    sources = {"no_python.py": "def relu(x:", "raises.py": f"import no_such_package\n{RIGHT}"}
    answers = [json.dumps({"file": "relu.py", "predict": text}) for text in sources.values()]
    (tmp_path / "answers.jsonl").write_text("\n".join(answers))
    run = tmp_path / "run"
    kt("run", "--candidates", tmp_path / "answers.jsonl", "--out", run, *ARGUMENTS)
    found = [line["attempt"] for line in lines_of(run)]
    ends = [(a["verdict"]["verdict"], a["score"], a["contract"]) for a in found]
    assert ends == [("compile_error", 0.0, "core")] * 2


def test_json_has_an_outcome_for_each_candidate(kt, handed_in, tmp_path):
    run = tmp_path / "run"
    ran = kt("run", "--candidates", handed_in, "--out", run, "--json", "--no-explain", *ARGUMENTS)
    found = json.loads(ran.out)["candidates"]
    lines = lines_of(run)
    assert {c["name"] for c in found} == {line["key"] for line in lines}
    assert len(found) == len(lines) == 8
    verdicts = [c["verdict"] for c in found]
    assert {v: verdicts.count(v) for v in verdicts} == {
        "pass": 2,
        "fail": 1,
        "runtime_error": 1,
        "crash": 1,
        "compile_error": 3,
    }
    (wrong,) = (c for c in found if c["verdict"] == "fail")
    assert (wrong["task"], wrong["kind"]) == ("relu", "value")
    assert wrong["stages"] == {"call": "pass", "exe": "fail"}
    assert (run / "findings" / wrong["finding"]).exists()
    (again,) = (c for c in found if c["same_as"])
    assert (again["verdict"], again["same_as"] in {c["name"] for c in found}) == ("pass", True)


def test_what_is_not_right_is_listed_and_sets_the_exit_code_on_request(kt, handed_in, tmp_path):
    arguments = ("run", "--candidates", handed_in, "--out", tmp_path / "run", *ARGUMENTS)
    ran = kt(*arguments)
    assert ran.code == 0, ran.err
    assert "not right: 6 of 8 candidates" in ran.out
    assert "Raises ValueError" in " ".join(ran.out.split())
    assert str(tmp_path / "run" / "findings") in ran.out.replace("\n", "")
    # Taken up again, with all outcomes there.
    assert kt(*arguments, "--exit-code").code == 1


def test_right_candidates_alone_exit_with_0(kt, tmp_path):
    (tmp_path / "relu.py").write_text(RIGHT)
    ran = kt(*("run", "--candidates", tmp_path / "relu.py", "--exit-code"), *ARGUMENTS)
    assert ran.code == 0, ran.err
    assert "not right" not in ran.out


HANGS = "def relu(input):\n    while True:\n        pass\n"


def test_a_call_that_hangs_is_not_said_not_to_load(kt, tmp_path):
    (tmp_path / "relu.py").write_text(HANGS)
    arguments = ("--candidates", tmp_path / "relu.py", "--no-explain", "--timeout", "0.5")
    document = json.loads(kt("run", *arguments, "--json", *ARGUMENTS).out)
    (found,) = document["candidates"]
    assert found["verdict"] == "timeout"
    assert found["reason"].startswith("A call did not return within 0.5 s: ")


def test_a_run_up_to_the_call_stage_says_nothing_of_what_is_right(kt, tmp_path):
    (tmp_path / "relu.py").write_text(WRONG)
    run = tmp_path / "run"
    arguments = [a if a != "exe" else "call" for a in ARGUMENTS]
    assert kt("run", "--candidates", tmp_path / "relu.py", "--out", run, *arguments).code == 0
    overall = json.loads(kt("analyze", run, "--json").out)["rates"]["overall"]
    assert (overall["call"]["rate"], overall["exe"]["rate"]) == (1.0, None)


def test_a_finding_is_minimized_and_replayed_from_its_own_folder(kt, tmp_path, monkeypatch):
    (tmp_path / "relu.py").write_text(WRONG)
    run = tmp_path / "run"
    kt("run", "--candidates", tmp_path / "relu.py", "--out", run, "--no-explain", *ARGUMENTS)
    (finding,) = (run / "findings").iterdir()
    monkeypatch.chdir(run / "findings")
    ran = kt("minimize", finding.name, "--device", "cpu")
    assert ran.code in (0, 1), ran.err
    assert "its candidate is not at" not in ran.err
    assert kt("replay", finding.name, "--device", "cpu").code == 0
    assert kt("replay", finding.name, "--device", "cpu", "--from-snapshot").code == 0


@pytest.mark.slow
def test_a_finding_of_complex_inputs_is_replayed_minimized_and_reproduced(kt, tmp_path):
    (tmp_path / "spectral_norm_eig.py").write_text(
        "import torch\n\n\ndef spectral_norm_eig(A, *, out=None):\n"
        "    worst = torch.linalg.eigvals(A).abs().amax(-1)\n"
        "    worst = worst * 1.5 if A.dtype == torch.complex128 else worst\n"
        "    return worst if out is None else out.copy_(worst)\n"
    )
    run = tmp_path / "run"
    checked = kt("check", tmp_path / "spectral_norm_eig.py", "--device", "cpu", "--out", run)
    assert checked.code == 1, checked.err
    (finding,) = (run / "findings").glob("*.json")
    assert load_snapshot(finding)["A"].dtype == torch.complex128
    ran = kt("replay", run, "--device", "cpu", "--from-snapshot", "--json")
    (result,) = json.loads(ran.out)["results"]
    assert (result["inputs"], result["output"], result["reproduced"]) == ("same", "same", True)
    ran = kt("minimize", finding, "--device", "cpu")
    assert ran.code == 0, ran.err
    assert "'dtype': 'complex128'" in finding.with_suffix(".py").read_text()


@pytest.mark.slow
def test_our_own_error_at_one_finding_keeps_what_was_judged(kt, handed_in, tmp_path, monkeypatch):
    plain, run = tmp_path / "plain", tmp_path / "run"
    command = ("run", "--candidates", handed_in, *ARGUMENTS)
    assert kt(*command, "--out", plain).code == 0

    def broken(*_, **__):
        raise KeyError("torch.complex128")

    with monkeypatch.context() as patch:
        patch.setattr(RunStore, "write_finding", broken)
        ran = kt(*command, "--out", run)
    assert ran.code == 4
    assert "our bug, not yours" in ran.err
    kept = (run / "results.jsonl").read_text()
    assert 1 <= kept.count("\n") < 8
    assert kt(*command, "--out", run).code == 0
    assert (run / "results.jsonl").read_text().startswith(kept)
    assert outcomes(run) == outcomes(plain)
