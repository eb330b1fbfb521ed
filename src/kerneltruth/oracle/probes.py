"""Probe a wrong result: does it repeat, and what does it depend on?

Each wrong element has its own cause. If it changes by more than its bound between two equal calls,
it is nondeterministic. If it changes with the contents of uninitialized memory, it depends on them.
If it changes with the memory around the tensors, it was read out of bounds. The remaining elements
share a cause of their own. A kernel that is right once its inputs are contiguous assumes that they
are.

A kernel may draw its random numbers anew in each call of a random task. Each call seeds the
generators alike, so most do not. An element that does change between equal calls counts only by
whether it is NaN, if that stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from msgspec.structs import replace

from kerneltruth.cases.layouts import Placed, is_contiguous
from kerneltruth.documents.verdict import Cause, Failed, FailKind, Passed, Verdict
from kerneltruth.oracle.arguments import USUAL, Surroundings
from kerneltruth.oracle.expectation import Expectation

if TYPE_CHECKING:
    from kerneltruth.oracle.candidate_session import CandidateSession
    from kerneltruth.oracle.judge import Ruling

REPEATS = 2
# Sums whose order changes from call to call differ by a few roundings.
_ROUNDINGS = 8
SYMPTOMS: tuple[FailKind, ...] = ("value", "nan", "inf")
# What ignored strides may lead to.
_OF_STRIDES: tuple[FailKind, ...] = (*SYMPTOMS, "out_of_bounds", "input_mutated")
_WORDS: dict[str, str] = {
    "nondeterministic": "with each repetition of the call",
    "uninitialized": "with the contents of uninitialized memory",
    "out_of_bounds": "with what lies beyond the elements of a tensor",
}
CAUSES: dict[FailKind, tuple[Surroundings, ...]] = {
    "nondeterministic": (USUAL,) * REPEATS,
    "uninitialized": (Surroundings(small_poison=True),),
    "out_of_bounds": (Surroundings(small_guards=True),),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """What a wrong result depends on besides its inputs' values.

    Attributes:
        causes: of the wrong elements, the largest first; none if no element depends on anything.
        strides: inputs without whose present layout the result is right.
        layout: how the first of them lies.
    """

    causes: tuple[Cause, ...] = ()
    strides: tuple[str, ...] = ()
    layout: str = ""

    def refine(self, verdict: Verdict) -> Verdict:
        """The verdict with the largest cause in place of the symptom, and all of them named."""
        if not isinstance(verdict, Failed):
            return verdict
        if self.strides:
            detail = f"{self._strides_in_words()}: {verdict.detail}"
            return replace(
                verdict,
                kind="assumes_contiguous",
                detail=detail,
                causes=self.causes,
                inputs=self.strides,
            )
        if verdict.kind not in SYMPTOMS or not self.causes:
            return verdict
        detail = "; ".join([verdict.detail, *shares_in_words(self.causes)])
        return replace(verdict, kind=self.causes[0].kind, detail=detail, causes=self.causes)

    def _strides_in_words(self) -> str:
        names = " and ".join(self.strides)
        verb = "are" if len(self.strides) > 1 else "is"
        return f"right where {names} {verb} contiguous, wrong with {self.layout}"


def shares_in_words(causes: Sequence[Cause], noun: str = "") -> list[str]:
    """Return a clause for each cause, the largest first, which alone has the `noun`."""
    shown = [cause for cause in causes if cause.kind != "assumes_contiguous"]
    return [
        f"{cause.elements} ({100 * cause.share:.3g}%){'' if i else noun} {_in_words(cause)}"
        for i, cause in enumerate(shown)
    ]


def _in_words(cause: Cause) -> str:
    one = cause.elements == 1
    if cause.kind in _WORDS:
        return f"{'changes' if one else 'change'} {_WORDS[cause.kind]}"
    return "does not change" if one else "do not change"


def probe(
    session: CandidateSession, expectation: Expectation, ruling: Ruling, *, config: int
) -> Probes:
    """Repeat a failing call with the same and with other surroundings; compare element by element.

    Make no call if no value is wrong, unless strides may be the reason.
    """
    verdict = ruling.verdict
    if not isinstance(verdict, Failed):
        return Probes()
    found = Probes(causes=_causes(session, expectation, ruling, config))
    restless = bool(found.causes) and found.causes[0].kind == "nondeterministic"
    if verdict.kind not in _OF_STRIDES or restless:
        return found
    placed = session.cache.layouts.of(session.task, expectation.case, expectation.inputs).placed
    strides = needs_contiguous(session, expectation, placed, config=config)
    if not strides:
        return found
    first = placed[strides[0]]
    count = sum(int(w.sum()) for w in wrong_elements(expectation, ruling))
    return Probes(
        causes=(Cause(kind="assumes_contiguous", elements=count, share=1.0),) if count else (),
        strides=strides,
        layout=f"strides {first.strides} for shape {first.shape}",
    )


def depends(
    session: CandidateSession,
    expectation: Expectation,
    ruling: Ruling,
    kind: FailKind,
    *,
    config: int,
) -> bool:
    """Whether some wrong element changes with the cause that this kind of verdict names."""
    wrong = wrong_elements(expectation, ruling)
    return any(
        any(bool((w & c).any()) for w, c in zip(wrong, changed, strict=True))
        for _, changed in _changes(session, expectation, ruling, (kind,), config)
    )


def needs_contiguous(
    session: CandidateSession, expectation: Expectation, placed: dict[str, Placed], *, config: int
) -> tuple[str, ...]:
    """The inputs whose layout alone breaks a kernel that is right once all are contiguous.

    All those that are not contiguous, where only several of them together break it; none where the
    kernel is wrong on contiguous inputs, too.
    """
    strided = [name for name, spot in placed.items() if not is_contiguous(spot)]

    def passes(names: Sequence[str]) -> bool:
        around = Surroundings(contiguous=frozenset(names))
        repeated, _, _ = session.call(expectation, config=config, around=around)
        return isinstance(repeated.verdict, Passed)

    if not strided or not passes(strided):
        return ()
    if len(strided) == 1:
        return tuple(strided)
    alone = [name for name in strided if not passes([n for n in strided if n != name])]
    return tuple(alone or strided)


def wrong_elements(expectation: Expectation, ruling: Ruling) -> list[torch.Tensor]:
    """Which elements of each output are wrong; all of them where nothing tells which.

    None where the verdict is not on values.
    """
    if not isinstance(ruling.verdict, Failed) or ruling.verdict.kind not in SYMPTOMS:
        return []
    masks: list[torch.Tensor] = []
    references = [o.reference for o in expectation.outputs]
    claimed = ruling.claimed_wrong
    for expected, got, difference in zip(
        expectation.outputs, ruling.outputs, ruling.differences, strict=False
    ):
        wrong = torch.ones(got.shape, dtype=torch.bool)
        if difference is not None:
            wrong = difference.wrong
        elif claimed is not None and not masks:
            wrong = claimed
        elif expected.spec.accept is not None:
            accepted = expected.spec.accept(expectation.inputs.tensors, ruling.outputs, references)
            wrong = ~accepted if accepted.shape == got.shape else wrong
        elif bool((lost := got.isnan() & ~expected.reference.isnan()).any()):
            wrong = lost
        masks.append(wrong)
    if any(bool(m.any()) for m in masks):
        return masks
    return [torch.ones_like(m) for m in masks]


def _causes(
    session: CandidateSession, expectation: Expectation, ruling: Ruling, config: int
) -> tuple[Cause, ...]:
    """Each wrong element has the first cause that its changes show; the others share one."""
    left = wrong_elements(expectation, ruling)
    total = sum(int(w.sum()) for w in left)
    counts: dict[FailKind, int] = {}
    if total:
        for kind, changed in _changes(session, expectation, ruling, tuple(CAUSES), config):
            both = [w & c for w, c in zip(left, changed, strict=True)]
            counts[kind] = counts.get(kind, 0) + sum(int(b.sum()) for b in both)
            left = [w & ~b for w, b in zip(left, both, strict=True)]
            if not any(bool(w.any()) for w in left):
                break
    if not any(counts.values()):
        return ()
    counts[_symptom(ruling, left)] = total - sum(counts.values())
    found = sorted(((n, kind) for kind, n in counts.items() if n), key=lambda c: -c[0])
    return tuple(Cause(kind=kind, elements=n, share=n / total) for n, kind in found)


def _symptom(ruling: Ruling, left: Sequence[torch.Tensor]) -> FailKind:
    compared = [(d, w) for d, w in zip(ruling.differences, left, strict=False) if d is not None]
    if any(bool((difference.nan_parity & wrong).any()) for difference, wrong in compared):
        return "nan"
    if any(bool((difference.inf_parity & wrong).any()) for difference, wrong in compared):
        return "inf"
    return "value"


def _changes(
    session: CandidateSession,
    expectation: Expectation,
    ruling: Ruling,
    kinds: Sequence[FailKind],
    config: int,
) -> Iterator[tuple[FailKind, list[torch.Tensor]]]:
    """Causes of these kinds, and which elements of each output change with them."""

    def repeated(around: Surroundings) -> tuple[torch.Tensor, ...]:
        return _repeated(session, expectation, ruling, around, config)

    bounds = [expected.bound for expected in expectation.outputs]
    if not session.task.random:
        for kind in kinds:
            for around in CAUSES[kind]:
                seen = zip(ruling.outputs, repeated(around), bounds, strict=False)
                yield kind, [differs(before, now, bound) for before, now, bound in seen]
        return
    probed = [kind for kind in kinds if kind != "nondeterministic"]
    # Equal calls before and after: a seed may come from a clock.
    equal = [repeated(USUAL)]
    others = [repeated(around) for kind in probed for around in CAUSES[kind]]
    equal.append(repeated(USUAL))
    for kind, other in zip(probed, others, strict=True):
        yield (
            kind,
            [
                _tells(before, now, bound, same)
                for before, now, bound, *same in zip(
                    ruling.outputs, other, bounds, *equal, strict=False
                )
            ],
        )


def _repeated(
    session: CandidateSession,
    expectation: Expectation,
    ruling: Ruling,
    around: Surroundings,
    config: int,
) -> tuple[torch.Tensor, ...]:
    """The outputs of another call; those of the first where their forms differ."""
    outputs = session.call(expectation, config=config, around=around)[0].outputs
    first = ruling.outputs
    return outputs if [o.shape for o in outputs] == [o.shape for o in first] else first


def _tells(
    before: torch.Tensor,
    now: torch.Tensor,
    bound: torch.Tensor | None,
    same: Sequence[torch.Tensor],
) -> torch.Tensor:
    """Where a random result differs from one in other surroundings, and not from equal calls'."""
    lost = before.isnan()
    drawn, restless = torch.zeros_like(lost), torch.zeros_like(lost)
    for equal in same:
        drawn |= differs(before, equal, bound)
        restless |= equal.isnan() != lost
    return (differs(before, now, bound) & ~drawn) | ((now.isnan() != lost) & ~restless)


def differs(before: torch.Tensor, now: torch.Tensor, bound: torch.Tensor | None) -> torch.Tensor:
    """Where two outputs are further apart than the order of a sum explains."""
    if not before.is_floating_point():
        return before != now
    rounding = _ROUNDINGS * torch.finfo(before.dtype).eps
    before, now = before.to(torch.float64), now.to(torch.float64)
    same = (before == now) | (before.isnan() & now.isnan())
    # A bound belongs to the right value, and a wrong one may be far larger.
    allowed = rounding * torch.maximum(before.abs(), now.abs())
    if bound is not None and bound.shape == before.shape:
        allowed = torch.maximum(allowed, bound)
    return ~same & ~((before - now).abs() <= allowed)
