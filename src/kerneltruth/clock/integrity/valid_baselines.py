"""Whether a baseline is valid: it runs on the task's device, and in a plausible time."""

from __future__ import annotations

import math

from kerneltruth.clock.protocol.operators import Operators
from kerneltruth.clock.protocol.sides import SideError
from kerneltruth.runner.observation import Observation

# How many times longer than its floor, or than its launches, a baseline may take.
MOST = 100.0
NOT_VALID = "no valid baseline"
NOTHING_RUNS = "it launched nothing on the task's device: its results are views, or lie elsewhere"


def why_elsewhere(ran: Operators) -> str | None:
    """Return why a baseline does not run on the task's device, if it does not."""
    if ran.elsewhere:
        return "its results do not lie on the task's device"
    if not ran.launches:
        return NOTHING_RUNS
    return None


def most_s(ran: Operators, *, floor_s: float, launch_s: float) -> float:
    """Return the most seconds of a baseline's call; infinite if PyTorch itself waits for a host.

    `launch_s` is measured: a call that does nothing.
    """
    return math.inf if ran.factors else MOST * max(floor_s, ran.launches * launch_s)


def why_too_long(ran: Operators, seconds: float, *, floor_s: float, launch_s: float) -> str | None:
    """Return why a baseline takes too long to be valid, if it does."""
    if seconds <= most_s(ran, floor_s=floor_s, launch_s=launch_s):
        return None
    where = f", {ran.on_host} operators of which run on the host" if ran.on_host else ""
    return (
        f"a call takes {seconds * 1e3:.3g} ms{where}: over {MOST:.0f} times the larger of its "
        f"floor ({floor_s * 1e6:.3g} us) and {ran.launches} launches of {launch_s * 1e6:.3g} us"
    )


def host_bound(ran: Operators, seconds: float, *, floor_s: float, launch_s: float) -> str | None:
    """Said of a factorization that takes that long: PyTorch itself does it, so it is no error."""
    plain = Operators(launches=ran.launches, on_host=ran.on_host, elsewhere=0)
    if not ran.factors or seconds <= most_s(plain, floor_s=floor_s, launch_s=launch_s):
        return None
    return f"bound by its host: {', '.join(ran.factors)} waits for it between steps"


class NotValid(SideError):
    """A baseline is not valid, because of where it runs or how long it takes."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, Observation(ended="returned", message=why))
        self.why = why

    def __str__(self) -> str:
        return f"{NOT_VALID}: {self.why}"
