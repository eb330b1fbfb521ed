"""What verdicts say of themselves."""

from typing import get_args

from kerneltruth.documents.verdict import (
    CompileError,
    Crashed,
    Declined,
    Failed,
    Hack,
    Infra,
    Passed,
    RuntimeFault,
    TimedOut,
    Unrefereeable,
    UnsupportedHere,
    Verdict,
    VerdictWord,
    Void,
    said_of,
)

SAYING = {
    Failed(kind="value", detail="off by 2"): "off by 2",
    Hack(kind="kept_result", detail="returned an earlier result"): "returned an earlier result",
    CompileError(detail="SyntaxError: invalid syntax"): "SyntaxError: invalid syntax",
    RuntimeFault(error="ValueError", detail="no such mode"): "no such mode",
    Crashed(signal=11, detail="died by SIGSEGV"): "died by SIGSEGV",
    TimedOut(seconds=2.5): "did not return within 2.5 s",
    Declined(reason="takes float32 only"): "takes float32 only",
    Unrefereeable(reason="no bound"): "no bound",
    Void(reason="PyTorch raises"): "PyTorch raises",
    UnsupportedHere(reason="needs a GPU"): "needs a GPU",
    Infra(reason="the worker was lost"): "the worker was lost",
}
# A process that dies, or an error without a message, gives no words of its own.
SILENT = {
    Failed(kind="nan", detail=""): "nan",
    CompileError(detail=""): "compile_error",
    RuntimeFault(error="ValueError", detail=""): "raises ValueError",
    Crashed(signal=9, detail=""): "crash",
    Declined(reason=""): "declined",
    UnsupportedHere(reason=""): "unsupported_here",
}


def test_every_verdict_but_a_pass_says_why():
    assert {said_of(verdict) for verdict in SAYING} == set(SAYING.values())
    assert {type(verdict) for verdict in SAYING} | {Passed} == set(get_args(Verdict))
    assert {verdict.word for verdict in (*SAYING, Passed())} == set(get_args(VerdictWord))
    assert said_of(Passed()) == ""


def test_a_verdict_without_words_says_its_word_its_kind_or_the_error():
    assert {said_of(verdict): said for verdict, said in SILENT.items()} == {
        said: said for said in SILENT.values()
    }
