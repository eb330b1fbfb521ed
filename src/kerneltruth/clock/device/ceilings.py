"""Measure a device's highest rates: copies, reads, and matrix products in each format.

Measured in a child, like everything that touches a device; the source below runs there.
"""

from __future__ import annotations

import hashlib
import struct

from kerneltruth.clock.roofline.work import FORMATS, Ceilings
from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.observation import TensorResult
from kerneltruth.runner.timing.messages import AllocateBuffers, PrepareInputs, RunBatch, ShowResult

DEADLINE_S = 120.0
_NAMES = ("copy", "read", *FORMATS, "l2_bytes", "launch_s")

_SOURCE = '''
import torch


def best(call, repeats=12):
    """Seconds of the fastest of some calls, after two that warm up."""
    for _ in range(2):
        call()
    times = []
    for _ in range(repeats):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in "12")
        before.record()
        call()
        after.record()
        torch.cuda.synchronize()
        times.append(before.elapsed_time(after) / 1000)
    return min(times)


def bandwidths():
    words = torch.cuda.mem_get_info()[0] // 4 // 8
    words = min(words, 2**28)
    source = torch.zeros(words, dtype=torch.int64, device="cuda")
    target = torch.empty_like(source)
    copied = best(lambda: target.copy_(source))
    read = best(lambda: torch.max(source.view(-1, 4096), 1, out=None).values.numel())
    summed = best(lambda: source.view(torch.float32).sum())
    return 16 * words / copied, 8 * words / min(read, summed, copied / 2 * 1.0001)


def product(a, b, call=torch.mm):
    count = 2 * a.shape[0] * a.shape[1] * b.shape[1]
    return count / best(lambda: call(a, b), repeats=6)


def rate(name, n=8192):
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    if name == "float64":
        n = 4096
    if name == "int8":
        a = torch.randint(-99, 99, (n, n), dtype=torch.int8, device="cuda")
        return product(a, a.t().contiguous().t(), torch._int_mm)
    if name == "float8_e4m3fn":
        a = torch.randn(n, n, device="cuda").to(torch.float8_e4m3fn)
        one = torch.ones((), device="cuda")
        scaled = lambda x, y: torch._scaled_mm(
            x, y, one, one, out_dtype=torch.bfloat16, use_fast_accum=True
        )
        return product(a, a.t().contiguous().t(), scaled)
    dtype = torch.float32 if name == "tf32" else getattr(torch, name)
    a = torch.randn(n, n, device="cuda").to(dtype)
    return product(a, a)


def ceilings():
    copy, read = bandwidths()
    torch.cuda.empty_cache()
    found = [copy, read]
    for name in FORMATS:
        try:
            found.append(rate(name))
        except Exception:
            found.append(0.0)
    found.append(float(torch.cuda.get_device_properties(0).L2_cache_size))
    one = torch.zeros(1, device="cuda")
    found.append(best(lambda: one.add_(1), repeats=50))
    return torch.tensor(found, dtype=torch.float64, device="cuda")
'''


def measure(runner: Runner, *, device: str, measured_at: str, versions: dict[str, str]) -> Ceilings:
    """Measure the runner's device; takes some seconds, and needs the device alone.

    Raises:
        EnvironmentFault: it could not be measured.
    """
    source = f"FORMATS = {FORMATS!r}\n{_SOURCE}"
    probe = Candidate(
        source=source,
        path="ceilings.py",
        language="torch",
        trusted=True,
        entry="ceilings",
        sha256=hashlib.sha256(source.encode()).hexdigest(),
    )
    with runner.open(probe, mode="time") as child:
        messages = (
            PrepareInputs(arguments=()),
            AllocateBuffers(count=1),
            RunBatch(buffers=(0,)),
            ShowResult(),
        )
        for message in messages:
            seen = child.request(message, deadline_s=DEADLINE_S)
            if seen.ended != "returned":
                break
    result = seen.results[0] if seen.results else None
    if not isinstance(result, TensorResult) or len(result.data) != 8 * len(_NAMES):
        raise EnvironmentFault(
            f"the limits of {device} cannot be measured: {seen.ended} {seen.message or ''}; "
            "is another process using its memory?"
        )
    found = dict(zip(_NAMES, struct.unpack(f"<{len(_NAMES)}d", result.data), strict=True))
    return Ceilings(
        device=device,
        copy_bytes_per_s=found["copy"],
        read_bytes_per_s=max(found["read"], found["copy"]),
        flops={name: found[name] for name in FORMATS if found[name] > 0},
        l2_bytes=int(found["l2_bytes"]),
        launch_s=found["launch_s"],
        measured_at=measured_at,
        versions=versions,
    )
