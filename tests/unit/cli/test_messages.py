"""Options that are wrong in themselves end a command at once, in one line."""

import pytest

from kerneltruth.cli.entry import invoke

GENERATE = ("generate", "--suite", "core", "--method", "one_shot", "--model", "any")


@pytest.mark.parametrize(
    ("option", "given"), [("--cases", "many"), ("--cases", "0"), ("--timeout", "-1")]
)
def test_a_wrong_number_is_named(option, given, capsys):
    assert invoke(("check", "relu.py", option, given)) == 2
    said = capsys.readouterr().err
    assert f"'{option}'" in said
    assert given in said.replace("--", "")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--price-prompt", "1"), "--price-completion is missing: a cost needs both prices"),
        (("--price-completion", "1"), "--price-prompt is missing: a cost needs both prices"),
        (("--model", ""), "--model: name one that the endpoint has, or replay:FILE"),
        (("--body", "seed"), "--body 'seed': must be KEY=JSON, such as seed=7"),
        (("--body", "user=me"), "'me' is not JSON; a text needs its quotes: user='\"me\"'"),
    ],
)
def test_a_wrong_option_of_generate_names_the_value_and_the_rule(options, says, capsys):
    assert invoke((*GENERATE, *options)) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
