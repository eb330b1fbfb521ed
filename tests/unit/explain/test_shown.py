"""The smallest case in a line: inputs, what is expected, what came."""

import sys
from pathlib import Path

import pytest
import torch

from kerneltruth.documents.verdict import Failed, RuntimeFault, TimedOut
from kerneltruth.explain.shown import shown
from kerneltruth.oracle.judge import Ruling

sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))

from scripted import RELU, Bench, declare, returned

from kerneltruth.tasks.spec import Claim, Output

DOUBLE = declare(
    "double(x[N], scale[])", lambda x, scale: x * scale, {"N": "batch"}, benchmark={"N": 1}
)


def test_a_small_case_shows_its_numbers():
    bench = Bench(DOUBLE, literals=(("x", (100.0,)), ("scale", (0.1,))))
    ruling = bench.ruling(returned(torch.tensor([float("nan")])))
    assert shown(bench.expectation, ruling) == "x=[100.0], scale=0.1, expected [10.0], got [nan]"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_numbers_are_as_short_as_their_dtype_allows(dtype):
    bench = Bench(DOUBLE, dtype=dtype, literals=(("x", (0.1,)), ("scale", (1.0,))))
    wrong = torch.tensor([0.5], dtype=getattr(torch, dtype))
    text = shown(bench.expectation, bench.ruling(returned(wrong)))
    tenth = "0.1001" if dtype == "bfloat16" else "0.1"
    assert text == f"x=[{tenth}], scale=1.0, expected [{tenth}], got [0.5]".replace(
        "=1.0", "=1" if dtype == "bfloat16" else "=1.0"
    )


def exactly(evidence):
    wrong = evidence.outputs[0] != evidence.reference[0].float()
    yield Claim("inexact elements", float(wrong.sum()), 0.0, where=wrong)


FLOOR = declare(
    "floor(x[N])",
    torch.floor,
    {"N": "batch"},
    benchmark={"N": 2},
    outputs=(Output(compare="claims"),),
    claims=exactly,
)


def test_what_a_claim_says_of_elements_is_shown_where_one_result_is_right():
    bench = Bench(FLOOR, literals=(("x", (1.5, -0.5)),))
    ruling = bench.ruling(returned(torch.tensor([1.0, -0.0])))
    line = shown(bench.expectation, ruling)
    assert line == "x=[1.5, -0.5], expected [1.0, -1.0], got [1.0, -0.0]"
    line = shown(bench.expectation, ruling, several=True)
    assert line == "x=[1.5, -0.5], inexact elements: 1, where at most 0 is right"


def test_of_a_large_case_the_worst_element_is_shown():
    bench = Bench(RELU)
    wrong = bench.right[0].clone()
    wrong[1, 2] = 77.0
    wrong[0, 0] += 1
    text = shown(bench.expectation, bench.ruling(returned(wrong)))
    assert text.startswith("x=float32[3, 5], at [1, 2] expected ")
    assert text.endswith(", got 77.0")


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (RuntimeFault(error="ValueError", detail="no\nmore"), "raises ValueError: no"),
        (TimedOut(seconds=2.0), "does not return within 2 s"),
        (Failed(kind="type", detail="returned nothing"), "returned nothing"),
    ],
)
def test_where_nothing_came_it_is_said_why(verdict, words):
    bench = Bench(RELU)
    assert shown(bench.expectation, Ruling(verdict=verdict)) == f"x=float32[3, 5], {words}"
