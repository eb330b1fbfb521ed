"""Small models stand for pretrained ones, by name."""

import os
import sys

import pytest

from kerneltruth.runner.child import pretrained
from kerneltruth.runner.unsupported import UnsupportedError

# Those that KernelBench's level 4 loads.
NAMES = {
    "EleutherAI/gpt-neo-2.7B",
    "facebook/bart-large",
    "facebook/opt-1.3b",
    "google/bigbird-roberta-base",
    "google/electra-small-discriminator",
    "google/reformer-enwik8",
    "gpt2",
}


def test_each_model_of_level_4_has_a_small_one():
    small = pretrained.small_configs()
    assert small.keys() >= NAMES
    assert small["gpt2"]["model_type"] == "gpt2"
    assert small["gpt2"]["n_layer"] == 2
    assert all(config["vocab_size"] < 100 for config in small.values())


def test_special_tokens_are_among_those_of_the_small_vocabulary():
    for config in pretrained.small_configs().values():
        special = [value for field, value in config.items() if field.endswith("_token_id")]
        assert all(token < config["vocab_size"] for token in special)


def test_without_transformers_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with pytest.raises(UnsupportedError, match=r"pip install 'kerneltruth\[kernelbench4\]'"):
        pretrained.offer()


@pytest.mark.parametrize("values", [[], [3, "gpt2"], [[1, -2], {"a": (None, 1.5)}]])
def test_plain_constructor_inputs_equal_their_text(values):
    assert pretrained.from_text(pretrained.as_text(values)) == values


@pytest.mark.parametrize("text", ["[open('x')]", "[AutoConfig.from_pretrained('a', 1)]", "[x]"])
def test_a_text_calls_nothing_but_the_loading_of_a_configuration(text):
    with pytest.raises(ValueError, match="malformed node"):
        pretrained.from_text(text)
