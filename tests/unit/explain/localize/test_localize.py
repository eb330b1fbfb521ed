import math

import pytest
import torch
from msgspec.structs import replace

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import ErrorStats, Judgement
from kerneltruth.documents.verdict import Cause, Declined, Failed, Passed
from kerneltruth.explain.localize.evidence import (
    FailureEvidence,
    Sibling,
    Values,
    luck,
    siblings_of,
)
from kerneltruth.explain.localize.sentences import localize

NAN, INF = math.nan, math.inf


def noise(*shape, low=-3.0, high=3.0):
    """Values without structure, the same everywhere."""
    n = math.prod(shape)
    fraction = (torch.arange(1, n + 1, dtype=torch.float64) * 0.6180339887498949) % 1.0
    fraction = (fraction * 7919.0) % 1.0
    return (low + (high - low) * fraction).reshape(shape)


def case(dtype="float32", **dims):
    return Case(task="op", dims=tuple(dims.items()), dtype=dtype)


def explain(
    output,
    reference,
    *,
    inputs=None,
    wrong=None,
    of=None,
    kind="value",
    causes=(),
    name=None,
    **more,
):
    if wrong is None:
        differ = (output - reference).abs() > 1e-6 * (1 + reference.abs())
        wrong = differ | (output.isnan() != reference.isnan())
        wrong |= (output.isinf() | reference.isinf()) & (output != reference)
        wrong &= ~(output.isnan() & reference.isnan())
    return localize(
        FailureEvidence(
            case=of or case(M=reference.shape[0], N=reference.shape[-1]),
            verdict=Failed(kind=kind, detail="12 of 34 elements are wrong", causes=causes),
            values=Values(output=output, reference=reference, wrong=wrong),
            inputs=inputs or {},
            output=name,
            **more,
        )
    )


# Places


def test_the_last_partial_tile_is_named_with_its_size():
    reference, output = noise(8, 100), noise(8, 100)
    output[:, 96:] += noise(8, 4, low=1, high=2)
    fault = explain(output, reference, blocks=(32,))
    assert fault.tag == "last_tile"
    assert "only in the last partial tile of size 32, columns 96 to 99 of 100" in fault.sentence


@pytest.mark.parametrize(
    ("kind", "wrong", "words"),
    [
        ("nan", math.nan, "In output `scale`: NaN where a finite value is expected"),
        ("value", 0.0, "In output `scale`: every element is 0 where it should not be."),
        ("shape", 0.0, "In output `scale`: 12 of 34 elements are wrong"),
    ],
)
def test_the_wrong_one_of_several_outputs_is_named(kind, wrong, words):
    reference = noise(8, 100, low=1, high=2)
    output = torch.full_like(reference, wrong)
    fault = explain(output, reference, kind=kind, name="scale")
    assert fault.sentence.startswith(words)


def test_a_last_partial_tile_of_one_column_is_named():
    reference, output = noise(4, 257), noise(4, 257)
    output[:, 256] = noise(4, low=5, high=6)
    fault = explain(output, reference, blocks=(128,))
    assert "last partial tile of size 128, column 256 of 257" in fault.sentence


def test_a_tile_is_named_without_knowing_the_block_size_when_the_tail_starts_on_one():
    reference, output = noise(1100), noise(1100)
    output[1024:] = noise(76, low=5, high=6)
    fault = explain(output, reference, of=case(N=1100))
    assert "last partial tile of size 1024, elements 1024 to 1099 of 1100" in fault.sentence


def test_wrong_only_past_a_column_is_said():
    reference, output = noise(4, 4096), noise(4, 4096)
    output[:, 1024:] = noise(4, 3072, low=5, high=6)
    fault = explain(output, reference, blocks=(1024,))
    assert fault.tag == "past"
    assert "only from column 1024 on, of 4096, a multiple of the tile size 1024" in fault.sentence


