"""Run foreign code that the judge needs answers from, in a child process only.

A reference that came with a data set is as untrusted as a candidate. Its source goes to a child,
which answers over the ordinary protocol.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec
import torch

from kerneltruth.cases.materialize import flat_bytes
from kerneltruth.documents.model import Json, loads, parse, plain
from kerneltruth.errors import ReferenceLost, UserError, lacks_memory
from kerneltruth.runner.arguments import Argument, ScalarArgument, TensorArgument
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.observation import ITEMSIZE, Observation, TensorResult
from kerneltruth.runner.session import Session

T = TypeVar("T")
# What a child is asked, as a message of this package, or as a program without it reads it.
RequestMessage = msgspec.Struct | Mapping[str, object]

_POISON = bytes(16)
# The most threads of a call with more elements; each thread takes address space.
_THREADS = 16
_LARGE = 2**20


class Rejected(RuntimeError):
    """The foreign code did not answer: it raised, died or took too long."""


class Remote:
    """One source in a child, which starts at the first request and again if it died.

    A request whose child is lost is made once more. One that finds no memory is rejected: the
    caller knows whether it can wait for the device, or do without it.

    A process that was forked from this one starts its own child.
    """

    def __init__(self, candidate: Candidate, runner: Runner, *, judges: int = 1) -> None:
        """Start no child yet; `judges`, each with its own children, share the cores."""
        self._candidate = candidate
        self._threads = max(1, min(len(os.sched_getaffinity(0)) // judges, _THREADS))
        self._runner = runner
        self._session: Session | None = None
        self._owner = 0

    def close(self) -> None:
        """End the child, if this process has one."""
        if self._session is not None and self._owner == os.getpid():
            self._session.close(wait=False)
        self._session = None

    def document(
        self,
        request: RequestMessage,
        tensors: Mapping[str, torch.Tensor],
        answer: type[T],
        *,
        deadline_s: float,
    ) -> T:
        """Return an answer that is JSON, as bytes, read as a model.

        Raises:
            Rejected: there is no answer.
        """
        results = self._call(request, tensors, deadline_s).results
        result = results[0] if len(results) == 1 else None
        try:
            found = loads(bytes(result.data)) if isinstance(result, TensorResult) else None
        except ValueError as error:
            raise Rejected(f"an answer that is not JSON: {error}") from error
        try:
            return parse(answer, found)
        except UserError as error:
            raise Rejected(f"an answer that is {error}") from error

    def outputs(
        self, request: RequestMessage, tensors: Mapping[str, torch.Tensor], *, deadline_s: float
    ) -> tuple[torch.Tensor, ...]:
        """Return an answer in tensors, computed on the CPU and moved to the arguments' device.

        Raises:
            Rejected: there is no answer.
        """
        where = next((t.device for t in tensors.values()), torch.device("cpu"))
        if where.type == "meta":
            raise Rejected("shapes alone cannot be sent to another process")
        # A small call gets one thread, for the same bits everywhere.
        small = where.type == "cpu" and sum(t.numel() for t in tensors.values()) <= _LARGE
        threads = 1 if small else self._threads
        found = self._call(request, tensors, deadline_s, threads=threads).results
        return tuple(_tensor(result).to(where) for result in found)

    def _call(
        self,
        request: RequestMessage,
        tensors: Mapping[str, torch.Tensor],
        deadline_s: float,
        *,
        threads: int = 1,
    ) -> Observation:
        if self._session is None or self._owner != os.getpid():
            self._session, self._owner = self._runner.open(self._candidate), os.getpid()
        message = {**cast(dict[str, Json], plain(request)), "threads": threads}
        arguments: list[Argument] = [
            ScalarArgument(name="request", value=json.dumps(message)),
            *(_argument(n, t) for n, t in tensors.items()),
        ]
        for _ in range(2):
            seen = self._session.call(arguments, poison=_POISON, deadline_s=deadline_s)
            if seen.ended != "lost" or lacks_memory(seen.message or ""):
                break
        else:
            raise ReferenceLost(f"the child of a reference was lost: {seen.message}; try again")
        if seen.ended != "returned":
            raise Rejected(_why(seen, deadline_s))
        return seen


def _why(seen: Observation, deadline_s: float) -> str:
    if seen.ended == "timeout":
        return f"took longer than {deadline_s:g} s"
    said = (seen.message or seen.ended).strip().splitlines() or [""]
    return f"{seen.error}: {said[0]}" if seen.error else said[0]


def _argument(name: str, tensor: torch.Tensor) -> TensorArgument:
    # Keep column-major tensors as they are: a program may compute differently with them.
    turned = tensor.ndim > 1 and not tensor.is_contiguous() and tensor.mT.is_contiguous()
    strides, step = [], 1
    for size in reversed(tensor.shape):
        strides.append(step)
        step *= max(size, 1)
    return TensorArgument(
        name=name,
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride() if turned else reversed(strides)),
        offset=0,
        buffer=flat_bytes(tensor.mT if turned else tensor).cpu().numpy().data,
        shown=False,
    )


def _tensor(result: Any) -> torch.Tensor:
    if not isinstance(result, TensorResult):
        raise Rejected(f"returned {result.noun}, which is neither tensor nor number")
    dtype = getattr(torch, result.dtype, None)
    if not isinstance(dtype, torch.dtype) or result.dtype not in ITEMSIZE:
        raise Rejected(f"returned a tensor of the dtype {result.dtype}")
    if not result.data:
        return torch.empty(result.shape, dtype=dtype)
    data = result.data if isinstance(result.data, bytearray) else bytearray(result.data)
    return torch.frombuffer(data, dtype=dtype).reshape(result.shape)
