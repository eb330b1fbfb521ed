"""Run a definition's reference, unchanged and in a child, as the reference of a task.

On float64 inputs it yields float64 unless it casts. Most references cast to float32 inside, and
some to the dtype of the output; the reference result then has that precision (`ResultFacts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from kerneltruth.documents.model import Model, Number
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.suites.flashinfer.definition import Definition
from kerneltruth.suites.remote import Remote

CHILD = Path(__file__).with_name("child.py")
TRUTH_S = 120.0
# Outputs within these relative errors are as exact as the dtype, a few roundings included.
_PRECISIONS = (("float64", 2.0**-44), ("float32", 2.0**-19), ("float16", 2.0**-11))


class ReferenceRequest(Model, frozen=True, kw_only=True):
    """What `child.py` reads by key; scalars are Python text."""

    what: Literal["truth", "facts"]
    order: tuple[str, ...]
    outputs: tuple[str, ...]
    scalars: dict[str, str]


class OutputForm(Model, frozen=True, kw_only=True):
    """Dtype and shape of an output; the type of what is not a tensor."""

    shape: tuple[int, ...] = ()
    dtype: str | None = None
    type: str | None = None


class _FactsOfRuns(Model, frozen=True, kw_only=True):
    """What the child answers; `off` is the outputs' error from the reference's own narrowing."""

    outputs: tuple[OutputForm, ...]
    random: bool
    off: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFacts:
    """What one run of a reference shows.

    Attributes:
        outputs: as the child describes them.
        random: whether two runs differ.
        precision: the dtype whose rounding errors the outputs show when all inputs are float64.
    """

    outputs: tuple[OutputForm, ...]
    random: bool
    precision: str


class DefinitionReference:
    """The function `run` of a definition: torch tensors and numbers in, a tuple of tensors out."""

    def __init__(self, definition: Definition, runner: Runner) -> None:
        self.sha256 = definition.sha256
        self._order = tuple(t.name for t in definition.inputs)
        self._outputs = tuple(t.name for t in definition.outputs)
        self._remote = Remote(
            Candidate(
                source=f"{CHILD.read_text('utf-8')}\nREFERENCE = {definition.reference!r}\n",
                path="flashinfer_reference.py",
                sha256=definition.sha256,
                language="torch",
                trusted=True,
                entry="answer",
            ),
            runner,
        )

    def __call__(self, **given: Any) -> tuple[torch.Tensor, ...]:
        """Return the outputs.

        Raises:
            Rejected: the reference does not accept these inputs.
        """
        return self._remote.outputs(*self._request("truth", given), deadline_s=TRUTH_S)

    def facts(self, **given: Any) -> ResultFacts:
        """Return properties of the outputs for these inputs, in float64.

        Raises:
            Rejected: the reference does not accept them.
        """
        request = self._request("facts", given)
        found = self._remote.document(*request, _FactsOfRuns, deadline_s=TRUTH_S)
        precision = next((name for name, most in _PRECISIONS if found.off <= most), "bfloat16")
        return ResultFacts(outputs=found.outputs, random=found.random, precision=precision)

    def close(self) -> None:
        """End its child."""
        self._remote.close()

    def _request(
        self, what: Literal["truth", "facts"], given: Mapping[str, object]
    ) -> tuple[ReferenceRequest, dict[str, torch.Tensor]]:
        tensors = {n: v for n, v in given.items() if isinstance(v, torch.Tensor)}
        request = ReferenceRequest(
            what=what,
            order=self._order,
            outputs=self._outputs,
            scalars={n: repr(given[n]) for n in self._order if n not in tensors},
        )
        return request, tensors