@pytest.mark.parametrize(
    ("row", "tag", "words"),
    [(0, "first_line", "only in the first row"), (-1, "last_line", "only in the last row")],
)
def test_one_wrong_row_at_an_end_is_named(row, tag, words):
    reference, output = noise(40, 64), noise(40, 64)
    output[row] = noise(64, low=5, high=6)
    fault = explain(output, reference)
    assert fault.tag == tag
    assert words in fault.sentence


def test_every_second_column_is_named():
    reference, output = noise(4, 64), noise(4, 64)
    output[:, 1::2] = noise(4, 32, low=5, high=6)
    assert "only in column 1 of every 2" in explain(output, reference).sentence


def test_a_tail_of_all_elements_is_counted_row_by_row():
    reference, output = noise(6, 100), noise(6, 100)
    output.view(-1)[256:] = noise(344, low=5, high=6)
    fault = explain(output, reference, blocks=(128,))
    assert fault.tag == "past"
    words = "only from element 256 on, of 600, a multiple of the tile size 128, counted row by row"
    assert words in fault.sentence


def test_a_value_that_explains_all_says_more_than_the_row_it_lies_in():
    x = noise(2, 64, low=-40, high=40)
    x[1, ::5] = noise(13, low=90, high=100)
    output = torch.where(x > 88, NAN, torch.sigmoid(x))
    fault = explain(output, torch.sigmoid(x), inputs={"x": x}, kind="nan")
    assert fault.tag == "threshold"


def test_a_tail_that_one_wrong_element_contradicts_is_not_claimed():
    reference, output = noise(8, 100), noise(8, 100)
    output[:, 96:] += noise(8, 4, low=1, high=2)
    output[2, 3] += 1.0
    fault = explain(output, reference, blocks=(32,))
    assert "tile" not in fault.sentence
    assert "only" not in fault.sentence


# Inputs


def test_nan_above_a_threshold_names_the_input_and_the_value():
    x = noise(512, low=-200, high=200)
    reference = torch.tanh(x)
    output = torch.where(x > 45.0, NAN, reference)
    fault = explain(output, reference, inputs={"x": x}, of=case(N=512), kind="nan")
    assert fault.tags == ("threshold", "nan")
    assert fault.sentence.startswith("NaN where a finite value is expected, only where x > 4")


def test_infinity_for_large_magnitudes_of_either_sign_is_named():
    x = noise(512, low=-200, high=200)
    output = torch.where(x.abs() > 88.5, INF, x)
    fault = explain(output, x, inputs={"x": x}, of=case(N=512), kind="inf")
    assert "inf where a finite value is expected, only where |x| > " in fault.sentence


def test_nan_below_a_negative_threshold_is_named():
    x = noise(512, low=-200, high=200)
    output = torch.where(x < -88.5, NAN, x)
    fault = explain(output, x, inputs={"x": x}, of=case(N=512), kind="nan")
    assert "only where x < -8" in fault.sentence


def test_rows_that_overflow_are_named():
    x = noise(64, 16)
    x[[2, 3, 9, 17, 30, 31, 44, 60], 3] = noise(8, low=100, high=200)
    reference = torch.softmax(x, -1)
    output = torch.where((x.amax(-1, True) > 88.5), NAN, reference)
    fault = explain(output, reference, inputs={"x": x}, kind="nan")
    assert fault.tags == ("row_threshold", "nan")
    assert "only in rows where the largest |x| > " in fault.sentence


def test_a_swallowed_nan_is_named():
    x = noise(64, 16)
    x[5, 2] = x[9, 0] = NAN
    reference = x.amax(-1)
    output = x.nan_to_num(-INF).amax(-1)
    fault = explain(output, reference, inputs={"x": x}, of=case(M=64, N=16), kind="nan")
    assert fault.tags == ("nan_row", "nan_swallowed")
    assert "NaN is swallowed" in fault.sentence
    assert "only in rows where x holds NaN" in fault.sentence


