"""What operators a call runs, counted in a real child on the CPU."""

import torch

from kerneltruth.runner.child.operators import observed

CPU = torch.device("cpu")
X = torch.ones(64, 64)


def counts(call, device=CPU):
    seen = observed(call, device)
    return seen.timings, seen.message


def test_operators_with_large_results_on_the_host_are_counted_and_views_are_not():
    found, factors = counts(lambda: (X.t() + 1).relu())
    assert found == {"on_host": 2.0, "elsewhere": 0.0}
    assert factors == ""


def test_small_tensors_on_the_host_are_no_work():
    found, _ = counts(lambda: torch.arange(10) + 1)
    assert "on_host" not in found


def test_results_that_lie_elsewhere_are_counted():
    found, _ = counts(lambda: (X, [X + 1]), torch.device("meta"))
    assert found["elsewhere"] == 2.0


def test_what_launches_on_another_device_is_counted():
    there = torch.ones(8, device="meta")
    found, _ = counts(lambda: (there + 1) * 2, torch.device("meta"))
    assert found == {"launches": 2.0, "elsewhere": 0.0}


def test_an_operator_that_calls_functions_is_called():
    found, _ = counts(lambda: torch.cond(X.sum() > 0, torch.relu, torch.neg, (X,)))
    assert found["elsewhere"] == 0.0


def test_factorizations_are_named_and_norms_are_none():
    _, factors = counts(lambda: torch.linalg.eigvals(X[:4, :4]))
    assert "linalg_eig" in factors
    _, factors = counts(lambda: torch.linalg.vector_norm(X))
    assert factors == ""
