"""The sentence on the configurations of an autotuned kernel that are wrong."""

import pytest

from kerneltruth.explain.configurations import Tried, sentence


def configurations_of(*wrong, **constants):
    """A configuration per verdict; each constant has a value per configuration."""
    return [
        Tried(number=i, wrong=bad, constants={name: v[i] for name, v in constants.items()})
        for i, bad in enumerate(wrong)
    ]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            configurations_of(False, True, BLOCK=(512, 256), N=(9, 9)),
            "Only under configuration 2 (BLOCK=256) of 2; the other one is right.",
        ),
        (
            configurations_of(True, False, True, False),
            "Only under configurations 1, 3 of 4; the other 2 that were tried are right.",
        ),
        (configurations_of(True, True), ""),
        (configurations_of(False, False), ""),
        (configurations_of(True), ""),
    ],
    ids=["one of two", "two of four", "all", "none", "nothing else tried"],
)
def test_a_failure_is_said_to_belong_to_the_configurations_that_are_wrong(found, said):
    assert sentence(found, len(found) if len(found) > 1 else 4) == said


def test_no_more_than_a_few_wrong_configurations_are_named():
    found = sentence(configurations_of(*[True] * 5, False), 6)
    assert found.startswith("Only under configurations 1, 2, 3 and 2 more of 6;")
