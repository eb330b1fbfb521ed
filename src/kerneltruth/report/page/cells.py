"""Tables as data: columns, rows, and what each cell shows and sorts by. Pure.

One template draws every table of the page from this form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from kerneltruth.documents.analysis import EstimateRecord, RateRecord
from kerneltruth.report.page.wording import (
    DASH,
    count,
    figures,
    percent,
    share_interval,
    share_said,
    times,
    times_interval,
)

Cell = dict[str, Any]


def column(label: str, *, number: bool = True, hint: str = "") -> dict[str, Any]:
    """A column; its label is also what a phone shows beside each value."""
    return {"label": label, "number": number, "hint": hint}


def table(
    name: str,
    caption: str,
    columns: Sequence[dict[str, Any]],
    rows: Sequence[dict[str, Any]],
    *,
    filtered: bool = False,
) -> dict[str, Any]:
    """A table; `filtered` ones are counted again by the script when a filter is set."""
    return {
        "name": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"),
        "caption": caption,
        "columns": list(columns),
        "rows": list(rows),
        "filtered": filtered,
    }


def row(head: str, cells: Sequence[Cell], *, group: int | None = None) -> dict[str, Any]:
    """A row with its heading; `group` is the number by which the script counts it again."""
    return {"head": head, "cells": list(cells), "group": group}


def text(value: str) -> Cell:
    """Words."""
    return {"form": "text", "text": value, "value": value.lower(), "part": None}


def whole(value: int, *, part: str | None = None) -> Cell:
    """A count; `part` names it for the script."""
    return {"form": "count", "text": count(value), "value": value, "part": part}


def number(value: float | None, said: str | None = None) -> Cell:
    """A measured number, or a dash where there is none."""
    shown = DASH if value is None else said if said is not None else figures(value)
    return {"form": "number", "text": shown, "value": value, "part": None}


def share(rate: RateRecord, *, part: str | None = None, unknown: str = DASH) -> Cell:
    """A rate with its counts and its interval, drawn as a bar; `unknown` where it has no share."""
    known = asdict(rate)
    return {
        "form": "share",
        "text": unknown if rate.rate is None and rate.denominator else percent(rate.rate),
        "counts": share_said(known),
        "interval": share_interval(known),
        "fill": _percent(rate.rate),
        "low": _percent(rate.low),
        "high": _percent(rate.high),
        "value": rate.rate,
        "part": part,
    }


def factor(estimate: EstimateRecord) -> Cell:
    """A speedup with its interval."""
    return {
        "form": "factor",
        "text": times(estimate.value),
        "interval": times_interval(asdict(estimate)),
        "value": estimate.value,
        "part": None,
    }


def share_estimate(estimate: EstimateRecord) -> Cell:
    """A mean share with its interval, drawn as a bar."""
    known = asdict(estimate)
    return {
        "form": "share",
        "text": percent(estimate.value),
        "counts": "",
        "interval": share_interval(known),
        "fill": _percent(estimate.value),
        "low": _percent(estimate.low),
        "high": _percent(estimate.high),
        "value": estimate.value,
        "part": None,
    }


def _percent(share_: float | None) -> float | None:
    return None if share_ is None else round(100 * share_, 2)
