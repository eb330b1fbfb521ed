"""Where the task is a product of factors, TF32 passes, as in any other product, and worse fails."""

import pytest
import torch

from kerneltruth.tasks.contract import Evidence
from kerneltruth.tasks.registry import TASKS

NAMES = ("fused_svd_reconstruct", "low_rank_svd_approximation")


def broken(name, *, off, dtype="float32"):
    """The claims that a result breaks which is off by a part of its size."""
    matrix = torch.randn(63, 129, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    U, S, Vh = torch.linalg.svd(matrix, full_matrices=False)
    kept = 2 if name.startswith("low") else 63
    due = (U[:, :kept] * S[:kept]) @ Vh[:kept]
    # As a factor that is off would have it: the result keeps its rank.
    got = due * (1 + off)
    evidence = Evidence(
        inputs={"A": matrix},
        scalars={"k": kept, "full_matrices": False},
        outputs=(got,),
        reference=(due,),
        dtype=dtype,
        eps=2.0**-23 if dtype == "float32" else 2.0**-52,
    )
    return [
        claim.name for claim in TASKS[f"kernelbenchx/{name}"].contract(evidence) if not claim.holds
    ]


@pytest.mark.parametrize("name", NAMES)
def test_what_tf32_costs_is_no_fault_of_a_product_in_float32(name):
    assert broken(name, off=2.0**-11) == []


@pytest.mark.parametrize("name", NAMES)
def test_more_than_tf32_costs_is_wrong(name):
    assert broken(name, off=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_in_float64_there_is_no_tf32(name):
    assert broken(name, off=2.0**-11, dtype="float64")
