"""The page's part on methods that work in rounds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from kerneltruth.analysis.groups import METHOD, Group
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.trajectories import trajectories
from kerneltruth.documents.analysis import ChainFates, RefinementTables, RoundChanges, RoundRates
from kerneltruth.report.page.cells import column, factor, row, share, table, text, whole
from kerneltruth.report.page.scales import LogScale, speed_scale
from kerneltruth.report.page.wording import label, method_label, row_label, share_said

MOST_REPAIRS = 4
SHARES = {"call": "loads and runs", "exe": "is right", "kept": "best so far is right"}


def rounds_part(study: Study) -> dict[str, Any] | None:
    """Charts and tables of trajectories; None where no method works in rounds."""
    found = trajectories(study.distinct)
    if not found.rounds:
        return None
    return {
        "charts": _charts(found),
        "rounds": _round_table(found.rounds),
        "fates": _fate_table(found.fates),
        "changes": _change_table(found.changes),
    }


def _charts(found: RefinementTables) -> list[dict[str, Any]]:
    """For each group two small charts: shares by round, and speedups by round."""
    known = [
        end
        for r in found.rounds
        for end in (r.speedup.value, r.speedup.low, r.speedup.high)
        if end is not None
    ]
    scale = speed_scale(known)
    groups: dict[Group, list[RoundRates]] = {}
    for r in found.rounds:
        groups.setdefault(r.group(METHOD), []).append(r)
    return [_chart(group, own, scale, bool(known)) for group, own in groups.items()]


def _chart(group: Group, own: Sequence[RoundRates], scale: LogScale, timed: bool) -> dict[str, Any]:
    places = [round(6 + 88 * i / max(1, len(own) - 1), 2) for i in range(len(own))]
    return {
        "name": method_label(*group),
        "places": [{"at": x, "label": str(r.round)} for x, r in zip(places, own, strict=True)],
        "shares": [
            _line(said, kind, [_rate_point(x, getattr(r, kind)) for x, r in _with(places, own)])
            for kind, said in SHARES.items()
        ],
        "speeds": [
            _line(
                "speedup over eager",
                "speed",
                [
                    {
                        "x": x,
                        "y": 100 - scale.at(r.speedup.value),
                        "low": _down(r.speedup.low, scale),
                        "high": _down(r.speedup.high, scale),
                    }
                    for x, r in _with(places, own)
                    if r.speedup.value is not None
                ],
            )
        ]
        if timed
        else [],
        "ticks": [{**tick, "at": 100 - tick["at"]} for tick in scale.ticks()],
        "said": "; ".join(
            f"round {r.round}: {share_said(_known(r.exe))} right, "
            f"{share_said(_known(r.call))} load and run"
            for r in own
        ),
    }


def _with(places: Sequence[float], own: Sequence[RoundRates]) -> list[tuple[float, RoundRates]]:
    return list(zip(places, own, strict=True))


def _known(rate: Any) -> dict[str, Any]:
    return {"numerator": rate.numerator, "denominator": rate.denominator}


def _line(label: str, kind: str, points: list[dict[str, Any]]) -> dict[str, Any]:
    """A line's points, and the segments between neighbours: percents cannot be a polyline's."""
    segments = [
        {"x1": a["x"], "y1": a["y"], "x2": b["x"], "y2": b["y"]} for a, b in pairwise(points)
    ]
    return {"label": label, "kind": kind, "points": points, "segments": segments}


def _rate_point(x: float, rate: Any) -> dict[str, Any]:
    def height(share_: float | None) -> float | None:
        return None if share_ is None else round(100 - 100 * share_, 2)

    return {"x": x, "y": height(rate.rate), "low": height(rate.low), "high": height(rate.high)}


def _down(value: float | None, scale: LogScale) -> float | None:
    return None if value is None else round(100 - scale.at(value), 2)


def _round_table(rows: Sequence[RoundRates]) -> dict[str, Any]:
    columns = [
        column("method", number=False),
        column("round"),
        column("answers", hint="begun; those made in this round"),
        column("loads and runs"),
        column("is right"),
        column("best so far is right"),
        column("not judged", hint="the latest round; counted in every share"),
        column("speedup", hint="geometric mean of right, timed ones"),
        column("speedup, same answers", hint="right and timed in every round so far"),
    ]
    made = [
        row(
            row_label(r, METHOD),
            [
                whole(r.round),
                text(f"{r.chains:,}; {r.made:,}") | {"value": r.made},
                share(r.call),
                share(r.exe),
                share(r.kept),
                whole(r.not_judged),
                factor(r.speedup),
                factor(r.steady),
            ],
        )
        for r in rows
    ]
    return table("rounds", "Round by round: by each answer's latest round.", columns, made)


def _fate_table(fates: Sequence[ChainFates]) -> dict[str, Any]:
    columns = [
        column("method", number=False),
        column("answers"),
        column("right in every round"),
        column("rescued", hint="wrong at first, right at the last"),
        column("right again", hint="right at first and at the last, wrong between"),
        column("lost", hint="right at some time, wrong at the last"),
        column("never right"),
        column("not judged", hint="in any round"),
        column("speedup, right in every round"),
        column("speedup, rescued"),
    ]
    rows = [
        row(
            row_label(f, METHOD),
            [
                whole(f.chains),
                share(f.persistent),
                share(f.rescued),
                share(f.regained),
                share(f.lost),
                share(f.never),
                share(f.not_judged),
                factor(f.persistent_speedup),
                factor(f.rescued_speedup),
            ],
        )
        for f in fates
    ]
    return table(
        "fates",
        "How answers end after their rounds; rounds that could not be judged say nothing.",
        columns,
        rows,
    )


def _change_table(changes: Sequence[RoundChanges]) -> dict[str, Any]:
    columns = [
        column("method", number=False),
        column("steps", hint="from one round to the next"),
        column("repaired", hint="of the judged steps that begin wrong"),
        column("regressed", hint="of the judged steps that begin right"),
        column("really faster", hint="beyond the interval and the noise floor, of timed steps"),
        column("really slower"),
        column("unsure"),
        column("what was repaired", number=False),
    ]
    rows = [row(row_label(c, METHOD), _change_cells(c)) for c in changes]
    return table("changes", "What one more round does.", columns, rows)


def _change_cells(c: RoundChanges) -> list[dict[str, Any]]:
    repairs = [f"{label(kind)} {n:,}" for kind, n in list(c.repairs.items())[:MOST_REPAIRS]]
    if len(c.repairs) > MOST_REPAIRS:
        repairs.append(f"{len(c.repairs) - MOST_REPAIRS} more kinds")
    return [
        whole(c.steps),
        share(c.repaired),
        share(c.regressed),
        text(f"{c.improved:,} of {c.timed:,}") | {"value": c.improved},
        text(f"{c.worsened:,} of {c.timed:,}") | {"value": c.worsened},
        text(f"{c.unsure:,} of {c.timed:,}") | {"value": c.unsure},
        text(", ".join(repairs)),
    ]
