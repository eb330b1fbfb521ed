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


class Exits(BaseException):
    def __str__(self):
        raise SystemExit(0)


class Lying(str):
    __slots__ = ()

    def __contains__(self, words):
        return True

    def __getitem__(self, part):
        return self


class Liar(Exception):
    def __str__(self):
        return Lying("x" * 10_000)


class Named(type):
    @property
    def __name__(cls):
        raise SystemExit(0)

    @property
    def __mro__(cls):
        raise SystemExit(0)


class Odd(Exception, metaclass=Named):
    @property
    def __class__(self):
        raise SystemExit(0)


class Disguised(Exception):
    __class__ = UnsupportedError


def test_an_exception_whose_text_ends_the_process_has_none():
    found = failure(Exits())
    assert (found.error, found.message) == ("Exits", "<str() of the exception raised>")


def test_a_text_with_methods_of_its_own_is_read_as_any_other():
    found = failure(Liar())
    assert (found.ended, type(found.message), len(found.message)) == ("raised", str, 2000)


def test_what_a_class_says_of_itself_is_not_asked():
    assert (failure(Odd("x")).error, failure(Odd("x")).message) == ("Odd", "x")
    assert failure(Disguised("x")).ended == "raised"


def test_causes_without_an_end_are_followed_no_further():
    one, other = InterpreterError("one"), InterpreterError("other")
    one.__cause__, other.__cause__ = other, one
    assert failure(one).error == "InterpreterError"


def test_a_long_name_of_a_class_is_cut():
    assert len(failure(type("E" * 10_000, (Exception,), {})()).error) == 200


def test_no_message_holds_the_private_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keep_folder()
    found = failure_of(FileNotFoundError(f"{tmp_path}/weights.bin"))
    assert found.message == "weights.bin"
