"""Hold one problem in a child process, and request outlines, facts and outputs from it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import torch

from kerneltruth.clock.device.lock import much_memory
from kerneltruth.errors import lacks_memory
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.suites.kernelbench.messages import (
    PASSED,
    DrawnRequest,
    GradientsRequest,
    OutputsRequest,
    ProblemCall,
    ProblemRequest,
    SpreadRequest,
    Variant,
)
from kerneltruth.suites.kernelbench.problem import Problem
from kerneltruth.suites.remote import Rejected, Remote

INSIDE = Path(__file__).with_name("inside")
TRUTH_S = 120.0
T = TypeVar("T")


def _harness(problem: Problem) -> str:
    """Return the source of the child: what it loads, and its function `answer`."""
    if problem.function is None:
        module, kind, given = "model", "LoadedProblem", [problem.source]
    else:
        module, kind = "plain", "LoadedFunction"
        given = [problem.source, problem.function.name, problem.function.makes]
    return (
        f"from kerneltruth.suites.kernelbench.inside.{module} import {kind}\n"
        "from kerneltruth.suites.kernelbench.inside.serving import Harness\n"
        f"answer = Harness({kind}({', '.join(map(repr, given))})).answer\n"
    )


class FewChildren:
    """Children that wait for their next call on a device: few, since each holds memory there."""

    def __init__(self, most: int = 1) -> None:
        self.most = most
        self._idle: list[Remote] = []
        self._changing = threading.Lock()

    @contextlib.contextmanager
    def using(self, child: Remote) -> Iterator[None]:
        """Call a child, which waits afterwards; the longest-waiting children end."""
        with self._changing:
            self._idle = [c for c in self._idle if c is not child]
            while len(self._idle) > self.most - 1:
                self._idle.pop(0).close()
        try:
            yield
        finally:
            with self._changing:
                self._idle.append(child)


class ProblemSession:
    """Runs one problem in children of this process only."""

    def __init__(
        self,
        problem: Problem,
        runner: Runner,
        on_device: Runner | None = None,
        waiting: FewChildren | None = None,
        *,
        judges: int = 1,
    ) -> None:
        """Start no child yet.

        Args:
            problem: provides the source.
            runner: for a child on the CPU.
            on_device: for a child on the candidates' device, for large calls.
            waiting: the children of all problems that wait on the device.
            judges: how many share the machine's cores.
        """
        candidate = Candidate(
            source=_harness(problem),
            path="kernelbench_problem.py",
            sha256=problem.sha256,
            language="torch",
            trusted=True,
            entry="answer",
            pretrained=problem.pretrained,
        )
        self._remote = Remote(candidate, runner, judges=judges)
        self._device = None if on_device is None else on_device.device
        self._remote_on_device = (
            None if on_device is None else Remote(candidate, on_device, judges=judges)
        )
        self._waiting = waiting or FewChildren()

    @property
    def has_device(self) -> bool:
        """Return whether large calls go to the candidates' device."""
        return self._remote_on_device is not None

    def close(self) -> None:
        """End the children, if this process has any."""
        self._remote.close()
        if self._remote_on_device is not None:
            self._remote_on_device.close()

    def ask(self, request: ProblemRequest, answer: type[T], *, deadline_s: float) -> T:
        """Return an answer that is JSON.

        Raises:
            Rejected: the problem raised, died or took too long.
        """
        return self._remote.document(request, {}, answer, deadline_s=deadline_s)

    def drawn(
        self, constants: str, weights: Sequence[str], *, seed: int
    ) -> tuple[torch.Tensor, ...]:
        """Return the tensor inputs, then weights, as the problem's own file creates them.

        Raises:
            Rejected: the problem raised, died or took too long.
        """
        request = DrawnRequest(constants=constants, weights=tuple(weights), seed=seed % 2**63)
        return self._remote.outputs(request, {}, deadline_s=TRUTH_S)

    def outputs(
        self, tensors: Mapping[str, torch.Tensor], call: ProblemCall, *, count: int | None = None
    ) -> tuple[torch.Tensor, ...]:
        """Return the model's outputs for inputs and weights.

        Args:
            tensors: the inputs, and the weights by their names after `weights.`.
            call: the rest of the call.
            count: how many runs of a random model; each output is then a stack of them.

        Raises:
            Rejected: the model raised, died or took too long.
        """
        request = OutputsRequest(call=call, count=count)
        if call.large and self._remote_on_device is not None:
            try:
                return self._there(request, call, tensors)
            except Rejected as refusal:
                self._on_cpu(call, refusal)
        return self._remote.outputs(request, tensors, deadline_s=TRUTH_S)

    def gradients(
        self,
        tensors: Mapping[str, torch.Tensor],
        call: ProblemCall,
        passed: Sequence[torch.Tensor],
    ) -> tuple[torch.Tensor, ...]:
        """Return the gradients of the real inputs for those at the outputs.

        Raises:
            Rejected: the function raised, died or took too long.
        """
        request = GradientsRequest(call=call)
        at_outputs = {f"{PASSED}{i}": t for i, t in enumerate(passed)}
        return self._remote.outputs(request, {**tensors, **at_outputs}, deadline_s=TRUTH_S)

    def with_spread(
        self,
        tensors: Mapping[str, torch.Tensor],
        call: ProblemCall,
        variants: Sequence[Variant],
        promised: Sequence[str],
    ) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]] | None:
        """Return the outputs in float64 and the deviations of variants, computed on the device.

        Returns None if the device cannot do it, but a CPU can.

        Args:
            tensors: as for `outputs`, in the dtype of the case.
            call: in float64.
            variants: the other evaluations.
            promised: the dtype of each output.

        Raises:
            Rejected: the model raised, died or took too long, and a CPU cannot do it either.
        """
        request = SpreadRequest(call=call, variants=tuple(variants), promised=tuple(promised))
        try:
            found = self._there(request, call, tensors)
        except Rejected as refusal:
            self._on_cpu(call, refusal)
            return None
        count = len(found) // 2
        return found[:count], found[count:]

    def _there(
        self, request: ProblemRequest, call: ProblemCall, tensors: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        """Call the child on the device; if its memory is short, once more alone."""
        assert self._remote_on_device is not None
        assert self._device is not None
        shared = much_memory(self._device) if call.large else contextlib.nullcontext()
        try:
            with shared, self._waiting.using(self._remote_on_device):
                return self._remote_on_device.outputs(request, tensors, deadline_s=TRUTH_S)
        except Rejected as refusal:
            if not lacks_memory(str(refusal)):
                raise
        self._remote_on_device.close()
        with much_memory(self._device, alone=True), self._waiting.using(self._remote_on_device):
            return self._remote_on_device.outputs(request, tensors, deadline_s=TRUTH_S)

    def _on_cpu(self, call: ProblemCall, refusal: Rejected) -> None:
        """Fall back to the CPU if possible; a device without memory is not tried again.

        Raises:
            Rejected: a CPU cannot do it either.
        """
        if lacks_memory(str(refusal)):
            if not call.on_cpu:
                raise Rejected(f"{refusal}; too many operations for float64 on a CPU") from refusal
            if self._remote_on_device is not None:
                self._remote_on_device.close()
            self._remote_on_device = None
