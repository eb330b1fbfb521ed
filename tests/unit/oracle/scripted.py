"""Small tasks, and a runner whose child is a Python function: a session without a process."""

from dataclasses import dataclass, field

import torch

from kerneltruth.documents.case import Case
from kerneltruth.oracle.arguments import lay_out
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation_builder import ExpectationCache, expect
from kerneltruth.oracle.judge import rule
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.observation import Observation, TensorResult
from kerneltruth.tasks.spec import task


def declare(signature, reference, dims=None, **more):
    return task(
        signature,
        category="Test",
        dims=dims or {"M": "batch", "N": "spatial"},
        reference=reference,
        description="",
        flops=more.pop("flops", "1"),
        benchmark=more.pop("benchmark", {"M": 3, "N": 5}),
        **more,
    )


RELU = declare("relu(x[M, N])", lambda x: torch.relu(x))
SUM = declare("total(x[M, N])", lambda x: x.sum(-1), {"M": "batch", "N": "reduced"})
MATMUL = declare(
    "matmul(a[M, K], b[K, N])",
    lambda a, b: a @ b,
    {"M": "batch", "N": "channel", "K": "contracted"},
    benchmark={"M": 3, "N": 5, "K": 4},
)


def case_of(declared, **more):
    """A case at the task's benchmark shape."""
    shape = declared.benchmark.dims
    dims = tuple((d.symbol, more.pop(d.symbol, shape[d.symbol])) for d in declared.dims)
    return Case(task=declared.key, dims=dims, seed=more.pop("seed", 3), **more)


def result(tensor, **more):
    """What the child reports of an output."""
    flat = tensor.contiguous()
    return TensorResult(
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        strides=tuple(flat.stride()),
        device=more.get("device", "cpu"),
        data=flat.reshape(-1).view(torch.uint8).numpy().tobytes(),
        alias=more.get("alias"),
    )


def returned(*tensors, **more):
    return Observation(ended="returned", results=tuple(map(result, tensors)), **more)


def tensor_in(argument, buffer=None):
    """The tensor that the candidate is given."""
    whole = torch.frombuffer(
        bytearray(buffer or argument.buffer), dtype=getattr(torch, argument.dtype)
    )
    return whole.as_strided(argument.shape, argument.strides, argument.offset)


@dataclass
class ChildCall:
    """One call as the child sees it."""

    arguments: tuple
    poison: bytes
    config: int
    mode: str
    small_poison: bool = False
    small_guards: bool = False
    kernels: str = "run"
    earlier: tuple = ()
    in_sight: bool = False
    source: str = ""

    @property
    def tensors(self):
        return {a.name: tensor_in(a) for a in self.arguments if hasattr(a, "buffer")}


@dataclass
class ScriptedRunner:
    """Opens sessions that answer by a function of the call; remembers every call."""

    answer: object
    loaded: Observation = field(default_factory=lambda: Observation(ended="returned"))
    compiled: object = None
    targets: tuple = ()
    device: str = "cpu"
    calls: list = field(default_factory=list)
    rehearsed: list = field(default_factory=list)
    rehearsal: object = None
    opened: list = field(default_factory=list)
    loaded_instead: list = field(default_factory=list)
    waited: list = field(default_factory=list)
    after_last: Observation = field(default_factory=lambda: Observation(ended="returned"))
    # How long calls have taken by their own account.
    spent_s: float = 0.0

    def load_allowance(self, candidate):
        del candidate
        return 30.0

    def open(self, candidate, mode="run"):
        self.opened.append(mode)
        return _Session(self, mode, candidate.source)


@dataclass
class _Session:
    runner: ScriptedRunner
    mode: str
    source: str
    device: str = "cpu"
    pid: int | None = None
    queued_s: float = 0.0
    lost: int = 0

    @property
    def loaded(self):
        return self.runner.loaded

    def call(self, arguments, *, poison, config=0, draw=0, reused=False, deadline_s, **small):
        del reused
        small.pop("most", None)
        small.pop("gradients_of", None)
        kernels = small.pop("kernels", "run")
        call = ChildCall(
            tuple(arguments),
            poison,
            config,
            self.mode,
            kernels=kernels,
            source=self.source,
            **small,
        )
        self.runner.calls.append(call)
        answer = (self.runner.compiled if self.mode == "compile" else self.runner.answer)(call)
        seen = answer if isinstance(answer, Observation) else returned(answer)
        self.runner.spent_s += deadline_s if seen.ended == "timeout" else seen.seconds or 0.0
        return seen

    def request(self, message, *, deadline_s):
        assert deadline_s > 0
        self.runner.rehearsed.append(message)
        return self.runner.rehearsal(message)

    def after_last(self):
        return self.runner.after_last

    def load_instead(self, candidate):
        self.runner.loaded_instead.append(candidate.entry)

    def close(self, wait=True):
        self.runner.opened.remove(self.mode)
        self.runner.waited.append(wait)


# What is expected of a task's cases, for all tests of a process: each costs more than its call.
_EXPECTED = {}


def expectations_of(declared):
    """The cache of a task; two tests may declare tasks of one name."""
    kept, cache = _EXPECTED.setdefault(id(declared), (declared, ExpectationCache(Policy())))
    assert kept is declared
    return cache


def session_of(declared, answer, *, source="", language="torch", ends_first=False, **runner):
    """A session whose candidate is a function of the call."""
    candidate = Candidate(
        source=source, path="f.py", sha256="0" * 64, language=language, entry=declared.name
    )
    scripted = ScriptedRunner(answer, **runner)
    return CandidateSession(
        declared,
        candidate,
        scripted,
        expectations_of(declared),
        deadline_s=5.0,
        ends_first=ends_first,
        clock=lambda: scripted.spent_s,
    )


class Bench:
    """A case laid out, and rulings on what is said to have come of it."""

    def __init__(self, declared=RELU, **case):
        self.task = declared
        self.expectation = expect(declared, case_of(declared, **case), Policy())
        self.placed = lay_out(declared, self.expectation.case, self.expectation.inputs).placed
        self.right = tuple(o.rounded for o in self.expectation.outputs)

    def ruling(self, observation, device=None):
        return rule(
            self.task,
            self.expectation,
            self.placed,
            observation,
            deadline_s=2.5,
            device=device,
        )

    def verdict(self, observation, **more):
        return self.ruling(observation, **more).verdict

    def written(self, *at, name="x"):
        """The input's buffer with some bytes flipped, counted from the first element."""
        spot = self.placed[name]
        after = bytearray(spot.buffer)
        for byte in at:
            after[spot.offset * 4 + byte] ^= 0x55
        return {name: bytes(after)}
