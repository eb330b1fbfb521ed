"""Stand-ins for PyTorch's headers never convict: what looks bad is built really, and asked."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.course import Plan, try_candidate
from kerneltruth.oracle.expectation import ExpectationCache
from kerneltruth.oracle.trial import Trial
from kerneltruth.oracle.verdict import CompileError, Crashed, Failed, Passed
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.protocol import Observation, TensorArgument, TensorResult
from kerneltruth.tasks.registry import find

SOURCE = "from torch.utils.cpp_extension import load_inline\ndef relu(input): pass\n"


@dataclass
class FakeSession:
    """A child whose results are right unless its build is one of the bad ones."""

    runner: "FakeRunner"
    light: bool
    device: str = "cuda:0"

    @property
    def loaded(self):
        return self.runner.loads[self.light]

    def call(self, arguments, **_):
        (given,) = (a for a in arguments if isinstance(a, TensorArgument))
        answer = relu(given) if self.light not in self.runner.wrong else NO_ANSWER
        return Observation(
            ended="returned",
            results=(answer,),
            buffers={given.name: given.buffer},
            stood_in=self.light and self.runner.says,
        )

    def close(self, *, wait=True):
        self.runner.closed += 1


@dataclass
class FakeRunner:
    """Opens sessions, and records with which headers."""

    device: str = "cuda:0"
    targets: tuple = ()
    wrong: frozenset = frozenset()
    says: bool = True
    loads: dict = field(default_factory=dict)
    opened: list = field(default_factory=list)
    closed: int = 0

    def __post_init__(self):
        self.loads = {
            True: Observation(ended="returned", stood_in=self.says),
            False: Observation(ended="returned"),
            **self.loads,
        }

    def open(self, candidate, mode="run", *, light=False):
        self.opened.append("light" if light else "real")
        return FakeSession(self, light)


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


NO_ANSWER = TensorResult(dtype="float32", shape=(), strides=(), device="cuda:0", data=bytes(4))


PLAN = Plan(cases=4, dtypes=("float32",), domain="core", compile=False)


def attempt(runner):
    candidate = read_candidate(SOURCE, "relu.py", task_names=("relu",), task="relu")
    assert candidate.language == "cuda"
    trial = Trial(
        find("relu"),
        candidate,
        runner,
        ExpectationCache(Policy()),
        deadline_s=5.0,
        light=True,
    )
    with trial:
        *_, last = try_candidate(trial, PLAN)
    return last.attempt


BOTH = frozenset((True, False))


def test_what_passes_with_stand_ins_is_not_built_again():
    runner = FakeRunner()
    found = attempt(runner)
    assert found.verdict == Passed()
    assert found.headers == "light"
    assert runner.opened == ["light"]


def test_the_verdict_is_the_real_builds_where_they_differ():
    runner = FakeRunner(wrong=frozenset((True,)))
    found = attempt(runner)
    assert found.verdict == Passed()
    assert (found.headers, found.failed) == ("real", 0)
    assert runner.opened == ["light", "real"]


def test_what_stand_ins_make_look_bad_is_asked_of_the_real_build():
    runner = FakeRunner(wrong=BOTH)
    found = attempt(runner)
    assert runner.opened == ["light", "real"]
    assert isinstance(found.verdict, Failed)
    assert found.headers == "real"


def test_a_child_that_used_no_stand_in_is_believed_at_once():
    runner = FakeRunner(wrong=BOTH, says=False)
    found = attempt(runner)
    assert runner.opened == ["light"]
    assert isinstance(found.verdict, Failed)
    assert found.headers == "real"


@pytest.mark.parametrize("ended", ["died", "timeout", "flooded"])
def test_a_load_without_an_answer_may_be_the_stand_ins_fault(ended):
    failed = Observation(ended="load_failed", error="ImportError", message="real")
    runner = FakeRunner(loads={True: Observation(ended=ended), False: failed})
    found = attempt(runner)
    assert runner.opened == ["light", "real"]
    assert found.verdict == CompileError(detail="ImportError: real")


def test_a_refusal_of_the_real_build_is_not_asked_again():
    failed = Observation(ended="compile_failed", error="RuntimeError", message="Error building")
    runner = FakeRunner(loads={True: failed})
    found = attempt(runner)
    assert runner.opened == ["light"]
    assert isinstance(found.verdict, CompileError)


def test_a_real_build_that_dies_convicts():
    died = Observation(ended="died", message="killed by signal 11")
    found = attempt(FakeRunner(loads={True: died, False: died}))
    assert isinstance(found.verdict, Crashed)
