"""Cases that a candidate has got right, which further calls of it take."""

from __future__ import annotations

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import KernelFact
from kerneltruth.documents.verdict import Failed
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.in_place import follows, not_following
from kerneltruth.oracle.kernel_fact import kernel_fact
from kerneltruth.oracle.obligations import departures
from kerneltruth.oracle.repeated_calls import kept_from_before, telling


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
        """Return the one whose draws tell most; see `repeated_calls.telling`."""
        return telling(self.kept)

    def state_kept(self, session: CandidateSession) -> Failed | Expectation | None:
        """What shows that calls leave state behind; see `repeated_calls.kept_from_before`.

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

    def kernel_fact(
        self, session: CandidateSession, published: Case, *, required: bool
    ) -> KernelFact | None:
        """Return whose kernels did the work, with the published attributes if possible."""
        plain = [
            expectation
            for expectation in self.kept
            if all(
                departure.obligation != "attributes"
                for departure in departures(session.task, expectation.case, published)
            )
        ]
        return kernel_fact(session, plain or self.kept, required=required)
