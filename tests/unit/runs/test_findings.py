"""Verdicts, attempts and findings survive JSON; what is no finding is refused in one line."""

import json
import math
import os
import re
from pathlib import Path

import pytest
from msgspec import structs
from msgspec.structs import replace

from kerneltruth.documents.case import Case
from kerneltruth.documents.model import dumps, parse, plain
from kerneltruth.documents.records import (
    Attempt,
    CandidateRef,
    ErrorMap,
    ErrorStats,
    InterfaceNote,
    Judgement,
)
from kerneltruth.documents.verdict import (
    CompileError,
    Crashed,
    Declined,
    Failed,
    Infra,
    Passed,
    RuntimeFault,
    TimedOut,
    Unrefereeable,
    UnsupportedHere,
    Void,
)
from kerneltruth.errors import InternalError, UserError
from kerneltruth.runner.containment import levels
from kerneltruth.runs.findings import (
    environment_fingerprint,
    finding_from,
    finding_of,
    load_finding,
)

CASE = Case(
    task="softmax",
    dims=(("M", 1), ("N", 257)),
    attributes=(("scale", 0.5), ("kernel", (3, 3)), ("bias", None), ("mode", "max")),
    dtype="bfloat16",
    seed=2**64 - 1,
    absent=("weight",),
    literals=(("x", (1.0, math.inf, -0.0)),),
)
CANDIDATE = CandidateRef(sha256="c" * 64, path="k.py", language="triton", entry="softmax")
FAILURE = Judgement(
    case=CASE,
    verdict=Failed(kind="value", detail="3 of 257 elements are wrong"),
    stats=ErrorStats(count=257, num_exceeding=3, max_abs=math.nan, worst_index=(0, 256)),
    config=2,
    digests={"x": "a" * 64},
    reference_digest="b" * 64,
    output_digest="d" * 64,
)
ATTEMPT = Attempt(
    task="softmax",
    candidate=CANDIDATE,
    verdict=FAILURE.verdict,
    cases=9,
    failed=1,
    declined=((replace(CASE, layout="transposed"), "ValueError: contiguous only"),),
    skipped={"fp8 is not native": 2},
    failure=FAILURE,
    minimal=CASE,
    explanation="wrong in the last partial tile",
    error_map=ErrorMap(output="out", shape=(1, 257), lines=("...#",)),
    void={"PyTorch's own function raises ValueError": 1},
    interface=(
        InterfaceNote(kind="dtype", detail="odd", output="out", cases=2, core=0, first=CASE),
    ),
    shown="x=[1.0], expected 1.0, got nan",
    torch_only=True,
)
FINDING = finding_of(ATTEMPT, environment_fingerprint())
VERDICTS = (
    Passed(),
    FAILURE.verdict,
    CompileError(detail="no", target="sm_90"),
    RuntimeFault(error="ValueError", detail="no"),
    Declined(reason="no"),
    Crashed(signal=11, detail="died"),
    TimedOut(seconds=2.5),
    Unrefereeable(reason="accepts zeros"),
    Void(reason="PyTorch raises"),
    UnsupportedHere(reason="needs CUDA"),
    Infra(reason="lost"),
)


@pytest.mark.parametrize("verdict", VERDICTS, ids=lambda v: type(v).__name__)
def test_a_verdict_survives_json(verdict):
    judged = replace(ATTEMPT, verdict=verdict)
    again = parse(Attempt, json.loads(dumps(judged)))
    assert again.verdict == verdict


def test_an_attempt_survives_json():
    text = dumps(ATTEMPT)
    again = parse(Attempt, json.loads(text))
    assert dumps(again) == text
    assert again.failure.case == CASE


def test_a_finding_has_the_keys_of_the_contract():
    document = plain(FINDING)
    assert set(document) >= {
        "schema",
        "id",
        "task",
        "candidate",
        "case",
        "verdict",
        "stats",
        "digests",
        "minimal",
        "explanation",
        "environment",
    }
    assert set(document["digests"]) == {"inputs", "reference", "output"}
    assert set(document["candidate"]) == {"sha256", "path", "language", "entry"}


def test_a_finding_survives_json_with_nan_and_infinity():
    again = finding_from(json.loads(dumps(FINDING)))
    assert again.case == CASE
    assert again.config == 2
    assert math.isnan(again.stats.max_abs)
    assert dumps(again) == dumps(FINDING)


