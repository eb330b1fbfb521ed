"""What an exception in the child is made of."""

import pytest

from kerneltruth.runner.child.failures import failure, keep_folder
from kerneltruth.runner.unsupported import UnsupportedError


class CompilationError(Exception):
    """Named as Triton's is."""


class AcceleratorError(RuntimeError):
    """Named as torch's is."""


class InterpreterError(Exception):
    """Named as the wrapper of Triton's interpreter is."""


class Mute(Exception):
    def __str__(self):
        raise ValueError("no words")


def failure_of(error):
    try:
        raise error
    except Exception as caught:
        return failure(caught)


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (ValueError("a"), "raised"),
        (CompilationError("at 3:4"), "compile_failed"),
        (RuntimeError("ptxas fatal: too many registers"), "compile_failed"),
        (UnsupportedError("needs a GPU"), "unsupported"),
    ],
)
def test_the_compiler_and_the_kernel_are_told_apart_as_causes(error, ended):
    found = failure_of(error)
    assert (found.ended, found.error, found.message) == (ended, type(error).__name__, str(error))


@pytest.mark.parametrize(
    ("error", "dirty"),
    [
        (RuntimeError("CUDA error: an illegal memory access was encountered"), True),
        (AcceleratorError("misaligned address"), True),
        (RuntimeError("size mismatch"), False),
    ],
)
def test_a_context_that_may_be_broken_is_not_used_again(error, dirty):
    assert failure_of(error).dirty is dirty


def test_the_kernels_own_exception_is_named_not_the_interpreters_wrapper():
    try:
        raise InterpreterError("in the interpreter") from IndexError("17")
    except InterpreterError as caught:
        found = failure(caught)
    assert (found.error, found.message) == ("IndexError", "17")


def test_what_a_compiler_finds_wrong_comes_before_the_source():
    said = "at 61:15:\n    x = 1\n    if col[i] < n:\n       ^\nDid you forget @triton.jit?\nmore"
    assert failure_of(CompilationError(said)).message == (
        "at 61:15: Did you forget @triton.jit?\n    x = 1\n    if col[i] < n:\n       ^\nmore"
    )


def test_an_exception_without_words_is_one_all_the_same():
    assert failure_of(Mute()).message == "<str() of the exception raised>"


def test_no_message_holds_the_private_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keep_folder()
    found = failure_of(FileNotFoundError(f"{tmp_path}/weights.bin"))
    assert found.message == "weights.bin"
