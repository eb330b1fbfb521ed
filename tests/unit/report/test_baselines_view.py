"""What `baselines` shows."""

from blank_documents import document
from kerneltruth.documents.baselines import BaselinesDocument, TimedBaseline
from kerneltruth.report.baselines_view import RECORD, baselines_view
from kerneltruth.report.terminal import piped


def row(**more):
    given = {
        **{"task": "relu", "shape": "N=4 float32", "baseline": "eager", "us": 20.0},
        **{"least_us": 19.0, "most_us": 24.0, "candidates": 3, "device": "NVIDIA H100"},
        **{"torch": "2.6.0", "date": "2026-01-02T03:04:05+00:00"},
    }
    return document(TimedBaseline, **{**given, **more})


def lines(**more):
    return piped(baselines_view(document(BaselinesDocument, **more))).splitlines()


def test_a_row_has_time_range_device_version_and_day():
    found = next(line for line in lines(baselines=[row()]) if "N=4" in line)
    assert " ".join(found.split()) == (
        "relu N=4 float32 eager 20 us 19 us to 24 us NVIDIA H100 2.6.0 2026-01-02"
    )


def test_a_time_beside_one_candidate_has_no_range_and_an_earlier_one_no_date():
    found = next(line for line in lines(baselines=[row(candidates=1, date=None)]) if "N=4" in line)
    assert " ".join(found.split()) == "relu N=4 float32 eager 20 us NVIDIA H100 2.6.0 -"


def test_the_record_says_that_it_replaces_no_measurement():
    assert lines(baselines=[row()])[-1] == RECORD
    assert lines()[-1] == "the runs have timed no baseline"


def test_what_is_left_out_and_written_is_said():
    found = lines(baselines=[row()], left_out={"it was hindered": 2}, csv="b.csv", notes=["torn"])
    assert found[-4:] == ["2 times left out: it was hindered", "torn", "written: b.csv", RECORD]
