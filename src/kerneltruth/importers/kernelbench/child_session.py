"""A child process that holds one problem: asked for outlines, facts and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from kerneltruth.importers.kernelbench.problem import Problem
from kerneltruth.importers.remote import Rejected, Remote
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner

INSIDE = Path(__file__).with_name("inside")
TRUTH_S = 120.0

__all__ = ["INSIDE", "ProblemSession", "Rejected"]


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

    def outputs(
        self,
        tensors: Mapping[str, torch.Tensor],
        *,
        constants: str,
        order: Sequence[str],
        scalars: Mapping[str, str],
        dtype: str,
        products: str | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """The model's outputs for inputs and weights.

        Raises:
            Rejected: the model raised, died or took too long.
        """
        request = {
            "what": "truth",
            "constants": constants,
            "order": list(order),
            "scalars": dict(scalars),
            "dtype": dtype,
            "products": products,
        }
        return self._remote.outputs(request, tensors, deadline_s=TRUTH_S)
