"""Complexity of references, read from their declarations."""

import sys

import pytest
import torch

from kerneltruth.suites.reference_facts import facts_of
from kerneltruth.tasks.registry import find, tasks_of
from kerneltruth.tasks.spec import task


def declared(reference, signature="f(x[M, N], alpha=1.0)", flops="3*M*N"):
    return task(
        signature,
        category="Math",
        dims={"M": "batch", "N": "spatial"},
        reference=reference,
        description="A task for a test.",
        flops=flops,
        benchmark={"M": 4, "N": 5},
    )


def _long(x, alpha):
    """Neither this line counts.

    Nor this.
    """
    # Nor this one.
    scaled = -x * alpha

    return torch.where(
        scaled > 0,
        torch.exp(scaled),
        scaled,
    ).clamp(min=len("ab"))


def _commented(x, alpha):
    # Two lines that say
    # what everyone sees.
    return torch.relu(x) + alpha


def test_lines_are_of_code_and_operators_of_tensors():
    facts = facts_of(declared(_long))
    # The head, the product, and the call from its first line to its last.
    assert facts.lines == 7
    # Negation, product, where, comparison, exp, clamp; not `len`, which is Python's.
    assert facts.operators == 6
    assert (facts.parameters, facts.flops) == (2, 60.0)


def test_code_that_branches_is_less_maintainable_by_radon_and_comments_are_no_merit():
    plain = facts_of(declared(lambda x, alpha: torch.relu(x) + alpha)).maintainability

    assert 0 < facts_of(declared(_long)).maintainability < plain <= 100
    assert facts_of(declared(_commented)).maintainability == plain


def test_without_radon_maintainability_is_unknown(monkeypatch):
    monkeypatch.setitem(sys.modules, "radon.metrics", None)

    facts = facts_of(declared(_long))

    assert (facts.maintainability, facts.lines) == (None, 7)


def test_a_lambda_is_found_in_its_declaration():
    facts = facts_of(declared(lambda x, alpha: torch.relu(x) + alpha))
    assert (facts.lines, facts.operators) == (1, 2)


def test_two_lambdas_in_one_line_are_told_apart_by_their_parameters():
    pair = (lambda x: torch.relu(x), lambda x, alpha: torch.relu(x) * alpha + 1)
    facts = facts_of(declared(pair[1]))
    assert facts.operators == 3


def test_torchs_own_function_is_one_operator():
    facts = facts_of(declared(torch.relu, "f(x[M, N])"))
    assert (facts.lines, facts.operators, facts.parameters) == (1, 1, 1)


def test_helpers_of_the_package_count_once_with_their_lines():
    facts = facts_of(find("kernelbenchx/grid_sample_with_affine"))
    assert facts.lines > 20
    assert facts.operators > facts.lines


def test_what_only_moves_data_has_no_flops():
    assert facts_of(find("kernelbenchx/permute_copy")).flops == 0


@pytest.mark.parametrize("suite", ["core", "kernelbenchx", "tritonbench"])
def test_every_reference_of_a_suite_has_facts(suite):
    facts = {key: facts_of(declared) for key, declared in tasks_of(suite).items()}
    unknown = [k for k, f in facts.items() if None in (f.lines, f.operators, f.flops)]
    assert unknown == []
    assert all(f.parameters > 0 for f in facts.values())
