"""What the judge knows of a call is nowhere in the memory and files of the candidate's child."""

import inspect
import json
import os
import struct
import sys
from functools import partial
from pathlib import Path

import pytest

import kerneltruth
from kerneltruth.cases.materialize import flat_bytes
from kerneltruth.cases.published import published_case
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.containment import LEVELS, levels
from kerneltruth.runner.host import Runner
from kerneltruth.runner.zygote_client import Zygote
from kerneltruth.tasks.registry import find

pytestmark = [pytest.mark.processes, pytest.mark.slow]

# As a candidate that guesses a seed would not find it by chance.
SEED = 0x5EED_1DEA_C0DE_F00D
TASK = find("kernelbenchx/batch_norm")
PACKAGE = str(Path(kerneltruth.__file__).parent)
# A needle is looked for in memory in which each byte is changed, so that it does not find itself.
CHANGE = 0xA5
SEARCH = """
import ctypes, json, os, stat, torch

CHANGED = bytes(byte ^ {change} for byte in range(256))
NEEDLES = {{name: [bytes.fromhex(n) for n in each] for name, each in {needles!r}.items()}}
LONGEST = max(len(needle) for each in NEEDLES.values() for needle in each)
AT_ONCE = 2**24

def memory():
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps]
    # What a library's file holds was there before the judge.
    ranges = [each[:2] for each in lines if "w" in each[1] or not each[-1].startswith("/")]
    # The system refuses to copy what cannot be read; reading it here would end the process.
    copy = os.memfd_create("copy")
    write = ctypes.CDLL(None).pwrite
    write.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long
    for ends, rights in ranges:
        start, end = (int(at, 16) for at in ends.split("-"))
        for at in range(start, end if "r" in rights else start, AT_ONCE):
            count = write(copy, at, min(AT_ONCE + LONGEST, end - at), 0)
            if count > 0:
                yield os.pread(copy, count, 0)

def files():
    folders = {{"/dev/shm", "/tmp", os.getcwd(), {package!r}}}
    folders |= {{value for value in os.environ.values() if value.startswith("/tmp")}}
    walked = [(above, names) for folder in folders for above, _, names in os.walk(folder)]
    walked += [(folder, os.listdir(folder)) for folder in ("/proc/self", "/proc/self/fd")]
    for path in (os.path.join(above, name) for above, names in walked for name in names):
        try:
            if stat.S_ISREG(os.stat(path).st_mode):
                with open(path, "rb") as file:
                    yield file.read(2**28)
        except OSError:
            pass

def found(pieces):
    there, count = set(), 0
    for piece in pieces:
        changed, count = piece.translate(CHANGED), count + 1
        there |= {{n for n, each in NEEDLES.items() if any(e in changed for e in each)}}
    assert count > 20
    return sorted(there)

def batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps):
    print(json.dumps({{"memory": found(memory()), "files": found(files())}}))
    return torch.zeros_like(input)
"""


@pytest.fixture(scope="module")
def expectation():
    if LEVELS.index(levels.offered().level) < LEVELS.index("strict"):
        pytest.skip("without isolation 'strict' a candidate reads the user's files")
    return ExpectationCache(Policy()).get(TASK, published_case(TASK, seed=SEED, device="cpu"))


def needles_of(expectation):
    """What would give each of these away, by what it is."""
    (output,) = expectation.outputs
    source = inspect.getsource(TASK.reference)
    numbers = [SEED, expectation.case.seed]
    return {
        "input": [first(expectation.inputs.tensors["input"])],
        "expected": [first(output.reference), first(output.rounded)],
        "tolerance": [first(output.bound), first(output.bound.float())],
        "seed": [
            form
            for n in numbers
            # As Python, C and people write it.
            for form in (
                struct.pack("<3I", n % 2**30, n // 2**30 % 2**30, n // 2**60),
                struct.pack("<Q", n),
                struct.pack(">Q", n),
                str(n).encode(),
                f"{n:x}".encode(),
            )
        ],
        "reference": [
            source.splitlines()[-3].encode(),
            TASK.reference.__code__.co_code,
            # The package's own names of what may be imported are no secret.
            b"kerneltruth.tasks.kernelbenchx",
            b"kerneltruth/tasks/",
            b"kerneltruth.oracle.",
            b"kerneltruth/oracle/",
        ],
    }


def first(tensor):
    return bytes(flat_bytes(tensor.reshape(-1)[:6].contiguous()))


def searched(runner, expectation):
    needles = needles_of(expectation)
    hidden = {n: [bytes(b ^ CHANGE for b in e).hex() for e in each] for n, each in needles.items()}
    text = SEARCH.format(change=CHANGE, needles=hidden, package=PACKAGE)
    candidate = read_candidate(text, "b.py", task_names=("batch_norm",), task="batch_norm")
    cache = ExpectationCache(Policy())
    with CandidateSession(TASK, candidate, runner, cache, deadline_s=400) as session:
        _, seen, _ = session.call(expectation)
    assert seen.ended == "returned", seen
    return json.loads(seen.output)


def test_a_candidate_finds_nothing_that_the_judge_knows(runner, expectation):
    # That it finds what it was given shows that it searches.
    assert searched(runner, expectation) == {"memory": ["input"], "files": ["input"]}


KNOWING = f"""
import runpy
from kerneltruth.cases.published import published_case
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.tasks.registry import find
task, seed = find("kernelbenchx/batch_norm"), {SEED}
held = ExpectationCache(Policy()).get(task, published_case(task, seed=seed, device="cpu"))
known = held.outputs[0].bound.float()
runpy.run_module("kerneltruth.runner.zygote", run_name="__main__")
"""


def knowing(descriptor, root):
    options = ["--socket-fd", descriptor, "--host", os.getpid(), "--root", root]
    return [sys.executable, "-P", "-c", KNOWING, *map(str, options)]


def test_it_would_find_all_that_its_child_inherits(expectation):
    new_zygote = partial(Zygote, command=knowing)
    with Runner(device="cpu", targets=(), new_zygote=new_zygote) as runner:
        found = searched(runner, expectation)
    assert found["memory"] == ["expected", "input", "reference", "seed", "tolerance"]