@pytest.mark.parametrize(
    ("row", "tag", "words"),
    [
        (torch.zeros(16, dtype=torch.float64), "zero_row", "x is all zero"),
        (torch.full((16,), -INF, dtype=torch.float64), "masked_row", "x is all -inf"),
        (torch.full((16,), 3.0, dtype=torch.float64), "constant_row", "x is constant"),
    ],
)
def test_wrong_rows_are_named_by_what_their_input_holds(row, tag, words):
    x, reference, output = noise(40, 16), noise(40, 16), noise(40, 16)
    for i in (3, 17, 29):
        x[i] = row
        output[i] = NAN
    fault = explain(output, reference, inputs={"x": x}, kind="nan")
    assert fault.tags == (tag, "nan")
    assert f"only in rows where {words}" in fault.sentence


def test_wrong_rows_with_tied_maxima_are_named():
    x = noise(40, 16)
    for i in (3, 17, 29):
        x[i, 4] = x[i, 9] = 7.0
    reference = x.argmax(-1).double()
    output = reference.clone()
    output[[3, 17, 29]] = 9.0
    fault = explain(output, reference, inputs={"x": x}, of=case(M=40, N=16))
    assert fault.tag == "ties"
    assert "only in rows where the largest of x is tied" in fault.sentence


def test_halves_rounded_the_wrong_way_are_named():
    x = noise(200, low=-100, high=100)
    x[::10] = x[::10].floor() + 0.5
    output = (x + 0.5).floor()
    fault = explain(output, x.round(), inputs={"x": x}, of=case(N=200))
    assert "only where x is halfway between two integers" in fault.sentence


def test_a_threshold_that_two_elements_would_show_by_luck_is_not_claimed():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    output = torch.tensor([1.0, NAN], dtype=torch.float64)
    fault = explain(output, x, inputs={"x": x}, of=case(N=2), kind="nan")
    assert fault.tags == ("nan",)
    assert fault.sentence.endswith("At [1] (x=2) expected 2, got nan.")


@pytest.mark.parametrize(("sign", "word"), [(1, "negative"), (-1, "positive")])
def test_all_elements_of_one_sign_are_named(sign, word):
    x = noise(64)
    output = torch.where(sign * x < 0, x.exp(), x)
    fault = explain(output, x, inputs={"x": x}, of=case(N=64))
    assert f"only where x is {word}" in fault.sentence


def test_few_rows_are_named_when_exactly_they_have_the_property():
    x, reference = noise(6, 31), noise(6, 31)
    x[[1, 4]] = 0.0
    output = reference.clone()
    output[[1, 4]] = NAN
    fault = explain(output, reference, inputs={"x": x}, kind="nan")
    assert fault.tags == ("zero_row", "nan")


def test_huge_floats_are_not_called_wrapped_integers():
    reference = noise(40)
    output = reference.clone()
    output[32:] = 2.0**100
    assert "wrap" not in explain(output, reference, of=case(N=40), blocks=(32,)).sentence


# Manners


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (2.0, "factor 2."),
        (0.125, "factor 0.125 = 1/sqrt(D) with D=64"),
        (100 / 128, "N/128 with N=100, the size padded to its tiles"),
        (100 / 99, "N/(N-1) with N=100"),
        (math.log2(math.e), "log2(e)"),
        (37.0, "factor 37."),
        (1.0001, "factor 1.0001."),
    ],
)
def test_a_constant_factor_is_found_and_named(factor, words):
    reference = noise(4, 50)
    fault = explain(reference * factor, reference, of=case(N=100, D=64))
    assert fault.tag == "factor"
    assert words in fault.sentence
    assert fault.sentence.startswith("Every element is off by the constant factor")


def test_a_constant_factor_survives_the_rounding_of_half_precision():
    reference = noise(4, 50)
    output = (reference * 2).to(torch.bfloat16).double()
    fault = explain(output, reference, of=case(dtype="bfloat16", N=50))
    assert "constant factor 2." in fault.sentence


