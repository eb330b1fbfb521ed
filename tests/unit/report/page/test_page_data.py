"""Data on a page: nothing in it ends its element, and it comes out as it went in."""

import base64
import hashlib
import json
import zlib

import pytest

from kerneltruth.report.page.embed import as_json, packed, policy

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\u2028\u2029",
    "]]>&amp;",
    "\ud800",
    "\x00",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_data_holds_no_character_that_html_or_a_script_takes_for_its_own(text):
    embedded = as_json({"name": text})
    assert not set(embedded) & set("<>&\u2028\u2029")
    assert embedded.isascii()
    assert json.loads(embedded) == {"name": text}


def unpacked(parts):
    return [json.loads(zlib.decompress(base64.b64decode(part))) for part in parts]


def test_parts_hold_the_items_in_order_from_where_each_begins():
    found = packed(["x" * 150_000, "y" * 300_000, "z" * 10])
    assert [len(items) for items in unpacked(found.parts)] == [2, 1]
    assert (found.starts, found.count) == ((0, 2), 3)
    assert unpacked(found.parts)[1] == ["z" * 10]


def test_parts_are_letters_only():
    assert set("".join(packed(HOSTILE).parts)) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
    )


def test_what_does_not_fit_is_left_out_from_the_end():
    noise = [hashlib.sha512(bytes([i])).hexdigest() * 3200 for i in range(4)]
    whole = packed(noise)
    found = packed(noise, most_bytes=sum(map(len, whole.parts[:2])))
    assert found.count == 2
    assert found.parts == whole.parts[:2]
    assert found.size <= sum(map(len, whole.parts[:2]))


def test_an_empty_list_has_no_parts():
    assert packed([]).parts == ()


def test_the_policy_allows_these_texts_alone_and_no_network():
    said = policy(styles=("p {}",), scripts=("run()",))
    digest = base64.b64encode(hashlib.sha256(b"run()").digest()).decode()
    assert f"script-src 'sha256-{digest}'" in said
    assert said.startswith("default-src 'none'; ")
    assert "unsafe" not in said
    assert "http" not in said
