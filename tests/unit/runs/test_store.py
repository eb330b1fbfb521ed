"""A run stays readable whatever stops it, and goes on where it stopped."""

import contextlib
import json
import math
import os
import re
import resource
import signal

import pytest
import torch
from msgspec import Struct
from msgspec.structs import replace
from safetensors.torch import load_file, save

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import CandidateRef
from kerneltruth.documents.stored import Digests, Finding, Manifest
from kerneltruth.documents.verdict import Failed
from kerneltruth.errors import EnvironmentFault, InternalError, UserError
from kerneltruth.runner.regular_file import MOST_BYTES
from kerneltruth.runs.files import writing
from kerneltruth.runs.findings import load_finding
from kerneltruth.runs.store import FOLDERS, RunStore, load_snapshot

MANIFEST = Manifest(
    arguments=("audit", "--seed", "0"),
    seed=0,
    suite_hash="0" * 64,
    environment={"device": "cpu", "driver": None},
    started="2026-01-01T00:00:00+00:00",
)
FINDING = Finding(
    id="relu-0123456789ab",
    task="relu",
    candidate=CandidateRef(sha256="c" * 64, path="k.py", language="triton", entry="relu"),
    case=Case(task="relu", dims=(("N", 2),), seed=7),
    verdict=Failed(kind="value", detail="2 of 2 elements are wrong"),
    stats=None,
    digests=Digests(inputs={"x": "a" * 64}, reference="b" * 64, output=None),
    minimal=None,
    explanation="",
    environment={"device": "cpu"},
)


@pytest.fixture
def run(tmp_path):
    with RunStore.create(tmp_path / "run", MANIFEST, keep=dict) as store:
        yield store


