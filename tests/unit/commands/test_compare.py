"""`compare` over result lines of two devices."""

import pytest

from kerneltruth.commands.compare import compare_runs
from kerneltruth.errors import UserError
from kerneltruth.runs.records import Manifest
from kerneltruth.runs.store import RunStore

CASE = "M=4096 N=4096 float32 normal"


def shape(ratio, half=0.01, summary=CASE, flags=()):
    eager = {"us": 10.0, "ratio": ratio, "low": ratio - half, "high": ratio + half}
    return {
        "summary": summary,
        "case": {"dtype": "float32"},
        "candidate_us": 10.0 / ratio,
        "baselines": {"eager": eager | {"outcome": "tie"}},
        "flags": list(flags),
    }


def line(verdict="pass", *shapes, sha="a", **more):
    perf = {"outcome": "timed", "shapes": list(shapes)} if shapes else {"outcome": "not_run"}
    return {
        "task": "softmax",
        "sha256": sha,
        "attempt": {
            "task": "softmax",
            "candidate": {"sha256": sha},
            "verdict": {"verdict": verdict},
        },
        "stages": {"call": {"outcome": "pass"}, "exe": {"outcome": verdict}, "perf": perf},
    } | more


@pytest.fixture
def run(tmp_path):
    def make(name, device, lines):
        manifest = Manifest(
            version="0",
            arguments=("run",),
            seed=0,
            suite_hash="",
            started="2026-01-01",
            environment={"device_name": device},
        )
        with RunStore.create(tmp_path / name, manifest) as store:
            for key, content in lines.items():
                store.append(key, {"name": key, **content})
            store.finish()
        return tmp_path / name

    return make


def test_speedups_of_two_devices_stand_side_by_side(run):
    a = run("a", "H100", {"k": line("pass", shape(2.0))})
    b = run("b", "H200", {"k": line("pass", shape(1.0))})
    document = compare_runs([a, b])
    assert [r["device"] for r in document["runs"]] == ["H100", "H200"]
    speed = document["speed"]["eager"]
    assert (speed["timed"], speed["shared"], speed["differ"]) == ([1, 1], 1, 1)
    kernel = speed["kernels"][0]
    assert [s["ratio"] for s in kernel["speedups"]] == pytest.approx([2.0, 1.0])
    assert kernel["spread"] == pytest.approx(2)


def test_a_wrong_kernels_speed_is_not_compared(run):
    a = run("a", "H100", {"k": line("fail", shape(2.0))})
    b = run("b", "H200", {"k": line("pass", shape(1.0))})
    document = compare_runs([a, b])
    assert document["differing"] == [{"name": "k", "verdicts": ["fail", "pass"]}]
    assert document["speed"]["eager"]["shared"] == 0


def test_another_source_under_the_same_name_is_said_and_not_compared(run):
    a = run("a", "H100", {"k": line("pass", shape(2.0), sha="a")})
    b = run("b", "H200", {"k": line("pass", shape(1.0), sha="b")})
    document = compare_runs([a, b])
    assert document["other_source"] == ["k"]
    assert document["speed"] == {}


def test_a_suspect_time_is_not_compared(run):
    a = run("a", "H100", {"k": line("pass", shape(2.0, flags=["timing_suspect"]))})
    b = run("b", "H200", {"k": line("pass", shape(1.0))})
    assert compare_runs([a, b])["speed"]["eager"]["timed"] == [0, 1]


def test_an_attempt_that_repeats_another_has_its_verdict(run):
    again = {
        "task": "softmax",
        "sha256": "a",
        "same_as": "k",
        "stages": {"exe": {"outcome": "pass"}},
    }
    a = run("a", "H100", {"k": line("pass"), "k2": again})
    document = compare_runs([a, a])
    assert (document["same"], document["kernels"]) == (2, 2)


def test_runs_without_times_have_no_speed(run):
    a = run("a", "cpu", {"k": line()})
    assert compare_runs([a, a])["speed"] == {}


def test_one_run_is_not_enough(tmp_path):
    with pytest.raises(UserError, match="two or more runs, got 1"):
        compare_runs([tmp_path])
