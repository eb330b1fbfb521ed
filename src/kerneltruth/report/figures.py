"""Format figures as text: shares with counts, intervals, speedups, chances, tables."""

from __future__ import annotations

from collections.abc import Container

from msgspec import UNSET
from rich import box
from rich.table import Table
from rich.text import Text

from kerneltruth.documents.estimates import EstimateRecord, GroupRecord, MethodRecord, RateRecord
from kerneltruth.report.harmless import visible

UNKNOWN = "-"
# The note on a candidate that only calls PyTorch.
PLAIN_TORCH = "torch-only: no kernel of its own"


def share(rate: RateRecord) -> str:
    """Format `12/30 40%`: always the counts, and the share if there is one."""
    counts = f"{rate.numerator}/{rate.denominator}"
    return counts if rate.rate is None else f"{counts} {percent(rate.rate)}"


def share_within(rate: RateRecord) -> str:
    """Format `12/30 40% (25-58)`."""
    if rate.low is None or rate.high is None:
        return share(rate)
    return f"{share(rate)} ({100 * rate.low:.0f}-{100 * rate.high:.0f})"


def stage_share(rate: RateRecord) -> str:
    """Format as `share_within`; `not tried` for a stage that no run had."""
    return "not tried" if rate.rate is None and rate.denominator else share_within(rate)


def percent(value: float | None) -> str:
    """Format `40%`, with one more digit below ten."""
    if value is None:
        return UNKNOWN
    digits = 0 if value == 0 or abs(value) >= 0.0995 else 1
    return f"{100 * value:.{digits}f}%"


def times(value: float | None) -> str:
    """Format `1.58x`."""
    return UNKNOWN if value is None else f"{value:.3g}x" if value >= 10 else f"{value:.2f}x"


def times_within(estimate: EstimateRecord) -> str:
    """Format `1.58x (1.31-1.90)`."""
    if estimate.low is None or estimate.high is None:
        return times(estimate.value)
    return f"{times(estimate.value)} ({estimate.low:.2f}-{estimate.high:.2f})"


def percent_within(value: float | None, low: float | None, high: float | None) -> str:
    """Format `9.4% (5.1-13)`."""
    if value is None or low is None or high is None:
        return percent(value)
    return f"{percent(value)} ({percent(low)[:-1]}-{percent(high)[:-1]})"


def chance(p: float | None) -> str:
    """Format `0.03` or `<0.001`."""
    if p is None:
        return UNKNOWN
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"


def signed(value: float | None) -> str:
    """Format `+0.31`."""
    return UNKNOWN if value is None else f"{value:+.2f}"


def label(row: GroupRecord | MethodRecord, by: tuple[str, ...]) -> str:
    """Join the values of a row's group to one name; `all` for no dimension."""
    values = [value for name in by if (value := row.label(name)) is not UNSET]
    named = " ".join(visible(str(value)) for value in values if value is not None)
    return named or ("(none)" if values else "all")


def table(title: str | None, *columns: str, words: Container[str] = ("",)) -> Table:
    """Make a table; all but the first column and `words` are right-aligned numbers.

    Every column folds, so that a narrow terminal loses no figure.
    """
    made = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title=None if title is None else Text(title, "bold"),
        title_justify="left",
    )
    for number, name in enumerate(columns):
        left = not number or name in words
        made.add_column(name, justify="left" if left else "right", overflow="fold")
    return made


def pairs() -> Table:
    """Make a table of names and their descriptions, without heads."""
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="bold", overflow="fold")
    made.add_column(overflow="fold")
    return made


def several(count: int, noun: str) -> str:
    """Format a count and its noun, as `1 attempt` and `2 attempts`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
