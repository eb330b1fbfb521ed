"""Occupancies as the CUDA occupancy calculator gives them."""

import pytest

from kerneltruth.clock.roofline.occupancy import occupancy


@pytest.mark.parametrize(
    ("target", "registers", "shared_bytes", "num_warps", "warps", "limited_by"),
    [
        ("sm_90", 32, 0, 4, 64, ("registers", "warps")),
        ("sm_90", 33, 0, 4, 48, ("registers",)),
        ("sm_90", 64, 0, 4, 32, ("registers",)),
        ("sm_90", 168, 0, 4, 12, ("registers",)),
        ("sm_90", 255, 0, 8, 8, ("registers",)),
        ("sm_90", 32, 0, 1, 32, ("blocks",)),
        ("sm_90", 32, 100 * 1024, 4, 8, ("shared memory",)),
        ("sm_90", 32, 227 * 1024, 8, 8, ("shared memory",)),
        ("sm_100", 32, 227 * 1024, 8, 8, ("shared memory",)),
        ("sm_80", 40, 0, 8, 48, ("registers",)),
        ("sm_86", 40, 0, 4, 48, ("registers", "warps")),
        ("sm_86", 32, 0, 1, 16, ("blocks",)),
        ("sm_89", 32, 0, 1, 24, ("blocks",)),
        ("sm_89", 32, 48 * 1024, 4, 8, ("shared memory",)),
    ],
)
def test_the_scarcest_resource_limits(
    target, registers, shared_bytes, num_warps, warps, limited_by
):
    found = occupancy(target, num_warps=num_warps, registers=registers, shared_bytes=shared_bytes)
    assert (found.warps, found.limited_by) == (warps, limited_by)


def test_the_share_is_of_the_warps_that_the_target_holds():
    assert occupancy("sm_90", num_warps=4, registers=64, shared_bytes=None).share == 0.5
    assert occupancy("sm_86", num_warps=4, registers=40, shared_bytes=None).share == 1


def test_a_block_that_does_not_fit_has_no_warps():
    assert occupancy("sm_86", num_warps=4, registers=32, shared_bytes=100 * 1024).blocks == 0


def test_the_suffix_of_a_target_does_not_matter():
    plain = occupancy("sm_90", num_warps=4, registers=64, shared_bytes=0)
    assert occupancy("sm_90a", num_warps=4, registers=64, shared_bytes=0) == plain


@pytest.mark.parametrize("target", ["gfx942", "sm_20", "cpu"])
def test_other_targets_are_not_known(target):
    assert occupancy(target, num_warps=4, registers=64, shared_bytes=0) is None
