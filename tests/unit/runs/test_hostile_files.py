"""Whatever a file holds, each reader refuses it in one line or reads it, and stays small."""

import copy
import io
import json
import struct
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kerneltruth.documents.exports import seal_of
from kerneltruth.documents.model import dumps
from kerneltruth.errors import UserError
from kerneltruth.runner.claims import checked
from kerneltruth.runner.protocol import (
    KernelRun,
    KernelWork,
    Launch,
    Observation,
    OtherResult,
    ProtocolError,
    TensorResult,
)
from kerneltruth.runner.wire import decode, encode
from kerneltruth.runs.findings import load_finding
from kerneltruth.runs.ledger import Ledger
from kerneltruth.runs.parts import load_inputs, load_source
from kerneltruth.runs.store import RunStore
from kerneltruth.suites.reading import read_submissions
from kerneltruth.suites.submission import Broken, Submission

pytestmark = pytest.mark.sweep

STORED = Path(__file__).parent / "stored"
FINDING = json.loads(next(iter(sorted((STORED / "findings").glob("*.json")))).read_text())
LINES = (STORED / "results.jsonl").read_text().splitlines()
MANIFEST = json.loads((STORED / "run.json").read_text())
SUBMISSION = {"problem_id": 1, "sample_id": 0, "kernel": "def f(x): return x", "file": "relu.py"}
# What reading a file of kilobytes may take.
MOST = 32 * 2**20

LEAVES = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    *(st.just("\x1b[2J"), st.just("\ud800"), st.just("../../x"), st.just(10**400)),
)
VALUES = st.recursive(
    LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=3)
)
FUZZED = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def places(value, path=()):
    """Where a document holds a value."""
    yield path
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(each, (*path, key))


@st.composite
def changed(draw, document):
    """A document with some of its values replaced, left out or added to."""
    made = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        known = [path for path in places(made) if path]
        if not known:
            break
        path, holder = draw(st.sampled_from(known)), made
        for key in path[:-1]:
            holder = holder[key]
        match draw(st.sampled_from(("replace", "drop", "add"))):
            case "replace":
                holder[path[-1]] = draw(VALUES)
            case "drop":
                del holder[path[-1]]
            case _ if isinstance(holder, dict):
                holder[draw(st.text(max_size=6))] = draw(VALUES)
    return made


@st.composite
def texts(draw, document):
    """The bytes of a changed document, whole or with some of them changed or cut off."""
    data = bytearray(json.dumps(draw(changed(document))).encode())
    if draw(st.booleans()):
        for _ in range(draw(st.integers(0, 4))):
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
        del data[draw(st.integers(0, len(data))) :]
    return bytes(data)


@contextmanager
def small():
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST


@contextmanager
def refused_in_one_line():
    refusal = ""
    with small():
        try:
            yield
        except UserError as error:
            refusal = str(error)
    assert "\n" not in refusal


@FUZZED
@given(texts(FINDING))
def test_a_finding(tmp_path, data):
    path = tmp_path / "findings" / "f.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    with refused_in_one_line():
        finding = load_finding(path)
        load_source(path, finding.candidate.sha256)


@FUZZED
@given(changed(FINDING), VALUES, VALUES)
def test_an_exported_finding_whose_digest_is_right(tmp_path, finding, source, inputs):
    made = {"form": "exported finding", "finding": finding, "source": source, "inputs": inputs}
    made |= {"schema": 2, "version": "1"}
    path = tmp_path / "f.json"
    path.write_text(json.dumps(made | {"sha256": seal_of(made)}))
    with refused_in_one_line():
        found = load_finding(path)
        load_source(path, found.candidate.sha256)
        load_inputs(path)


@FUZZED
@given(st.lists(st.sampled_from(LINES).map(json.loads).flatmap(texts), max_size=4))
def test_results(tmp_path, lines):
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"\n".join(lines))
    with refused_in_one_line(), Ledger(path, keep=dict) as ledger:
        assert len(ledger.lines()) <= len(path.read_bytes().splitlines())


@FUZZED
@given(texts(MANIFEST))
def test_a_manifest(tmp_path, data):
    (tmp_path / "run.json").write_bytes(data)
    with refused_in_one_line():
        RunStore.open(tmp_path, keep=dict)


@FUZZED
@given(texts(SUBMISSION), st.sampled_from((".json", ".jsonl", ".py")))
def test_a_submission(tmp_path, data, suffix):
    for old in tmp_path.iterdir():
        old.unlink()
    (tmp_path / f"one{suffix}").write_bytes(data)
    with refused_in_one_line():
        for read in read_submissions(tmp_path):
            assert isinstance(read, Submission | Broken)


ANSWER = Observation(
    ended="returned",
    message="ok",
    results=(
        TensorResult(dtype="float32", shape=(2,), strides=(1,), device="cpu", data=bytes(8)),
        OtherResult(type="int", text="1"),
    ),
    buffers={"x": bytes(4)},
    guards_hit=("out",),
    launches=(Launch(kernel="k", grid=(1,), constants={"BLOCK": 16}, signature={"x": "*fp32"}),),
    work=KernelWork(runs=(KernelRun(name="k", module="m", own=True, launches=1),)),
    timings={"device_s": 0.5},
)
PREFIX = struct.Struct("<4sHIQ")


@FUZZED
@given(st.data())
def test_an_answer_of_a_child(data):
    sent = encode(ANSWER)
    magic, version, size, payload = PREFIX.unpack(sent[: PREFIX.size])
    header = json.loads(sent[PREFIX.size :][:size])
    header = data.draw(texts(header)) if data.draw(st.booleans()) else dumps(header).encode()
    sizes = data.draw(st.tuples(st.just(len(header)) | st.integers(0, 2**32 - 1), st.just(payload)))
    made = PREFIX.pack(magic, version, *sizes) + header + sent[-payload:]
    stream = io.BytesIO(made)

    def read(count):
        chunk = stream.read(min(count, len(made)))
        if len(chunk) < count:
            raise EOFError
        return chunk

    with small():
        try:
            answer = checked(decode(read, limit=2**20, header_limit=2**21), {"x": 4})
        except (ProtocolError, EOFError):
            return
        assert all(len(r.data) == 8 for r in answer.results if isinstance(r, TensorResult))


@pytest.mark.parametrize("depth", [10**3, 10**5])
@pytest.mark.parametrize("name", ["f.json", "run.json", "results.jsonl"])
def test_nested_documents_are_refused(tmp_path, name, depth):
    path = tmp_path / name
    path.write_text("[" * depth + "]" * depth)
    with refused_in_one_line():
        match name:
            case "results.jsonl":
                assert Ledger(path, keep=dict).notes
            case "run.json":
                RunStore.open(tmp_path, keep=dict)
            case _:
                load_finding(path)
