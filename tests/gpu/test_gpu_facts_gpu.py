"""The facts of GPUs that prompts tell are those of the device."""

import json
import subprocess
import sys

import pytest

from kerneltruth.engine.start import gpu_name
from kerneltruth.generate.gpus import GPUS, gpu_key

pytestmark = pytest.mark.gpu

FACTS = """
import json, torch
p = torch.cuda.get_device_properties(0)
print(json.dumps([p.multi_processor_count, p.shared_memory_per_multiprocessor,
    p.shared_memory_per_block_optin, p.L2_cache_size, p.major * 10 + p.minor,
    p.regs_per_multiprocessor, p.max_threads_per_multi_processor]))
"""


def test_the_facts_are_those_that_the_driver_gives():
    name = gpu_name("cuda:0")
    if not any(name in gpu.drivers for gpu in GPUS.values()):
        pytest.skip(f"nothing is said of {name}")
    gpu = GPUS[gpu_key("here", name)]
    ran = subprocess.run([sys.executable, "-c", FACTS], capture_output=True, text=True, check=True)
    processors, shared, block, l2, capability, registers, threads = json.loads(ran.stdout)
    assert (gpu.multiprocessors, gpu.l2_mib) == (processors, l2 // 2**20)
    assert gpu.target == f"sm_{capability}"
    assert registers == 65536
    assert f"{shared // 1024} KiB of shared memory per multiprocessor" in gpu.in_words
    assert f"up to {block // 1024} KiB per block" in gpu.in_words
    assert f"up to {threads // 32} warps" in gpu.in_words
