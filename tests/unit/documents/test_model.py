"""Models are read strictly and written exactly."""

import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kerneltruth.documents.case import Case
from kerneltruth.documents.model import Json, Model, content_hash, dumps, loads, model_of, parse
from kerneltruth.documents.records import ErrorStats
from kerneltruth.errors import UserError

HASH = "04ec2f5b62b797e9956c51988b81fb68e59e2a9bd8b98aac21d8395f9f9c8a08"
numbers = st.floats() | st.integers(-(2**53), 2**53)
texts = st.text(max_size=8)
attributes = st.none() | st.booleans() | st.integers() | texts
cases = st.builds(
    Case,
    task=texts,
    dims=st.lists(st.tuples(texts, st.integers(0))).map(tuple),
    attributes=st.lists(st.tuples(texts, attributes)).map(tuple),
    seed=st.integers(0, 2**64 - 1),
    literals=st.lists(st.tuples(texts, st.lists(numbers).map(tuple))).map(tuple),
    domain=st.sampled_from(["core", "extended"]),
)
stats = st.builds(
    ErrorStats,
    count=st.integers(),
    num_exceeding=st.integers(),
    max_abs=st.none() | numbers,
    worst_index=st.none() | st.lists(st.integers()).map(tuple),
)


@given(cases | stats)
def test_what_is_written_is_read_as_it_was(record):
    text = dumps(record)
    assert dumps(parse(type(record), json.loads(text))) == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(json_values, st.booleans())
@example({"a": [float("nan"), float("inf"), "\ud800", 2**70, -0.0]}, True)
def test_json_is_read_as_pythons_own_reader_has_it(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert repr(loads(text)) == repr(json.loads(text))
    if ascii_only:
        assert repr(loads(text.encode())) == repr(json.loads(text))


class _Envelope(Model, frozen=True, kw_only=True):
    content: Json


@given(json_values)
def test_any_json_is_a_value_to_any_depth(value):
    assert repr(parse(_Envelope, {"content": value}).content) == repr(value)


@pytest.mark.parametrize("value", [(1,), object(), {1: 2}])
def test_what_json_lacks_is_refused_within_any_json(value):
    with pytest.raises(UserError, match=r"Expected `Json`.*at `\$\.content`"):
        parse(_Envelope, {"content": [{"inner": value}]})


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{'a': 1}", "[" * 200_000, "[NaN, " * 200_000])
def test_what_is_no_json_or_too_deep_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        loads(text)


@given(cases)
def test_a_model_is_made_from_any_object_of_the_same_shape(record):
    assert dumps(model_of(Case, record)) == dumps(record)


@pytest.mark.parametrize(
    ("value", "written"),
    [(math.nan, '"NaN"'), (math.inf, '"Infinity"'), (-math.inf, '"-Infinity"'), (None, "null")],
)
def test_a_number_that_json_lacks_is_written_as_a_word(value, written):
    text = dumps(ErrorStats(count=1, num_exceeding=0, max_abs=value))
    assert f'"max_abs":{written},' in text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"count": "1"}, r"Expected `int`, got `str` - at `\$\.count`"),
        ({"max_abs": "much"}, "Expected a number, got 'much'"),
        ({"max_abs": True}, r"at `\$\.max_abs`"),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"two\nlines": 1}, "^no valid .*two lines.*$"),
    ],
)
def test_a_value_of_another_form_is_refused_with_its_place(change, says):
    with pytest.raises(UserError, match=says):
        parse(ErrorStats, {"count": 1, "num_exceeding": 0, **change})


class Version(str):
    """As torch's own version is one."""


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Version("2.13.0+cpu"), '"2.13.0+cpu"'),
        (np.float64(0.5), "0.5"),
        (np.float64("nan"), '"NaN"'),
    ],
)
def test_a_subclass_of_a_plain_type_is_written_as_that_type(value, written):
    assert dumps(value) == written


def test_a_hash_stays_what_stored_runs_have():
    value = {"b": (1, 2.5, math.inf), "a": Case(task="relu", dims=(("N", 3),))}
    assert content_hash(value) == HASH
    assert content_hash(dict(reversed(value.items()))) == HASH


def test_an_attribute_that_is_no_finite_number_is_read_as_that_number():
    case = Case(task="masked_fill", dims=(), attributes=(("value", -math.inf), ("mode", "sum")))
    assert parse(Case, json.loads(dumps(case))) == case
