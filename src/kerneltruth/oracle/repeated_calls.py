"""Faults that one call does not show: state left behind, repeated draws, changing bits.

All are checked on a candidate that was right in every case, in the child that ran all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kerneltruth.documents.records import Judgement
from kerneltruth.documents.verdict import Failed, Hack, Verdict, is_bad
from kerneltruth.oracle.arguments import USUAL, Surroundings
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation import Expectation, tensors_digest, with_digests
from kerneltruth.oracle.in_place import follows, not_following
from kerneltruth.runner.source_state import may_keep_state

# A kernel whose calls agree by chance differs in one of these further calls, if PyTorch's own
# calls all differ.
_FIRST_LOOK = 3
DRAWS = 8
# Equal calls after the first, where their bits must be the same.
REPEATS = 3


class RightCases:
    """What is expected of the cases that were right, in their order.

    Attributes:
        kept: those that further calls may take.
    """

    def __init__(self) -> None:
        self.kept: list[Expectation] = []

    @property
    def first(self) -> Expectation | None:
        """Return the first one that is kept."""
        return self.kept[0] if self.kept else None

    def keep(self, expectation: Expectation) -> None:
        """Keep a right case for further calls; a large one only if there is no other."""
        if self.kept and self.kept[0].is_large:
            self.kept.pop()
        if not self.kept or not expectation.is_large:
            self.kept.append(expectation)

    def telling(self) -> Expectation | None:
        """Return the one of a random task with the most random elements."""
        drawn = [e for e in self.kept if _random_elements(e)]
        return max(drawn, key=_random_elements, default=None)

    def state_kept(self, session: CandidateSession) -> Failed | Expectation | None:
        """What shows that calls leave state behind; see `kept_from_before`.

        To be called where a case is kept.
        """
        first = self.kept[0]
        followed = follows(session, first)
        if isinstance(followed, Expectation):
            return followed
        if followed is False:
            # The state that the cases left ended with their child.
            for right in self.kept:
                session.call(right)
        models = session.eager_checks is not None
        kept = kept_from_before(session, first, models=models, other_values=not followed)
        return kept if kept is not None or followed else not_following(session, first)


def kept_from_before(
    session: CandidateSession,
    expectation: Expectation,
    *,
    models: bool = True,
    other_values: bool = True,
) -> Failed | Expectation | None:
    """The verdict on a case that was right and is wrong when it is called after other calls.

    Before the repetition, the same call runs with other values, to show state keyed by input
    shapes. If a fresh child gets these wrong too, nothing was kept; that case is returned, to be
    judged like any other.

    `other_values` is false if `in_place.follows` has shown that these are right. `models` also
    calls one model twice. A task's own model may keep state; only eager checks can tell.
    """
    if other_values and (kept := _kept_by_shapes(session, expectation)) is not None:
        return kept
    wrong = _wrong(session, expectation)
    if wrong is not None:
        # Other values are right, so it may go by where its inputs lie, which other calls prove.
        session.close()
        proven = not_following(session, expectation)
        return proven if isinstance(proven, Hack) else _kept("after other cases", wrong)
    if session.task.bitwise and (changing := changing_bits(session, expectation)):
        return changing
    if not session.is_model or not models:
        return None
    # Calls of other cases build a model each.
    wrong = _wrong(session, expectation, around=Surroundings(reused=True))
    return None if wrong is None else _kept("of the same model", wrong)


def _kept_by_shapes(
    session: CandidateSession, expectation: Expectation
) -> Failed | Expectation | None:
    case = expectation.case
    other = session.cache.get(session.task, replace(case, seed=case.seed ^ 1))
    if other.invalid is not None or other.unrefereeable is not None:
        return None
    wrong = _wrong(session, other)
    if wrong is None:
        return None
    session.close()
    alone = _wrong(session, other)
    return other if alone is not None else _kept("with other values", wrong)


def kept_from_others(
    session: CandidateSession, expectation: Expectation, verdict: Verdict, *, config: int
) -> Failed | None:
    """The verdict on a wrong value that a fresh child gets right: other cases left state behind.

    This costs a child, so it runs only for a source that may keep state.
    """
    of_values = isinstance(verdict, Failed) and verdict.kind in ("value", "nan", "inf")
    if not of_values or not may_keep_state(session.candidate.source):
        return None
    session.close()
    ruling, _, _ = session.call(expectation, config=config)
    return None if is_bad(ruling.verdict) else _kept("after other cases", verdict)


def _wrong(
    session: CandidateSession, expectation: Expectation, *, around: Surroundings = USUAL
) -> Verdict | None:
    """The verdict on a call that is bad; None if PyTorch's own call is bad too."""
    ruling, _, _ = session.call(expectation, around=around)
    if not is_bad(ruling.verdict):
        return None
    shared = session.objection(expectation, ruling.verdict, around=around) is not None
    return None if shared else ruling.verdict


