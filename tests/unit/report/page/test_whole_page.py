"""The file itself: it needs nothing else, no candidate is in its markup, all of it has a name."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from page_material import material_of, result, run

from kerneltruth.report.html import page, program, stylesheet
from kerneltruth.report.page.document import page_document

HOSTILE = "</script><img src=x onerror=alert(1)>\"' &<!--{{ 7*7 }}\u202e\x00"
VOID = {"meta", "link", "input", "br", "img", "wbr"}


class Reader(HTMLParser):
    """Every element with its attributes and its text."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), [e[0] for e in self.open]))
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), [e[0] for e in self.open]))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> ends nothing"
        assert self.open[-1][0] == tag, f"</{tag}> within <{self.open[-1][0]}>"
        self.open.pop()

    def handle_data(self, data):
        self.text.append((self.open[-1][0] if self.open else None, data))


@pytest.fixture(scope="module")
def text():
    results = [
        result(method=HOSTILE, category=HOSTILE, origin=HOSTILE, key=HOSTILE, speedup=1.5),
        result(HOSTILE, "fail", detail=HOSTILE, kind="value", checks={HOSTILE: "pass"}, sample=1),
        *(result(method="refine", round=i, speedup=1.0 + i) for i in range(3)),
        result(run=1, speedup=2.0),
    ]
    runs = [run(f"runs/{HOSTILE}", HOSTILE), run("runs/b", "A100")]
    sources = {"0" * 64: HOSTILE}
    material = material_of(*results, runs=runs, sources=sources, notes=[HOSTILE])
    return page(page_document(material, title=HOSTILE, ranks=True))


@pytest.fixture(scope="module")
def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def test_a_hostile_name_makes_no_element_and_no_attribute(read):
    tags = {tag for tag, _, _ in read.elements}
    assert "img" not in tags
    names = {name for _, attributes, _ in read.elements for name in attributes}
    assert not {name for name in names if name.startswith("on")}
    assert "style" not in names


def test_a_hostile_name_is_shown_as_it_is(read):
    shown = "".join(data for tag, data in read.text if tag not in ("script", "style"))
    assert "</script><img src=x onerror=alert(1)>\"' &<!--{{ 7*7 }}<U+202E><U+0000>" in shown


def test_the_only_script_and_style_are_those_that_the_policy_names(read):
    scripts = [a for tag, a, _ in read.elements if tag == "script" and "type" not in a]
    assert scripts == [{}]
    assert sum(tag == "style" for tag, _, _ in read.elements) == 1
    said = next(a["content"] for tag, a, _ in read.elements if "http-equiv" in a)
    for ours in (program(), stylesheet()):
        digest = base64.b64encode(hashlib.sha256(ours.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in said
    running = "".join(data for tag, data in read.text if tag == "script")
    assert program() in running


def test_nothing_is_asked_of_the_network(text, read):
    for tag, attributes, _ in read.elements:
        for name in ("src", "href", "action", "data", "srcset", "poster"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:,")), (tag, value)
    assert not re.search(r"@import|url\(", stylesheet())
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon)\b", program())
    assert "http://www.w3.org/2000/svg" in program()
    assert len(re.findall("https?://", program())) == 1


def test_the_script_never_takes_text_for_markup():
    found = re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", program()
    )
    assert found is None


def test_every_table_has_a_caption_and_every_heading_cell_a_scope(read):
    tables = sum(tag == "table" for tag, _, _ in read.elements)
    captions = sum(tag == "caption" for tag, _, _ in read.elements)
    assert tables == captions
    assert all("scope" in a for tag, a, _ in read.elements if tag == "th")


def test_every_part_of_the_page_is_a_named_landmark(read):
    ids = [a["id"] for _, a, _ in read.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for tag, attributes, _ in read.elements:
        if tag == "section":
            assert attributes["aria-labelledby"] in ids
        if tag in ("nav", "form") or attributes.get("role") == "region":
            assert attributes["aria-label"]
    tags = [tag for tag, _, _ in read.elements]
    assert [tags.count(t) for t in ("main", "h1", "footer")] == [1, 1, 1]


def test_every_link_of_the_contents_leads_to_a_part(read):
    ids = {a["id"] for _, a, _ in read.elements if "id" in a}
    links = [a["href"][1:] for tag, a, up in read.elements if tag == "a" and "nav" in up]
    assert len(links) > 8
    assert set(links) <= ids


def test_every_control_has_a_label(read):
    for tag, _, up in read.elements:
        if tag in ("select", "input"):
            assert "label" in up


def test_every_drawing_is_hidden_from_readers_or_has_words(read):
    for tag, attributes, up in read.elements:
        if tag == "svg" and "svg" not in up:
            assert attributes.get("aria-hidden") == "true" or attributes["aria-label"]


def test_the_same_runs_make_the_same_page():
    material = material_of(result(speedup=1.5), result(outcome="fail", sample=1))
    assert page(page_document(material)) == page(page_document(material))
