"""Certified kernels by obligation: which remain after each, and where the others break. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from kerneltruth.analysis.groups import grouped, labels
from kerneltruth.analysis.illusions import checks_of, place_of
from kerneltruth.analysis.intervals import clustered_rate
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import PASSED, Obliged, Result
from kerneltruth.documents.estimates import RateRecord
from kerneltruth.documents.records import OBLIGATIONS, Obligation
from kerneltruth.documents.survival import IllusionPlaces, SurvivalCurve, SurvivalStep

Fate = Literal["lost", "not_tried", "refused", "remains"]


def fate(result: Result, obligation: Obligation) -> Fate:
    """Return a kernel's fate by an obligation: the worst of its parts.

    Broken parts and refused decisive ones lose it; gradients that no prompt promises do not apply.
    """
    if not result.profile:
        return "not_tried"
    parts = [p for name, p in result.profile.items() if name.partition(".")[0] == obligation]
    if any(map(_loses, parts)):
        return "lost"
    if any(p.status == "not_tried" and (p.promised or obligation != "gradients") for p in parts):
        return "not_tried"
    return "refused" if any(p.status == "refused" for p in parts) else "remains"


def _loses(part: Obliged) -> bool:
    return part.status == "broken" or (part.status == "refused" and part.decisive)


def survival(study: Study, by: Sequence[str] = ()) -> tuple[SurvivalCurve, ...]:
    """Return a curve for each peer check and group that has a certified kernel."""
    groups = grouped((r for r in study.distinct if r.checks), by)
    return tuple(
        replace(curve(check, certified), **labels(by, group))
        for check in checks_of(study.distinct)
        for group, members in groups.items()
        if (certified := [r for r in members if r.checks.get(check) == PASSED])
    )


def curve(check: str, certified: Sequence[Result]) -> SurvivalCurve:
    """Count the kernels that remain after each obligation, in the obligations' order."""
    known = [r for r in certified if r.has_profile]
    return SurvivalCurve(
        check=check,
        certified=len(certified),
        no_profile=len(certified) - len(known),
        torch_only=sum(r.torch_only for r in known),
        steps=_steps(known),
    )


def _steps(kernels: Sequence[Result]) -> tuple[SurvivalStep, ...]:
    lost = [False] * len(kernels)
    untried = [False] * len(kernels)
    steps = []
    for obligation in OBLIGATIONS:
        fates = [fate(r, obligation) for r in kernels]
        before = sum(lost)
        lost = [was or now == "lost" for was, now in zip(lost, fates, strict=True)]
        untried = [was or now == "not_tried" for was, now in zip(untried, fates, strict=True)]
        open_ = [u and not gone for u, gone in zip(untried, lost, strict=True)]
        steps.append(
            SurvivalStep(
                obligation=obligation,
                at_risk=len(kernels) - before,
                remain=_share(kernels, [not (u or g) for u, g in zip(untried, lost, strict=True)]),
                remain_most=_share(kernels, [not gone for gone in lost]),
                lost=sum(lost) - before,
                lost_so_far=sum(lost),
                not_tried=sum(open_),
                refused=fates.count("refused"),
            )
        )
    return tuple(steps)


def _share(kernels: Sequence[Result], hits: Sequence[bool]) -> RateRecord:
    return clustered_rate(zip((r.task for r in kernels), hits, strict=True))


def illusion_places(study: Study) -> tuple[IllusionPlaces, ...]:
    """Count for each peer check and contract where the kernels that it certifies are wrong."""
    rows = []
    for check in checks_of(study.distinct):
        certified = [r for r in study.distinct if r.checks.get(check) == PASSED]
        for contract in sorted({r.contract for r in certified}):
            own = [r for r in certified if r.contract == contract]
            places = [place_of(r) for r in own]
            rows.append(
                IllusionPlaces(
                    check=check,
                    contract=contract,
                    certified=len(own),
                    published=_share(own, [p == "published" for p in places]),
                    core=_share(own, [p == "core" for p in places]),
                    beyond=_share(own, [p == "beyond" for p in places]),
                    unknown=_share(own, [p == "unknown" for p in places]),
                )
            )
    return tuple(rows)
