"""An attempt says which of PyTorch's headers its CUDA C++ was built with."""

from dataclasses import dataclass, replace

import numpy as np

from kerneltruth.documents.verdict import CompileError, Passed
from kerneltruth.oracle.attempt import judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.arguments import TensorArgument
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.observation import Observation, TensorResult
from kerneltruth.tasks.registry import find

LOADED = Observation(ended="returned")
SOURCE = "from torch.utils.cpp_extension import load_inline\ndef relu(input): pass\n"


@dataclass
class FakeSession:
    """A child whose results are right; a model's extension is built when it is first called."""

    loaded: Observation
    lean: bool
    device: str = "cuda:0"
    pid: int | None = None
    queued_s: float = 0.0
    lost: int = 0

    def call(self, arguments, **_):
        (given,) = (a for a in arguments if isinstance(a, TensorArgument))
        return Observation(
            ended="returned",
            results=(relu(given),),
            buffers={given.name: given.buffer},
            lean=self.lean,
        )

    def after_last(self):
        return Observation(ended="returned")

    def close(self, *, wait=True):
        pass


@dataclass
class FakeRunner:
    """Opens such sessions."""

    loads: Observation
    lean: bool = False
    device: str = "cuda:0"
    targets: tuple = ()

    def open(self, candidate, mode="run"):
        return FakeSession(self.loads, self.lean)

    def load_allowance(self, candidate):
        return 1.0


def relu(given):
    """The right answer to float32 inputs."""
    whole = np.frombuffer(given.buffer, dtype=np.float32)
    strides = [4 * n for n in given.strides]
    x = np.lib.stride_tricks.as_strided(whole[given.offset :], given.shape, strides)
    y = np.where(x < 0, np.float32(0), x)
    strides = tuple(n // 4 for n in np.empty_like(y, order="C").strides)
    return TensorResult(
        dtype="float32",
        shape=given.shape,
        strides=strides,
        device="cuda:0",
        data=np.ascontiguousarray(y).tobytes(),
    )


PLAN = Plan(cases=4, dtypes=("float32",), domain="core", compile=False)


def attempt(runner):
    candidate = read_candidate(SOURCE, "relu.py", task_names=("relu",), task="relu")
    assert candidate.language == "cuda"
    with CandidateSession(
        find("relu"), candidate, runner, ExpectationCache(Policy()), deadline_s=5.0
    ) as session:
        *_, last = judge_cases(session, PLAN)
    return last.attempt


def test_a_build_with_few_headers_is_said_whenever_it_happens():
    for runner in (FakeRunner(LOADED, lean=True), FakeRunner(replace(LOADED, lean=True))):
        found = attempt(runner)
        assert found.verdict == Passed()
        assert found.headers == "lean"


def test_a_build_with_all_headers_is_said():
    assert attempt(FakeRunner(LOADED)).headers == "full"
    refused = Observation(ended="compile_failed", error="RuntimeError", message="Error building")
    found = attempt(FakeRunner(refused))
    assert isinstance(found.verdict, CompileError)
    assert found.headers == "full"
