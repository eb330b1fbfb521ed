"""The view of `run`: what is not right is named, and what the machine spoilt is not blamed."""

import io

from rich.console import Console

from blank_documents import document
from kerneltruth.documents.runs import RunDocument
from kerneltruth.report.run_view import MOST_FAILING, run_view


def candidate(number, verdict="fail", **more):
    return {
        "name": f"answers.jsonl:{number}",
        "task": "relu",
        "verdict": verdict,
        "kind": "value" if verdict == "fail" else None,
        "finding": None,
        "reason": "",
        "stages": {"call": "pass", "exe": verdict},
        "torch_only": False,
        "same_as": None,
        **more,
    }


def render(*candidates, **more):
    ran = {
        "attempts": len(candidates),
        "stages": {},
        "by_category": {},
        "torch_only": {"attempts": 0, "pass": 0},
        "no_valid_baseline": [],
        "repeated_sources": 0,
        "infra": sum(c["verdict"] == "infra" for c in candidates),
        "candidates": list(candidates),
        "broken": [],
        "seconds": 1.0,
        "attempts_per_hour": None,
        "device": "cpu",
        "seed": 0,
        "run": "runs/mine",
        **more,
    }
    sink = io.StringIO()
    Console(width=400, file=sink).print(run_view(document(RunDocument, **ran)))
    return sink.getvalue()


def test_whose_kernels_take_the_devices_time_is_counted_where_it_is_known():
    shares = (1.0, 1.0, 0.25, 0.0, None)
    said = render(*(candidate(n, "pass", own_time=share) for n, share in enumerate(shares)))
    assert "the device's time of 4 timed candidates: own 2, shared 1, library 1\n" in said
    assert "device's time" not in render(candidate(1, "pass"))


def test_attempts_that_repeat_a_source_are_counted():
    first = candidate(0, "pass")
    assert "\n1 attempt repeats the source of another\n" in render(first, repeated_sources=1)
    assert "\n3 attempts repeat the source of another\n" in render(first, repeated_sources=3)
    assert "the source of another" not in render(first)


def test_second_rounds_are_counted_by_how_they_ended():
    def again(verdict):
        return {"reason": "drawn", "seed": 5, "verdict": verdict, "cases": 16}

    rounds = ("pass", "fail", "pass")
    ended = [candidate(n, v, second_round=again(v)) for n, v in enumerate(rounds)]
    repeated = candidate(3, "pass", second_round=again("pass"), same_as="answers.jsonl:0")
    said = render(*ended, repeated, candidate(4, "pass"))
    assert "judged in a second round: 3 right candidates (drawn 3): pass 2, fail 1\n" in said
    assert "second round" not in render(candidate(1, "pass"))


def test_a_candidate_that_is_not_right_has_its_reason_and_its_finding():
    said = render(
        candidate(1, "pass"),
        candidate(
            2,
            reason="Wrong where input is negative.",
            finding="relu-1.json",
            obligation="values",
        ),
        candidate(3, kind="when_timed", torch_only=True),
        candidate(4, "unsupported_here"),
    )
    assert "not right: 2 of 4 candidates" in said
    assert "FAILED answers.jsonl:2  values: Wrong where input is negative." in said
    assert "runs/mine/findings/relu-1.json" in said
    assert "FAILED answers.jsonl:3  when_timed: torch-only" in said
    assert "answers.jsonl:4" not in said


def test_what_cannot_be_judged_here_is_counted_by_reason():
    said = render(
        candidate(1, "unsupported_here", reason="a CUDA source needs a CUDA device"),
        candidate(2, "unsupported_here", reason="create_rand is newer"),
        candidate(3, "pass"),
        candidate(4, "unsupported_here", reason="a CUDA source needs a CUDA device"),
    )
    assert "not judged: 3 of 4 candidates (`unsupported_here`)" in said
    two, one = "  2: a CUDA source needs a CUDA device", "  1: create_rand is newer"
    assert said.index(two) < said.index(one)
    assert "unrefereeable" not in said


def test_of_very_many_the_rest_is_counted():
    said = render(*(candidate(n) for n in range(MOST_FAILING + 7)))
    assert said.count("answers.jsonl:") == MOST_FAILING
    assert "and 7 more; all are in --json" in said


def test_what_the_machine_spoilt_is_said_to_say_nothing_of_the_candidates():
    said = render(candidate(1, "infra"), candidate(2, "pass"))
    assert "not judged: 1 of 2 candidates (`infra`): this machine failed twice" in said
    assert "this says nothing about them" in said
    assert "not right" not in said


def test_a_candidates_text_does_nothing_to_the_terminal():
    assert "\x1b" not in render(candidate(1, name="a\x1b[31m", reason="b\x1b]0;x\x07"))