@contextlib.contextmanager
def file_size_limit(size):
    """Within it no file can grow beyond a size, as on a full disk.

    It is lifted before the test ends: pytest's own output may be such a file.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_run_is_read_as_it_was_written(run):
    run.append("softmax/a", {"verdict": "pass", "worst": float("nan")})
    run.append("softmax/b", {"verdict": "fail"})
    again = RunStore.open(run.path, keep=dict)
    assert again.manifest == MANIFEST
    assert again.results() == (
        {"key": "softmax/a", "verdict": "pass", "worst": "NaN"},
        {"key": "softmax/b", "verdict": "fail"},
    )
    assert again.results() == run.results()
    assert again.notes == ()


def test_done_names_the_attempts_that_have_a_verdict(run):
    run.append("a", {})
    assert RunStore.open(run.path, keep=dict).done() == {"a"}


def test_an_attempt_has_one_result(run):
    run.append("a", {})
    with pytest.raises(InternalError, match="'a'"):
        run.append("a", {})


def test_a_result_is_on_disk_when_append_returns(run):
    run.append("a", {"n": 1})
    line = (run.path / "results.jsonl").read_text()
    assert re.fullmatch(r'\{"key":"a","n":1,"chain":"[0-9a-f]{32}"\}\n', line)


@pytest.mark.parametrize("torn", [b'{"key":"b","ver', b"\x00\x00", b"7", b"{}\n"])
def test_a_torn_last_line_is_dropped_and_reported(run, torn):
    run.append("a", {})
    run.close()
    with (run.path / "results.jsonl").open("ab") as log:
        log.write(torn)
    again = RunStore.open(run.path, keep=dict)
    assert again.done() == {"a"}
    assert len(again.notes) == 1
    assert "line 2" in again.notes[0]


def test_a_resumed_run_writes_over_a_torn_line(run):
    run.append("a", {})
    run.close()
    with (run.path / "results.jsonl").open("ab") as log:
        log.write(b'{"key":"b","ver')
    with RunStore.open(run.path, keep=dict) as again:
        again.append("b", {"n": 2})
    assert RunStore.open(run.path, keep=dict).done() == {"a", "b"}
    assert RunStore.open(run.path, keep=dict).notes == ()


def test_a_last_line_that_lacks_only_its_newline_is_kept(run):
    run.append("a", {})
    run.close()
    path = run.path / "results.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    with RunStore.open(run.path, keep=dict) as again:
        again.append("b", {})
    assert RunStore.open(run.path, keep=dict).done() == {"a", "b"}


def test_a_damaged_line_in_the_middle_is_never_passed_over(run):
    run.append("a", {})
    run.append("b", {})
    run.close()
    path = run.path / "results.jsonl"
    path.write_text("garbage\n" + path.read_text())
    with pytest.raises(UserError, match="line 1 is damaged"):
        RunStore.open(run.path, keep=dict)


def test_a_full_disk_is_the_machines_fault_and_leaves_whole_lines(run):
    run.append("a", {"text": "x" * 100})
    refused = pytest.raises(EnvironmentFault, match=r"cannot write .*results\.jsonl")
    with refused, file_size_limit(200):
        run.append("b", {"text": "y" * 1000})
    run.append("c", {})
    again = RunStore.open(run.path, keep=dict)
    assert [line["key"] for line in again.results()] == ["a", "c"]
    assert again.notes == ()


def test_a_finding_that_does_not_fit_leaves_no_half_file(run):
    with pytest.raises(EnvironmentFault), file_size_limit(64):
        run.write_finding(FINDING, {"x": torch.ones(100)})
    assert list((run.path / "findings").iterdir()) == []
    assert list((run.path / "inputs").iterdir()) == []


def test_no_space_is_said_with_the_next_step(tmp_path):
    with (
        pytest.raises(EnvironmentFault, match="No space left on device; free some space"),
        writing(tmp_path / "f"),
    ):
        raise OSError(28, os.strerror(28))


def test_a_directory_that_holds_a_run_is_not_overwritten(run):
    with pytest.raises(UserError, match="already holds a run"):
        RunStore.create(run.path, MANIFEST, keep=dict)


def test_a_directory_of_other_files_is_not_written_into(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UserError, match="not empty"):
        RunStore.create(tmp_path, MANIFEST, keep=dict)


def test_an_empty_directory_may_become_a_run(tmp_path):
    RunStore.create(tmp_path, MANIFEST, keep=dict).close()
    assert RunStore.open(tmp_path, keep=dict).manifest == MANIFEST


def test_a_run_that_cannot_be_written_is_the_machines_fault(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match="cannot write"):
        RunStore.create(tmp_path / "file" / "run", MANIFEST, keep=dict)


def test_a_manifest_that_is_no_object_is_refused_with_the_next_step(tmp_path):
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(UserError, match="is damaged: not an object; repeat the run"):
        RunStore.open(tmp_path, keep=dict)


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(UserError, match="not a run"):
        RunStore.open(tmp_path, keep=dict)


def test_a_run_of_a_newer_version_is_refused(run):
    path = run.path / "run.json"
    document = json.loads(path.read_text()) | {"schema": 3, "version": "9.1"}
    path.write_text(json.dumps(document))
    with pytest.raises(UserError, match=r"by kerneltruth 9\.1 with schema 3.*upgrade"):
        RunStore.open(run.path, keep=dict)


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 1}', '{"schema": 1, "seed": "x"}'])
def test_a_damaged_manifest_is_refused_in_one_line(run, text):
    (run.path / "run.json").write_text(text)
    with pytest.raises(UserError, match=r"run\.json") as caught:
        RunStore.open(run.path, keep=dict)
    assert "\n" not in str(caught.value)


def test_two_processes_do_not_write_one_run(run):
    run.append("a", {})
    with (
        RunStore.open(run.path, keep=dict) as other,
        pytest.raises(EnvironmentFault, match="another process"),
    ):
        other.append("b", {})
    assert RunStore.open(run.path, keep=dict).done() == {"a"}


def test_finish_notes_the_end(run):
    run.finish()
    assert RunStore.open(run.path, keep=dict).manifest.ended is not None
    assert MANIFEST.ended is None


def test_a_run_goes_on_without_folders_that_someone_has_removed(run):
    for folder in FOLDERS:
        (run.path / folder).rmdir()
    assert run.write_source("relu").is_file()
    assert load_snapshot(run.write_finding(FINDING, {"x": torch.ones(2)}))["x"].tolist() == [1, 1]


def test_a_finding_is_stored_with_its_exact_inputs(run):
    x = torch.tensor([[1.0, float("nan")], [-0.0, 2.0]], dtype=torch.bfloat16)
    path = run.write_finding(FINDING, {"x": x.t(), "weight": None})
    assert load_finding(path).digests == FINDING.digests
    stored = load_snapshot(path)
    assert set(stored) == {"x"}
    assert stored["x"].view(torch.int16).equal(x.t().contiguous().view(torch.int16))


def bits_of(tensor):
    plain = tensor.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return tensor.dtype, tuple(tensor.shape), plain.reshape(-1).view(torch.uint8).tolist()


STORED = [
    *(torch.complex32, torch.complex64, torch.complex128),
    *(torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.int64),
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
    *(torch.float8_e8m0fnu, torch.float4_e2m1fn_x2, torch.float64, torch.bfloat16),
]


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", STORED, ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 3)], ids=str)
def test_inputs_of_every_dtype_keep_their_bits(run, dtype, shape):
    # All ones are a NaN with a payload in each floating-point format.
    byte = 1 if dtype == torch.bool else 255
    raw = torch.full((math.prod(shape) * dtype.itemsize,), byte, dtype=torch.uint8)
    if dtype != torch.bool:
        raw[::3] = 77
    tensor = raw.view(dtype).reshape(shape)
    stored = load_snapshot(run.write_finding(FINDING, {"x": tensor, "y": torch.ones(2)}))
    assert bits_of(stored["x"]) == bits_of(tensor)
    assert bits_of(stored["y"]) == bits_of(torch.ones(2))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_a_view_that_conjugates_or_negates_is_stored_as_what_it_shows(run, dtype):
    z = torch.tensor([[1 + 2j, -0.0 - 3j], [5j, complex("inf-nanj")]], dtype=dtype)
    given = {"conj": z.conj(), "mH": z.mH, "imag": z.conj().imag, "step": z[:, ::2]}
    assert given["conj"].is_conj()
    assert given["imag"].is_neg()
    stored = load_snapshot(run.write_finding(FINDING, given))
    assert {n: bits_of(t) for n, t in stored.items()} == {n: bits_of(t) for n, t in given.items()}


def test_what_every_safetensors_reads_is_stored_as_itself_and_the_rest_as_bytes(run):
    z = torch.ones(2, 3, dtype=torch.complex64)
    run.write_finding(FINDING, {"x": torch.ones(2), "z": z})
    path = run.path / "inputs" / f"{FINDING.id}.safetensors"
    assert {n: (t.dtype, tuple(t.shape)) for n, t in load_file(path).items()} == {
        "x": (torch.float32, (2,)),
        "z": (torch.uint8, (48,)),
    }


def test_inputs_of_an_earlier_version_are_read(run):
    inputs = {"x": torch.ones(2, dtype=torch.bfloat16), "n": torch.arange(3, dtype=torch.uint8)}
    path = run.write_finding(FINDING, {})
    (run.path / "inputs" / f"{FINDING.id}.safetensors").write_bytes(save(inputs))
    stored = load_snapshot(path)
    assert {n: bits_of(t) for n, t in stored.items()} == {n: bits_of(t) for n, t in inputs.items()}


@pytest.mark.parametrize(
    "about",
    [
        '{"dtype": "float7", "shape": [2]}',
        '{"dtype": "load", "shape": [2]}',
        '{"dtype": "complex64", "shape": [5]}',
        '{"dtype": "complex64"}',
        "7",
        "{",
    ],
)
def test_inputs_of_an_unknown_dtype_or_with_damaged_metadata_are_refused(run, about):
    path = run.write_finding(FINDING, {"z": torch.ones(2, dtype=torch.complex64)})
    raw = save({"z": torch.zeros(16, dtype=torch.uint8)}, metadata={"z": about})
    (run.path / "inputs" / f"{FINDING.id}.safetensors").write_bytes(raw)
    with pytest.raises(UserError, match="without --from-snapshot") as caught:
        load_snapshot(path)
    assert "\n" not in str(caught.value)


def test_inputs_above_the_limit_leave_seed_and_digests_only(run):
    path = run.write_finding(FINDING, {"x": torch.ones(100)}, limit_bytes=399)
    assert load_snapshot(path) is None
    assert load_finding(path).case.seed == FINDING.case.seed


def test_inputs_that_share_memory_are_stored_each(run):
    x = torch.arange(4.0)
    path = run.write_finding(FINDING, {"a": x, "b": x[1:]})
    assert load_snapshot(path)["b"].tolist() == [1.0, 2.0, 3.0]


def test_a_damaged_snapshot_is_refused(run):
    path = run.write_finding(FINDING, {"x": torch.ones(2)})
    (run.path / "inputs" / f"{FINDING.id}.safetensors").write_bytes(b"not tensors")
    with pytest.raises(UserError, match="without --from-snapshot"):
        load_snapshot(path)


def test_a_finding_stored_again_replaces_its_former_self(run):
    run.write_finding(FINDING, {})
    path = run.write_finding(replace(FINDING, explanation="shorter"), {})
    assert load_finding(path).explanation == "shorter"
    assert len(list((run.path / "findings").iterdir())) == 1


def test_a_source_is_stored_once_by_its_content(run):
    first, second = run.write_source("x = 1\n"), run.write_source("x = 1\n")
    assert first == second
    assert first.read_text() == "x = 1\n"
    assert first.stem == "9e26bf369911c45c243c684147b23fc9e1dcfcf257d299a1c632016a6fcd33f4"


def test_a_run_whose_manifest_was_never_written_is_begun_again(tmp_path):
    for folder in FOLDERS:
        (tmp_path / "run" / folder).mkdir(parents=True)
    (tmp_path / "run" / ".run.json.123").write_text("{")
    with RunStore.create(tmp_path / "run", MANIFEST, keep=dict) as store:
        store.append("a", {"x": 1})
    assert [line["x"] for line in RunStore.open(tmp_path / "run", keep=dict).results()] == [1]


def test_only_the_requested_part_of_a_line_stays_in_memory(tmp_path):
    def keep(line):
        return {"key": line["key"]}

    with RunStore.create(tmp_path / "run", MANIFEST, keep=keep) as store:
        store.append("a", {"large": "x" * 1000})
        assert store.results() == ({"key": "a"},)
    assert RunStore.open(tmp_path / "run", keep=keep).results() == ({"key": "a"},)
    assert "large" in RunStore.open(tmp_path / "run", keep=dict).results()[0]


class Narrow(Struct, frozen=True):
    """The part of a line that a test wants."""

    key: str
    n: int = 0


def test_lines_come_in_the_requested_form_and_as_dicts_where_they_are_not_of_it(run):
    run.append("a", {"n": 1, "large": [1, 2]})
    run.append("b", {"n": "many"})
    first, second = RunStore.open(run.path, keep=lambda line: line, form=Narrow).results()
    assert first == Narrow("a", 1)
    assert second == {"key": "b", "n": "many"}


@pytest.mark.parametrize("damage", [b"\xff", b'"', b"\\q", b"\n", b"\x01"])
def test_damage_is_noticed_where_the_form_leaves_it_out(run, damage):
    path = run.path / "results.jsonl"
    path.write_bytes(b'{"key":"a","text":"x' + damage + b'x"}\n{"key":"b"}\n')
    with pytest.raises(UserError, match="line 1 is damaged"):
        RunStore.open(run.path, keep=lambda line: line, form=Narrow)


def test_a_pipe_in_place_of_results_is_refused_and_not_waited_for(tmp_path):
    run = tmp_path / "run"
    RunStore.create(run, MANIFEST, keep=dict).close()
    (run / "results.jsonl").unlink(missing_ok=True)
    os.mkfifo(run / "results.jsonl")
    with pytest.raises(
        UserError, match=r"^cannot read .*results.jsonl: .*not a file; check its perm"
    ):
        RunStore.open(run, keep=dict)


def test_results_are_not_written_through_a_link(tmp_path):
    run, other = tmp_path / "run", tmp_path / "other"
    with RunStore.create(run, MANIFEST, keep=dict) as store:
        (run / "results.jsonl").unlink(missing_ok=True)
        (run / "results.jsonl").symlink_to(other)
        with pytest.raises(EnvironmentFault, match="cannot write"):
            store.append("a", {"verdict": "pass"})
    assert not other.exists()


def test_a_source_with_half_a_character_is_kept(run):
    assert run.write_source("def f(): return '\ud800'\n")


def chained(run):
    """The lines of a run that has three."""
    for key in "abc":
        run.append(key, {"n": 1})
    run.close()
    return (run.path / "results.jsonl").read_text().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda lines: [lines[0].replace('"n":1', '"n":2'), *lines[1:]], 1),
        (lambda lines: [lines[0], lines[2]], 2),
        (lambda lines: [lines[1], lines[0], lines[2]], 1),
        (lambda lines: [*lines, '{"key":"d","n":1}\n'], 4),
        (lambda lines: ['{"key":"d","n":1}\n', *lines], 2),
        (lambda lines: [*lines[:2], lines[2].replace('"c"', '"d"')], 3),
        (lambda lines: [*lines, lines[2].replace('"c"', '"d"')], 4),
    ],
)
def test_a_line_that_is_changed_added_or_left_out_is_noticed(run, change, number):
    path = run.path / "results.jsonl"
    path.write_text("".join(change(chained(run))))
    says = f"line {number} was changed or added after .*, or an earlier line was removed; restore"
    with pytest.raises(UserError, match=says):
        RunStore.open(run.path, keep=dict)


def test_the_lines_before_those_that_are_deleted_stand(run):
    path = run.path / "results.jsonl"
    path.write_text("".join(chained(run)[:2]))
    with RunStore.open(run.path, keep=dict) as again:
        again.append("d", {})
    assert RunStore.open(run.path, keep=dict).done() == {"a", "b", "d"}


def test_a_run_of_an_earlier_version_is_continued_and_its_lines_are_kept_safe_then(run):
    path = run.path / "results.jsonl"
    path.write_text('{"key":"a","n":1}\n{"key":"b"}\n')
    with RunStore.open(run.path, keep=dict) as again:
        again.append("c", {})
    assert RunStore.open(run.path, keep=dict).results()[0] == {"key": "a", "n": 1}
    path.write_text(path.read_text().replace('"n":1', '"n":2'))
    with pytest.raises(UserError, match="line 3 was changed"):
        RunStore.open(run.path, keep=dict)


def test_a_line_that_never_ends_is_damaged_and_not_read_whole(run):
    path = run.path / "results.jsonl"
    path.write_text('{"key":"' + "a" * MOST_BYTES + '"}\n')
    with pytest.raises(UserError, match="line 1 is damaged"):
        RunStore.open(run.path, keep=dict)
