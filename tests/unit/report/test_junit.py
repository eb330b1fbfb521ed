"""Outcomes as JUnit XML and as GitHub's annotations: candidate text stays text."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from blank_documents import document
from kerneltruth.documents.case import Case
from kerneltruth.documents.checks import CheckDocument, ObligationDocument
from kerneltruth.errors import EnvironmentFault
from kerneltruth.report.annotations import annotate
from kerneltruth.report.junit import junit, printable, write_junit
from kerneltruth.report.junit_entries import JUnitEntry, JUnitSuite, of_check, status_of

HOSTILE = ']]></failure><script>alert("1")</script> & \x1b[31m \x00 \ud800 \ufffe ::error::x'

CASE = Case(task="relu", dims=(("N", 7),))
BROKEN = document(
    ObligationDocument, status="broken", kind="nan", case=CASE, case_summary="N=7 float32"
)
PROFILE = {
    "published": document(ObligationDocument, status="held", cases=1),
    "shapes": BROKEN,
    "memory": BROKEN,
    "gradients": document(ObligationDocument, status="not_tried", reason="no prompt promises them"),
}


def entry(status="failed", **changes):
    about = {
        "name": "relu.py@1",
        "group": "kernelbenchx/relu",
        "status": status,
        "kind": "fail nan",
        "message": "NaN is swallowed.",
        "text": "5 of 9 elements are wrong",
        "seconds": 1.25,
        "file": "kernels/relu.py",
        "line": None,
    }
    return JUnitEntry(**{**about, **changes})


def suite(*entries, **changes):
    about = {"device": "cpu", "properties": {"seed": "0"}, "started": "2026-01-01T00:00:00+00:00"}
    return JUnitSuite(name="kerneltruth run", entries=entries, **{**about, **changes})


def parsed(*entries):
    root = ET.fromstring(junit(suite(*entries)))
    return root, root.find("testsuite").findall("testcase")


def test_each_entry_is_a_case_and_is_counted():
    statuses = ("passed", "failed", "failed", "error", "skipped")
    root, cases = parsed(*(entry(status) for status in statuses))
    counts = {n: root.get(n) for n in ("tests", "failures", "errors", "skipped", "time")}
    assert counts == {
        "tests": "5",
        "failures": "2",
        "errors": "1",
        "skipped": "1",
        "time": "6.250",
    }
    assert [[child.tag for child in case] for case in cases] == [
        [],
        ["failure"],
        ["failure"],
        ["error"],
        ["skipped"],
    ]


def test_a_failure_says_what_and_why_and_where():
    _, (case,) = parsed(entry(line=7))
    assert case.attrib == {
        "classname": "kernelbenchx.relu",
        "name": "relu.py@1",
        "time": "1.250",
        "file": "kernels/relu.py",
        "line": "7",
    }
    failure = case.find("failure")
    assert (failure.get("type"), failure.get("message")) == ("fail nan", "NaN is swallowed.")
    assert failure.text == "5 of 9 elements are wrong"


def test_an_answer_that_only_calls_pytorch_is_said_to():
    plain = entry("passed", torch_only=True), entry(torch_only=True)
    _, cases = parsed(*plain, entry())
    said = "torch-only: no kernel of its own"
    assert [case.findtext("system-out") for case in cases] == [said, said, None]
    (line,) = annotate(suite(*plain))
    assert line.endswith(f"%0A{said}")
    (hazard,) = annotate(suite(entry("passed", torch_only=True, hazards=("wrong on empty",))))
    assert hazard.endswith(f"::wrong on empty%0A{said}")


def test_a_case_has_a_property_for_each_obligation_and_says_its_hazards():
    obligations = {"published": "held in 1 case", "gradients": f"not tried: {HOSTILE}"}
    _, (case,) = parsed(entry("passed", obligations=obligations, hazards=("wrong on empty", "b")))
    found = {p.get("name"): p.get("value") for p in case.iterfind("properties/property")}
    assert found == {"published": "held in 1 case", "gradients": f"not tried: {printable(HOSTILE)}"}
    assert case.findtext("system-out") == "hazard: wrong on empty\nhazard: b"


def test_an_annotation_notices_each_hazard_of_a_kernel_that_passes():
    (line,) = annotate(suite(entry("passed", hazards=("silently wrong where a dim is 0: N=0",))))
    assert line == (
        "::notice file=kernels/relu.py,title=kernelbenchx/relu%3A hazard"
        "::silently wrong where a dim is 0: N=0"
    )


def test_the_suite_says_on_what_it_ran():
    root, _ = parsed(entry())
    found = root.find("testsuite")
    assert (found.get("hostname"), found.get("timestamp")) == ("cpu", "2026-01-01T00:00:00")
    assert found.find("properties/property").attrib == {"name": "seed", "value": "0"}


def test_what_a_candidate_says_stays_text_whatever_it_is():
    root, (case,) = parsed(entry(message=HOSTILE, text=HOSTILE, name=HOSTILE, group=HOSTILE))
    shown = ']]></failure><script>alert("1")</script> & \\x1b[31m \\x00 \\ud800 \\ufffe ::error::x'
    assert case.find("failure").text == shown
    assert case.get("name") == shown
    assert [element.tag for element in root.iter()].count("failure") == 1
    assert not list(root.iter("script"))


@pytest.mark.parametrize("code", [*range(0x20), 0x7F, 0x85, 0xD800, 0xFFFE, 0xFFFF, 0x1F600])
def test_any_character_can_be_written_and_read_back(code):
    text = f"a{chr(code)}b"
    _, (case,) = parsed(entry(text=text))
    back = case.find("failure").text
    # XML reads a carriage return as a line's end unless it is escaped.
    assert back in (text, printable(text), text.replace("\r", "\n"))


def test_the_file_is_written_whole_or_not_at_all(tmp_path):
    write_junit(suite(entry()), tmp_path / "out.xml")
    assert (tmp_path / "out.xml").read_bytes().startswith(b'<?xml version="1.0" encoding="UTF-8"?>')
    with pytest.raises(EnvironmentFault, match="cannot write"):
        write_junit(suite(), tmp_path / "no" / "out.xml")


def test_an_annotation_names_file_line_and_reason():
    (line,) = annotate(suite(entry(line=3), entry("passed")))
    assert line == (
        "::error file=kernels/relu.py,line=3,title=kernelbenchx/relu%3A fail nan::NaN is swallowed."
    )


def test_what_this_machine_cannot_judge_is_a_warning():
    skipped, error = annotate(suite(entry("skipped"), entry("error", file=None)))
    assert skipped.startswith("::warning file=")
    assert error.startswith("::error title=")


def test_an_annotation_stays_one_command_whatever_the_candidate_says():
    hostile = "100%, a:b\r\n::error::injected\x1b[0m\u2028"
    lines = list(annotate(suite(entry(message=hostile, group=hostile, file=hostile))))
    (line,) = lines
    assert "\n" not in line
    assert "\r" not in line
    head, _, message = line.removeprefix("::error ").partition("::")
    assert message == "100%25, a:b%0A::error::injected\\x1b[0m\\u2028"
    assert head.count(",") == 1
    assert ":" not in head


@pytest.mark.parametrize(
    ("verdict", "status"),
    [
        ("pass", "passed"),
        ("fail", "failed"),
        ("compile_error", "failed"),
        ("hack", "failed"),
        ("timeout", "failed"),
        ("infra", "error"),
        ("unsupported_here", "skipped"),
        ("unrefereeable", "skipped"),
    ],
)
def test_a_verdict_is_the_candidates_fault_or_the_machines_or_neither(verdict, status):
    assert status_of(verdict) == status


def test_a_check_is_one_entry_that_says_all_once():
    found = document(
        CheckDocument,
        verdict="fail",
        kind="nan",
        task="relu",
        detail="5 of 9\n",
        explanation="NaN is swallowed.\nmore",
        torch_only=True,
        profile=PROFILE,
        hazards=("silently wrong where a dim is 0: N=0",),
        failing=CASE,
        minimal_summary="N=1",
        minimal_shown="x=[1.0], expected 1.0, got nan",
        finding="f.json",
        seconds=2.0,
    )
    (found,) = of_check(found, Path("k/relu.py"), device="cpu").entries
    assert (found.name, found.group, found.kind, found.file) == (
        "relu.py",
        "relu",
        "fail nan",
        "k/relu.py",
    )
    assert found.message == (
        "shapes, memory: NaN is swallowed. (smallest case N=1, finding f.json)"
    )
    assert found.obligations == {
        "published": "held in 1 case",
        "shapes": "broken: nan on N=7 float32",
        "memory": "broken: nan on N=7 float32",
        "gradients": "not tried: no prompt promises them",
    }
    assert found.hazards == ("silently wrong where a dim is 0: N=0",)
    assert found.torch_only
    assert found.text.splitlines() == [
        "5 of 9",
        "NaN is swallowed.",
        "more",
        "smallest failing case: N=1: x=[1.0], expected 1.0, got nan",
        "finding: f.json",
    ]
