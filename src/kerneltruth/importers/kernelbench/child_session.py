"""A child process that holds one problem: asked for outlines, facts and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from kerneltruth.importers.kernelbench.problem import Problem
from kerneltruth.importers.remote import Rejected, Remote
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner

INSIDE = Path(__file__).with_name("inside")
TRUTH_S = 120.0

__all__ = ["INSIDE", "Call", "ProblemSession", "Rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of the model, but for its tensors.

    Attributes:
        constants: those that differ from the file's own, as the text of a dict.
        order: the names of the inputs.
        scalars: the inputs that are no tensors, as Python text.
        dtype: of inputs, weights and what the model makes itself.
        arithmetic: `truncated` or `rounded` for factors in TF32, `gpu-0` or `gpu-1` for operators
            as GPU libraries have them; None for torch's own.
        training: the mode; None leaves the model as its constructor does.
        updated: buffers that are outputs too.
    """

    constants: str
    order: tuple[str, ...]
    scalars: Mapping[str, str]
    dtype: str
    arithmetic: str | None = None
    training: bool | None = None
    updated: tuple[str, ...] = ()


class ProblemSession:
    """Runs one problem inside the wall, in a child of this process and of no other."""

    def __init__(self, problem: Problem, runner: Runner) -> None:
        source = (
            "from kerneltruth.importers.kernelbench.inside.serving import Harness\n"
            f"answer = Harness({problem.source!r}).answer\n"
        )
        candidate = Candidate(
            source=source,
            path="kernelbench_problem.py",
            sha256=problem.sha256,
            language="torch",
            entry="answer",
        )
        self._remote = Remote(candidate, runner)

    def close(self) -> None:
        """End the child, if this process has one."""
        self._remote.close()

    def ask(self, what: str, *, deadline_s: float, **asked: Any) -> dict[str, Any]:
        """An answer that is JSON.

        Raises:
            Rejected: the problem raised, died or took too long.
        """
        return self._remote.document({"what": what, **asked}, {}, deadline_s=deadline_s)

    def drawn(
        self, constants: str, weights: Sequence[str], *, seed: int
    ) -> tuple[torch.Tensor, ...]:
        """The tensors among the inputs, then weights, as the problem's own file makes them.

        Raises:
            Rejected: the problem raised, died or took too long.
        """
        request = {
            "what": "drawn",
            "constants": constants,
            "weights": list(weights),
            "seed": seed % 2**63,
        }
        return self._remote.outputs(request, {}, deadline_s=TRUTH_S)

    def outputs(
        self, tensors: Mapping[str, torch.Tensor], call: Call, *, count: int | None = None
    ) -> tuple[torch.Tensor, ...]:
        """The model's outputs for inputs and weights.

        Args:
            tensors: the inputs, and the weights by their names after `weights.`.
            call: the rest of it.
            count: how many runs of a random model; each output is a stack of them then.

        Raises:
            Rejected: the model raised, died or took too long.
        """
        request = {"what": "truth" if count is None else "draws", "count": count} | asdict(call)
        return self._remote.outputs(request, tensors, deadline_s=TRUTH_S)