def test_elements_too_small_to_be_wrong_do_not_hide_a_factor_of_every_element():
    reference = torch.cat([noise(60), noise(40, low=-1e-4, high=1e-4)])
    wrong = torch.arange(100) < 60
    fault = explain(reference * 2, reference, wrong=wrong, of=case(N=100))
    assert fault.tags == ("factor",)
    assert fault.sentence.startswith("Every element is off by the constant factor 2.")


def test_a_wrong_sign_is_named():
    assert explain(-noise(4, 50), noise(4, 50)).tag == "sign"


def test_a_constant_offset_is_found():
    fault = explain(noise(4, 50) + 0.5, noise(4, 50))
    assert "off by the constant 0.5" in fault.sentence


def test_a_factor_that_one_element_contradicts_is_not_claimed():
    reference = noise(4, 50)
    output = reference * 2
    output[1, 7] = 100.0
    fault = explain(output, reference)
    assert "factor" not in fault.sentence
    assert "200 of 200 elements are wrong; at [1, 7] " in fault.sentence


def test_a_factor_within_the_last_tile_names_both():
    reference, output = noise(4, 100), noise(4, 100)
    output[:, 96:] *= 3
    fault = explain(output, reference, blocks=(32,))
    assert fault.tags == ("last_tile", "factor")
    assert fault.sentence.startswith(
        "The wrong elements are off by the constant factor 3, only in the last partial tile"
    )


def test_zeros_where_there_should_be_none_are_named():
    reference, output = noise(4, 100), noise(4, 100)
    output[:, 64:] = 0
    fault = explain(output, reference, blocks=(64,))
    assert fault.tags == ("last_tile", "zeros")
    assert "are 0 where they should not be" in fault.sentence


def test_a_transposed_output_is_named():
    reference = noise(12, 12)
    assert explain(reference.T.contiguous(), reference).tag == "transposed"


def test_a_transposed_output_that_is_not_square_is_named():
    reference = noise(12, 5)
    assert explain(reference.T.reshape(12, 5), reference).tag == "transposed"


@pytest.mark.parametrize(
    ("axis", "step", "words"),
    [
        (0, 1, "each row holds the value of the one before"),
        (0, -1, "each row holds the value of the next one"),
        (1, 1, "each column holds the value of the one before"),
    ],
)
def test_an_output_off_by_one_line_is_named(axis, step, words):
    reference = noise(9, 14)
    fault = explain(reference.roll(step, axis), reference)
    assert fault.tag == "shifted"
    assert words in fault.sentence


def test_a_constant_output_is_not_called_shifted():
    reference = torch.full((5, 6), 2.0, dtype=torch.float64)
    fault = explain(reference * 3, reference)
    assert fault.tag == "value"


def test_a_copy_of_an_input_is_named():
    x = noise(5, 6)
    assert "a copy of x" in explain(x, x.exp(), inputs={"x": x}).sentence


def test_a_clipped_output_names_the_value():
    reference = noise(4, 50, low=-10, high=10)
    fault = explain(reference.clamp(max=6.0), reference)
    assert "the output is clipped above 6" in fault.sentence.lower()


def test_integers_that_wrap_are_named():
    reference = noise(60, low=0, high=400).round()
    output = (reference + 128) % 256 - 128
    fault = explain(output, reference, of=case(dtype="int8", N=60))
    assert "wrap" in fault.tags[-1]
    assert "wrap around at 8 bits" in fault.sentence


def test_a_row_with_its_own_factor_is_named():
    reference = noise(6, 20)
    output = reference * torch.linspace(1.1, 1.6, 6, dtype=torch.float64)[:, None]
    assert "each wrong row is off by its own factor, 1.1 to 1.6" in (
        explain(output, reference).sentence.lower()
    )


def test_a_row_with_its_own_offset_is_named():
    reference = noise(6, 20)
    output = reference + torch.linspace(1, 2, 6, dtype=torch.float64)[:, None]
    assert explain(output, reference).tag == "row_offset"


