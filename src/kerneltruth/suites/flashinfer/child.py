"""Run a definition's reference: this file's text is sent into a child as its source.

The judge appends `REFERENCE = "..."` and calls `answer` over the ordinary protocol; nothing here
may import kerneltruth. Requests, as JSON:

- `truth`: the outputs for given inputs, in the dtypes of these inputs;
- `facts`: for given float64 inputs, properties of the outputs: form, randomness, and the error that
  the reference's own casts to narrower dtypes cause.
"""

from __future__ import annotations

import ast
import json
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _python_dispatch

REFERENCE = ""
_NARROW = (torch.float32, torch.float16, torch.bfloat16)
_SHORTHANDS = ("float", "half", "bfloat16")
_loaded: list[Any] = []


def answer(request: str, **tensors: torch.Tensor) -> Any:
    """Serve one request; the result is JSON as bytes, or for `truth` the outputs."""
    content = json.loads(request)
    torch.set_num_threads(content.get("threads", 1))
    # The reference needs no guards around its allocations.
    with _python_dispatch._disable_current_modes(), torch.no_grad():
        if content["what"] == "facts":
            found = json.dumps(_facts(content, tensors)).encode()
            return torch.frombuffer(bytearray(found), dtype=torch.uint8)
        return tuple(torch.as_tensor(o).clone() for o in _outputs(content, tensors))


def _run() -> Any:
    if not _loaded:
        module = types.ModuleType("flashinfer_reference")
        sys.modules[module.__name__] = module
        exec(compile(REFERENCE, "<reference>", "exec"), module.__dict__)
        _loaded.append(module.__dict__["run"])
    return _loaded[0]


def _outputs(request: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> list[Any]:
    """Return the outputs in the definition's order; inputs are positional, as at the peer."""
    scalars = {n: ast.literal_eval(v) for n, v in request["scalars"].items()}
    arguments = [tensors[n].clone() if n in tensors else scalars[n] for n in request["order"]]
    torch.manual_seed(request.get("seed", 0))
    return _in_order(_run()(*arguments), request["outputs"])


def _in_order(returned: Any, names: Sequence[str]) -> list[Any]:
    if isinstance(returned, Mapping):
        found = [returned[n] for n in names]
    else:
        found = list(returned) if isinstance(returned, tuple | list) else [returned]
    if len(found) != len(names):
        raise ValueError(f"the reference returns {len(found)} outputs; expected {len(names)}")
    return found


class _Wide(TorchFunctionMode):
    """Replaces each narrower dtype that the reference asks for by float64."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if getattr(func, "__name__", "") in _SHORTHANDS and len(args) == 1:
            return args[0].double()
        widened = {k: _widened(v) for k, v in (kwargs or {}).items()}
        return func(*(_widened(a) for a in args), **widened)


def _widened(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value


def _facts(request: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> dict[str, object]:
    runs = [_outputs({**request, "seed": seed}, tensors) for seed in (1, 2)]
    with _Wide():
        wide = _outputs(request, tensors)
    return {
        "outputs": [_described(o) for o in runs[0]],
        "random": not all(_same(a, b) for a, b in zip(*runs, strict=True)),
        "off": max((_off(a, b) for a, b in zip(runs[0], wide, strict=True)), default=0.0),
    }


def _described(value: Any) -> dict[str, object]:
    if not isinstance(value, torch.Tensor):
        return {"type": type(value).__name__}
    dtype = str(value.dtype).removeprefix("torch.")
    return {"shape": list(value.shape), "dtype": dtype}


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return bool(one == other)
    return one.shape == other.shape and torch.equal(_plain(one), _plain(other))


def _plain(value: torch.Tensor) -> torch.Tensor:
    return torch.nan_to_num(value.double(), nan=1e300, posinf=2e300, neginf=-2e300)


def _off(narrow: Any, wide: Any) -> float:
    """Return the outputs' error from narrowing, relative to their own size."""
    if not isinstance(narrow, torch.Tensor) or not narrow.is_floating_point():
        return 0.0
    a, b = narrow.double(), torch.as_tensor(wide).double()
    finite = torch.isfinite(a) & torch.isfinite(b)
    if not bool(finite.any()):
        return 0.0
    size = float(b[finite].square().mean().sqrt())
    return float((a - b)[finite].square().mean().sqrt()) / size if size else 0.0
