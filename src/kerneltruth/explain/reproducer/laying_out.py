"""The beginning of reproducing scripts, as source text: tensors as they lay in memory.

A script must run without kerneltruth, so it is text and imports nothing of ours. It stays short
enough to be read by its recipient: what lies between `# <name>` and `# </name>` is only in scripts
that need it (see `script.needed`). Data precede this part; `loading`, `calling` and `judging`
follow it.
"""

LAYING_OUT = r'''
import ast
import ctypes
import importlib.util
import inspect
import math
import os
import sys
import tempfile
import traceback

# <pretrained>
import copy
# </pretrained>
# <interpreter>
import hashlib
# </interpreter>
# <packed>
import base64
import zlib
# </packed>
# <child>
import signal
# </child>
# <arrays>
import numpy
# </arrays>
import torch

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA and not ARRAYS else "cpu"
if not CUDA:
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported: it reads this only once
# <interpreter>
if not CUDA:
    import numpy

    numpy.seterr(all="ignore")  # Triton's interpreter warns where a GPU silently gives NaN
# </interpreter>
INEXACT = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
POISON = 0  # which pattern fills memory that the kernel allocates uninitialized
ALLOCATED = []  # that memory, with a band before and after it


def tensor(spec):
    """The logical elements of a tensor, exactly."""
    dtype, shape, data = getattr(torch, spec["dtype"]), spec["shape"], spec["data"]
    # <packed>
    if isinstance(data, str):
        raw = bytearray(zlib.decompress(base64.b64decode(data)))
        return torch.frombuffer(raw, dtype=torch.uint8).view(dtype).reshape(shape)
    # </packed>
    # <complex>
    if dtype.is_complex:
        parts = torch.tensor(data, dtype=torch.float64).reshape(*shape, 2)
        return torch.view_as_complex(parts).to(dtype)
    # </complex>
    if dtype.is_floating_point:
        return torch.tensor(data, dtype=torch.float64).to(dtype).reshape(shape)
    return torch.tensor(data, dtype=dtype).reshape(shape)


def surroundings(dtype, pattern):
    """A value that nothing should read."""
    if dtype.is_floating_point or dtype.is_complex:
        return math.nan if pattern == 0 else torch.finfo(dtype).max / 4
    if dtype == torch.bool:
        return pattern == 0
    return torch.iinfo(dtype).max - pattern if pattern == 0 else torch.iinfo(dtype).min + 1


def lay_out(spec, pattern):
    """The tensor as it lay in memory: strides, offset, and guard elements around and between."""
    values = tensor(spec)
    buffer = torch.zeros(spec["length"], dtype=values.dtype)
    buffer.fill_(surroundings(values.dtype, pattern))
    first = tuple(slice(0, 1) if step == 0 else slice(None) for step in spec["strides"])
    part = values[first]
    if values.numel():
        buffer.as_strided(part.shape, spec["strides"], spec["offset"]).copy_(part)
    buffer = buffer.to(DEVICE)
    return buffer, buffer.as_strided(spec["shape"], spec["strides"], spec["offset"])


def raw(t):
    """The tensor's elements as bytes, row-major."""
    if not torch.is_tensor(t):
        return repr(t).encode()
    # A tensor of one element counts as contiguous whatever its stride.
    plain = t.detach().cpu().resolve_conj().resolve_neg()
    flat = plain.clone(memory_format=torch.contiguous_format).reshape(-1)
    return ctypes.string_at(flat.data_ptr(), flat.nbytes) if flat.numel() else b""


def poisoned(make, allocate=torch.empty):
    """An allocating function whose memory holds a pattern and lies between two bands of it."""

    def guarded(*args, **kwargs):
        made = make(*args, **kwargs)
        # <arrays>
        if isinstance(made, numpy.ndarray):
            made.fill(surroundings(torch.from_numpy(made[:0]).dtype, POISON))
            return made
        # </arrays>
        if made.is_complex() or made.layout != torch.strided or made.device.type == "meta":
            return made
        size = made.untyped_storage().nbytes()
        band = max(4096, -(-min(size, 2**20) // 256) * 256)
        buffer = allocate(2 * band + -(-size // 256) * 256, dtype=torch.uint8, device=made.device)
        buffer.view(made.dtype).fill_(surroundings(made.dtype, POISON))
        ALLOCATED.append((buffer, band, size, raw(buffer)))
        start = band // made.element_size()
        view = buffer.view(made.dtype).as_strided(made.shape, made.stride(), start)
        return view.requires_grad_() if made.requires_grad else view

    return guarded


def overrun():
    """Whether the kernel wrote beyond memory that it allocated."""
    return any(
        raw(buffer)[:band] != before[:band] or raw(buffer)[band + size :] != before[band + size :]
        for buffer, band, size, before in ALLOCATED
    )


'''
