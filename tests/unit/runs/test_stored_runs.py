"""The files of a run that an earlier release wrote are read, and written again as they were."""

import json
from pathlib import Path

import pytest

from kerneltruth.documents.model import dumps, parse, plain, updated
from kerneltruth.documents.records import Attempt
from kerneltruth.documents.stored import Manifest
from kerneltruth.errors import UserError
from kerneltruth.runs.findings import finding_from, load_finding
from kerneltruth.runs.store import RunStore

STORED = Path(__file__).parent / "stored"
FINDINGS = sorted((STORED / "findings").glob("*.json"))
LINES = (STORED / "results.jsonl").read_text().splitlines()


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.stem)
def test_a_stored_finding_is_written_again_byte_for_byte(path):
    # The stored findings are older than obligations and rules of quantization.
    again = dumps(load_finding(path), indent=2) + "\n"
    for later in ('  "obligations": [],\n', '  "quantization": null,\n'):
        again = again.replace(later, "")
    assert again == path.read_text().replace('"schema": 1', '"schema": 2')


@pytest.mark.parametrize("line", LINES, ids=lambda line: json.loads(line)["task"])
def test_a_stored_attempt_is_written_again_byte_for_byte(line):
    attempt = json.loads(line)["attempt"]
    # The stored lines are older than profiles, these than second rounds, what binaries use, and
    # rules of quantization.
    later = (
        ',"profile":{},"score":null,"kernel":null,"contract":"","hazards":{}'
        ',"second_round":null,"suspicions":[],"quantization":null'
    )
    again = dumps(parse(Attempt, attempt)).replace(later, "").replace(',"uses":null', "")
    assert f'"attempt":{again},' in line


def test_a_stored_manifest_is_written_again_byte_for_byte():
    text = (STORED / "run.json").read_text()
    assert dumps(parse(Manifest, json.loads(text)), indent=2) + "\n" == text


def test_a_stored_run_is_opened_with_all_its_lines():
    assert len(RunStore.open(STORED, keep=dict).results()) == len(LINES)


def test_an_older_schema_is_brought_up_step_by_step():
    older = plain(load_finding(FINDINGS[0]))
    older["job"] = older.pop("task")
    renamed = {2: lambda d: {**d, "op": d["job"]}, 3: lambda d: {**d, "task": d["op"]}}
    found = updated(older, "the finding", newest=4, updates=renamed)
    assert (found["task"], found["schema"]) == (older["case"]["task"], 4)


def test_a_later_schema_is_refused_in_one_line():
    later = plain(load_finding(FINDINGS[0])) | {"schema": 3}
    with pytest.raises(UserError, match=r"schema 3, and kerneltruth .* up to 2; upgrade") as caught:
        finding_from(later)
    assert "\n" not in str(caught.value)