def test_an_output_rounded_to_half_precision_is_named():
    reference = noise(4, 50)
    output = reference.to(torch.bfloat16).double()
    assert "every element is rounded to bfloat16" in explain(output, reference).sentence.lower()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_double_precision_computed_in_float32_is_named(dtype):
    reference = noise(4, 50)
    output = (reference.float() * 3.7 / 3.7).double()
    wrong = output != reference
    sentence = explain(output, reference, wrong=wrong, of=case(dtype=dtype, N=50)).sentence
    assert sentence.startswith("Every element is rounded to float32")


def test_what_is_wrong_in_float32_by_far_more_than_rounding_is_not_said_to_be_rounded():
    reference = noise(4, 50)
    output = (reference * noise(4, 50, low=0.5, high=1.5)).float().double()
    assert "rounded" not in explain(output, reference, of=case(dtype="float64", N=50)).sentence


def test_errors_as_of_half_precision_are_named():
    reference = noise(40, 50)
    fault = explain(reference + noise(40, 50, low=-1.5e-2, high=1.5e-2).flip(0, 1), reference)
    assert "the numbers are imprecise" in fault.sentence.lower()


@pytest.mark.parametrize(("ratio", "named"), [(6e4, True), (7e4, False), (None, True)])
def test_errors_are_not_of_half_precision_where_another_case_shows_larger_ones(ratio, named):
    """As of a variance that is divided by n - 1, which few elements show best."""
    reference = noise(40, 50)
    output = reference + noise(40, 50, low=-1.5e-2, high=1.5e-2).flip(0, 1)
    small = Sibling(case=case(M=1, N=2), failed=True, ratio=ratio)
    other = Sibling(case=case(dtype="float16", M=1, N=2), failed=True, ratio=1e9)
    sentence = explain(output, reference, siblings=(small, other)).sentence
    assert ("imprecise" in sentence) is named


@pytest.mark.parametrize("of", [torch.ones_like, lambda reference: reference])
def test_errors_of_one_sign_or_in_proportion_to_the_values_are_not_called_rounding(of):
    """As of a variance without its correction, or a decay that is left out."""
    reference = noise(40, 50)
    output = reference + 1e-3 * of(reference) * noise(40, 50, low=0.7, high=1.3)
    assert "imprecise" not in explain(output, reference).sentence


def test_an_error_that_grows_along_the_last_dim_is_named():
    reference = noise(4, 64)
    steps = torch.arange(1, 65, dtype=torch.float64)
    output = reference + noise(4, 64, low=0.01, high=0.2) * steps
    assert explain(output, reference).tag == "grows"


def test_an_error_in_a_few_columns_is_not_said_to_grow():
    reference = noise(4, 256, low=1, high=2)
    steps = torch.linspace(1e-7, 1e-6, 256, dtype=torch.float64)
    output = reference + steps * noise(4, 256, low=0.9, high=1.1)
    output[:, 250:] += noise(4, 6, low=0.5, high=0.9)
    wrong = (output - reference).abs() > 1e-3
    assert "grows" not in explain(output, reference, wrong=wrong, blocks=(125,)).sentence


def test_without_a_pattern_the_worst_element_is_reported():
    reference = noise(6, 20)
    output = reference + noise(6, 20).sin() ** 3
    output[2, 5] = 50.0
    fault = explain(output, reference, wrong=torch.ones(6, 20, dtype=torch.bool))
    assert fault.tags == ("value",)
    assert fault.sentence.startswith("120 of 120 elements are wrong; at [2, 5]")
    assert fault.sentence.endswith(", got 50.")


# Causes


@pytest.mark.parametrize(
    ("kind", "tag", "words"),
    [
        ("nondeterministic", "nondeterministic", "It is nondeterministic"),
        ("uninitialized", "uninitialized", "It reads uninitialized memory"),
        ("out_of_bounds", "reads_out_of_bounds", "It reads beyond the elements"),
    ],
)
def test_a_cause_that_the_probes_found_comes_first(kind, tag, words):
    reference, output = noise(4, 100), noise(4, 100)
    output[:, 96:] = noise(4, 4, low=9, high=10)
    fault = explain(output, reference, kind=kind, blocks=(32,))
    assert fault.tags == (tag, "last_tile")
    assert fault.sentence.startswith(words)
    assert "wrong only in the last partial tile" in fault.sentence


