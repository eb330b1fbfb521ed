"""What the page tells of an attempt and its finding."""

import math

from page_material import result

from kerneltruth.analysis.results import Obliged
from kerneltruth.documents.case import Case
from kerneltruth.documents.model import plain
from kerneltruth.documents.records import CandidateRef, ErrorMap, ErrorStats
from kerneltruth.documents.stored import Digests, Finding
from kerneltruth.documents.verdict import Failed
from kerneltruth.report.page.findings import TimedAgainst, attempt_detail

CASE = Case(task="relu", dims=(("M", 3), ("N", 257)), dtype="float16", layout="transposed", seed=7)


def finding(**changes):
    about = {
        "id": "relu-0",
        "task": "relu",
        "candidate": CandidateRef(sha256="0" * 64, path="k.py", language="triton", entry="relu"),
        "case": CASE,
        "verdict": Failed(kind="value", detail="3 of 771 elements are wrong", output="out"),
        "stats": ErrorStats(count=771, num_exceeding=3, max_abs=math.inf, worst_index=(1, 256)),
        "digests": Digests(inputs={}, reference=None, output=None),
        "minimal": Case(task="relu", dims=(("M", 1), ("N", 1)), dtype="float16", seed=7),
        "explanation": "Only in the last column.",
        "environment": {"device_name": "H100", "torch": "2.13.0"},
    }
    return Finding(**{**about, **changes})


def finding_detail(path="runs/a", **changes):
    attempt = result(outcome="fail", finding="relu-0.json")
    return attempt_detail(attempt, path, finding(**changes)).finding


def test_the_case_stands_beside_the_smallest_one():
    rows = {name: values for name, *values in finding_detail().case}
    assert rows["N"] == ["257", "1"]
    assert rows["layout"] == ["transposed", "contiguous"]
    assert rows["dtype"] == ["float16", "float16"]


def test_written_out_values_are_shown_with_what_is_not_a_number():
    small = Case(task="relu", dims=(("M", 1),), literals=(("x", (1.5, math.nan, -0.0)),))
    rows = {name: values for name, *values in finding_detail(minimal=small).case}
    assert rows["x"] == ["", "[1.5, nan, -0]"]
    assert rows["values"] == ["uniform", "written out"]


def test_the_commands_name_the_finding_as_a_shell_takes_it():
    commands = [command for _, command in finding_detail(path="my runs/$(id)").commands]
    assert commands == [
        "kerneltruth replay 'my runs/$(id)/findings/relu-0.json'",
        "kerneltruth minimize 'my runs/$(id)/findings/relu-0.json'",
        "kerneltruth replay 'my runs/$(id)/findings/relu-0.json' --errors errors",
    ]
    assert len(finding_detail(stats=None).commands) == 2


def test_the_worst_element_lies_in_its_cell_of_the_map():
    picture = ErrorMap(output="out", shape=(3, 257), lines=("." * 64, "." * 64, "." * 64))
    assert finding_detail(error_map=picture).picture.worst == (1, 63)


def test_the_worst_element_of_a_folded_output_lies_in_its_cell():
    stats = ErrorStats(count=4000, num_exceeding=1, worst_index=(3, 9, 0))
    picture = ErrorMap(output="out", shape=(4, 10, 100), lines=("." * 64,) * 32)
    assert finding_detail(error_map=picture, stats=stats).picture.worst == (31, 0)


def test_a_worst_index_of_another_shape_marks_no_cell():
    stats = ErrorStats(count=4, num_exceeding=1, worst_index=(3,))
    picture = ErrorMap(output="out", shape=(2, 2), lines=("..", ".."))
    assert finding_detail(error_map=picture, stats=stats).picture.worst is None


def test_errors_that_were_not_measured_are_left_out():
    errors = finding_detail().errors
    assert errors.quantiles == [("largest error", "inf")]
    assert errors.ratio is None
    assert errors.share == "0.4%"


def test_an_attempt_without_a_finding_has_its_times():
    detail = attempt_detail(result(speedup=2.0), "runs/a", None)
    assert detail.finding is None
    (shape,) = detail.shapes
    assert shape.time == "100 \u00b5s"
    assert shape.against == [
        TimedAgainst(
            name="eager",
            time="200 \u00b5s",
            ratio="2.00\u00d7",
            interval="1.98 \u2013 2.02\u00d7",
            outcome="",
        )
    ]


def test_each_obligation_says_how_it_ended_and_who_asks_it():
    profile = {
        "published": Obliged("held", cases=3),
        "layouts.beyond": Obliged("broken", promised=False, decisive=False),
        "shapes": Obliged("not_tried", decisive=False),
        "gradients": Obliged("not_applicable"),
    }
    detail = attempt_detail(result(profile=profile), "runs/a", None)
    assert plain(detail.profile) == [
        ["published", "held", "3 held", "the contract"],
        ["layouts.beyond", "broken", "", ""],
        ["shapes", "not tried", "", "the prompt"],
    ]
    assert detail.not_applicable == ("gradients",)


def test_what_has_nothing_to_say_is_not_written():
    detail = attempt_detail(result(language=None), "runs/a", None)
    assert set(plain(detail)) == {"sha256", "stages", "source_path"}
