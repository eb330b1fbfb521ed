"""The correctness checks of other benchmarks and tools, re-implemented to be run and measured.

Each check is a protocol: a generator that yields the draws it wants run and is sent what the
candidate answered. It does no IO, so one cache of answers serves all checks that share a draw.

    CHECKS              the checks, by name
    run_all             every check on one candidate, given a function that runs it on a draw
    answer              what a candidate's observation says to a check
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
