"""What a warden says to the host: one packet for each thing that happens to its child."""

from __future__ import annotations

from typing import Annotated

import msgspec


class WardenPacket(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One JSON object, of which a packet has the fields that it is about.

    Attributes:
        child: it runs, in this process.
        signal: it died by this signal.
        code: it exited on its own with this code.
        over: it and what it started took too much of this, and is killed.
        lost: why the child cannot run.
        gone: the tree is killed, but for this number of processes; the warden ends.
    """

    child: Annotated[int, msgspec.Meta(gt=1)] | None = None
    signal: int | None = None
    code: int | None = None
    over: str | None = None
    lost: str | None = None
    gone: int | None = None


def lost(reason: str) -> WardenPacket:
    """Return the packet of a child that cannot run; a path in the reason may hold any bytes."""
    return WardenPacket(lost=reason.encode("utf-8", "backslashreplace").decode())
