"""Minimizing finds the smallest failing shape that there is: all smaller ones are asked."""

import itertools
import math

import pytest
from msgspec.structs import replace

from kerneltruth.corpus import ENTRIES, source
from kerneltruth.explain.diagnosis import DiagnosisEffort, diagnose
from kerneltruth.explain.inquiry import Inquiry
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.core import TASKS
from kerneltruth.tasks.registry import find

KNOWN = {e.name: e for e in ENTRIES}
EFFORT = DiagnosisEffort(evaluations=200, seconds=30.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("mean_padded_size", {"M": 1, "N": 3}),
        ("transpose_copy_swapped_grid", {"M": 1, "N": 33}),
        ("index_select_grid_from_input", {"M": 1, "N": 1, "K": 17}),
        ("matmul_no_accumulate", {"M": 1, "N": 1, "K": 33}),
    ],
)
def test_no_smaller_shape_shows_the_bug(evaluator, evaluate, name, sizes):
    entry = KNOWN[name]
    task = find(entry.task)
    failure = evaluate(name, cases=32).failure
    candidate = read_candidate(source(entry), f"{name}.py", task_names=tuple(TASKS), task=task.name)
    with CandidateSession(
        task, candidate, evaluator.runner, evaluator.cache, deadline_s=20.0
    ) as session:
        minimal = diagnose(session, failure, (), EFFORT).minimal
        assert minimal.sizes == sizes
        inquiry = Inquiry(session=session, failure=failure, until=math.inf)
        assert inquiry.fails(minimal)
        smaller = list(smaller_shapes(sizes))
        assert len(smaller) >= math.prod(sizes.values()) - 1
        plain = replace(minimal, literals=())
        assert not [s for s in smaller if inquiry.fails(plain.with_dims(**s))]


def smaller_shapes(sizes):
    elements = math.prod(sizes.values())
    for shape in itertools.product(range(1, elements + 1), repeat=len(sizes)):
        if (math.prod(shape), shape) < (elements, tuple(sizes.values())):
            yield dict(zip(sizes, shape, strict=True))
