"""Where the kernels of a call have stored, for launches that run in the interpreter."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[Any]
# Addresses that are kept; a call that stores more is not followed.
_MOST = 2**22


class _State:
    on = False
    kept = 0
    most = _MOST
    addresses: ClassVar[list[Array]] = []


def begin(most: int = _MOST) -> None:
    """Follow stores from now on, as long as they are at most as many."""
    _State.on, _State.kept, _State.most, _State.addresses = True, 0, most, []


def end() -> None:
    """Follow no more, and forget what was seen."""
    _State.on, _State.addresses = False, []


def is_on() -> bool:
    """Return whether stores are followed."""
    return _State.on


def note(addresses: Array, mask: Array | None) -> None:
    """Record a store, or an atomic operation, at the addresses whose mask is on."""
    if _State.kept > _State.most:
        return
    _State.kept += addresses.size
    if mask is not None:
        addresses = addresses[np.broadcast_to(mask, addresses.shape).astype(bool)]
    _State.addresses.append(addresses.reshape(-1))


def elements_stored(tensor: torch.Tensor) -> int | None:
    """Count elements of a tensor where a kernel has stored; None if it stored too many."""
    if _State.kept > _State.most:
        return None
    if not tensor.numel():
        return 0
    size, start = tensor.element_size(), tensor.data_ptr()
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    span = 1 + sum((n - 1) * stride for n, stride in pairs)
    reached = torch.zeros(span, dtype=torch.uint8)
    flags = reached.numpy()
    for addresses in _State.addresses:
        # Unsigned: what lies before the tensor wraps to far behind it.
        offsets = addresses - np.uint64(start)
        flags[(offsets[offsets < np.uint64(span * size)] // np.uint64(size)).astype(np.int64)] = 1
    return int(reached.as_strided(tensor.shape, tensor.stride()).sum())
