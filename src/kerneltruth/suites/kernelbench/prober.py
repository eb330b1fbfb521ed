"""Try sets of constants: each is accepted with an outline, or rejected."""

from __future__ import annotations

from kerneltruth.suites.kernelbench import search as searching
from kerneltruth.suites.kernelbench.child_session import ProblemSession
from kerneltruth.suites.kernelbench.constants import Constants
from kerneltruth.suites.kernelbench.messages import (
    OutlineRequest,
)
from kerneltruth.suites.kernelbench.problem import Problem
from kerneltruth.suites.kernelbench.schema import Outline
from kerneltruth.suites.remote import Rejected

TRY_S = 20.0
_ORIGINAL_S = 30.0
# Time for all tries of one problem; the same on every machine that is not hopelessly slow.
_MOST_TRIES = 600


class Prober:
    """Requests outlines of the problem, each set of constants once."""

    def __init__(self, problem: Problem, session: ProblemSession, device: str) -> None:
        self._problem = problem
        self._session = session
        self._device = device
        self._known: dict[str, Outline | None] = {}
        self._sketched: dict[str, Outline | None] = {}
        self.refusal: str | None = None
        self.smallest: Outline | None = None

    def attempt(self, constants: Constants) -> Outline | None:
        """Return the outline, or None if the problem rejects the constants."""
        text = changed(self._problem, constants)
        if text not in self._known:
            if len(self._known) >= _MOST_TRIES:
                return None
            made = self._known[text] = self._ask(text)
            if made and (not self.smallest or made.weights < self.smallest.weights):
                self.smallest = made
        return self._known[text]

    def sketch(self, constants: Constants) -> Outline | None:
        """As `attempt`, without a call of the model: shapes of inputs and weights alone."""
        text = changed(self._problem, constants)
        if text not in self._sketched:
            try:
                made = self._size(text)
            except Rejected:
                made = None
            self._sketched[text] = made
        return self._sketched[text]

    def _ask(self, text: str) -> Outline | None:
        try:
            if self._device == "cpu":
                # First without a call, whose size is still unknown.
                size = self._size(text)
                if not searching.PREFERRED.holds(size):
                    return None
            return self.outline(text, device=self._device, forward=True)
        except Rejected as refusal:
            self.refusal = self.refusal or str(refusal)
            return None

    def whole(self) -> Outline:
        """Return the outline of the file's own constants.

        Raises:
            Rejected: it cannot be had without computing, and computing takes long.
        """
        try:
            return self.outline("{}", device="meta", forward=True, deadline_s=_ORIGINAL_S)
        except Rejected:
            if self._problem.function is None:
                raise
            return self.outline("{}", device="cpu", forward=True, deadline_s=_ORIGINAL_S)

    def _size(self, text: str) -> Outline:
        """Return the outline without a call; a plain function's inputs may need a real device."""
        try:
            return self.outline(text, device="meta", forward=False)
        except Rejected:
            if self._problem.function is None:
                raise
            return self.outline(text, device="cpu", forward=False)

    def outline(
        self, text: str, *, device: str, forward: bool, deadline_s: float = TRY_S
    ) -> Outline:
        """Return the outline of one set.

        Raises:
            Rejected: the problem rejects it.
        """
        request = OutlineRequest(constants=text, device=device, forward=forward)
        return self._session.ask(request, Outline, deadline_s=deadline_s)


def changed(problem: Problem, constants: Constants) -> str:
    """Return the constants that differ from the file's own, as the text of a dict."""
    return repr({n: v for n, v in constants.items() if v != problem.constants[n]})
