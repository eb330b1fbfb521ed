"""JSON Schema of every document: generated, committed, and true of what the models write."""

import json
from pathlib import Path

import pytest

from kerneltruth.documents.schema import DOCUMENTS, file_of, schema

FOLDER = Path(__file__).parents[3] / "docs" / "reference" / "schema"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_committed_schema_is_the_models(name):
    stale = "run `python -m kerneltruth.documents`"
    assert file_of(FOLDER, name).read_text() == schema(name), stale


def test_no_other_schema_is_committed():
    assert set(FOLDER.iterdir()) == {file_of(FOLDER, name) for name in DOCUMENTS}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_part_of_a_document_may_be_anything(name):
    def parts(value):
        if isinstance(value, dict):
            yield value
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in inner:
            if isinstance(each, dict | list) and key != "default":
                yield from parts(each)

    assert {} not in parts(json.loads(schema(name)))
