"""What the host requests of a zygote: one child. Its descriptors come beside it."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltruth.runner.containment import Level
from kerneltruth.runner.sandbox import ResourceLimits

# No request is longer.
REQUEST_BYTES = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRequest:
    """The child to fork, as one JSON object; paths are text.

    Attributes:
        folder: of the child; the zygote's folder holds it.
        cache: where what it compiled is kept.
        level: of containment.
        gpu: whether the child uses a GPU.
        trusted: whether it is the judge's own, and may read all files that the user may.
        reads: what it may read besides.
    """

    folder: str
    cache: str | None
    limits: ResourceLimits
    environment: dict[str, str]
    level: Level
    gpu: bool
    trusted: bool
    reads: tuple[str, ...]
