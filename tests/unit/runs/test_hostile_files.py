"""Whatever a file holds, each reader refuses it in one line or reads it, and stays small."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile import FUZZED, VALUES, changed, reading, texts
from kerneltruth.documents.exports import seal_of
from kerneltruth.errors import UserError
from kerneltruth.runs.findings import load_finding
from kerneltruth.runs.ledger import Ledger
from kerneltruth.runs.parts import load_inputs, load_source
from kerneltruth.runs.store import RunStore
from kerneltruth.suites.flashinfer.trace import read_traces
from kerneltruth.suites.reading import read_submissions
from kerneltruth.suites.submission import Broken, Submission

pytestmark = pytest.mark.sweep

STORED = Path(__file__).parent / "stored"
FINDING = json.loads(next(iter(sorted((STORED / "findings").glob("*.json")))).read_text())
LINES = (STORED / "results.jsonl").read_text().splitlines()
MANIFEST = json.loads((STORED / "run.json").read_text())
SUBMISSION = {"problem_id": 1, "sample_id": 0, "kernel": "def f(x): return x", "file": "relu.py"}


@FUZZED
@given(texts(FINDING))
def test_a_finding(tmp_path, data):
    path = tmp_path / "findings" / "f.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    with reading(UserError) as read:
        finding = load_finding(path)
        load_source(path, finding.candidate.sha256)
    assert read.problems == []


@FUZZED
@given(changed(FINDING), VALUES, VALUES)
def test_an_exported_finding_whose_digest_is_right(tmp_path, finding, source, inputs):
    made = {"form": "exported finding", "finding": finding, "source": source, "inputs": inputs}
    made |= {"schema": 2, "version": "1"}
    path = tmp_path / "f.json"
    path.write_text(json.dumps(made | {"sha256": seal_of(made)}))
    with reading(UserError) as read:
        found = load_finding(path)
        load_source(path, found.candidate.sha256)
        load_inputs(path)
    assert read.problems == []


@pytest.mark.slow
@FUZZED
@given(st.lists(st.sampled_from(LINES).map(json.loads).flatmap(texts), max_size=4))
def test_results(tmp_path, lines):
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"\n".join(lines))
    with reading(UserError) as read, Ledger(path, keep=dict) as ledger:
        assert len(ledger.lines()) <= len(path.read_bytes().splitlines())
    assert read.problems == []


@FUZZED
@given(texts(MANIFEST))
def test_a_manifest(tmp_path, data):
    (tmp_path / "run.json").write_bytes(data)
    with reading(UserError) as read:
        RunStore.open(tmp_path, keep=dict)
    assert read.problems == []


@FUZZED
@given(texts(SUBMISSION), st.sampled_from((".json", ".jsonl", ".py")))
def test_a_submission(tmp_path, data, suffix):
    for old in tmp_path.iterdir():
        old.unlink()
    (tmp_path / f"one{suffix}").write_bytes(data)
    with reading(UserError) as read:
        for submission in read_submissions(tmp_path):
            assert isinstance(submission, Submission | Broken)
    assert read.problems == []


@pytest.mark.parametrize("depth", [10**3, 10**5])
@pytest.mark.parametrize("name", ["f.json", "run.json", "results.jsonl"])
def test_nested_documents_are_refused(tmp_path, name, depth):
    path = tmp_path / name
    path.write_text("[" * depth + "]" * depth)
    with reading(UserError) as read:
        match name:
            case "results.jsonl":
                assert Ledger(path, keep=dict).notes
            case "run.json":
                RunStore.open(tmp_path, keep=dict)
            case _:
                load_finding(path)
    assert read.problems == []
    assert read.refusal or name == "results.jsonl"


@pytest.mark.parametrize("name", ["f.json", "run.json", "results.jsonl", "answers.jsonl"])
def test_text_that_takes_many_times_its_size_is_not_parsed(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b'{"key":[' + b"[]," * 2**21 + b"[]]}")
    with reading(UserError) as read:
        match name:
            case "f.json":
                load_finding(path)
            case "run.json":
                RunStore.open(tmp_path, keep=dict)
            case "results.jsonl":
                assert Ledger(path, keep=dict).notes
            case _:
                (broken,) = read_submissions(path)
                read.refusal = broken.reason
    assert read.problems == []
    assert name == "results.jsonl" or "MiB of values" in read.refusal


def test_a_nested_export_is_refused(tmp_path):
    path = tmp_path / "f.json"
    nested = "[" * 900 + "]" * 900
    path.write_text('{"form": "exported finding", "sha256": "0", "x": ' + nested + "}")
    with reading(UserError) as read:
        load_finding(path)
    assert read.problems == []
    assert "not what `kerneltruth export` wrote" in read.refusal


def test_the_writer_of_a_newer_document_is_named_in_one_line(tmp_path):
    path = tmp_path / "f.json"
    path.write_text(json.dumps({"schema": 10**400, "version": "3\n" * 99}))
    with reading(UserError) as read:
        load_finding(path)
    assert read.problems == []
    assert len(read.refusal) < 400


def test_verdicts_of_a_peer_in_a_pipe_are_not_waited_for(tmp_path):
    (tmp_path / "level_1_problem_2_sample_0_kernel.py").write_text("x = 1\n")
    os.mkfifo(tmp_path / "eval_results.json")
    (tmp_path / "traces").mkdir()
    os.mkfifo(tmp_path / "traces" / "t.jsonl")

    broken, submission = read_submissions(tmp_path)
    assert "a pipe" in broken.reason
    assert submission.source == "x = 1\n"
    with reading(UserError) as read:
        read_traces(tmp_path)
    assert "a pipe" in read.refusal
