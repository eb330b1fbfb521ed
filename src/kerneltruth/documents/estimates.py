"""Rows of the tables of `analyze`: estimates with intervals, and the groups that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, cast

from msgspec import UNSET, UnsetType, field

from kerneltruth.documents.model import Model, Number

Label = str | UnsetType | None


class RateRecord(Model, frozen=True, kw_only=True):
    """A share with its counts and interval.

    Attributes:
        rate: null where the denominator is 0, or nothing was tried.
    """

    numerator: int
    denominator: int
    rate: Number | None
    low: Number | None
    high: Number | None


class EstimateRecord(Model, frozen=True, kw_only=True):
    """A mean, its interval, and the numbers of values and clusters behind it.

    Attributes:
        value: null where there is nothing to estimate from.
        low: null if `value` is null, if there is only one cluster, or if all values are equal.
    """

    value: Number | None
    low: Number | None
    high: Number | None
    count: int
    clusters: int


class CorrelationRecord(Model, frozen=True, kw_only=True):
    """Spearman's rank correlation of pairs, with its interval.

    Attributes:
        value: null where one side has no spread, or there are fewer than four pairs.
    """

    value: Number | None
    low: Number | None
    high: Number | None
    pairs: int


class GroupLabels(TypedDict, total=False):
    """The values of a group, as the constructors of rows take them."""

    category: str | None
    method: str | None
    model: str | None
    suite: str | None
    task: str | None
    language: str | None
    round_label: str | None
    sample: str | None
    verdict: str | None
    kind: str | None
    quantization: str | None
    device: str | None
    dtype: str | None


def field_of(dimension: str) -> str:
    """Return the field that holds a dimension; `round` is a count in other rows."""
    return "round_label" if dimension == "round" else dimension


class Row(Model, frozen=True, kw_only=True):
    """A row of a table that is broken down."""

    def label(self, dimension: str) -> Label:
        """Return the row's value of a dimension; UNSET where it has none."""
        return cast(Label, getattr(self, field_of(dimension)))

    def group(self, by: Sequence[str]) -> tuple[str | None, ...]:
        """Return the row's values of dimensions; None where it has none."""
        labels = map(self.label, by)
        return tuple(None if isinstance(label, UnsetType) else label for label in labels)


class GroupRecord(Row, frozen=True, kw_only=True):
    """A row that has the dimensions of its break-down."""

    category: Label = UNSET
    method: Label = UNSET
    model: Label = UNSET
    suite: Label = UNSET
    task: Label = UNSET
    language: Label = UNSET
    round_label: Label = field(default=UNSET, name="round")
    sample: Label = UNSET
    verdict: Label = UNSET
    kind: Label = UNSET
    quantization: Label = UNSET
    device: Label = UNSET
    dtype: Label = UNSET

    def is_by(self, by: Sequence[str]) -> bool:
        """Return whether the row is of this break-down."""
        known = {name for name in GroupLabels.__annotations__ if getattr(self, name) is not UNSET}
        return known == set(map(field_of, by))


class MethodRecord(Row, frozen=True, kw_only=True):
    """A row of a table by method."""

    method: str | None
    model: str | None
