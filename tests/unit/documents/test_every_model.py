"""Every document, filled at random, is written and read again as it was."""

import json
from functools import cache
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kerneltruth.documents.case import Case
from kerneltruth.documents.model import Json, Number, dumps, parse
from kerneltruth.documents.records import ErrorMap
from kerneltruth.documents.schema import DOCUMENTS
from kerneltruth.documents.stored import Digests, Finding
from kerneltruth.errors import UserError

_DIGEST = st.text("0123456789abcdef", min_size=64, max_size=64)
# NaN is equal to nothing; `test_model` has it.
_PLAIN = {
    str: st.text(max_size=4),
    int: st.integers(-(2**70), 2**70),
    bool: st.booleans(),
    # Beside text, as in attributes, a word for infinity would be one.
    float: st.floats(allow_nan=False, allow_infinity=False),
    Number: st.floats(allow_nan=False) | st.integers(-(2**53), 2**53),
    NoneType: st.none(),
    Json: st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
        ),
        max_leaves=6,
    ),
}
# Fields that refuse some values of their types.
_FIELDS = {
    Case: {
        "seed": st.integers(0, 2**64 - 1),
        "dims": st.lists(st.tuples(st.text(max_size=4), st.integers(0)), max_size=2).map(tuple),
    },
}
# Models that refuse some values of their fields' types.
_WITH_RULES = {
    Digests: st.builds(
        Digests,
        inputs=st.dictionaries(st.text(max_size=4), _DIGEST, max_size=2),
        reference=_DIGEST,
        output=st.none() | _DIGEST,
    ),
    ErrorMap: st.builds(
        ErrorMap,
        output=st.text(max_size=4),
        shape=st.lists(st.integers()).map(tuple),
        lines=st.lists(st.just(".1#"), max_size=2).map(tuple),
    ),
}


def values(hint):
    """Values of a type as models have them."""
    inner = get_args(hint)
    match get_origin(hint):
        case origin if origin is Literal:
            return st.sampled_from(inner)
        case origin if origin in (Union, UnionType):
            return st.one_of([values(each) for each in inner if each is not msgspec.UnsetType])
        case origin if origin is dict:
            return st.dictionaries(st.text(max_size=4), values(inner[1]), max_size=2)
        case origin if origin is list:
            return st.lists(values(inner[0]), max_size=2)
        case origin if origin is tuple and inner[-1] is Ellipsis:
            return st.lists(values(inner[0]), max_size=2).map(tuple)
        case origin if origin is tuple:
            return st.tuples(*map(values, inner))
    return _PLAIN[hint] if hint in _PLAIN else models(hint)


@cache
def models(kind):
    """Models of a kind; fields that may be absent are now and then."""
    if kind in _WITH_RULES:
        return _WITH_RULES[kind]
    fields = msgspec.structs.fields(kind)
    made = {f.name: values(f.type) for f in fields} | _FIELDS.get(kind, {})
    required = {f.name: made.pop(f.name) for f in fields if f.required}
    return st.fixed_dictionaries(required, optional=made).map(lambda own: _build(kind, own))


def _build(kind, own):
    if kind is Finding:
        own["case"] = msgspec.structs.replace(own["case"], task=own["task"])
    return kind(**own)


QUICK = settings(
    max_examples=5, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DOCUMENTS.values(), ids=DOCUMENTS)
@QUICK
@given(data=st.data())
def test_a_document_is_read_as_it_was_written(kind, data):
    document = data.draw(models(kind))
    text = dumps(document)
    read = parse(kind, json.loads(text))
    assert read == document
    assert dumps(read) == text


@pytest.mark.parametrize("kind", DOCUMENTS.values(), ids=DOCUMENTS)
@settings(QUICK, max_examples=1)
@given(data=st.data())
def test_what_is_printed_has_no_field_that_its_model_lacks(kind, data):
    written = json.loads(dumps(data.draw(models(kind)))) | {"colour": "red"}
    if kind.__struct_config__.forbid_unknown_fields:
        with pytest.raises(UserError, match="unknown field `colour`"):
            parse(kind, written)
    else:
        assert not hasattr(parse(kind, written), "colour")
