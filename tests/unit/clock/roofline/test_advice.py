"""Advice from times, floors, binaries and profiles."""

from dataclasses import replace

import pytest

from kerneltruth.clock.roofline.advice import advise, occupancy_of, profile_remarks
from kerneltruth.clock.roofline.profile import Profile
from kerneltruth.clock.roofline.work import Ceilings, Floor
from kerneltruth.documents.model import plain
from kerneltruth.runner.observation import Binary

DEVICE = Ceilings(device="d", copy_bytes_per_s=1e12, flops={"tf32": 1e14})
# 10 us of traffic, 2 us of arithmetic.
FLOOR = Floor(
    seconds=1e-5,
    bound_by="memory",
    bytes=10**7,
    flops=2 * 10**8,
    format="tf32",
    flops_per_s=1e14,
)
KERNEL = Binary(
    kernel="k",
    target="sm_90",
    ok=True,
    registers=255,
    spills=0,
    shared_bytes=0,
    num_warps=8,
)


def kinds(advice):
    return [r.kind for r in advice.remarks]


def test_a_kernel_near_the_copy_rate_is_bound_by_memory_with_its_numbers():
    found = advise(1.25e-5, FLOOR, DEVICE)
    assert found.bound_by == "memory"
    assert (found.efficiency, found.memory_share) == pytest.approx((0.8, 0.8))
    assert found.compute_share == pytest.approx(0.16)
    assert "800 GB/s, 80% of what a copy reaches" in found.remarks[0].text


def test_a_product_near_the_matrix_rate_is_bound_by_compute():
    product = replace(FLOOR, seconds=2e-5, bound_by="compute", flops=2 * 10**9)
    found = advise(2.5e-5, product, DEVICE)
    assert found.bound_by == "compute"
    assert "80.0 TFLOP/s, 80% of what tf32 reaches" in found.remarks[0].text


@pytest.mark.parametrize(
    ("seconds", "tensor_cores", "bound"),
    [
        (2.5e-5, None, "compute"),
        (2.5e-5, False, "compute"),
        # Matrix units were there, and waited.
        (2.5e-5, True, "latency"),
        (5e-5, None, "latency"),
        # Faster than that it cannot be without matrix units.
        (1.8e-5, None, "latency"),
    ],
)
def test_a_product_without_matrix_units_is_bound_by_the_arithmetic_that_it_uses(
    seconds, tensor_cores, bound
):
    product = replace(FLOOR, seconds=5e-6, bound_by="compute", plain_flops_per_s=1e13)
    binary = replace(KERNEL, registers=32, tensor_cores=tensor_cores)
    found = advise(seconds, product, DEVICE, binaries=[binary])
    assert found.bound_by == bound
    said = [r.text for r in found.remarks if r.kind == "plain_arithmetic"]
    if bound == "compute":
        assert "80% of what arithmetic without matrix units reaches" in said[0]
        assert "in tf32, it may take 20% of the time" in said[0]
    assert len(said) == (bound == "compute")


def test_a_kernel_that_is_mostly_launched_is_bound_by_launch():
    found = advise(5e-5, FLOOR, DEVICE, launch_s=4e-5)
    assert (found.bound_by, found.launch_share) == ("launch", pytest.approx(0.8))
    assert "80% of 50.0 us" in found.remarks[0].text


def test_a_kernel_that_waits_is_bound_by_latency():
    found = advise(5e-5, FLOOR, DEVICE, launch_s=5e-6)
    assert found.bound_by == "latency"
    assert "20% of what a copy reaches" in found.remarks[0].text


def test_few_warps_are_named_where_a_kernel_waits():
    found = advise(5e-5, FLOOR, DEVICE, binaries=[KERNEL])
    assert kinds(found) == ["latency", "low_occupancy"]
    assert "8 warps fit on a multiprocessor, 12%" in found.remarks[1].text
    assert "limited by registers" in found.remarks[1].text


def test_few_warps_are_no_matter_where_memory_is_busy():
    assert kinds(advise(1.25e-5, FLOOR, DEVICE, binaries=[KERNEL])) == ["memory"]


def test_spills_are_named_whatever_the_bound():
    spilling = replace(KERNEL, spills=12)
    found = advise(1.25e-5, FLOOR, DEVICE, binaries=[spilling])
    assert kinds(found) == ["memory", "spills"]
    assert found.remarks[1].text.startswith("12 words of local memory per thread")


def test_the_same_kernel_is_named_once():
    found = advise(5e-5, FLOOR, DEVICE, binaries=[KERNEL, replace(KERNEL, seconds=1.0)])
    assert kinds(found) == ["latency", "low_occupancy"]


def test_a_binary_without_a_number_of_warps_has_no_occupancy():
    assert occupancy_of(replace(KERNEL, num_warps=None)) is None
    assert occupancy_of(KERNEL).warps == 8


PROFILE = Profile(
    kernel="k",
    grid=(16,),
    block=(256,),
    metrics={
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 12.0,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 30.0,
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 9.0,
        "launch__waves_per_multiprocessor": 0.25,
    },
)


def test_a_profile_adds_what_it_saw():
    found = list(profile_remarks(PROFILE))
    assert [r.kind for r in found] == ["profiled_latency", "stall", "small_grid"]
    assert [r.text for r in found] == [
        "the profiler sees multiprocessors 12% and memory 30% busy",
        "warps wait most for long scoreboard: 9.0 at each issue",
        "the grid fills 25% of the device",
    ]


def test_advice_goes_into_a_document():
    document = plain(advise(5e-5, FLOOR, DEVICE, binaries=[KERNEL]))
    assert document["bound_by"] == "latency"
    assert document["remarks"][1]["kernel"] == "k"
