"""Levels of containment: try which ones this machine offers, and apply one."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.containment import LEVELS, Level
from kerneltruth.runner.import_path import import_path

# The highest level under which the CUDA driver is known to work.
_MOST_ON_CUDA: Level = "strict"
# The level that a command or a program asks for: `--isolation` sets it, for all processes that it
# starts too.
VARIABLE = "KERNELTRUTH_ISOLATION"
_PROBE_S = 60.0


class OfferedLevel(NamedTuple):
    """What a machine offers.

    Attributes:
        level: the highest level that withstood every attempt to break out.
        limited_by: why it is no more; None for the highest.
        landlock_abi: the kernel's version of Landlock; 0 without it.
    """

    level: Level
    limited_by: str | None
    landlock_abi: int


@functools.cache
def offered() -> OfferedLevel:
    """Return the best level here: each is applied once, in a process of its own, and attacked."""
    command = [sys.executable, "-P", "-m", "kerneltruth.runner.containment.probe"]
    environment = {**os.environ, "PYTHONPATH": import_path()}
    try:
        ran = subprocess.run(
            command, env=environment, capture_output=True, timeout=_PROBE_S, check=True
        )
        level, limited_by, abi = json.loads(ran.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return OfferedLevel("process", f"the attempts did not run: {error}", 0)
    return OfferedLevel(level, limited_by, abi)


def wanted() -> Level | None:
    """Return the level that is asked for; None means the best that there is.

    Raises:
        UserError: the variable names no level.
    """
    given = os.environ.get(VARIABLE) or None
    return None if given is None else named(given)


def named(given: str) -> Level:
    """Return the level of this name.

    Raises:
        UserError: there is none.
    """
    if given not in LEVELS:
        raise UserError(f"isolation {given!r}: must be one of {', '.join(LEVELS)}")
    return given


def on_cuda(here: OfferedLevel) -> OfferedLevel:
    """Return what a machine offers to children that use its CUDA device."""
    if LEVELS.index(here.level) <= LEVELS.index(_MOST_ON_CUDA):
        return here
    why = f"more than {_MOST_ON_CUDA!r} is not yet tried with the CUDA driver"
    return OfferedLevel(_MOST_ON_CUDA, why, here.landlock_abi)


def chosen(
    exactly: Level | None = None,
    *,
    device: str = "cpu",
    offers: Callable[[], OfferedLevel] = offered,
) -> Level:
    """Return the level that children get: this, else the one asked for, else the best there is.

    Raises:
        EnvironmentFault: this machine offers less.
        UserError: what is asked for is no level.
    """
    level = exactly or wanted()
    here = offers() if device == "cpu" else on_cuda(offers())
    if level is not None and LEVELS.index(here.level) < LEVELS.index(level):
        raise EnvironmentFault(
            f"isolation {level!r} is not available here, only {here.level!r}: {here.limited_by}; "
            f"use a machine that offers it, or accept --isolation {here.level}"
        )
    return level or here.level
