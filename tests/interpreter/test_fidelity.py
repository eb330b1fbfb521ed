"""What kernels compute in the interpreter is what the GPU computes."""

import json
import math
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from kerneltruth.runner.interpreter.versions import number

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from fidelity_cases import DIVISORS, EVEN, KERNELS, NAN, ODD, OTHER, SMALL, WORDS  # noqa: E402

TRITON = number(version("triton"))
FLOATS = ("bfloat16", "float16", "float32")
INF = math.inf


@pytest.fixture(scope="session")
def fidelity(tmp_path_factory):
    out = tmp_path_factory.mktemp("fidelity") / "found.json"
    source = str(HERE.parents[1] / "src")
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "fidelity_child.py"), str(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(out.read_text())


def values(found, name):
    assert "values" in found[name], found[name]
    return torch.tensor(found[name]["values"], dtype=torch.float64)


def assert_agrees(found, name, expected):
    expected = torch.as_tensor(expected)
    torch.testing.assert_close(
        values(found, name), expected.double(), rtol=0, atol=0, equal_nan=True
    )


def operands(dtype, a=SMALL, b=OTHER):
    kind = getattr(torch, dtype)
    return torch.tensor(a, dtype=kind), torch.tensor(b, dtype=kind)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_float_arithmetic_is_rounded_once_per_operation(fidelity, name, dtype):
    a, b = operands(dtype)
    assert_agrees(fidelity, f"{name} {dtype}", getattr(torch, name)(a, b))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
def test_division_of_narrow_floats_goes_through_float32(fidelity, dtype):
    a, b = operands(dtype)
    assert_agrees(fidelity, f"div {dtype}", (a.float() / b.float()).to(a.dtype))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_constant_takes_the_type_of_the_block(fidelity, dtype):
    a, _ = operands(dtype)
    assert_agrees(fidelity, f"half {dtype}", (a + torch.tensor(0.5, dtype=a.dtype)) * 3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_where_and_clamp_choose_among_operands(fidelity, dtype):
    a, b = operands(dtype)
    assert_agrees(fidelity, f"where {dtype}", torch.where(a > b, a, b))
    assert_agrees(fidelity, f"clamp {dtype}", a.clamp(-1.0, 2.0))


@pytest.mark.parametrize("dtype", FLOATS)
def test_fma_rounds_once(fidelity, dtype):
    a, b = operands(dtype)
    exact = a.double() * b.double() + a.double()
    assert_agrees(fidelity, f"fma {dtype}", exact.to(a.dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_sum_is_a_tree_rounded_at_every_node(fidelity, dtype):
    a, _ = operands(dtype)
    while len(a) > 1:
        a = a[: len(a) // 2] + a[len(a) // 2 :]
    assert_agrees(fidelity, f"sum {dtype}", a.expand(8))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["lt", "ge", "eq", "ne"])
def test_comparisons_see_numbers_and_nan(fidelity, name, dtype):
    a, b = operands(dtype, ODD, EVEN)
    assert_agrees(fidelity, f"{name} {dtype}", getattr(torch, name)(a, b))


@pytest.mark.parametrize("dtype", FLOATS)
def test_minimum_and_maximum_ignore_nan_by_default(fidelity, dtype):
    a, b = operands(dtype, ODD, EVEN)
    assert_agrees(fidelity, f"maximum {dtype}", torch.fmax(a, b))
    assert_agrees(fidelity, f"minimum {dtype}", torch.fmin(a, b))
    assert_agrees(fidelity, f"maximum nan {dtype}", torch.maximum(a, b))


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_maximum_of_a_block_ignores_nan(fidelity, dtype):
    assert_agrees(fidelity, f"max {dtype}", [5.0] * 8)


def test_floats_out_of_range_saturate_as_integers(fidelity):
    low, high = -(2**31), 2**31 - 1
    assert_agrees(fidelity, "to int32", [0, high, low, high, low, 2, -2, 300])
    assert_agrees(fidelity, "to uint32", [0, 2**32 - 1, 0, 3_000_000_000, 0, 2, 0, 300])
    assert_agrees(fidelity, "to int16", [0, 32767, -32768, 32767, -32768, 2, -2, 300])


def test_fp8_saturates_and_keeps_nan(fidelity):
    assert_agrees(
        fidelity, "to float8e4nv", [NAN, 448.0, -448.0, 448.0, -448.0, 0.3125, 1.0, 448.0]
    )
    assert_agrees(
        fidelity, "to float8e5", [NAN, 57344.0, -57344.0, 512.0, -57344.0, 0.3125, 1.0, 57344.0]
    )


def test_rounding_toward_zero_never_grows(fidelity):
    assert_agrees(fidelity, "rtz float16", [1 + 2**-7 - 2**-10, -2 + 2**-10, 65504.0, 65504.0,
                                  0.0999755859375, -0.0999755859375, 1.0, INF])  # fmt: skip
    top = 3.2896648701020916e38
    assert values(fidelity, "rtz bfloat16")[:3].tolist() == [1.0, -1.9921875, 69632.0]
    assert values(fidelity, "rtz bfloat16")[3].item() == pytest.approx(top, rel=1e-2)
    assert values(fidelity, "rtz bfloat16")[3].item() <= 3.3e38


def test_conversions_to_bfloat16_round_to_nearest_even(fidelity):
    numbers = torch.tensor([257, 511, -1, 3, 2**24, 0, 9, 1000001])
    assert_agrees(fidelity, "int to bfloat16", numbers.float().bfloat16())
    assert_agrees(fidelity, "store float32 as bfloat16", torch.tensor(SMALL).bfloat16())


def test_an_integer_is_true_unless_zero(fidelity):
    assert_agrees(fidelity, "bool of int", [1, 1, 1, 1, 1, 1, 1, 0])


def test_integer_division_truncates_and_never_raises(fidelity):
    got = values(fidelity, "floor division").tolist()
    assert got == [3, -3, -3, 3, 715827882, -(2**31), -1, 0]
    assert values(fidelity, "remainder").tolist() == [1, -1, 1, -1, 1, 0, 5, 0]


def test_integers_wrap(fidelity):
    a = torch.tensor(WORDS, dtype=torch.int32)
    assert_agrees(fidelity, "wrapping", a * 65537 + a)


def test_shifts_follow_the_sign_of_the_type(fidelity):
    a = torch.tensor(WORDS, dtype=torch.int32)
    assert_agrees(fidelity, "shift right", a >> 3)
    assert_agrees(fidelity, "shift right unsigned", [(w % 2**32) >> 3 for w in WORDS])
    assert_agrees(fidelity, "invert", ~a)
    assert_agrees(fidelity, "minimum", torch.minimum(a, torch.tensor(DIVISORS, dtype=torch.int32)))


@pytest.mark.parametrize(("name", "bits"), [("umulhi", 32), ("umulhi 64", 64)])
def test_umulhi_is_the_unsigned_upper_half(fidelity, name, bits):
    case = KERNELS[name]
    second = case.a if bits == 32 else case.b
    high = [((x % 2**bits) * (y % 2**bits)) >> bits for x, y in zip(case.a, second, strict=True)]
    signed = [h - 2**bits if h >= 2 ** (bits - 1) else h for h in high]
    assert fidelity[name]["values"] == signed


def test_narrow_integers_are_summed_in_32_bits(fidelity):
    assert_agrees(fidelity, "int8 sum", [800] * 8)


def test_integers_divide_as_float32(fidelity):
    assert_agrees(fidelity, "true division", torch.arange(1, 9).float() / 3)


def test_one_bit_integers_wrap(fidelity):
    assert_agrees(
        fidelity, "one bit sum", [(a > 0) != (b > 0) for a, b in zip(WORDS, DIVISORS, strict=True)]
    )


def test_ties_go_to_the_lowest_index(fidelity):
    assert_agrees(fidelity, "argmax", [1] * 8)
    assert_agrees(fidelity, "argmin", [6] * 8)


UP = torch.tensor([1.0, -2.0, 3.0, 4.0, -5.0, 6.0, 7.0, 8.0])


def test_scans_go_either_way(fidelity):
    assert_agrees(fidelity, "cumsum reverse", UP.flip(0).cumsum(0).flip(0))
    assert_agrees(fidelity, "cumprod", UP.cumprod(0))


def test_a_scan_of_pairs_keeps_their_order(fidelity):
    t, expected = 0.0, []
    for scale, shift in zip(UP.tolist(), OTHER, strict=True):
        t = t * scale + shift
        expected.append(t)
    got = values(fidelity, "scan of pairs")
    torch.testing.assert_close(got, torch.tensor(expected).double(), rtol=1e-5, atol=1e-5)


def test_a_combine_function_may_branch(fidelity):
    assert_agrees(fidelity, "branching combine", [8.0] * 8)
    assert_agrees(fidelity, "branching scan", UP.cummax(0).values)


def test_operands_of_a_combine_function_keep_their_order(fidelity):
    assert_agrees(fidelity, "last of scan", UP)
    assert_agrees(fidelity, "first of reduce", [1.0] * 8)


def test_sorting_and_moving_keep_the_bits(fidelity):
    assert_agrees(fidelity, "sort", UP.sort().values)
    assert_agrees(fidelity, "sort bfloat16", UP.sort().values)
    assert_agrees(fidelity, "topk", UP.topk(4).values)
    assert_agrees(fidelity, "flip", UP.flip(0))
    assert_agrees(fidelity, "interleave", torch.stack([UP, torch.tensor(SMALL)], 1).flatten())


def test_a_histogram_has_32_bit_counts(fidelity):
    assert_agrees(fidelity, "histogram", [1, 2, 0, 3, 0, 0, 1, 1])


def philox(counter, key):
    state, low, high = [counter, 0, 0, 0], key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p, q = 0xCD9E8D57 * state[2], 0xD2511F53 * state[0]
        state = [
            (p >> 32) ^ state[1] ^ low,
            p & 0xFFFFFFFF,
            (q >> 32) ^ state[3] ^ high,
            q & 0xFFFFFFFF,
        ]
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return state[0]


def test_random_integers_are_those_of_philox(fidelity):
    words = [philox(i, 123) for i in range(8)]
    signed = [w - 2**32 if w >= 2**31 else w for w in words]
    assert [int(v) % 2**32 for v in fidelity["randint"]["values"]] == words
    uniform = torch.tensor([-w - 1 if w < 0 else w for w in signed]).float() * 4.6566127342e-10
    assert_agrees(fidelity, "rand", uniform)


def test_a_float_argument_is_float32_and_a_constant_is_not(fidelity):
    a, _ = operands("bfloat16")
    assert_agrees(fidelity, "float argument", a.float() * 0.1)
    assert_agrees(fidelity, "float constant", a * torch.tensor(0.1, dtype=torch.bfloat16))


def test_an_integer_argument_beyond_32_bits_keeps_its_value(fidelity):
    assert_agrees(fidelity, "int argument", [w + 2**31 + 5 for w in WORDS])


def test_a_bool_argument_decides(fidelity):
    assert_agrees(fidelity, "bool argument", torch.tensor(WORDS, dtype=torch.int32) + 1)


def test_and_or_not_work_on_blocks(fidelity):
    expected = [(a > 0 and b > 0) or not a < 5 for a, b in zip(SMALL, OTHER, strict=True)]
    assert_agrees(fidelity, "and or", expected)


def test_a_loop_variable_is_a_32_bit_scalar(fidelity):
    a = torch.tensor([127, 1, 2, 3, 4, 5, 6, 7], dtype=torch.int32)
    byte = a.to(torch.int8)
    assert_agrees(fidelity, "loop variable", a + sum((byte + k).int() for k in range(3)))
    assert_agrees(fidelity, "loop variable type", a + (a + 100) + (a + 101))


def test_loops_run_backwards_and_until_a_condition(fidelity):
    assert_agrees(fidelity, "loop backwards", [((4 * 2 + 3) * 2 + 2) * 2 + 1] * 8)
    assert_agrees(fidelity, "while", [10.0] * 8)


def test_a_kernel_sees_the_variables_around_it(fidelity):
    assert_agrees(fidelity, "closure", torch.tensor(SMALL) * 3)


def test_python_min_and_max_are_the_language_s(fidelity):
    assert_agrees(fidelity, "python max", [7.0] * 8)


def test_a_constant_before_a_block_makes_a_block(fidelity):
    assert_agrees(fidelity, "constant first", [0.5] * 8)


def test_constants_have_a_value(fidelity):
    assert_agrees(fidelity, "constant value", [3.0] * 8)


def test_assertions_are_not_checked_outside_of_debug_mode(fidelity):
    assert_agrees(fidelity, "assert", [0.0] * 8)


def test_masked_lanes_get_other_or_zero(fidelity):
    a, _ = operands("bfloat16")
    filler = torch.tensor(1.7).bfloat16()
    assert_agrees(fidelity, "masked load", torch.where(torch.arange(8) < 3, a, 0))
    assert_agrees(fidelity, "masked other", torch.where(torch.arange(8) < 3, a, filler))


def test_a_bfloat16_descriptor_pads_with_nan(fidelity):
    a, _ = operands("bfloat16")
    assert_agrees(fidelity, "descriptor nan", torch.cat([a[1:6], torch.full((3,), NAN)]))


@pytest.mark.parametrize(
    ("name", "dtype"), [("atomic add", "bfloat16"), ("atomic add half", "float16")]
)
def test_narrow_atomic_adds_round_every_time(fidelity, name, dtype):
    a, _ = operands(dtype)
    total = torch.zeros((), dtype=a.dtype)
    for value in a:
        total = total + value
    assert_agrees(fidelity, name, [total.item()] + [0.0] * 7)


def test_other_atomics_update_memory(fidelity):
    assert_agrees(fidelity, "atomic max", [100.0] + [0.0] * 7)
    assert_agrees(fidelity, "atomic min", [-3.0] + [0.0] * 7)
    assert_agrees(fidelity, "atomic cas", [7, 0, 7, 0, 7, 7, 7, 7])
    assert_agrees(fidelity, "atomic xchg", torch.tensor(SMALL))


def product(name, kind):
    case = KERNELS[name]
    return (
        torch.tensor(case.a, dtype=kind).double().reshape(2, 4)
        @ torch.tensor(case.b, dtype=kind).double().reshape(4, 2)
    ).flatten()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "int8"])
def test_products_are_exact_and_summed_wide(fidelity, dtype):
    exact = product(f"dot {dtype}", getattr(torch, dtype))
    rounded = exact.float().double() if dtype == "float32" else exact
    torch.testing.assert_close(values(fidelity, f"dot {dtype}"), rounded, rtol=1e-7, atol=0)


def test_a_product_may_be_requested_in_float16(fidelity):
    assert_agrees(fidelity, "dot float16 out", product("dot float16", torch.float16).half())


def test_tf32_drops_the_low_bits_of_the_operands(fidelity):
    exact = product("dot float32", torch.float32).tolist()
    case = KERNELS["dot tf32"]
    short = [[1.0 if v == 1.0 + 2**-12 else v for v in side] for side in (case.a, case.b)]
    p, q = (torch.tensor(side).double() for side in short)
    got = values(fidelity, "dot tf32")
    assert got.tolist() != exact
    assert got.tolist() == (p.reshape(2, 4) @ q.reshape(4, 2)).flatten().tolist()


def test_products_of_batches_and_of_fp8(fidelity):
    a, b = (torch.tensor(v) for v in (SMALL, OTHER))
    batched = (a.double().reshape(2, 2, 2) @ b.double().reshape(2, 2, 2)).flatten()
    torch.testing.assert_close(values(fidelity, "dot batched"), batched, rtol=1e-6, atol=1e-6)
    a, b = (v.to(torch.float8_e5m2).double() for v in (a, b))
    narrow = (a.reshape(2, 4) @ b.reshape(4, 2)).flatten()
    torch.testing.assert_close(values(fidelity, "dot float8e5"), narrow, rtol=1e-6, atol=1e-6)


def test_scaled_products_of_4_bit_numbers(fidelity):
    table = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    octets = [i * 5 % 256 for i in range(64)]

    def number(code):
        return (-1 if code & 8 else 1) * table[code & 7]

    halves = [number(half) for v in octets for half in (v & 15, v >> 4)]
    p = torch.tensor(halves).reshape(2, 64)
    w = torch.tensor([[number((octets[k // 2 * 2 + c] >> 4 * (k % 2)) & 15) for c in range(2)]
                      for k in range(64)])  # fmt: skip
    assert_agrees(fidelity, "dot scaled", (p @ w * 16).flatten())


@pytest.mark.skipif(TRITON >= (3, 9), reason="the language has no block pointers from 3.9 on")
def test_block_pointers_advance_and_pad(fidelity):
    padded = [5.0, 6.0, 7.0, NAN] + [NAN] * 4
    assert_agrees(fidelity, "block pointer nan", padded)
    assert_agrees(fidelity, "block pointer zero", [5.0, 6.0, 7.0] + [0.0] * 5)
    assert_agrees(fidelity, "block pointer store", [0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0])


def test_a_negative_number_has_its_own_type(fidelity):
    assert_agrees(fidelity, "negative", -torch.tensor(ODD))


def test_half_precision_turns_into_brain_floats_directly(fidelity):
    assert_agrees(fidelity, "half to brain", torch.tensor(SMALL).half().bfloat16())


def test_a_wrapped_condition_ends_its_loop(fidelity):
    assert_agrees(fidelity, "condition", [11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0])


@pytest.mark.skipif(TRITON < (3, 9), reason="the compiler refuses chained comparisons before 3.9")
def test_chained_comparisons_are_conjunctions(fidelity):
    a, b = torch.tensor(SMALL), torch.tensor(OTHER)
    assert_agrees(fidelity, "chained", (a > 0.5) & (a <= b))
    assert_agrees(fidelity, "chained constants", [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])


@pytest.mark.skipif(TRITON >= (3, 9), reason="the compiler takes chained comparisons from 3.9 on")
@pytest.mark.parametrize("name", ["chained", "chained constants"])
def test_chained_comparisons_are_refused_as_the_compiler_refuses_them(fidelity, name):
    assert fidelity[name]["error"] == "UnsupportedLanguageConstruct"


def test_cache_hints_change_no_value(fidelity):
    assert_agrees(fidelity, "cached load", torch.tensor(SMALL))
    assert_agrees(fidelity, "streamed store", torch.tensor(SMALL))
    assert fidelity["fetched anew"]["error"] == "UnsupportedError"


@pytest.mark.skipif(TRITON < (3, 9), reason="the language has them from 3.9 on")
def test_newer_operations_compute_what_they_say(fidelity):
    assert_agrees(fidelity, "approximate division", torch.tensor(SMALL) / torch.tensor(OTHER))
    assert_agrees(fidelity, "atomic load", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    assert_agrees(fidelity, "atomic store", [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert_agrees(fidelity, "poll", [1, 0, 1, 0, 1, 0, 0, 1])
    assert fidelity["polls forever"]["error"] == "UnsupportedError"


def test_stores_broadcast_their_value(fidelity):
    assert_agrees(fidelity, "broadcast store", [0.0] * 4 + [1.0] * 4)


def test_bool_pointers_hold_bytes(fidelity):
    assert_agrees(fidelity, "bool pointers", [0, 1, 1, 0] * 2)


@pytest.mark.parametrize(
    "name", ["inline asm", "waits forever", "volatile wait", "directed rounding"]
)
def test_what_cannot_be_done_is_unsupported_here(fidelity, name):
    assert fidelity[name]["error"] == "UnsupportedError", fidelity[name]


def test_a_kernel_s_own_error_stays_an_error(fidelity):
    assert fidelity["broken"]["error"] == "InterpreterError"


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("tanh", torch.tanh), ("erf", torch.erf), ("rint", torch.round), ("log1p", torch.log1p),
        ("expm1", torch.expm1), ("rsqrt", torch.rsqrt), ("atan", torch.atan),
        ("tgamma", lambda x: torch.tensor([math.gamma(v) if v != -3 else NAN for v in x])),
        ("normcdf", torch.special.ndtr), ("round", lambda x: (x.abs() + 0.5).floor() * x.sign()),
    ],
)  # fmt: skip
def test_libdevice_functions_are_float64_rounded_to_float32(fidelity, name, function):
    exact = function(torch.tensor(SMALL, dtype=torch.float32).double()).float().double()
    torch.testing.assert_close(
        values(fidelity, f"libdevice {name}"), exact, rtol=2e-7, atol=0, equal_nan=True
    )


def test_libdevice_is_found_by_every_way_of_importing_it(fidelity):
    assert_agrees(fidelity, "libdevice by name", values(fidelity, "libdevice tanh"))
    assert_agrees(fidelity, "libdevice cuda", torch.exp(torch.tensor(OTHER).double()).float())


def test_libdevice_of_two_arguments_and_predicates(fidelity):
    a, b = (torch.tensor(v).double() for v in (SMALL, OTHER))
    assert_agrees(
        fidelity, "libdevice pow", (a.float().double().abs() ** b.float().double()).float()
    )
    assert_agrees(fidelity, "libdevice isnan", torch.tensor(ODD).isnan())


def test_bit_functions(fidelity):
    reverse = [int(f"{v % 2**32:032b}"[::-1], 2) for v in KERNELS["brev"].a]
    assert_agrees(fidelity, "brev", [r - 2**32 if r >= 2**31 else r for r in reverse])
    assert_agrees(fidelity, "clz", [31, 30, 30, 0, 32, 29, 29, 23])
    assert_agrees(fidelity, "ffs", [1, 2, 1, 1, 0, 4, 2, 9])
    assert_agrees(fidelity, "byte perm", [0x33770055] * 8)


def test_mathematics_is_within_rounding(fidelity):
    a, b = (torch.tensor(v).double() for v in (SMALL, OTHER))
    torch.testing.assert_close(values(fidelity, "erf"), a.erf(), rtol=2e-7, atol=0)
    torch.testing.assert_close(values(fidelity, "exp"), b.exp(), rtol=1e-6, atol=0)


def test_running_a_kernel_adds_nothing_to_its_module(fidelity):
    assert fidelity["new globals"]["values"] == []
