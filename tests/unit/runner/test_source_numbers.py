"""Numbers in a source around which sizes are tried."""

from kerneltruth.runner.source_numbers import block_sizes, thresholds


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
