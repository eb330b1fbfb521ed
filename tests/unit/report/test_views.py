"""Documents as text."""

import io

import pytest
from msgspec import structs
from rich.console import Console

from blank_documents import document
from kerneltruth.documents.checks import (
    CheckDocument,
    InterfaceDocument,
    ReplayDocument,
    ReplayResult,
)
from kerneltruth.documents.records import BinaryRecord, KernelFact
from kerneltruth.documents.runs import AuditDocument, AuditKernel
from kerneltruth.report.audit_view import audit_view
from kerneltruth.report.terminal import piped
from kerneltruth.report.verdict_view import check_view, replay_view

CHECK = {
    "verdict": "fail",
    "kind": "nan",
    "detail": "5 of 9 elements are wrong\n\n",
    "explanation": "NaN is swallowed.",
    "failing_summary": "M=3 N=3 float32 nan_injected",
    "domain": "extended",
    "minimal_summary": "M=1 N=1 float32 literal values",
    "minimal_shown": "x=[100.0], expected 1.0, got nan",
    "torch_only": False,
    "own_weights": None,
    "interface": [],
    "void": {},
    "task": "relu",
    "cases": 7,
    "failed": 1,
    "declined": [{"case": f"case {i}", "reason": "no\nthanks"} for i in range(5)],
    "unrefereeable": {"accepts zeros": 2},
    "skipped": {},
    "worst_ratio": 0.5,
    "binaries": [
        document(BinaryRecord, ok=True, target="sm_90"),
        document(BinaryRecord, ok=False, target="sm_80"),
    ],
    "finding": "my runs/x.json",
    "seconds": 1.25,
    "seed": 0,
}


def checked(**more):
    return document(CheckDocument, **{**CHECK, **more})


def kernel(name, role, verdict, **more):
    return document(AuditKernel, name=name, role=role, verdict=verdict, cases=3, **more)


AUDIT = document(
    AuditDocument,
    kernels=[
        kernel("good", "control", "pass", peer_checks={"kernelbench": "pass"}),
        kernel(
            "bad", "bug", "fail", peer_checks={"kernelbench": "pass"}, illusion_for=["kernelbench"]
        ),
    ],
    summary={
        "good": True,
        "control_cases": 3,
        "controls": 1,
        "controls_clean": 1,
        "bugs": 1,
        "bugs_caught": 1,
        "illusions": {"kernelbench": 1},
        "cases": 6,
        "seconds": 2.0,
        "cases_per_second": 3.0,
        "device": "cpu",
    },
    notes={"cases not run: too large": 4},
    run="runs/x",
)


def test_a_failing_check_says_why_on_what_and_what_to_do_next():
    lines = piped(check_view(checked())).splitlines()
    assert lines[0].split() == ["verdict", "fail", "(nan)"]
    text = "\n".join(lines)
    assert "NaN is swallowed." in text
    assert "M=3 N=3 float32 nan_injected (extended domain)" in text
    assert "kerneltruth minimize 'my runs/x.json'" in text
    assert "" not in lines


def test_every_case_that_was_not_judged_is_counted():
    text = piped(check_view(checked()))
    assert "2: accepts zeros" in text
    assert "5 cases of the extended domain" in text
    assert "and 2 more" in text


def test_the_smallest_case_is_saidwith_what_came_of_it():
    lines = [line.strip() for line in piped(check_view(checked())).splitlines()]
    smallest = next(i for i, line in enumerate(lines) if line.startswith("smallest"))
    assert lines[smallest + 1] == "x=[100.0], expected 1.0, got nan"


def test_weights_that_a_model_drew_itself_are_said_to_be():
    noted = piped(check_view(checked(own_weights="it has no parameter for the weight w")))
    assert "drawn by its constructor, at the reference's seed: it has no parameter" in noted


