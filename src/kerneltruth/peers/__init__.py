"""Run and measure the correctness checks of other benchmarks and tools, re-implemented here.

Each check is a protocol: a generator that yields the draws it needs and is sent the candidate's
answers. It does no IO, so one cache of answers serves all checks that share a draw.

    CHECKS              the checks, by name
    run_all             runs every check on one candidate, given a function that runs a draw
    answer              reduces a candidate's observation to what a check would see
"""

from kerneltruth.peers.answers import Answer, NoAnswer, answer
from kerneltruth.peers.draws import Draw, DrawCache
from kerneltruth.peers.protocols import CHECKS, Check
from kerneltruth.peers.run import (
    run_all,
    run_check,
)

__all__ = [
    "CHECKS",
    "Answer",
    "Check",
    "Draw",
    "DrawCache",
    "NoAnswer",
    "answer",
    "run_all",
    "run_check",
]
