"""Run a program of the gpuemu corpus: this file's text is sent into a child as its source.

The judge appends `PROGRAM` and `REFKIT` and calls `answer` over the ordinary protocol; nothing here
may import kerneltruth. The program reads JSON from standard input and writes one tensor as JSON.
It computes in float64 and rounds to the dtype of its first input. Float64 inputs therefore give
the exact result. With `narrow`, it is run as if float64 were the dtype of its inputs, which shows
what rounding does to a kernel that computes in it.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import types
from typing import Any

import numpy as np
import torch
from torch.utils import _python_dispatch

PROGRAM = ""
REFKIT = ""
_HELPERS = "_refkit"


class _Narrow(types.ModuleType):
    """NumPy, with another dtype in place of float64."""

    def __init__(self, dtype: Any) -> None:
        super().__init__("numpy")
        self._dtype = dtype

    def __getattr__(self, name: str) -> Any:
        if name in ("float64", "double"):
            return self._dtype
        found = getattr(np, name)
        return _of_numbers(found) if isinstance(found, np.ufunc) else found


def _of_numbers(function: Any) -> Any:
    """Return the function such that it gives a plain number for plain numbers.

    NumPy's own float64 would widen each array that it is multiplied with.
    """

    def call(*given: Any, **named: Any) -> Any:
        made = function(*given, **named)
        plain = all(isinstance(value, int | float) for value in given)
        return float(made) if plain and isinstance(made, np.floating) else made

    return call


def answer(request: str, **tensors: torch.Tensor) -> Any:
    """Return the program's tensor for these inputs."""
    content = json.loads(request)
    torch.set_num_threads(content.get("threads", 1))
    # The reference needs no guards around its allocations.
    with _python_dispatch._disable_current_modes(), torch.no_grad(), np.errstate(all="ignore"):
        arrays = {name: t.contiguous().numpy() for name, t in tensors.items()}
        first = next(iter(arrays.values())).dtype
        dtype = first if content.get("narrow") else np.dtype("float64")
        return torch.from_numpy(_decoded(_run(_payload(arrays), dtype)))


def _payload(arrays: dict[str, np.ndarray[Any, Any]]) -> str:
    inputs = {
        name: {
            "shape": list(a.shape),
            "strides": [step // a.itemsize for step in a.strides],
            "dtype": str(a.dtype),
            "data": base64.b64encode(a.tobytes()).decode(),
        }
        for name, a in arrays.items()
    }
    return json.dumps({"inputs": inputs, "kwargs": {}})


def _decoded(text: str) -> Any:
    made = json.loads(text)
    data = np.frombuffer(base64.b64decode(made["data"]), dtype=made["dtype"])
    return data.reshape(made["shape"]).copy()


def _run(payload: str, dtype: Any) -> str:
    """Return what the program writes."""
    kept = sys.stdin, sys.stdout, sys.modules["numpy"], list(sys.path)
    written = io.StringIO()
    try:
        if _HELPERS not in sys.modules and REFKIT:
            helpers = types.ModuleType(_HELPERS)
            exec(compile(REFKIT, f"{_HELPERS}.py", "exec"), helpers.__dict__)
            sys.modules[_HELPERS] = helpers
        if dtype != np.float64:
            sys.modules["numpy"] = _Narrow(dtype.type)
        sys.stdin, sys.stdout = io.StringIO(payload), written
        names = {"__name__": "__main__", "__file__": "ref_fp64.py"}
        exec(compile(PROGRAM, "ref_fp64.py", "exec"), names)
    finally:
        sys.stdin, sys.stdout, sys.modules["numpy"], sys.path[:] = kept
    return written.getvalue()
