"""Numbers and names in the page's format. Pure.

The terminal's format is in `report.figures`: fewer digits, ASCII signs, counts with a slash.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from kerneltruth.analysis.groups import METHOD
from kerneltruth.documents.estimates import EstimateRecord, RateRecord, Row
from kerneltruth.report.harmless import HIDDEN

_SURROGATE = re.compile("[\ud800-\udfff]")
MOST_LABEL = 160
UNLABELLED = "unlabelled"
NO_CATEGORY = "no category"
TIMES = "\N{MULTIPLICATION SIGN}"
DASH = "\N{EN DASH}"


def visible(text: str) -> str:
    """Spell out what cannot be seen in a candidate's text; replace half characters."""
    text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    return HIDDEN.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def shortened(text: str, most: int) -> str:
    """Cut a text that is too long."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def label(text: str) -> str:
    """Make a name visible, and short enough for a table."""
    return shortened(visible(text), MOST_LABEL)


def count(number: int) -> str:
    """Format `1,234`."""
    return f"{number:,}"


def percent(share: float | None) -> str:
    """Format a share with enough digits to tell it from 0 and 1."""
    if share is None:
        return DASH
    value = 100 * share
    if value in (0.0, 100.0):
        return f"{value:.0f}%"
    digits = 2 if abs(value) < 0.05 or 99.95 < value < 100.05 else 1
    return f"{value:.{digits}f}%"


def times(factor: float | None) -> str:
    """Format a speedup: 1.44 with the multiplication sign."""
    if factor is None:
        return DASH
    return f"{figures(factor)}{TIMES}"


def figures(value: float) -> str:
    """Format three significant figures, without an exponent where none is needed."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def between(low: str, high: str) -> str:
    """Format an interval."""
    return f"{low} {DASH} {high}"


def share_said(rate: RateRecord) -> str:
    """Format `125 of 200`."""
    return f"{count(rate.numerator)} of {count(rate.denominator)}"


def share_interval(share: RateRecord | EstimateRecord) -> str:
    """Format the interval of a share; empty if there is none."""
    if share.low is None or share.high is None:
        return ""
    return between(percent(share.low), percent(share.high))


def times_interval(estimate: EstimateRecord) -> str:
    """Format the interval of a speedup; empty if there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    return between(figures(estimate.low), times(estimate.high))


def microseconds(us: float | None) -> str:
    """Format a time in the unit that suits it."""
    if us is None:
        return DASH
    if us >= 1e6:
        return f"{figures(us / 1e6)} s"
    return f"{figures(us / 1e3)} ms" if us >= 1e3 else f"{figures(us)} \N{MICRO SIGN}s"


def row_label(row: Row, by: Sequence[str]) -> str:
    """Return a row's heading: its method and model, or its value of one dimension."""
    values = row.group(by)
    return method_label(*values) if by == METHOD else label(values[0] or NO_CATEGORY)


def method_label(method: str | None, model: str | None) -> str:
    """Return the name of a method with its model."""
    said = " \N{MIDDLE DOT} ".join(part for part in (method, model) if part)
    return label(said) or UNLABELLED
