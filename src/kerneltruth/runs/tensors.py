"""Convert tensors to and from the bytes of a safetensors file, for every dtype.

A dtype that every supported version of the library knows is stored as such. Any other dtype, such
as complex, is stored as bytes, and the file's metadata hold its name and shape.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

_KNOWN = frozenset(
    (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
        *(torch.float8_e4m3fn, torch.float8_e5m2),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    )
)


def to_bytes(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """Write tensors to a safetensors file, each with memory of its own."""
    stored: dict[str, torch.Tensor] = {}
    metadata: dict[str, str] = {}
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().resolve_conj().resolve_neg()
        owned = plain.clone(memory_format=torch.contiguous_format)
        if owned.dtype not in _KNOWN:
            dtype = str(owned.dtype).removeprefix("torch.")
            metadata[name] = json.dumps({"dtype": dtype, "shape": list(owned.shape)})
            owned = owned.reshape(-1).view(torch.uint8)
        stored[name] = owned
    data: bytes = save(stored, metadata=metadata or None)
    return data


def from_bytes(data: bytes) -> dict[str, torch.Tensor]:
    """Read the tensors of a file that `to_bytes` made, now or in an earlier version.

    Raises:
        ValueError: the file is damaged, or holds a dtype that this PyTorch or safetensors lacks.
    """
    try:
        tensors: dict[str, torch.Tensor] = load(data)
        for name, text in _metadata(data).items():
            about = json.loads(text)
            tensors[name] = tensors[name].view(_dtype(about["dtype"])).reshape(about["shape"])
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(str(error)) from error
    except (KeyError, TypeError) as error:
        raise ValueError(f"unknown dtype or damaged metadata: {error}") from error
    return tensors


def _metadata(data: bytes) -> dict[str, str]:
    """Read a file's metadata, which `load` hides; the first 8 bytes are the header's size."""
    size = int.from_bytes(data[:8], "little")
    found: dict[str, str] = json.loads(data[8 : 8 + size]).get("__metadata__", {})
    return found


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"this PyTorch has no dtype {name}")
    return found