def test_the_same_failure_has_the_same_id():
    moved = replace(ATTEMPT, candidate=structs.replace(CANDIDATE, path="elsewhere.py"))
    assert finding_of(moved, {}).id == FINDING.id


def test_another_configuration_has_another_id():
    other = replace(ATTEMPT, failure=replace(FAILURE, config=3))
    assert finding_of(other, {}).id != FINDING.id


def test_an_attempt_that_passed_has_no_finding():
    with pytest.raises(InternalError):
        finding_of(replace(ATTEMPT, failure=None), {})


def test_a_key_that_a_later_release_added_is_left_out():
    document = plain(FINDING) | {"colour": "red"}
    assert finding_from(document) == finding_from(plain(FINDING))


def _damaged(**changes):
    document = plain(FINDING)
    document.update(changes)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "damaged"),
        ("[" * 100_000, "damaged"),
        ("[]", "not a finding"),
        ("{}", "no schema number"),
        ('{"schema": 1}', "required field `id`"),
        (_damaged(schema=7, version="3.0"), "by kerneltruth 3.0 with schema 7"),
        (_damaged(schema="1"), "no schema number"),
        (_damaged(task="gelu"), "of task 'softmax'"),
        (_damaged(case=[]), r"`object`, got `array` - at `\$.case`"),
        (_damaged(case={"task": "softmax", "dims": [["M", -1]]}), "negative dim"),
        (_damaged(verdict="fail"), r"at `\$.verdict`"),
        (_damaged(digests={"inputs": {"x": "abc"}, "reference": None, "output": None}), "64 hex"),
        (_damaged(digests={"inputs": ["abc"], "reference": None, "output": None}), "got `array`"),
        (_damaged(environment=[]), "got `array`"),
        (
            _damaged(stats={"count": "many", "num_exceeding": 0}),
            r"at `\$.stats.count`",
        ),
    ],
)
def test_a_damaged_finding_is_refused_in_one_line(tmp_path, text, says):
    path = tmp_path / "f.json"
    path.write_text(text)
    with pytest.raises(UserError, match=says) as caught:
        load_finding(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_finding_is_the_users_mistake(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        load_finding(tmp_path / "none.json")


def test_a_file_that_is_no_finding_is_refused_with_what_to_give(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("[1]")
    with pytest.raises(UserError, match=r"not a finding: \[1\]; give a file of RUN/findings"):
        load_finding(path)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("relu.py", "import torch", "a Python file, not a finding (a file of RUN/findings, or one"),
        ("relu.py", "", "run it with python if it is a finding's script; `kerneltruth check "),
        ("relu.cu", "__global__", "a source, not a finding"),
        ("run.json", "{}", "the record of a whole run, not a finding"),
        ("results.jsonl", "{}\n{}", "{folder}/findings"),
        ("f.json", "", "is an empty file, not a finding"),
        ("f", None, "is a directory, not a finding"),
    ],
)
def test_what_is_plainly_no_finding_is_named_with_what_to_do(tmp_path, name, text, says):
    path = tmp_path / name
    path.mkdir() if text is None else path.write_text(text)
    with pytest.raises(UserError, match=re.escape(says.format(folder=tmp_path))) as caught:
        load_finding(path)
    assert str(caught.value).startswith(f"{path} is ")
    assert "damaged" not in str(caught.value)


def test_an_address_is_no_finding():
    with pytest.raises(UserError, match=r"is an address, not a finding .*; download it"):
        load_finding(Path("https://example.org/f.json"))


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "f.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="damaged"):
        load_finding(path)


def test_the_fingerprint_names_versions_and_isolation():
    found = environment_fingerprint("cpu", name="cpu (2 cores)")
    assert found["isolation"] == levels.offered().level
    assert found["memory"] == "judge"
    assert found["torch"].startswith("2.")
    assert found["device_name"] == "cpu (2 cores)"
    assert found["cuda"] is None


@pytest.mark.processes
@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="here is a driver")
def test_the_fingerprint_says_why_a_child_keeps_its_memory_itself():
    assert environment_fingerprint("cuda:0")["memory"].startswith("child: no CUDA driver")


def test_records_are_read_without_importing_torch():
    import subprocess
    import sys

    code = "import sys, kerneltruth.runs.store as s; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
