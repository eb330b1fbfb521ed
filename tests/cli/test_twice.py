"""`--twice`: what passes is judged again, on other cases."""

import json

from kerneltruth.oracle.second_round import second_seed

RIGHT = "import torch\ndef relu(input):\n    return torch.relu(input)\n"
WRONG = "import torch\ndef relu(input):\n    return input.abs()\n"
ARGUMENTS = ("--device", "cpu", "--seed", 3, "--twice", "--cases", 4)


def test_a_right_kernel_is_judged_again_on_other_cases(kt, tmp_path):
    path = tmp_path / "relu.py"
    path.write_text(RIGHT)
    ran = kt("check", path, "--task", "relu", *ARGUMENTS)
    assert ran.code == 0
    said = next(line for line in ran.out.splitlines() if line.startswith("again"))
    assert "passed again" in said
    assert f"of seed {second_seed(3)} (--twice)" in said


def test_a_run_judges_what_passed_again(kt, tmp_path):
    answers = tmp_path / "answers.jsonl"
    lines = (json.dumps({"file": "relu.py", "predict": source}) for source in (RIGHT, WRONG))
    answers.write_text("\n".join(lines))
    run = ("--suite", "core", "--stage", "exe", "--out", tmp_path / "run", "--json")
    ran = kt("run", "--candidates", answers, *run, *ARGUMENTS)
    judged = json.loads(ran.out)["candidates"]
    # They end side by side, and are listed as they end.
    passed, failed = sorted(judged, key=lambda candidate: candidate["verdict"] != "pass")
    again = passed["second_round"]
    assert (again["reason"], again["seed"], again["verdict"]) == ("asked", second_seed(3), "pass")
    assert failed["second_round"] is None
