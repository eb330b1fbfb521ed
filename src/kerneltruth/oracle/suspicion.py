"""Facts that make a right candidate suspect; none convicts it, all lead to a second round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from kerneltruth.documents.records import Attempt, SuspectFact, Suspicion
from kerneltruth.oracle.probes import differs
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.sandbox import processes_beside
from kerneltruth.runner.session import Session
from kerneltruth.runner.source_patches import patches

if TYPE_CHECKING:
    from kerneltruth.oracle.candidate_session import CandidateSession

_MOST_NAMED = 4
# Elements of a result that is kept to be compared.
_LARGEST = 2**22


@dataclass(slots=True)
class Traces:
    """What a candidate's calls and children have left behind so far.

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


def suspicions(session: CandidateSession, attempt: Attempt) -> tuple[Suspicion, ...]:
    """Return what makes a right candidate suspect."""
    traces, kernel = session.traces(), attempt.kernel
    replaced = patches(session.candidate.source)
    more = f" and {len(replaced) - _MOST_NAMED} more" if len(replaced) > _MOST_NAMED else ""
    details: dict[SuspectFact, str] = {
        "replaces_names": ", ".join(replaced[:_MOST_NAMED]) + more,
        "threads_left": _several(traces.threads, "thread") + " ran on after a call",
        "processes_left": _several(traces.processes, "process") + " ran on after the calls",
        "calls_lost": _several(traces.lost, "call") + " ended with a lost child",
        "repetition_differs": "an equal call gave another result, which is right as well",
        "kernels_not_needed": "launches its own kernels, and is right when they do nothing",
    }
    holds: dict[SuspectFact, bool] = {
        "replaces_names": bool(replaced),
        "threads_left": bool(traces.threads),
        "processes_left": bool(traces.processes),
        "calls_lost": bool(traces.lost),
        "repetition_differs": traces.changing,
        "kernels_not_needed": kernel is not None and kernel.probe == "not_needed",
    }
    return tuple(Suspicion(fact=f, detail=said) for f, said in details.items() if holds[f])


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'es' if noun.endswith('s') else 's'}" if count > 1 else f"1 {noun}"
