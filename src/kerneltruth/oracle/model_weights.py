"""The weights that a model is judged with: the judge's, or those that its constructor draws."""

from __future__ import annotations

from msgspec.structs import replace

from kerneltruth.documents.case import Case
from kerneltruth.documents.verdict import UnsupportedHere, Verdict
from kerneltruth.runner.child.weight_places import NO_PLACE
from kerneltruth.tasks.spec import Task


class ModelWeights:
    """The weights that a candidate is judged with.

    Attributes:
        own: why they are those that its constructor draws; None if they are the judge's.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self.own: str | None = None

    def become_own(self, case: Case, verdict: Verdict) -> bool:
        """Whether a call shows that the model has no place for the judge's weights.

        From then on its constructor draws them, as in KernelBench: the reference's constructor
        draws the same weights from the same seed.
        """
        beyond = self._task.beyond(case.settings) is not None
        if self.own is not None or beyond or not isinstance(verdict, UnsupportedHere):
            return False
        if verdict.reason.startswith(NO_PLACE):
            self.own = verdict.reason
        return self.own is not None

    def as_taken(self, case: Case) -> Case | None:
        """The case, without weights if the model keeps its own; None if the model has no such case.

        These are drawn in float32, and KernelBench asks for no other dtype.
        """
        if self.own is None:
            return case
        if case.dtype not in self._task.dtypes:
            return None
        weights = (spec.name for spec in self._task.tensors if spec.kind == "weight")
        return replace(case, absent=(*case.absent, *weights))
