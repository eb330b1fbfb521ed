"""Findings are named by their ID anywhere, and travel as one file."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from kerneltruth.documents.exports import seal_of
from kerneltruth.errors import UserError
from kerneltruth.runs.findings import load_finding
from kerneltruth.runs.parts import export_of, load_inputs, load_source

ON_CPU = ("--device", "cpu")


def refused(ran):
    assert (ran.code, ran.out) == (2, ""), ran
    assert len(ran.err.splitlines()) == 1, ran.err
    return ran.err


@pytest.fixture
def exported(kt, finding, failed_run, tmp_path):
    """The only file that is left of a finding."""
    folder = tmp_path / "mail"
    folder.mkdir()
    ran = kt("export", finding, "-o", folder, "--json")
    assert ran.code == 0, ran.err
    shutil.rmtree(failed_run)
    return folder / f"{finding.stem}.finding.json"


@pytest.mark.parametrize("command", ["replay", "minimize", "export"])
def test_a_finding_is_named_by_the_beginning_of_its_id(kt, finding, tmp_path, monkeypatch, command):
    (tmp_path / "runs").mkdir()
    (tmp_path / "failed").rename(tmp_path / "runs" / "check-1")
    monkeypatch.chdir(tmp_path)
    ran = kt(command, finding.stem[:-3], *ON_CPU, "--json")
    assert ran.code == 0, ran.err
    assert finding.stem in ran.out
    assert "neither a file nor the ID" in refused(kt(command, "gelu-12", *ON_CPU))
    named = kt(command, finding.stem, "--run", tmp_path / "nowhere", *ON_CPU)
    assert "there is no such folder" in refused(named)


def test_an_exported_finding_replays_alone(kt, exported, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for options in ((), ("--from-snapshot",)):
        ran = kt("replay", exported, *ON_CPU, "--json", *options)
        (result,) = json.loads(ran.out)["results"]
        assert (ran.code, result["reproduced"]) == (0, True), ran
        assert (result["inputs"], result["output"]) == ("same", "same")


@pytest.mark.slow
def test_an_exported_finding_is_minimized_alone(kt, exported):
    ran = kt("minimize", exported, *ON_CPU)
    assert ran.code == 0, ran.err
    shown = subprocess.run([sys.executable, exported.with_suffix(".py")], check=False)
    assert shown.returncode == 1


def test_it_holds_finding_source_and_inputs_byte_for_byte(kt, finding, failed_run, tmp_path):
    (source,) = (failed_run / "candidates").iterdir()
    (inputs,) = (failed_run / "inputs").iterdir()
    kt("export", finding, "-o", tmp_path / "one.json")
    path = tmp_path / "one.json"
    assert load_finding(path) == load_finding(finding)
    assert load_source(path, source.stem).encode() == source.read_bytes()
    assert load_inputs(path) == inputs.read_bytes()
    kt("export", path, "-o", tmp_path / "two.json")
    assert (tmp_path / "two.json").read_bytes() == path.read_bytes()


def test_export_says_what_it_wrote_and_what_to_do_with_it(kt, finding, tmp_path):
    ran = kt("export", finding, "-o", tmp_path)
    file = tmp_path / f"{finding.stem}.finding.json"
    assert ran.code == 0
    assert f"{file}, {-(-file.stat().st_size // 1024)} KiB, with its inputs" in ran.out
    assert f"kerneltruth replay {file}" in ran.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(source=data["source"] + "\n"),
        lambda data: data.update(source="\ud800"),
        lambda data: data["finding"].update(explanation="all is well"),
        lambda data: data["finding"]["case"].update(seed=1),
        lambda data: data.update(inputs=None),
        lambda data: data.pop("inputs"),
        lambda data: data.update(sha256=7),
    ],
)
@pytest.mark.parametrize("command", ["replay", "minimize", "export"])
def test_altered_content_is_refused(kt, exported, command, change):
    data = json.loads(exported.read_text())
    change(data)
    exported.write_text(json.dumps(data))
    said = refused(kt(command, exported))
    assert "its content is not what `kerneltruth export` wrote" in said


def test_a_source_that_is_not_the_findings_is_refused_though_sealed(kt, exported):
    data = json.loads(exported.read_text())
    data["source"] += "\n"
    data["sha256"] = seal_of(data)
    exported.write_text(json.dumps(data))
    assert "was changed after it was judged" in refused(kt("replay", exported, *ON_CPU))


@pytest.mark.parametrize("key", ["finding", "source", "schema"])
def test_a_key_that_is_missing_is_named(kt, exported, key):
    data = json.loads(exported.read_text())
    del data[key]
    data["sha256"] = seal_of(data)
    exported.write_text(json.dumps(data))
    assert key in refused(kt("replay", exported, *ON_CPU))


def test_a_file_that_was_cut_short_is_damaged(kt, exported):
    exported.write_text(exported.read_text()[:-9])
    assert "is damaged" in refused(kt("replay", exported))


@pytest.mark.parametrize("command", ["replay", "minimize", "export"])
def test_a_pipe_and_a_large_file_are_not_read(kt, tmp_path, command):
    pipe, large = tmp_path / "pipe.json", tmp_path / "large.json"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(2**40)
    assert "not a file; check the path" in refused(kt(command, pipe))
    assert "it holds more than 67108864 bytes" in refused(kt(command, large))


def test_inputs_that_make_the_file_too_large_are_left_out(finding):
    whole, data = export_of(finding)
    less, smaller = export_of(finding, most_bytes=len(data) - 1)
    assert whole.inputs is not None
    assert less.inputs is None
    assert len(smaller) < len(data)
    with pytest.raises(UserError, match="send its run"):
        export_of(finding, most_bytes=100)


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("failed/findings/{}", "it is the finding itself; name another file"),
        ("/dev/null", "it is no regular file; name another file"),
        ("nowhere/x.json", "there is no folder"),
    ],
)
def test_a_place_that_is_none_for_it_is_refused(kt, finding, tmp_path, out, said):
    before = finding.read_bytes()
    assert said in refused(kt("export", finding, "-o", tmp_path / out.format(finding.name)))
    assert finding.read_bytes() == before


def test_a_suite_that_the_file_does_not_hold_is_named(kt, finding, tmp_path):
    data = json.loads(finding.read_text())
    data["environment"]["suite"] = "tasks:/home/ada/my_tasks.py"
    finding.write_text(json.dumps(data))
    ran = kt("export", finding, "-o", tmp_path, "--json")
    assert json.loads(ran.out)["needs"] == "tasks:/home/ada/my_tasks.py"


def test_a_replay_writes_the_error_of_each_element(kt, finding, tmp_path):
    ran = kt("replay", finding, *ON_CPU, "--errors", tmp_path / "errors", "--json")
    assert ran.code == 0, ran.err
    (result,) = json.loads(ran.out)["results"]
    arrays = np.load(tmp_path / "errors" / f"{finding.stem}.npz")
    assert int(arrays["out.wrong"].sum()) == load_finding(finding).stats.num_exceeding
    assert np.nanmax(arrays["out.error"]) == load_finding(finding).stats.max_abs
    picture = tmp_path / "errors" / f"{finding.stem}.out.svg"
    assert picture.read_text().startswith("<svg ")
    assert result["errors"] == [str(tmp_path / "errors" / f"{finding.stem}.npz"), str(picture)]
    (again,) = json.loads(kt("replay", finding, *ON_CPU, "--json").out)["results"]
    assert again["errors"] is None
