"""Candidates written as a few lines each, called in real children."""

import struct
import textwrap

from kerneltruth.runner.arguments import TensorArgument
from kerneltruth.runner.candidate import read_candidate

HEAD = """
import torch
import triton
import triton.language as tl

@triton.jit
def unused(x):
    pass
"""


def vector(*values):
    buffer = struct.pack(f"<{len(values)}f", *values)
    return TensorArgument(
        name="x", dtype="float32", shape=(len(values),), strides=(1,), offset=0, buffer=buffer
    )


def opened(runner, text, mode="run"):
    source = HEAD + textwrap.dedent(text)
    return runner.open(read_candidate(source, "f.py", task_names=("f",)), mode)


def call_once(runner, text, *values, mode="run", config=0):
    with opened(runner, text, mode) as session:
        return again(session, *values, config=config)


def again(session, *values, config=0):
    return session.call(
        [vector(*(values or (1.0,)))], poison=b"0123456789abcdef", config=config, deadline_s=60
    )


def floats(observation):
    (result,) = observation.results
    return list(struct.unpack(f"<{len(result.data) // 4}f", result.data))