def test_plain_pytorch_is_said_to_be():
    lines = piped(check_view(checked(torch_only=True))).splitlines()
    assert lines[0].split(maxsplit=1)[1] == "fail (nan), torch-only: no kernel of its own"


def test_voids_and_notes_on_the_form_are_shown():
    note = {"output": "out", "detail": "dtype float32; expected float16", "cases": 3, "core": 0}
    noted = document(InterfaceDocument, **note, first_summary="M=1 N=1 float16")
    void = {"PyTorch's own function raises ValueError": 2}
    text = piped(check_view(checked(void=void, interface=[noted])))
    assert "void        2: PyTorch's own function raises ValueError" in text
    assert "out: dtype float32; expected float16; values right (3 cases, 0 of the core" in text


def test_only_what_compiled_counts_as_compiled():
    assert "1 specializations for sm_80, sm_90" in piped(check_view(checked()))


def test_a_replay_that_differs_stands_out():
    result = {
        "id": "relu-1",
        "obligations": ["published", "memory"],
        "reproduced": False,
        "inputs": "same",
        "output": "differ",
        "verdict": "fail",
        "kind": "nan",
        "reason": "same verdict, but other output bytes",
    }
    replayed = document(
        ReplayDocument,
        results=[document(ReplayResult, **result)],
        reproduced=0,
        findings=1,
        device="cpu",
    )
    text = piped(replay_view(replayed))
    assert "NOT REPRODUCED" in text
    assert "published, memory: fail nan" in text
    assert "0 of 1 reproduced on cpu" in text


def test_the_audit_shows_each_kernel_with_each_check():
    lines = piped(audit_view(AUDIT)).splitlines()
    assert lines[0].split()[:4] == ["kernel", "verdict", "cases", "KB"]
    bad = next(line for line in lines if "bad" in line)
    assert bad.split()[:4] == ["bad", "fail", "3", "ok"]


def test_a_kernel_of_the_audit_without_a_kernel_of_its_own_is_marked():
    kernels = [structs.replace(k, torch_only=k.role == "control") for k in AUDIT.kernels]
    text = piped(audit_view(structs.replace(AUDIT, kernels=kernels)))
    assert text.count("torch-only") == 1
    assert "pass, torch-only" in text
    fact = KernelFact(
        own=None,
        library=None,
        own_launches=0,
        launches=0,
        runs=(),
        elements=1,
        stored=None,
        case="",
    )
    in_numpy = [structs.replace(k, kernel=fact, torch_only=False) for k in AUDIT.kernels[:1]]
    said = piped(audit_view(structs.replace(AUDIT, kernels=in_numpy)))
    assert said.count(", no kernel") == 1
    assert ", no kernel" not in text


def test_a_check_without_a_short_name_is_saidby_its_own():
    summary = structs.replace(AUDIT.summary, illusions={"new-check": 1})
    kernels = [structs.replace(k, peer_checks={"new-check": "pass"}) for k in AUDIT.kernels]
    lines = piped(audit_view(structs.replace(AUDIT, summary=summary, kernels=kernels))).splitlines()
    assert lines[0].split()[3] == "new-check"
    assert "  new-check            1 of 1" in lines


def test_the_audit_gives_every_count_with_its_denominator():
    text = piped(audit_view(AUDIT))
    assert "controls clean  1 of 1" in text
    assert "bugs caught     1 of 1" in text
    assert "kernelbench          1 of 1" in text
    assert "4 cases not run: too large" in text


def render_lines(view, width):
    console = Console(width=width, file=io.StringIO())
    console.print(view)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(("width", "title"), [(140, "KB"), (100, "passed by"), (50, "passed by")])
def test_the_audit_says_what_a_terminal_has_room_for(width, title):
    lines = render_lines(audit_view(AUDIT), width)
    head = next(line for line in lines if "kernel" in line)
    assert title in head
    assert max(map(len, lines)) <= width
    assert next(line for line in lines if "bad" in line).split()[:3] == ["bad", "fail", "3"]
