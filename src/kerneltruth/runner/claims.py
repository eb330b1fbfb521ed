"""Check what a child claims first: is it well formed, and an answer to this call?

The child runs the candidate, so an observation may be anything that `decode` accepts. What passes
here has the annotated types, and byte counts that fit shapes and dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from kerneltruth.runner.observation import ITEMSIZE, KernelWork, Observation, TensorResult
from kerneltruth.runner.protocol import ProtocolError

_BY_CHILD = {
    "returned",
    "raised",
    "load_failed",
    "compile_failed",
    "unsupported",
    "lost",
}
_SIGNED_63 = 2**63
# PyTorch's own operations take up to 64.
_MOST_DIMS = 1024
# A launch has three; how many programs and places the judge writes out.
_MOST_AXES = 8
# Characters of any text, and of a name; the child cuts its own. Verdicts quote them, and so do all
# files and pages that hold verdicts.
_LONGEST_TEXT, _LONGEST_NAME = 8192, 256
_DEFAULTS = {field.name: field.default for field in fields(Observation)}


def checked(message: Any, buffers: Mapping[str, int], *, kept: bool = False) -> Observation:
    """Return the message if it is a well-formed answer to a call with these input buffer sizes.

    `kept`: whether the call used the judge's memory; `keeper` checks what is said of that.

    Raises:
        ProtocolError: it is not.
    """
    if not isinstance(message, Observation):
        raise ProtocolError(f"a {type(message).__name__} is not an answer")
    for name, has_type in _fields(Observation).items():
        value = getattr(message, name)
        _need(value is _DEFAULTS[name] or has_type(value), name)
    _need(message.ended in _BY_CHILD, "ended")
    _need(message.signal is None, "signal")
    _need(all(0 <= t < _SIGNED_63 for t in message.timings.values()), "timings")
    _need(message.threads_left >= 0, "threads_left")
    _need(message.work is None or _is_possible(message.work), "work")
    _need(kept or not (message.allocations or message.used), "memory")
    known = range(len(message.results)) if kept else ()
    _need(all(index in known for index in message.reused), "results")
    _need(len(message.error or "") <= _LONGEST_NAME, "error")
    _need(all(len(a.program) <= _MOST_AXES for a in message.accesses), "accesses")
    for result in message.results:
        if isinstance(result, TensorResult):
            _check_result(result, kept=kept)
        else:
            _need(len(result.type) <= _LONGEST_NAME, "results")
    _check_buffers(message, buffers)
    return message


def _need(right: bool, what: str) -> None:
    if not right:
        raise ProtocolError(f"an observation with malformed {what}")


@lru_cache
def _fields(kind: type) -> Mapping[str, Callable[[Any], bool]]:
    return {name: _type_check(each) for name, each in get_type_hints(kind).items()}


@lru_cache
def _type_check(kind: Any) -> Callable[[Any], bool]:
    """Return what tells whether a value, and all that it holds, has a type.

    Ints have 64 bits, and texts an end.
    """
    parts = [_type_check(part) for part in get_args(kind) if part is not ...]
    origin = get_origin(kind)
    if kind is Any:
        return lambda value: True
    if origin is UnionType:
        return lambda value: any(part(value) for part in parts)
    if origin is tuple:
        return lambda value: type(value) is tuple and all(map(parts[0], value))
    if origin is dict:
        return lambda value: type(value) is dict and all(map(parts[1], value.values()))
    if kind is int:
        return lambda value: type(value) is int and -_SIGNED_63 <= value < _SIGNED_63
    if kind is float:
        # No float holds a larger int.
        return lambda value: (
            isinstance(value, float)
            or (isinstance(value, int) and -_SIGNED_63 <= value < _SIGNED_63)
        )
    if kind is str:
        return lambda value: isinstance(value, str) and len(value) <= _LONGEST_TEXT
    if isinstance(kind, type) and is_dataclass(kind):
        fields = _fields(kind)
        return lambda value: (
            type(value) is kind and all(has(getattr(value, name)) for name, has in fields.items())
        )
    return lambda value: isinstance(value, kind)


def _check_result(result: TensorResult, *, kept: bool) -> None:
    # The product of a million sizes would take minutes.
    _need(len(result.shape) <= _MOST_DIMS and all(n >= 0 for n in result.shape), "shape")
    _need(len(result.strides) == len(result.shape), "strides")
    names = (result.dtype, result.device, result.alias or "")
    _need(all(len(name) <= _LONGEST_NAME for name in names), "results")
    _need(result.place is None or (kept and result.dtype in ITEMSIZE), "place")
    if result.place is not None and not result.data:
        return
    expected = math.prod(result.shape) * ITEMSIZE.get(result.dtype, 0)
    _need(len(result.data) == expected, f"data: {len(result.data)} bytes for {expected}")


def _check_buffers(message: Observation, buffers: Mapping[str, int]) -> None:
    _need(message.buffers.keys() <= buffers.keys(), "buffers")
    # A call that ended while its arguments were laid out can show only the first of them.
    whole = message.ended != "returned" or len(message.buffers) in (0, len(buffers))
    _need(whole, "buffers")
    for name, data in message.buffers.items():
        _need(len(data) == buffers[name], f"buffer {name!r}")


def _is_possible(work: KernelWork) -> bool:
    times = (0.0 if run.device_s is None else run.device_s for run in work.runs)
    return (
        all(run.launches >= 0 for run in work.runs)
        and all(seconds >= 0 for seconds in times)
        and 0 <= (work.stored or 0) <= work.elements
    )
