"""What `generate` says: answers, cost, what is missing, and the next step."""

import pytest

from blank_documents import document
from kerneltruth.documents.generations import (
    GenerateDocument,
    Refinement,
    SpendingRecord,
    UnansweredChain,
)
from kerneltruth.report.generate_view import generate_view
from kerneltruth.report.terminal import piped

SPENT = {"calls": 12, "answers": 9, "answers_without_tokens": 2}
REFINED = {"chains": 4, "right_at_first": 1, "right_at_best": 3, "right_at_last": 2, "rounds": 4}


def render(**more):
    named = {"suite": "core", "method": "refine", "tasks": 4, "chains": 4, "answers": 9}
    return piped(generate_view(document(GenerateDocument, run="my run", **{**named, **more})))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, "9 answers in 4 chains for 4 tasks of core, by refine"),
        ({}, "judge it: kerneltruth run --suite core --candidates 'my run'"),
        (
            {"finishes": {"stop": 7, "length": 2}},
            "answers cut off before their end: length 2 of 9",
        ),
        (
            {"stopped": "tokens", "not_asked": 3},
            "the budget of tokens is spent: 3 requests were not made; repeat the command with a "
            "larger budget",
        ),
        (
            {"refine": document(Refinement, **REFINED)},
            "right by the feedback's cases: at first 1 of 4, the best round 3 of 4, the last 2",
        ),
        (
            {"account": document(SpendingRecord, **SPENT)},
            "12 calls, 2 of 9 answers came without a count of their tokens",
        ),
        (
            {
                "account": document(
                    SpendingRecord,
                    **SPENT,
                    prompt_tokens=70,
                    completion_tokens=30,
                    tokens=100,
                    cost=0.5,
                )
            },
            "12 calls, 70 + 30 tokens, prompts and answers, cost 0.5000",
        ),
        (
            {"unanswered": [document(UnansweredChain, task="relu", why="refused")] * 21},
            "not answered: relu sample 0: refused\n1 more, all in --json",
        ),
    ],
)
def test_a_generation_says_its_counts_and_the_next_step(more, says):
    assert says in render(**more)
