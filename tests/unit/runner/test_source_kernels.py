"""A source without the work of its kernels is otherwise the same."""

import ast
import textwrap

import pytest

from kerneltruth.runner.source_kernels import emptied

KERNELS = """
import triton
from triton import jit

@triton.autotune(configs=[], key=["n"])
@triton.jit
def one(x, n, BLOCK: tl.constexpr = 4):
    '''Store.'''
    tl.store(x, 1)

@jit
def two(x): tl.store(x, 2)

@triton.jit(do_not_specialize=["x"])
def three(x):
    if x:
        return x

def entry(x):
    one[(1,)](x, 1)
    return x
"""


def test_kernels_do_nothing_and_all_else_stays():
    source = emptied(KERNELS)
    assert source.kernels == {"one", "two", "three"}
    by_name = {n.name: n for n in ast.parse(source.text).body if isinstance(n, ast.FunctionDef)}
    assert [ast.unparse(by_name[name].body) for name in ("one", "two", "three")] == ["pass"] * 3
    whole = {n.name: n for n in ast.parse(KERNELS).body if isinstance(n, ast.FunctionDef)}
    assert ast.dump(by_name["entry"]) == ast.dump(whole["entry"])
    assert ast.dump(by_name["one"].args) == ast.dump(whole["one"].args)


@pytest.mark.parametrize(
    "source",
    ["def f(x): return x", "@torch.jit.script\ndef f(x): return x", "def f(:", "x = " + "-" * 9**5],
)
def test_a_source_without_kernels_or_sense_has_none_to_empty(source):
    assert emptied(textwrap.dedent(source)) is None
