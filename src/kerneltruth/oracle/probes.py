"""Questions asked of a wrong result: does it repeat, and what does it depend on?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kerneltruth.oracle.expectation import Expectation, tensors_digest
from kerneltruth.oracle.verdict import Failed, FailKind, Verdict

if TYPE_CHECKING:
    from kerneltruth.oracle.judge import Ruling
    from kerneltruth.oracle.trial import Trial

REPEATS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """What a wrong result depends on beside its inputs.

    Attributes:
        nondeterministic: the same call gives other output bytes.
        poison_dependent: the output changes with the contents of uninitialized memory.
        guard_dependent: the output changes with what lies around the inputs' elements.
    """

    nondeterministic: bool = False
    poison_dependent: bool = False
    guard_dependent: bool = False

    @property
    def kind(self) -> FailKind | None:
        """The verdict kind that the dependence amounts to."""
        if self.nondeterministic:
            return "nondeterministic"
        if self.poison_dependent:
            return "uninitialized"
        if self.guard_dependent:
            return "out_of_bounds"
        return None

    def refine(self, verdict: Verdict) -> Verdict:
        """The verdict with the cause in place of the symptom, where the probes found one."""
        symptoms = ("value", "nan", "inf")
        if self.kind is None or not isinstance(verdict, Failed) or verdict.kind not in symptoms:
            return verdict
        words = {
            "nondeterministic": "repeating the same call gives another output",
            "uninitialized": "the output changes with the contents of uninitialized memory",
            "out_of_bounds": "the output changes with what lies beyond the elements of an input",
        }
        return replace(verdict, kind=self.kind, detail=f"{verdict.detail}; {words[self.kind]}")


def probe(trial: Trial, expectation: Expectation, ruling: Ruling, *, config: int) -> Probes:
    """Repeat a call with the same and with other surroundings, and compare output bytes."""
    if not ruling.outputs or trial.task.random:
        return Probes()
    first = tensors_digest(ruling.outputs)

    def changed(*, poison: int = 0, guards: int = 0) -> bool:
        again, _, _ = trial.call(expectation, config=config, poison=poison, guards=guards)
        return bool(again.outputs) and tensors_digest(again.outputs) != first

    if any(changed() for _ in range(REPEATS)):
        return Probes(nondeterministic=True)
    if changed(poison=1):
        return Probes(poison_dependent=True)
    return Probes(guard_dependent=changed(guards=1))
