"""The form of a result, held apart from its values."""

import pytest
import torch
from scripted import RELU, Bench, declare, result

from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.runner.observation import Observation
from kerneltruth.tasks.spec import Output

TOTAL = declare("total(x[M, N])", lambda x: x.sum(), {"M": "reduced", "N": "reduced"})
LARGEST = declare(
    "largest(x[M, N])",
    lambda x: x.argmax(1),
    outputs=(Output(dtype="int64", compare="exact"),),
)
RADIUS = declare("radius(x[M, N])", torch.abs, outputs=(Output(may_be_complex=True),))


def ruled(bench, tensor):
    return bench.ruling(Observation(ended="returned", results=(result(tensor),)))


def notes(ruling):
    return [(m.kind, m.detail) for m in ruling.interface]


@pytest.mark.parametrize(
    ("declared", "case", "change", "note"),
    [
        (RELU, {}, torch.Tensor.double, ("dtype", "dtype float64; expected float32")),
        (
            RELU,
            {"dtype": "float16"},
            torch.Tensor.float,
            ("dtype", "dtype float32; expected float16"),
        ),
        (TOTAL, {}, lambda t: t.reshape(1), ("shape", "shape (1,); expected ()")),
        (LARGEST, {}, torch.Tensor.float, ("dtype", "dtype float32; expected int64")),
        (LARGEST, {}, torch.Tensor.int, ("dtype", "dtype int32; expected int64")),
        (RELU, {}, lambda t: t + 0j, ("dtype", "dtype complex64; expected float32")),
    ],
)
def test_right_values_in_another_form_pass_with_a_note(declared, case, change, note):
    bench = Bench(declared, **case)
    ruling = ruled(bench, change(bench.right[0]))
    assert ruling.verdict == Passed()
    assert notes(ruling) == [note]
    said = f"{note[1]}; the values are right"
    assert ruling.with_form == Failed(kind=note[0], detail=said, output="out")


@pytest.mark.parametrize(
    ("declared", "change", "kind"),
    [
        (RELU, lambda t: t.double() + 0.5, "value"),
        (RELU, lambda t: (t * 1.001).half(), "value"),
        (TOTAL, lambda t: t.reshape(1) + 9, "value"),
        (LARGEST, lambda t: (t + 1).float(), "value"),
        (RELU, lambda t: t.double() * float("nan"), "nan"),
    ],
)
def test_wrong_values_are_wrong_whatever_their_form(declared, change, kind):
    bench = Bench(declared)
    ruling = ruled(bench, change(bench.right[0]))
    assert ruling.verdict.kind == kind
    assert len(ruling.interface) == 1


@pytest.mark.parametrize(
    ("declared", "change", "kind"),
    [
        (RELU, lambda t: t.reshape(5, 3), "shape"),
        (RELU, lambda t: t.unsqueeze(0), "shape"),
        (RELU, lambda t: t + 1j, "dtype"),
        (LARGEST, lambda t: t + 0.5, "dtype"),
    ],
)
def test_what_cannot_be_brought_into_the_promised_form_is_wrong_by_it(declared, change, kind):
    bench = Bench(declared)
    assert ruled(bench, change(bench.right[0])).verdict.kind == kind


def test_a_value_beyond_the_promised_dtype_is_infinite_there():
    double = declare("double(x[M, N])", lambda x: x * 2)
    bench = Bench(double, dtype="float16", literals=(("x", (60000.0,) * 15),))
    ruling = ruled(bench, torch.full((3, 5), 120000.0))
    assert ruling.verdict == Passed()


def test_a_prompt_that_speaks_of_complex_results_has_them_accepted():
    bench = Bench(RADIUS)
    ruling = ruled(bench, bench.right[0] + 0j)
    assert (ruling.verdict, ruling.interface) == (Passed(), ())


def test_no_value_at_all_is_said_to_be_none():
    verdict = Bench().verdict(Observation(ended="returned"))
    assert verdict == Failed(kind="type", detail="returned nothing; expected a tensor")
