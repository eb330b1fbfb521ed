"""Candidates called through the wall with what the notation can say: lists, forms, in place."""

import pytest

from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.spec import Dim, Output, Variants, task


def declare(signature, reference, **more):
    import torch

    return task(
        signature,
        category="Test",
        dims={"M": "batch", "N": Dim(symbol="N", role="spatial", low=1)},
        reference=reference or (lambda **given: torch.zeros(())),
        description="",
        flops="M*N",
        benchmark={"M": 3, "N": 5},
        **more,
    )


def stacked(tensors, divisor):
    import torch

    return torch.hstack(tensors) / divisor


STACK = declare("stack(tensors=[a[M, N], b[M, N + 1]?, c[M, 2]], divisor[M, 1]: positive)", stacked)
RANKED = declare(
    "double(x[*shape], times:=2 * _rank)",
    lambda x, times: x * times,
    where={"shape": Variants("_rank", {2: "M, N", 1: "M * N", 3: "M, 2, N"})},
)
PARTS = declare(
    "parts(x[M, N], turn=False)",
    lambda x, turn: (-1j if turn else 1j) * x,
    attributes={"turn": (True,)},
    outputs=(Output(dtype="complex"),),
    dtypes=("float32",),
)
LEAST = declare(
    "least(x[M, N], dim=None)",
    lambda x, dim: x.amax() if dim is None else (x.amax(dim), x.argmax(dim)),
    attributes={"dim": (-1,)},
    outputs=(
        Output(),
        Output(
            name="indices",
            dtype="int64",
            compare="accept",
            when="dim is not None",
            accept=lambda inputs, outputs, reference: (
                (
                    inputs["x"].gather(-1, outputs[1].unsqueeze(-1)).squeeze(-1)
                    == inputs["x"].amax(-1)
                )
                | inputs["x"].isnan().any(-1)
            ),
        ),
    ),
    constraints=("M >= 1",),
)
RUNNING = declare(
    "count(x[M, N], seen[N], training=True)",
    lambda x, seen, training: (x * 2, seen + 1) if training else x * 2,
    attributes={"training": (False,)},
    outputs=(Output(), Output(name="seen", when="training")),
    mutates={"seen": "training"},
)
INPLACE = declare(
    "negate(x[M, N], inplace=False)",
    lambda x, inplace: -x,
    attributes={"inplace": (True,)},
    may_overwrite={"x": "inplace"},
)

RIGHT = {
    "stack": (STACK, "def stack(ts, d): return torch.hstack(ts) / d"),
    "ranks": (RANKED, "def double(x, times): return x * times"),
    "complex": (PARTS, "def parts(x, turn): return torch.complex(x * 0, -x if turn else x)"),
    "when": (
        LEAST,
        "def least(x, dim=None):\n"
        "    return x.amax() if dim is None else (x.amax(dim), x.argmax(dim))",
    ),
    "mutates": (
        RUNNING,
        "def count(x, seen, training):\n    if training: seen += 1\n    return x * 2",
    ),
    "inplace": (INPLACE, "def negate(x, inplace): return x.neg_() if inplace else -x"),
    "inplace declined": (INPLACE, "def negate(x, inplace): return -x"),
}
WRONG = {
    "forgets a member": (STACK, "def stack(ts, d): return torch.hstack(ts[:2]) / d", "shape"),
    "forgets the rank": (RANKED, "def double(x, times): return x * 4", "value"),
    "real": (PARTS, "def parts(x, turn): return x.clone()", "value"),
    "conjugate": (PARTS, "def parts(x, turn): return torch.complex(x * 0, x)", "value"),
    "always one": (LEAST, "def least(x, dim=None): return x.amax(dim)", "count"),
    "writes a copy": (RUNNING, "def count(x, seen, training): return x * 2, seen + 1", None),
    "always writes": (
        RUNNING,
        "def count(x, seen, training):\n    seen += 1\n    return x * 2",
        "input_mutated",
    ),
    "always in place": (INPLACE, "def negate(x, inplace): return x.neg_()", "input_mutated"),
}


@pytest.fixture(scope="module")
def verdict_of(evaluator):
    cache = ExpectationCache(Policy())

    def judge(declared, source):
        candidate = read_candidate(
            f"import torch\n{source}", "c.py", task_names=(declared.name,), task=declared.name
        )
        plan = Plan(cases=24, compile=False)
        with CandidateSession(
            declared, candidate, evaluator.runner, cache, deadline_s=20.0
        ) as session:
            *_, last = judge_cases(session, plan)
        assert isinstance(last, AttemptEnded)
        return last.attempt

    return judge


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_candidate_passes(name, verdict_of):
    attempt = verdict_of(*RIGHT[name])
    assert (attempt.verdict.word, attempt.failure) == ("pass", None)
    assert attempt.cases >= 20


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_candidate_is_caught(name, verdict_of):
    declared, source, kind = WRONG[name]
    verdict = verdict_of(declared, source).verdict
    assert verdict.word == "fail"
    assert kind in (None, verdict.kind)
