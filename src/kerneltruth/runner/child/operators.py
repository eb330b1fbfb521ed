"""Count which operators a PyTorch call runs, and where; for baselines, never for candidates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.runner.child import placing
from kerneltruth.runner.observation import Observation

# Only tensors with more elements count as work on the host: shapes and indices have fewer.
_FEW = 1024
# Operators that wait for the device and read from it: a graph cannot capture them.
_WAITS = frozenset({"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "equal"})
# Operators whose libraries compute in dependent steps, some of them on the host.
_FACTORS = re.compile(
    r"_?linalg_(?!vector_norm|cross|diagonal)|_?cholesky|geqrf|orgqr|ormqr|_?lu_|triangular_solve"
)


class _Counted(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operators by where their results lie."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: Counter[str] = Counter()
        self.factors: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "overloadpacket", func).__name__
        tensors = [v for v in placing.leaves(result) if isinstance(v, torch.Tensor)]
        given = [v for v in placing.leaves(args) if isinstance(v, torch.Tensor)]
        if given and name in _WAITS and given[0].device.type != "cpu":
            self.counts["waits"] += 1
        if _FACTORS.match(name):
            self.factors.add(name)
        if getattr(func, "is_view", False) or not tensors:
            return result
        on_host = all(t.device.type == "cpu" for t in tensors)
        if not on_host:
            self.counts["launches"] += 1
        elif max(t.numel() for t in tensors) > _FEW:
            self.counts["on_host"] += 1
        return result


def observed(call: Callable[[], Any], device: torch.device) -> Observation:
    """Make the call, and count operators with launches, and operators on the host.

    `waits` counts those that wait for the device, `elsewhere` results that lie elsewhere; the
    message names operators that factor matrices.
    """
    with _Counted() as seen:
        returned = call()
    tensors = [v for v in placing.leaves(returned) if isinstance(v, torch.Tensor)]
    seen.counts["elsewhere"] = sum(t.device.type != device.type for t in tensors)
    return Observation(
        ended="returned",
        message=" ".join(sorted(seen.factors)),
        timings={name: float(count) for name, count in seen.counts.items()},
    )
