"""Numbers in a source around which sizes are tried."""

import time
import tracemalloc

import pytest

from kerneltruth.runner.source_numbers import block_sizes, nodes_of, thresholds


def test_block_sizes_come_from_calls_defaults_assignments_and_configs():
    source = """
BLOCK_M = 16
TILE: tl.constexpr = 24
CHUNKS = [48, 2 * 49]
def f(x, BLOCK_N=32, *, block_k=1 << 6): pass
f(x, BLOCK_N=128, num_warps=4, NUM_STAGES=3, NUM_ROWS=5, other=7)
triton.Config({"BLOCK_M": 256, "SPLIT": 9}, num_stages=2)
BLOCK_D = 512 if big else 1
"""
    assert block_sizes(source) == (5, 16, 24, 32, 48, 64, 98, 128, 256, 512)


def test_what_is_not_python_names_no_block_sizes():
    assert block_sizes("def (") == ()


def test_thresholds_come_from_conditions_and_asserts():
    source = """
LIMIT = 4096
def f(x):
    assert x.shape[-1] <= 1024, "too long"
    if x.numel() > LIMIT or x.dim() == 2:
        return big(x)
    block = min(triton.next_power_of_2(x.shape[0]), 65536 // x.element_size())
    return small(x) if x.shape[0] < 100 else middle(x)
"""
    assert thresholds(source) == (100, 1024, 4096, 16384, 32768)


def test_thresholds_come_from_conversions_to_a_narrow_dtype():
    assert thresholds("def f(x): return offsets.to(tl.int8) + x.half()") == (128, 2048)


def test_small_numbers_and_other_numbers_are_no_thresholds():
    assert thresholds("def f(x):\n    y = x * 1024\n    return y if x.ndim == 3 else x") == ()
    assert thresholds("def (") == ()


NESTED = f"f(BLOCK={'f(0, BLOCK=f(0, ' * 45}1{'))' * 45})\n"
HOSTILE = {
    "products of many numbers": f"BLOCK = {'*'.join(['(2,3)'] * 40)}",
    "products of large numbers": f"BLOCK = {'*'.join(['0x' + 'f' * 3000] * 300)}",
    "a chain of tuples": f"BLOCK = {'*'.join([str(tuple(range(1, 65)))] * 700)}",
    "calls within calls": NESTED * 150,
    "conditions within conditions": f"if {'(a if (' * 90}a < 9{') else 1)' * 90}: pass\n" * 150,
    "one large string": "X = 'a' * 10**9",
    "millions of lines": "x\n" * 5_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_no_source_takes_long_or_much_memory_to_read(source):
    tracemalloc.start()
    start = time.process_time()
    block_sizes(source)
    thresholds(source)
    taken, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert taken < 20
    assert peak < 200 * 2**20


def test_an_expression_of_few_values_is_folded():
    assert block_sizes("BLOCK = (2, 3) * (4, 8)") == (8, 12, 16, 24)


def test_the_nodes_of_a_source_are_those_that_say_something_by_themselves():
    found = [type(node).__name__ for node in nodes_of("x = -a + 2 if b and c < 3 else d")]
    module, assign, *expressions = found
    assert (module, assign) == ("Module", "Assign")
    assert sorted(expressions) == [
        *("BinOp", "BoolOp", "Compare", "Constant", "Constant", "IfExp"),
        *("Name", "Name", "Name", "Name", "Name", "UnaryOp"),
    ]