def test_several_causes_are_all_reported_with_their_shares():
    reference, output = noise(4, 100), noise(4, 100)
    output[:, 96:] = 9.0
    causes = (
        Cause(kind="uninitialized", elements=12, share=0.75),
        Cause(kind="nondeterministic", elements=4, share=0.25),
    )
    fault = explain(output, reference, kind="uninitialized", causes=causes)
    assert (
        "12 (75%) of the wrong elements change with the contents of uninitialized memory, "
        "4 (25%) change with each repetition of the call."
    ) in fault.sentence


def test_the_share_of_a_minor_cause_is_reported_too():
    reference, output = noise(4, 100), noise(4, 100)
    output[:, 96:] = 9.0
    causes = (Cause(kind="nondeterministic", elements=1, share=0.0625),)
    sentence = explain(output, reference, causes=causes).sentence
    assert sentence.endswith(
        " 1 (6.25%) of the wrong elements changes with each repetition of the call."
    )


@pytest.mark.parametrize(
    ("kind", "detail", "tag", "sentence"),
    [
        (
            "out_of_bounds",
            "wrote beyond memory that it allocated: out",
            "writes_out_of_bounds",
            "It writes out of bounds: it wrote beyond memory that it allocated: out.",
        ),
        (
            "input_mutated",
            "wrote to its input `x`",
            "input_mutated",
            "It wrote to its input `x`.",
        ),
        (
            "input_mutated",
            "its input `x` changed after the call returned",
            "input_mutated",
            "Its input `x` changed after the call returned.",
        ),
        (
            "aliased_output",
            "the output shares memory with the input `x`",
            "aliased_output",
            "The output shares memory with the input `x`.",
        ),
        ("shape", "shape (3,); expected (4,)", "shape", "Shape (3,); expected (4,)."),
        (
            "dtype",
            "dtype float32; expected float16",
            "dtype",
            "Dtype float32; expected float16.",
        ),
        ("count", "returned 2 outputs", "count", "Returned 2 outputs."),
    ],
)
def test_what_the_guards_and_the_form_say_passes_through(kind, detail, tag, sentence):
    fault = localize(FailureEvidence(case=case(N=4), verdict=Failed(kind=kind, detail=detail)))
    assert (fault.tag, fault.sentence) == (tag, sentence)


# Siblings


def with_siblings(of, *siblings, **more):
    reference = noise(4, 50)
    output = reference + noise(4, 50).sin() ** 3
    pairs = tuple(Sibling(case=c, failed=bad) for c, bad in siblings)
    return explain(output, reference, of=of, siblings=pairs, **more)


def test_a_fault_of_the_layout_alone_is_named():
    failing = replace(case(N=50), layout="transposed")
    fault = with_siblings(failing, (case(N=50), False))
    assert fault.tag == "layout"
    assert fault.sentence.endswith("It shows with transposed inputs, and not with contiguous ones.")


def test_a_vector_is_not_said_to_be_transposed():
    failing = replace(case(N=50), layout="transposed")
    x = noise(50)
    output = x + noise(50).sin() ** 3
    passing = (Sibling(case=case(N=50), failed=False),)
    fault = explain(output, x, of=failing, siblings=passing, inputs={"x": x})
    assert fault.sentence.endswith("It shows with strided inputs, and not with contiguous ones.")


def test_a_layout_is_not_blamed_when_a_contiguous_case_fails_too():
    failing = replace(case(N=50), layout="transposed")
    fault = with_siblings(failing, (case(N=50), False), (case(N=51), True))
    assert "contiguous" not in fault.sentence


def test_a_layout_is_not_blamed_on_a_case_that_differs_in_more():
    failing = replace(case(N=50), layout="transposed")
    fault = with_siblings(failing, (case(N=51), False))
    assert "contiguous" not in fault.sentence


