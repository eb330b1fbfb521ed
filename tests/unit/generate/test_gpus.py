"""The facts of a GPU in a prompt."""

import pytest

from kerneltruth.errors import UserError
from kerneltruth.generate.assignments import briefs_of
from kerneltruth.generate.gpus import GPUS, gpu_key
from kerneltruth.generate.prompts import load_prompts
from kerneltruth.generate.requests import TaskSelection

KEY = "kernelbenchx/relu"


def brief(**options):
    return briefs_of([KEY], TaskSelection(**options), load_prompts())[KEY]


def test_a_brief_tells_the_facts_of_the_gpu_that_is_named():
    said = brief(gpu="h100").partition("## The device")[2].partition("## ")[0]
    assert "NVIDIA H100 SXM" in said
    assert "132 multiprocessors (sm_90)" in said
    assert "228 KiB of shared memory per multiprocessor, up to 227 KiB per block" in said
    assert "3,350 GB/s" in said
    assert "67 in float32, 494 in tf32, 989 in float16 and bfloat16" in said


def test_a_brief_without_a_gpu_tells_of_none():
    assert "## The device" not in brief()


def test_the_gpu_here_is_known_by_its_drivers_name():
    assert gpu_key("here", "NVIDIA H100 80GB HBM3") == "h100"
    assert gpu_key("here", "NVIDIA A100-PCIE-40GB") == "a100-40gb"
    assert gpu_key("L40S", None) == "l40s"


def test_no_driver_knows_two_gpus_by_one_name():
    names = [name for gpu in GPUS.values() for name in gpu.drivers]
    assert len({*names}) == len(names)


@pytest.mark.parametrize(
    ("wanted", "present", "said"),
    [
        ("h1000", None, "--gpu 'h1000': must be here or one of h100, "),
        ("here", None, "--gpu here: no GPU is used here; name one of h100, "),
        ("here", "NVIDIA T4", "--gpu here: nothing is known of NVIDIA T4; leave --gpu out"),
    ],
)
def test_a_gpu_that_is_not_known_is_a_mistake(wanted, present, said):
    with pytest.raises(UserError, match=said):
        gpu_key(wanted, present)
