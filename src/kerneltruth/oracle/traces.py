"""What a candidate's calls and children leave behind, as a thread or a process."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kerneltruth.oracle.probes import differs
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.sandbox import processes_beside
from kerneltruth.runner.session import Session

# Elements of a result that is kept to be compared.
_LARGEST = 2**22


@dataclass(slots=True)
class Traces:
    """What was left behind so far.

    Attributes:
        threads: of Python that were left after a call, at most.
        processes: that were there beside a child, at most.
        lost: calls that were made again, since a child was lost.
        changing: whether the first right call, made again, gave another result.
    """

    threads: int = 0
    processes: int = 0
    lost: int = 0
    changing: bool = False
    _first: tuple[str, tuple[torch.Tensor, ...]] | None = None

    def of_call(self, observation: Observation) -> None:
        """Note what a call leaves behind."""
        self.threads = max(self.threads, observation.threads_left)

    def of_result(self, call: str, outputs: tuple[torch.Tensor, ...]) -> None:
        """Note a right result; equal calls have equal names."""
        if self._first is None and sum(t.numel() for t in outputs) <= _LARGEST:
            self._first = call, outputs
        elif self._first is not None and self._first[0] == call:
            pairs = zip(self._first[1], outputs, strict=True)
            self.changing |= any(bool(differs(a, b, None).any()) for a, b in pairs)

    def of_child(self, child: Session) -> None:
        """Note what a child leaves behind, which ends now or is done with its round."""
        self.lost, child.lost = self.lost + child.lost, 0
        if child.pid is not None:
            self.processes = max(self.processes, processes_beside(child.pid))