def test_a_fault_of_two_dtypes_is_named():
    fault = with_siblings(
        case(N=50, dtype="float16"), (case(N=50, dtype="bfloat16"), True), (case(N=50), False)
    )
    assert fault.tag == "dtype"
    assert fault.sentence.endswith("It shows in bfloat16 and float16, and not in float32.")


def test_a_fault_of_one_attribute_value_is_named():
    failing = replace(case(N=50), attributes=(("mode", "b"),))
    fault = with_siblings(failing, (replace(failing, attributes=(("mode", "a"),)), False))
    # Nothing is known of other modes.
    assert fault.sentence.endswith("It shows with mode=b, and not with mode=a.")


def test_of_many_values_that_do_not_show_a_fault_few_are_named():
    failing = replace(case(N=50), attributes=(("mode", "x"),))
    passing = ((replace(failing, attributes=(("mode", mode),)), False) for mode in "edcba")
    said = "It shows with mode=x, and not with mode=a, mode=b, mode=c or 2 more."
    assert with_siblings(failing, *passing).sentence.endswith(said)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("backward", "It shows only in the gradients."),
        ("out", "It shows only where the caller gives `out=`."),
        ("number y", "It shows with _call=number y, and not with _call=plain."),
    ],
)
def test_a_fault_of_one_kind_of_call_is_told_in_a_users_words(call, said):
    failing = replace(case(N=50), attributes=(("_call", call),))
    fault = with_siblings(failing, (replace(failing, attributes=(("_call", "plain"),)), False))
    assert fault.sentence.endswith(said)


def test_of_a_switch_there_is_no_third_value():
    failing = replace(case(N=50), attributes=(("training", True),))
    fault = with_siblings(failing, (replace(failing, attributes=(("training", False),)), False))
    assert fault.sentence.endswith("Only training=True shows it.")


def test_a_fault_of_an_absent_input_is_named():
    failing = replace(case(N=50), absent=("bias",))
    fault = with_siblings(failing, (case(N=50), False))
    assert fault.sentence.endswith("Only bias=None shows it.")


def test_a_fault_of_special_values_is_named():
    failing = replace(case(N=50), recipe="ties")
    fault = with_siblings(failing, (case(N=50), False))
    assert fault.tag == "values"
    assert fault.sentence.endswith("only these do: ties.")


def test_one_passing_size_does_not_blame_the_size_of_one():
    fault = with_siblings(case(M=1, N=50), (case(M=2, N=50), False))
    assert fault.tag == "value"


def test_a_size_of_one_that_alone_fails_is_named():
    passed = [(case(M=m, N=50), False) for m in (2, 3, 5)]
    assert with_siblings(case(M=1, N=50), *passed).sentence.endswith("Only M=1 shows it.")


def sought(of, *siblings):
    reference = noise(4, 50)
    found = tuple(Sibling(case=c, failed=bad, sought=True) for c, bad in siblings)
    return explain(reference + noise(4, 50).sin() ** 3, reference, of=of, siblings=found)


def test_the_end_of_a_search_by_size_blames_the_size_only_where_the_values_stay_the_same():
    sizes = [(n, n > 256) for n in (1, 2, 3, 4, 5, 6, 7, 8, 17, 65, 256, 257, 300)]
    drawn = [(case(N=n), bad) for n, bad in sizes]
    assert sought(case(N=300), *drawn).tag == "value"
    constant = [(replace(c, recipe="zeros"), bad) for c, bad in drawn]
    assert sought(case(N=300), *constant).sentence.endswith("Only N > 256 shows it.")


def test_a_smaller_failing_size_of_any_values_contradicts_a_threshold():
    sizes = [(n, n > 256) for n in (1, 2, 3, 4, 5, 6, 7, 8, 17, 65, 256, 257, 300)]
    constant = [(replace(case(N=n), recipe="zeros"), bad) for n, bad in sizes]
    written = replace(case(N=2), literals=(("x", (0.0, 7.0)),))
    assert sought(case(N=300), *constant, (written, True)).tag == "value"