def _kept(when: str, verdict: Verdict) -> Failed:
    said = getattr(verdict, "detail", "") or type(verdict).__name__
    detail = f"right in the first call, wrong in a later one {when}: {said}"
    return Failed(kind="kept_state", detail=detail, output=getattr(verdict, "output", None))


def of_several_calls(expectation: Expectation, verdict: Failed) -> Judgement:
    """The judgement on calls that are wrong together: no output is that of all."""
    return with_digests(Judgement(case=expectation.case, verdict=verdict), expectation)


def changing_bits(session: CandidateSession, expectation: Expectation) -> Failed | None:
    """The verdict on equal calls that do not return the same bytes."""
    first = _drawn(session, expectation, 0)
    if first is None or _alike(session, expectation, first, (0,) * REPEATS):
        return None
    detail = "equal calls return other bits within the bound; the task promises the same bits"
    return Failed(kind="other_bits", detail=detail)


def drawn_alike(session: CandidateSession, expectation: Expectation) -> Failed | None:
    """The verdict on a random case in which all calls agree, although PyTorch's differ.

    Each of these calls reseeds the generators that a candidate may draw a seed from.
    """
    first = _drawn(session, expectation, 0)
    if first is None or not _alike(session, expectation, first, range(1, _FIRST_LOOK)):
        return None
    if session.eager_checks is None or not session.eager_checks.draws_differ(
        session.task, expectation, DRAWS
    ):
        return None
    alike = _alike(session, expectation, first, range(_FIRST_LOOK, _FIRST_LOOK + DRAWS))
    return _same_draw(_FIRST_LOOK + DRAWS) if alike else None


def reproduced(
    session: CandidateSession,
    verdict: Verdict,
    expectation: Expectation,
    others: Iterable[Expectation],
) -> Failed | None:
    """Reproduce a verdict of this module on a case that was just called.

    `others` are cases to call in between.
    """
    kind = verdict.kind if isinstance(verdict, Failed) else None
    if kind == "same_draw":
        first = _drawn(session, expectation, 0)
        alike = first is not None and _alike(session, expectation, first, range(1, DRAWS))
        return _same_draw(DRAWS) if alike else None
    if kind == "other_bits":
        return changing_bits(session, expectation)
    if kind == "kept_state":
        for other in others:
            session.call(other)
        kept = kept_from_before(session, expectation)
        if isinstance(kept, Failed):
            return kept
    if kind not in ("kept_state", "kept_result"):
        return None
    stale = not_following(session, expectation)
    return stale if isinstance(stale, Failed) else None


def _same_draw(calls: int) -> Failed:
    detail = f"{calls} calls drew the same random numbers, whatever the generators were seeded with"
    return Failed(kind="same_draw", detail=detail)


def _random_elements(expectation: Expectation) -> int:
    judged_so = (o for o in expectation.outputs if o.spec.compare == "claims")
    return sum(o.reference.numel() for o in judged_so)


def _alike(
    session: CandidateSession, expectation: Expectation, first: str, draws: Iterable[int]
) -> bool:
    return all(_drawn(session, expectation, draw) == first for draw in draws)


def _drawn(session: CandidateSession, expectation: Expectation, draw: int) -> str | None:
    ruling, _, _ = session.call(expectation, around=Surroundings(draw=draw))
    return tensors_digest(ruling.outputs) if ruling.outputs else None


def differ(session: CandidateSession, expectation: Expectation, draws: int) -> bool:
    """Whether several calls all give different outputs."""
    seen = [_drawn(session, expectation, draw) for draw in range(draws)]
    return None not in seen and len(set(seen)) == draws
