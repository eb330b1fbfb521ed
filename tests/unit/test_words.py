"""The English that `make lint` accepts, by `benchmarks/words.py`."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULES = runpy.run_path(str(ROOT / "benchmarks" / "words.py"))


def faults(text: str, name: str = "src/kerneltruth/some.py") -> list[str]:
    return list(RULES["faults_in"](Path(name), text))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('"""Whose work a call is."""\n', 1),
        ('"""Fine.\n\nWho is slow would wait.\n"""\n', 3),
        ("x = 1\n# Fine so far. Of those\n# none is left.\n", 2),
        ('f"{2} fit. Of {3} rows none is there."\n', 1),
        ('say("a mistake is told in one line")\n', 1),
        ("# up to so many more\n", 1),
        ("def f(asked): ...\n", 1),
        ("told = 1\n", 1),
        ("_ASKED = 1\n", 1),
        ("class A:\n    told: int\n", 2),
    ],
)
def test_what_a_reader_stumbles_over_is_found_at_its_line(text, line):
    (fault,) = faults(text)
    assert fault.startswith(f"src/kerneltruth/some.py:{line}: ")


@pytest.mark.parametrize(
    "text", ["- fine\n- Of the 12 rows none is left\n", "Fine.\n\n## Whose work it is\n"]
)
def test_documents_are_read_by_item_and_heading(text):
    assert len(faults(text, "docs/some.md")) == 1


@pytest.mark.parametrize(
    "text",
    [
        '"""Who is slow?"""\n',
        "# Two kernels cannot be told apart.\n",
        "# None can be told right from wrong.\n",
        "# The one of the two that is left; it is of use.\n",
        "asked_dtype = 1\n",
    ],
)
def test_plain_sentences_and_questions_pass(text):
    assert faults(text) == []


@pytest.mark.parametrize(
    "text", ["def judged(task): ...\n", "class _Gone:\n    ...\n", "told = 1\n"]
)
def test_what_a_module_of_tests_uses_has_no_vague_name(text):
    assert len(faults(text, "tests/unit/test_some.py")) == 1


@pytest.mark.parametrize("text", ["def test_x():\n    found = 1\n", "def normalized(x): ...\n"])
def test_values_of_one_test_and_transformed_tensors_may_have_participles(text):
    assert faults(text, "tests/unit/test_some.py") == []


def test_code_within_a_document_is_not_prose():
    assert faults("Fine.\n\n```\nWhose work it is\n```\n", "docs/some.md") == []
