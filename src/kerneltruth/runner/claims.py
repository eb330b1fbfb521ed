"""Check what a child claims first: is it well formed, and an answer to this call?

The child runs the candidate, so an observation may be anything that `decode` accepts. What passes
here has the annotated types, and byte counts that fit shapes and dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kerneltruth.runner.protocol import (
    ITEMSIZE,
    Access,
    Binary,
    KernelRun,
    KernelWork,
    Launch,
    Observation,
    OtherResult,
    ProtocolError,
    TensorResult,
)

_BY_CHILD = {
    "returned",
    "raised",
    "load_failed",
    "compile_failed",
    "unsupported",
    "lost",
}
_SIGNED_63 = 2**63


def checked(message: Any, buffers: Mapping[str, int]) -> Observation:
    """Return the message if it is a well-formed answer to a call with these input buffer sizes.

    Raises:
        ProtocolError: it is not.
    """
    if not isinstance(message, Observation):
        raise ProtocolError(f"a {type(message).__name__} is not an answer")
    _need(message.ended in _BY_CHILD if isinstance(message.ended, str) else False, "ended")
    for name in ("error", "message", "trace"):
        value = getattr(message, name)
        _need(value is None or isinstance(value, str), name)
    _need(message.signal is None, "signal")
    _need(isinstance(message.output, str) and isinstance(message.dirty, bool), "output")
    _need(isinstance(message.lean, bool), "lean")
    _need(message.seconds is None or isinstance(message.seconds, int | float), "seconds")
    _need(_all(message.results, TensorResult | OtherResult), "results")
    _need(_all(message.guards_hit, str), "guards_hit")
    _need(_all(message.accesses, Access) and all(map(_is_access, message.accesses)), "accesses")
    _need(_all(message.launches, Launch) and all(map(_is_launch, message.launches)), "launches")
    _need(message.work is None or _is_work(message.work), "work")
    _need(_all(message.binaries, Binary) and all(map(_is_binary, message.binaries)), "binaries")
    timings = message.timings.values() if isinstance(message.timings, dict) else (None,)
    _need(all(isinstance(t, int | float) and 0 <= t < _SIGNED_63 for t in timings), "timings")
    for result in message.results:
        _check_result(result)
    _check_buffers(message, buffers)
    return message


def _need(right: bool, what: str) -> None:
    if not right:
        raise ProtocolError(f"an observation with malformed {what}")


def _all(values: Any, kind: Any) -> bool:
    return isinstance(values, tuple) and all(isinstance(v, kind) for v in values)


def _is_size(value: Any) -> bool:
    return type(value) is int and -_SIGNED_63 <= value < _SIGNED_63


def _check_result(result: TensorResult | OtherResult) -> None:
    if isinstance(result, OtherResult):
        _need(isinstance(result.type, str) and isinstance(result.text, str), "result")
        return
    words = (result.dtype, result.device)
    _need(all(isinstance(w, str) for w in words), "result")
    _need(result.alias is None or isinstance(result.alias, str), "alias")
    _need(_all(result.shape, int) and all(_is_size(n) and n >= 0 for n in result.shape), "shape")
    _need(_all(result.strides, int) and len(result.strides) == len(result.shape), "strides")
    _need(all(map(_is_size, result.strides)), "strides")
    _need(isinstance(result.data, bytes | bytearray), "data")
    expected = math.prod(result.shape) * ITEMSIZE.get(result.dtype, 0)
    _need(len(result.data) == expected, f"data: {len(result.data)} bytes for {expected}")


def _check_buffers(message: Observation, buffers: Mapping[str, int]) -> None:
    _need(isinstance(message.buffers, dict), "buffers")
    _need(message.buffers.keys() <= buffers.keys(), "buffers")
    # A call that ended while its arguments were laid out can show only the first of them.
    whole = message.ended != "returned" or len(message.buffers) in (0, len(buffers))
    _need(whole, "buffers")
    for name, data in message.buffers.items():
        right = isinstance(data, bytes | bytearray) and len(data) == buffers[name]
        _need(right, f"buffer {name!r}")


def _is_access(access: Access) -> bool:
    return (
        isinstance(access.kernel, str)
        and (access.line is None or _is_size(access.line))
        and isinstance(access.write, bool)
        and _all(access.program, int)
        and isinstance(access.buffer, str)
        and type(access.element) is int
        and _is_size(access.elements)
    )


def _is_launch(launch: Launch) -> bool:
    return (
        isinstance(launch.kernel, str)
        and _all(launch.grid, int)
        and isinstance(launch.constants, dict)
        and isinstance(launch.signature, dict)
        and all(isinstance(v, str) for v in launch.signature.values())
        and type(launch.configs) is int
    )


def _is_work(work: Any) -> bool:
    return (
        isinstance(work, KernelWork)
        and _all(work.runs, KernelRun)
        and all(map(_is_run, work.runs))
        and isinstance(work.seen, bool)
        and _is_count(work.elements)
        and (work.stored is None or (_is_count(work.stored) and work.stored <= work.elements))
    )


def _is_run(run: KernelRun) -> bool:
    named = isinstance(run.name, str) and isinstance(run.module, str)
    timed = run.device_s is None or (isinstance(run.device_s, float) and run.device_s >= 0)
    return named and timed and isinstance(run.own, bool) and _is_count(run.launches)


def _is_count(value: Any) -> bool:
    return _is_size(value) and value >= 0


def _is_binary(binary: Binary) -> bool:
    counts = ("registers", "spills", "shared_bytes", "instructions", "num_warps")
    return (
        isinstance(binary.kernel, str)
        and isinstance(binary.target, str)
        and isinstance(binary.ok, bool)
        and isinstance(binary.error, str | None)
        and isinstance(binary.tensor_cores, bool | None)
        and all(getattr(binary, n) is None or _is_size(getattr(binary, n)) for n in counts)
        and isinstance(binary.seconds, int | float | None)
    )