def test_a_leap_of_the_error_at_one_size_is_not_called_growth():
    ratios = {16: 0.0, 64: 0.0, 256: 0.0, 1024: 0.01, 4096: 1e6}
    siblings = tuple(Sibling(case=case(M=1, K=k), failed=r > 1, ratio=r) for k, r in ratios.items())
    reference = noise(4, 50)
    output = reference + noise(4, 50).sin() ** 3
    fault = explain(output, reference, of=case(M=4, K=4096), siblings=siblings, reduced=("K",))
    assert fault.tag != "grows"


def test_none_of_several_right_answers_is_called_expected():
    reference, output = noise(4, 50).abs().round(), noise(4, 50).abs().round()
    output[:, 48:] = 7.0
    wrong = torch.zeros(4, 50, dtype=torch.bool)
    wrong[:, 48:] = True
    found = Values(output=output, reference=reference, wrong=wrong, several=True)
    fault = localize(
        FailureEvidence(
            case=case(M=4, N=50),
            verdict=Failed(kind="value", detail=""),
            values=found,
            blocks=(16,),
        )
    )
    assert fault.tags == ("last_tile",)
    assert fault.sentence.endswith("got 7, which is not an accepted answer.")


def test_passing_on_zeros_blames_no_values():
    failing = case(N=50)
    fault = with_siblings(failing, (replace(failing, recipe="zeros"), False))
    assert fault.tag == "value"


def test_a_size_above_which_it_fails_is_named():
    passed = [(case(N=n), False) for n in (1, 2, 3, 17, 257, 513, 769, 1024)]
    fault = with_siblings(case(N=1025), *passed, (case(N=4096), True))
    assert fault.tag == "size_threshold"
    assert fault.sentence.endswith("Only N > 1024 shows it.")


def test_sizes_that_are_no_multiple_are_named():
    others = [(case(N=n), n % 16 != 0) for n in (16, 17, 32, 33, 48, 64, 7)]
    fault = with_siblings(case(N=50), *others, blocks=(16,))
    assert fault.tag == "not_multiple"
    assert fault.sentence.endswith("Only sizes N that are no multiple of 16 show it.")


def test_an_error_that_grows_with_the_reduced_dim_is_named():
    reference = noise(4, 50)
    output = reference + noise(4, 50).sin() ** 3
    ratios = {16: 0.1, 64: 0.4, 256: 0.9, 1024: 3.0, 4096: 11.0}
    siblings = tuple(Sibling(case=case(M=1, K=k), failed=r > 1, ratio=r) for k, r in ratios.items())
    fault = explain(output, reference, of=case(M=4, K=1024), siblings=siblings, reduced=("K",))
    assert fault.tag == "grows"
    assert fault.sentence.endswith("The error grows with K.")


def test_refusals_are_no_siblings():
    stats = ErrorStats(count=3, num_exceeding=1, max_bound_ratio=2.5)
    failed = Failed(kind="value", detail="")
    judgements = [
        Judgement(case=case(N=1), verdict=Passed()),
        Judgement(case=case(N=2), verdict=failed, stats=stats),
        Judgement(case=case(N=3), verdict=Declined(reason="no")),
    ]
    assert siblings_of(judgements) == (
        Sibling(case=case(N=1), failed=False),
        Sibling(case=case(N=2), failed=True, ratio=2.5),
    )


def test_luck_is_the_chance_of_drawing_only_from_the_offered():
    assert luck(chosen=2, offered=3, total=4) == pytest.approx(0.5)
    assert luck(chosen=3, offered=2, total=4) == 0.0


def test_an_output_without_dims_is_described():
    one = torch.tensor(3.0, dtype=torch.float64)
    fault = localize(
        FailureEvidence(
            case=case(N=4),
            verdict=Failed(kind="value", detail=""),
            values=Values(output=one * 2, reference=one, wrong=torch.tensor(True)),
        )
    )
    assert fault.sentence == "1 of 1 element is wrong; expected 3, got 6."
