"""Comparisons of the peers' checks, beside the functions of torch that they stand for."""

import pytest
import torch

from kerneltruth.peers.comparisons import asserted_close

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("got", "want"),
    [
        ([1.0, 2.0], [1.0, 2.0]),
        ([1.0, 2.0 + 1e-6], [1.0, 2.0]),
        ([1.0, 2.1], [1.0, 2.0]),
        ([NAN, INF], [NAN, INF]),
        ([NAN, 1.0], [1.0, 1.0]),
        ([INF, 1.0], [-INF, 1.0]),
        ([1.0], [1.0, 1.0]),
        ([], []),
        ([1, 2], [1, 2]),
        ([1, 2], [1, 3]),
        ([1, 2], [1.0, 2.0]),
        ([True, False], [True, True]),
    ],
)
def test_the_asserted_comparison_is_that_of_torch(got, want):
    got, want = torch.tensor(got), torch.tensor(want)
    try:
        torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5, equal_nan=True)
        passes = True
    except AssertionError:
        passes = False
    assert (asserted_close(1e-5)(got, want) is None) == passes


def test_the_asserted_comparison_counts_what_differs():
    found = asserted_close(1e-5)(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 3.0, 3.0]))
    assert found == "2 of 3 elements are not close"
