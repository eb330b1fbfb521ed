"""What is known of a GPU by its name, for a prompt.

From NVIDIA's data sheets and, for multiprocessors and caches, architecture white papers. Peaks are
dense, at the boost clock; half precision accumulates in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kerneltruth.clock.roofline.occupancy import MULTIPROCESSORS
from kerneltruth.errors import UserError

# The GPU of `--device`.
HERE = "here"
# CUDA keeps so much of a multiprocessor's shared memory from each block.
_RESERVED = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """A GPU that can be bought.

    Attributes:
        title: as a prompt names it.
        drivers: names under which the driver knows it.
        tflops: peak by format, in 1e12 operations a second.
    """

    title: str
    drivers: tuple[str, ...]
    target: str
    multiprocessors: int
    l2_mib: int
    memory_gb: int
    gb_per_s: int
    tflops: Mapping[str, float]

    @property
    def in_words(self) -> str:
        """Return a line for each fact."""
        held = MULTIPROCESSORS[self.target]
        shared, block = held.shared_bytes // 1024, (held.shared_bytes - _RESERVED) // 1024
        peaks = ", ".join(f"{rate:g} in {name}" for name, rate in self.tflops.items())
        return "\n".join(
            (
                f"- {self.multiprocessors} multiprocessors ({self.target}), each with 65,536 "
                f"registers, up to {held.warps} warps and {held.blocks} blocks",
                f"- {shared} KiB of shared memory per multiprocessor, up to {block} KiB per block",
                f"- {self.l2_mib} MiB of L2 cache, {self.memory_gb} GB of memory at "
                f"{self.gb_per_s:,} GB/s",
                f"- peak TFLOP/s: {peaks}",
            )
        )


_HOPPER = {"float32": 67.0, "tf32": 494.0, "float16 and bfloat16": 989.0, "float8": 1979.0}
_AMPERE = {"float32": 19.5, "tf32": 156.0, "float16 and bfloat16": 312.0}
GPUS: Mapping[str, GpuFacts] = {
    "h100": GpuFacts(
        title="NVIDIA H100 SXM",
        drivers=("NVIDIA H100 80GB HBM3",),
        target="sm_90",
        multiprocessors=132,
        l2_mib=50,
        memory_gb=80,
        gb_per_s=3350,
        tflops=_HOPPER,
    ),
    "h100-pcie": GpuFacts(
        title="NVIDIA H100 PCIe",
        drivers=("NVIDIA H100 PCIe",),
        target="sm_90",
        multiprocessors=114,
        l2_mib=50,
        memory_gb=80,
        gb_per_s=2000,
        tflops={"float32": 51.0, "tf32": 378.0, "float16 and bfloat16": 756.0, "float8": 1513.0},
    ),
    "h200": GpuFacts(
        title="NVIDIA H200 SXM",
        drivers=("NVIDIA H200",),
        target="sm_90",
        multiprocessors=132,
        l2_mib=60,
        memory_gb=141,
        gb_per_s=4800,
        tflops=_HOPPER,
    ),
    "a100-80gb": GpuFacts(
        title="NVIDIA A100 80GB SXM",
        drivers=("NVIDIA A100-SXM4-80GB",),
        target="sm_80",
        multiprocessors=108,
        l2_mib=40,
        memory_gb=80,
        gb_per_s=2039,
        tflops=_AMPERE,
    ),
    "a100-40gb": GpuFacts(
        title="NVIDIA A100 40GB",
        drivers=("NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"),
        target="sm_80",
        multiprocessors=108,
        l2_mib=40,
        memory_gb=40,
        gb_per_s=1555,
        tflops=_AMPERE,
    ),
    "l40s": GpuFacts(
        title="NVIDIA L40S",
        drivers=("NVIDIA L40S",),
        target="sm_89",
        multiprocessors=142,
        l2_mib=96,
        memory_gb=48,
        gb_per_s=864,
        tflops={"float32": 91.6, "tf32": 183.0, "float16 and bfloat16": 362.0, "float8": 733.0},
    ),
    "l4": GpuFacts(
        title="NVIDIA L4",
        drivers=("NVIDIA L4",),
        target="sm_89",
        multiprocessors=58,
        l2_mib=48,
        memory_gb=24,
        gb_per_s=300,
        tflops={"float32": 30.3, "tf32": 60.0, "float16 and bfloat16": 121.0, "float8": 242.0},
    ),
    "a10": GpuFacts(
        title="NVIDIA A10",
        drivers=("NVIDIA A10",),
        target="sm_86",
        multiprocessors=72,
        l2_mib=6,
        memory_gb=24,
        gb_per_s=600,
        tflops={"float32": 31.2, "tf32": 62.5, "float16 and bfloat16": 125.0},
    ),
}


def gpu_key(wanted: str, present: str | None) -> str:
    """Return the key in `GPUS` that the user wants; `present` is the driver's name of the one here.

    Raises:
        UserError: nothing is known of it, or there is none here.
    """
    if wanted != HERE:
        if wanted.lower() not in GPUS:
            raise UserError(f"--gpu {wanted!r}: must be {HERE} or one of {', '.join(GPUS)}")
        return wanted.lower()
    if present is None:
        raise UserError(f"--gpu {HERE}: no GPU is used here; name one of {', '.join(GPUS)}")
    for key, gpu in GPUS.items():
        if present in gpu.drivers:
            return key
    raise UserError(f"--gpu {HERE}: nothing is known of {present}; leave --gpu out")
