"""Which bounds a command uses, and the measured ones that come with the package."""

from __future__ import annotations

import json
from importlib.resources import files
from importlib.resources.abc import Traversable

from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.oracle.bounds import FLOOR_ULPS, Policy
from kerneltruth.tasks.spec import Task

PACKAGE = files("kerneltruth.oracle")


def choose_policy(bounds: str, *, tf32: bool, package: Traversable = PACKAGE) -> Policy:
    """Return the policy for `--bounds`.

    Raises:
        UserError: no such method.
        EnvironmentFault: the measured bounds are not there.
    """
    measured = calibration(package) if bounds == "calibrated" else None
    return Policy(method=bounds, tf32=tf32, calibration=measured)


def calibration(package: Traversable) -> dict[str, float]:
    """Return the measured bounds by "task/dtype"; `benchmarks/calibrate.py` measures them."""
    try:
        text = package.joinpath("calibration.json").read_text(encoding="utf-8")
    except OSError as error:
        raise EnvironmentFault(
            "the calibrated bounds are missing from this installation; install kerneltruth again, "
            "or use --bounds spread"
        ) from error
    table: dict[str, float] = json.loads(text)["bounds"]
    return table


def bounded_dtypes(task: Task, policy: Policy) -> tuple[str, ...] | None:
    """Return the dtypes of a task that the policy has bounds for; None for all.

    Raises:
        UserError: none of them.
    """
    if policy.calibration is None:
        return None
    known = tuple(
        dtype
        for dtype in (*task.dtypes, *task.extended_dtypes)
        if all(
            f"{task.key}/{name}" in policy.calibration
            for name in FLOOR_ULPS.keys() & {output.parts_at(dtype) for output in task.outputs}
        )
    )
    if not known:
        raise UserError(
            f"--bounds calibrated: no control of {task.name} has been measured; use --bounds spread"
        )
    return known
