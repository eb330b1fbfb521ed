"""Baselines that runs have timed, as they lie on disk."""

import csv
import json

import pytest

from kerneltruth.analysis.baseline_record import HINDERED, NOT_SURE, record_baselines
from kerneltruth.errors import UserError

ENVIRONMENT = {
    **{"device": "cuda:0", "device_name": "NVIDIA H100", "driver": "550.54", "cuda": "12.4"},
    **{"torch": "2.6.0", "triton": "3.2.0"},
}
MANIFEST = {
    "arguments": ["run", "identity"],
    "seed": 0,
    "suite_hash": "a" * 64,
    "environment": ENVIRONMENT,
    "started": "2026-01-02T03:04:05+00:00",
    "version": "0.1.0",
    "schema": 2,
}


def shape(summary="N=4", dtype="float32", flags=(), method="graph", **baselines):
    return {
        "case": {"dtype": dtype, "dims": {"N": 4}},
        "summary": summary,
        "method": method,
        "regime": "cold",
        "candidate_us": 9.0,
        "baselines": {name: {"us": us, "ratio": 1.0} for name, us in baselines.items()},
        "flags": list(flags),
    }


def line(key, *shapes, task="core/relu", outcome="timed"):
    perf = {"outcome": outcome, "shapes": list(shapes)}
    return {"key": key, "name": key, "task": task, "stages": {"perf": perf}}


@pytest.fixture
def run(tmp_path):
    """Write a run of these lines."""

    def write(*lines, name="run", **manifest):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps({**MANIFEST, **manifest}))
        (folder / "results.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
        return folder

    return write


@pytest.fixture
def timed_file(tmp_path):
    """Write what `time --out` does."""

    def write(*shapes, **more):
        folder = tmp_path / "timed"
        folder.mkdir()
        document = {
            **{"task": "relu", "outcome": "timed", "shapes": list(shapes)},
            **{"environment": ENVIRONMENT, **more},
        }
        (folder / "time.json").write_text(json.dumps(document))
        return folder

    return write


def test_a_baseline_stands_with_shape_device_versions_and_date(run):
    folder = run(line("a", shape(eager=20.0)))
    (row,) = record_baselines([folder]).baselines
    assert (row.task, row.shape, row.dtype, row.baseline) == (
        "core/relu",
        "N=4",
        "float32",
        "eager",
    )
    assert (row.us, row.method, row.regime) == (20.0, "graph", "cold")
    assert (row.device, row.driver, row.cuda) == ("NVIDIA H100", "550.54", "12.4")
    assert (row.torch, row.triton, row.version) == ("2.6.0", "3.2.0", "0.1.0")
    assert (row.date, row.run) == ("2026-01-02T03:04:05+00:00", str(folder))


def test_times_beside_several_candidates_are_one_row_with_its_range(run):
    times = (line(key, shape(eager=us)) for key, us in (("a", 21.0), ("b", 20.0), ("c", 25.0)))
    (row,) = record_baselines([run(*times)]).baselines
    assert (row.us, row.least_us, row.most_us, row.candidates) == (21.0, 20.0, 25.0, 3)


def test_what_is_not_timed_alike_is_not_one_row(run):
    shapes = (
        shape(eager=1.0, compile=2.0),
        shape("N=8", eager=3.0),
        shape(dtype="float16", eager=4.0),
        shape(method="calls", eager=5.0),
    )
    found = record_baselines([run(line("a", *shapes), line("b", shape(eager=6.0), task="gelu"))])
    assert sorted(row.us for row in found.baselines) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_runs_of_several_devices_and_dates_stand_one_after_the_other(run):
    late = run(line("a", shape(eager=1.0)), name="late", started="2026-03-01T00:00:00+00:00")
    early = run(line("a", shape(eager=2.0)), name="early")
    other = {**ENVIRONMENT, "device_name": "NVIDIA H200"}
    h200 = run(line("a", shape(eager=3.0)), name="h200", environment=other)
    rows = record_baselines([late, h200, early]).baselines
    assert [(row.device, row.us) for row in rows] == [
        ("NVIDIA H100", 2.0),
        ("NVIDIA H100", 1.0),
        ("NVIDIA H200", 3.0),
    ]


def test_a_baseline_that_a_candidate_may_have_slowed_is_left_out_and_counted(run):
    found = record_baselines(
        [
            run(
                line("a", shape(flags=("baseline_hindered",), eager=9.0, compile=9.0)),
                line("b", shape(eager=9.0), outcome="timing_suspect"),
                line("c", shape(eager=1.0)),
            )
        ]
    )
    assert [row.us for row in found.baselines] == [1.0]
    assert found.left_out == {HINDERED: 2, NOT_SURE: 1}


def test_what_disturbed_the_device_stands_beside_the_time(run):
    flags = ("power_capped", "not_graded", "throttled")
    times = (line("a", shape(eager=1.0, flags=flags)), line("b", shape(eager=1.0)))
    (row,) = record_baselines([run(*times)]).baselines
    assert row.conditions == ("throttled", "power_capped")


def test_a_folder_of_time_counts_as_a_run(timed_file):
    folder = timed_file(shape(eager=7.0), started="2026-05-01T00:00:00+00:00", version="0.2.0")
    (row,) = record_baselines([folder]).baselines
    assert (row.task, row.us, row.date) == ("relu", 7.0, "2026-05-01T00:00:00+00:00")
    assert (row.torch, row.version) == ("2.6.0", "0.2.0")


def test_a_folder_of_an_earlier_time_has_no_date(timed_file):
    (row,) = record_baselines([timed_file(shape(eager=7.0))]).baselines
    assert (row.date, row.version) == (None, None)


def test_attempts_that_were_not_timed_add_nothing(run):
    lines = (
        {"key": "a", "name": "a", "task": "relu", "stages": {"call": {"outcome": "pass"}}},
        {"key": "b", "name": "b", "same_as": "a"},
        {"key": "c", "name": "c", "task": "relu", "stages": {"perf": {"outcome": "not_run"}}},
    )
    found = record_baselines([run(*lines)])
    assert (found.baselines, found.left_out) == ((), {})


def test_the_csv_has_the_keys_of_the_document(run, tmp_path):
    path = tmp_path / "baselines.csv"
    flags = ("throttled", "power_capped")
    folder = run(line("a", shape(eager=20.5, flags=flags)), environment={"device": "cpu"})
    found = record_baselines([folder], path)
    assert found.csv == str(path)
    with path.open() as file:
        (row,) = csv.DictReader(file)
    assert tuple(row) == found.baselines[0].__struct_fields__
    assert (row["us"], row["conditions"], row["device"]) == (
        "20.5",
        "throttled power_capped",
        "cpu",
    )
    assert row["driver"] == ""


def test_a_run_is_named_once(run):
    folder = run(line("a", shape(eager=1.0)))
    with pytest.raises(UserError, match="is named twice"):
        record_baselines([folder, folder / ".." / "run"])


def test_what_is_no_run_or_damaged_is_refused_in_one_line(run, timed_file, tmp_path):
    with pytest.raises(UserError, match="is not a run"):
        record_baselines([tmp_path])
    broken = line("a", {**shape(eager=1.0), "baselines": [1]})
    with pytest.raises(UserError, match=r"results.jsonl: the attempt 'a' is not a result"):
        record_baselines([run(broken)])
    with pytest.raises(UserError, match=r"time.json: .*; time the kernel again"):
        record_baselines([timed_file(shape(eager="fast"))])
