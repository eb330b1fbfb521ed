"""Runs of the same kernels beside each other: what got better, and what broke. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kerneltruth.analysis.alignment import aligned
from kerneltruth.analysis.portability import ratios_by_shape
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import Result
from kerneltruth.analysis.speeds import EAGER
from kerneltruth.clock.statistics.portability import portability
from kerneltruth.documents.runs import ComparedKernel, EditEffect
from kerneltruth.errors import UserError

BECAME: dict[tuple[bool, bool], EditEffect] = {
    (False, True): "fixed",
    (True, False): "broken",
    (True, True): "still right",
    (False, False): "still wrong",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideKernel:
    """A kernel in each of the runs.

    Attributes:
        results: by run, in their order.
        became: what the last run says beside the first; None where one of them did not judge it.
        changed: obligations that end in several ways, of profiles that are in every run.
        speed: its speedups over eager where two or more runs have it right and timed.
    """

    name: str
    results: tuple[Result, ...]
    became: EditEffect | None
    changed: tuple[str, ...]
    speed: ComparedKernel | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsBeside:
    """The kernels of all runs; `missing` are those that some run lacks."""

    kernels: tuple[BesideKernel, ...]
    missing: int


def beside(study: Study) -> RunsBeside:
    """Set the runs of a study beside each other.

    Raises:
        UserError: there are fewer than two.
    """
    if len(study.runs) < 2:
        raise UserError(
            f"--compare takes two or more runs, got {len(study.runs)}; name another run"
        )
    by_run: list[dict[str, Result]] = [{} for _ in study.runs]
    for r in study.attempts:
        by_run[r.run][r.key] = r
    runs = aligned(by_run)
    names = sorted({name for known in runs for name in known})
    shared = [name for name in names if all(name in known for known in runs)]
    timed = [
        {n: ratios_by_shape(known[n], EAGER) for n in shared if known[n].correct} for known in runs
    ]
    speeds = {kernel.name: kernel for kernel in portability(timed).kernels}
    return RunsBeside(
        kernels=tuple(
            _kernel(name, tuple(known[name] for known in runs), speeds.get(name)) for name in shared
        ),
        missing=len(names) - len(shared),
    )


def _kernel(name: str, results: tuple[Result, ...], speed: ComparedKernel | None) -> BesideKernel:
    first, last = results[0], results[-1]
    judged = first.judged and last.judged
    return BesideKernel(
        name=name,
        results=results,
        became=BECAME[first.correct, last.correct] if judged else None,
        changed=_changed(results),
        speed=speed,
    )


def _changed(results: Sequence[Result]) -> tuple[str, ...]:
    if not all(r.has_profile for r in results):
        return ()
    names = dict.fromkeys(name for r in results for name in r.profile)
    ends = {n: {(e := r.profile.get(n)) and e.status for r in results} for n in names}
    return tuple(name for name, statuses in ends.items() if len(statuses) > 1)
