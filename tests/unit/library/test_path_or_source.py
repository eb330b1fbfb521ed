"""What a caller gives to be judged: a path or a source text."""

import pytest

from kerneltruth.errors import UserError
from kerneltruth.library.candidates import source_in


@pytest.mark.parametrize(
    "text", ["I cannot do that", "Sorry, no.\n", "def f(x): return x", "relu = torch.relu\n"]
)
def test_an_answer_in_words_is_a_source(text):
    assert source_in(text).text == text


def test_words_that_name_a_file_are_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my kernel").write_text("def f(x): return x\n")
    assert source_in("my kernel").text == "def f(x): return x\n"


@pytest.mark.parametrize("path", ["softmax.py", "my kernels/softmax.py"])
def test_a_path_that_leads_nowhere_is_said_to(path):
    with pytest.raises(UserError, match="cannot read"):
        source_in(path)
