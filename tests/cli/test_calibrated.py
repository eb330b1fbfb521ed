"""`--bounds`: every method judges; the measured bounds come with the package."""

import json
from importlib.resources import files

import pytest

from kerneltruth.corpus import ENTRIES
from kerneltruth.engine.policy import bounded_dtypes, choose_policy
from kerneltruth.tasks.core import TASKS


@pytest.mark.parametrize("bounds", ["spread", "calibrated", "fixed"])
def test_a_correct_kernel_passes_under_every_method(kt, bounds, candidate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "import torch\ndef softmax(x, dim):\n    return torch.softmax(x, dim)\n"
    options = ("--bounds", bounds, "--strategy", "default", "--dtype", "fp32", "--device", "cpu")
    ran = kt("check", candidate(text), *options, "--json")
    assert (ran.code, json.loads(ran.out)["verdict"]) == (0, "pass")


@pytest.mark.parametrize("bounds", ["spread", "calibrated", "fixed"])
def test_a_wrong_kernel_fails_under_every_method(kt, bounds, candidate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "import torch\ndef softmax(x, dim):\n    return torch.sigmoid(x)\n"
    options = ("--bounds", bounds, "--cases", "4", "--device", "cpu", "--out", tmp_path / "run")
    ran = kt("check", candidate(text), *options, "--json")
    assert (ran.code, json.loads(ran.out)["kind"]) == (1, "value")


def test_a_replay_takes_the_bounds_of_its_finding(kt, candidate, tmp_path):
    # Off by less than the published tolerance, and by far more than rounding.
    text = "import torch\ndef softmax(x, dim):\n    return torch.softmax(x, dim) * 1.000008\n"
    options = ("--strategy", "default", "--dtype", "fp32", "--cases", "2", "--device", "cpu")
    lax = kt("check", candidate(text), *options, "--bounds", "fixed", "--out", tmp_path / "lax")
    strict = kt("check", candidate(text), *options, "--out", tmp_path / "strict")
    assert (lax.code, strict.code) == (0, 1)
    finding = next((tmp_path / "strict" / "findings").glob("*.json"))
    data = json.loads(finding.read_text())
    assert (data["bounds"], data["tf32"]) == ("spread", True)
    finding.write_text(json.dumps({**data, "bounds": "fixed"}))
    again = json.loads(kt("replay", finding, "--device", "cpu", "--json").out)
    assert again["results"][0]["verdict"] == "pass"


def test_the_measured_bounds_say_where_they_come_from():
    text = files("kerneltruth.oracle").joinpath("calibration.json").read_text()
    table = json.loads(text)
    assert table["schema"] == 1
    assert set(table["bounds"]) == set(table["cases"])
    assert {"torch", "triton", "python", "seed", "controls"} <= set(table["provenance"])
    assert all(bound >= 0 for bound in table["bounds"].values())
    assert all(count >= 4 for count in table["cases"].values())


def test_every_task_with_a_control_has_measured_bounds_for_its_dtypes():
    policy = choose_policy("calibrated", tf32=True)
    for name in {e.task for e in ENTRIES if e.role == "control"}:
        assert set(TASKS[name].dtypes) <= set(bounded_dtypes(TASKS[name], policy))
