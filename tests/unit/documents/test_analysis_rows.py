"""Rows of the tables of `analyze`."""

from msgspec import UNSET

from kerneltruth.documents.estimates import GroupLabels, RateRecord
from kerneltruth.documents.model import plain
from kerneltruth.documents.rates import PassAtK, UnsolvedTasks

NOTHING = RateRecord(numerator=0, denominator=0, rate=None, low=None, high=None)


def row(**labels):
    return UnsolvedTasks(**labels, unsolved=NOTHING, partial=0, tasks=())


def test_a_row_knows_its_break_down():
    assert row().is_by(())
    assert row(method="m", model=None).is_by(("model", "method"))
    assert not row(method="m", model=None).is_by(("method",))
    assert row(round_label="2").is_by(("round",))


def test_a_row_gives_the_values_of_its_group():
    found = row(method="m", model=None, round_label="2")
    assert found.group(("round", "model", "method")) == ("2", None, "m")
    assert found.label("category") is UNSET


def test_a_dimension_that_a_row_lacks_is_not_written():
    assert list(plain(row(round_label="2"))) == ["round", "unsolved", "partial", "tasks"]


def test_every_dimension_is_a_field():
    assert set(GroupLabels.__annotations__) < set(UnsolvedTasks.__struct_fields__)


def test_a_row_by_method_has_a_method_and_a_model():
    assert PassAtK.__struct_fields__[:2] == ("method", "model")
