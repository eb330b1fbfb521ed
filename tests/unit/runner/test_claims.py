import io
import json
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile import FUZZED, reading, texts
from kerneltruth.documents.model import dumps
from kerneltruth.runner.claims import checked
from kerneltruth.runner.observation import (
    Access,
    Binary,
    KernelLaunches,
    KernelWork,
    Launch,
    Observation,
    OtherResult,
    TensorResult,
)
from kerneltruth.runner.protocol import ProtocolError
from kerneltruth.runner.wire import decode, encode

RESULT = TensorResult(
    dtype="float16", shape=(2, 3), strides=(3, 1), device="cpu", data=bytes(12), alias=None
)
LAUNCH = Launch(kernel="k", grid=(1,), constants={"B": 16}, signature={"x": "*fp32"})
BINARY = Binary(kernel="k", target="sm_90", ok=True, registers=10)
ACCESS = Access(
    kernel="k", line=3, write=True, program=(0, 0, 0), buffer="x", element=-1, elements=2
)
RUN = KernelLaunches(name="k", module="f.py", own=True, launches=1)
WORK = KernelWork(runs=(RUN,), elements=6, stored=6)
GOOD = Observation(
    ended="returned",
    results=(RESULT, OtherResult(type="int", text="3")),
    buffers={"x": bytes(8)},
    launches=(LAUNCH,),
    work=WORK,
    binaries=(BINARY,),
    guards_hit=("y",),
    accesses=(ACCESS,),
    seconds=0.1,
)
PREFIX = struct.Struct("<4sHIQ")


def test_a_well_formed_answer_passes_unchanged():
    assert checked(GOOD, {"x": 8}) is GOOD


@pytest.mark.parametrize(
    "long",
    [
        {"message": "x" * 10_000},
        {"error": "E" * 300},
        {"guards_hit": ("x" * 10_000,)},
        {"launches": (replace(LAUNCH, kernel="k" * 10_000),)},
        {"accesses": (replace(ACCESS, program=(0,) * 9),)},
        {"results": (replace(RESULT, device="c" * 300),)},
        {"results": (replace(RESULT, dtype="f" * 300, data=b""),)},
        {"results": (replace(RESULT, alias="x" * 300),)},
        {"results": (OtherResult(type="T" * 300, text=""),)},
    ],
    ids=lambda long: next(iter(long)),
)
def test_no_text_is_longer_than_the_child_writes_it(long):
    with pytest.raises(ProtocolError, match=f"malformed {next(iter(long))}"):
        checked(replace(GOOD, **long), {"x": 8})


def test_an_answer_may_come_without_buffers():
    assert checked(Observation(ended="raised"), {"x": 8}).buffers == {}


def test_a_call_that_ended_early_may_show_some_of_its_buffers():
    early = Observation(ended="unsupported", buffers={"x": bytes(8)})
    assert checked(early, {"x": 8, "y": 4}) is early


def test_a_call_that_returned_shows_all_of_its_buffers_or_none():
    with pytest.raises(ProtocolError, match="buffers"):
        checked(GOOD, {"x": 8, "y": 4})


@pytest.mark.parametrize(
    "change",
    [
        {"ended": "timeout"},
        {"work": RUN},
        {"work": replace(WORK, runs=(LAUNCH,))},
        {"work": replace(WORK, runs=(replace(RUN, launches=-1),))},
        {"work": replace(WORK, runs=(replace(RUN, own="yes"),))},
        {"work": replace(WORK, stored=7)},
        {"work": replace(WORK, elements=-1, stored=None)},
        {"work": replace(WORK, seen=1)},
        {"ended": ["returned"]},
        {"error": 3},
        {"signal": 9},
        {"seconds": "long"},
        {"seconds": 10**400},
        {"dirty": 1},
        {"buffers": {"x": bytes(7)}},
        {"buffers": {"y": bytes(8)}},
        {"buffers": ("x",)},
        {"guards_hit": (1,)},
        {"accesses": ("x",)},
        {"accesses": (replace(ACCESS, line="3"),)},
        {"accesses": (replace(ACCESS, element=None),)},
        {"accesses": (replace(ACCESS, program=("x",)),)},
        {"results": ("text",)},
        {"results": (replace(RESULT, data=bytes(11)),)},
        {"results": (replace(RESULT, shape=(-2, -3)),)},
        {"results": (replace(RESULT, shape=(2**70, 0), data=b""),)},
        {"results": (replace(RESULT, strides=(1,)),)},
        {"results": (replace(RESULT, shape=(9,) * 10**6, strides=(9,) * 10**6),)},
        {"results": (replace(RESULT, dtype=None),)},
        {"results": (replace(RESULT, dtype="complex64"),)},
        {"results": (OtherResult(type="int", text=3),)},
        {"launches": (replace(LAUNCH, signature={"x": 1}),)},
        {"launches": (replace(LAUNCH, grid=("a",)),)},
        {"binaries": (replace(BINARY, registers="many"),)},
        {"binaries": (replace(BINARY, ok=None),)},
        {"binaries": (replace(BINARY, seconds=-(10**400)),)},
    ],
)
def test_a_malformed_answer_is_refused(change):
    with pytest.raises(ProtocolError):
        checked(replace(GOOD, **change), {"x": 8})


def test_another_kind_of_message_is_not_an_answer():
    with pytest.raises(ProtocolError, match="str is not an answer"):
        checked("returned", {})


def test_times_of_a_batch_are_claims_like_any_other():
    timed = replace(GOOD, timings={"device_s": 0.0, "host_s": 1e-3, "peak_bytes": 1024})
    assert checked(timed, {"x": 8}) is timed


@pytest.mark.parametrize("claim", [-1e-9, float("nan"), float("inf"), 10**400, "1", None, (1.0,)])
def test_a_time_that_cannot_be_is_malformed(claim):
    with pytest.raises(ProtocolError, match="timings"):
        checked(replace(GOOD, timings={"device_s": claim}), {"x": 8})


def test_timings_that_are_no_table_are_malformed():
    with pytest.raises(ProtocolError, match="timings"):
        checked(replace(GOOD, timings=[0.1]), {"x": 8})


@pytest.mark.sweep
@FUZZED
@given(st.data())
def test_a_changed_answer_is_refused_or_well_formed(data):
    sent = encode(GOOD)
    magic, version, size, payload = PREFIX.unpack(sent[: PREFIX.size])
    header = json.loads(sent[PREFIX.size :][:size])
    header = data.draw(texts(header)) if data.draw(st.booleans()) else dumps(header).encode()
    sizes = data.draw(st.tuples(st.just(len(header)) | st.integers(0, 2**32 - 1), st.just(payload)))
    made = PREFIX.pack(magic, version, *sizes) + header + sent[-payload:]
    stream = io.BytesIO(made)

    def read_bytes(count):
        chunk = stream.read(min(count, len(made)))
        if len(chunk) < count:
            raise EOFError
        return chunk

    answer = Observation(ended="lost")
    with reading(ProtocolError, EOFError) as read:
        answer = checked(decode(read_bytes, limit=2**20, header_limit=2**21), {"x": 8})
    assert read.problems == []
    assert all(len(r.data) == 12 for r in answer.results if isinstance(r, TensorResult))
