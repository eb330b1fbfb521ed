"""One call beyond 2^31, by a device that is a function of the rows that are judged."""

from math import prod
from types import SimpleNamespace

import torch
from scripted import MATMUL, RELU, SUM, declare, result, session_of

from kerneltruth.documents.records import ProfileEntry
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.oracle.attempt import judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.large import KIND, LARGE, NEEDS_GPU, NOT_PASSED, call_large
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.arguments import RepeatedArgument
from kerneltruth.runner.observation import Observation, OtherResult
from kerneltruth.runner.unsupported import MEMORY_LACKS

GIB = 2**30


class _Device:
    """A session on a device with so much memory, whose kernel is a function of rows.

    The function takes the inputs' judged rows by name, and which rows these are.
    """

    def __init__(self, task, kernel, *, free=80 * GIB, device="cuda:0", language="triton"):
        self.task = task
        self.kernel = kernel
        self.free = free
        self.runner = SimpleNamespace(device=device)
        self.candidate = SimpleNamespace(language=language)
        self.cache = ExpectationCache(Policy())
        self.deadline_s = 20.0
        self.calls = []

    def call_rows(self, arguments, case, *, rows, free_bytes, deadline_s):
        self.calls.append((arguments, case, rows, free_bytes))
        assert deadline_s <= 5
        if free_bytes > self.free:
            return Observation(ended="unsupported", message=f"{MEMORY_LACKS}: some for none")
        places = [torch.arange(s, s + n) for s, n in zip(rows.starts, rows.counts, strict=True)]
        at = torch.cat(places)
        assert at[-1] == rows.total - 1
        given = {a.name: _rows(a, at) for a in arguments if isinstance(a, RepeatedArgument)}
        answer = self.kernel(at, **given)
        if isinstance(answer, Observation):
            return answer
        return Observation(ended="returned", results=(result(answer),))


def _rows(argument, at):
    row = prod(argument.shape[1:])
    block = torch.frombuffer(bytearray(argument.block), dtype=getattr(torch, argument.dtype))
    index = (at.unsqueeze(1) * row + torch.arange(row)) % block.numel()
    return block[index].reshape(len(at), *argument.shape[1:])


def _right(at, x):
    del at
    return torch.relu(x)


def _int32(at, x):
    """Leave rows unwritten whose offsets overflow."""
    written = torch.relu(x)
    written[at * x.shape[1] >= 2**31] = 7.25
    return written


def _int32_bytes(at, x):
    written = torch.relu(x)
    written[at * x.shape[1] * x.element_size() >= 2**31] = 7.25
    return written


def _large(device, verdict=None, *, plan=None, profile=None):
    return call_large(device, plan or Plan(), verdict or Passed(), profile or {})


def test_a_right_kernel_holds_beyond_2_31_elements():
    device = _Device(RELU, _right)
    found = _large(device)
    assert found.status == "held"
    assert "more than 2^31 elements" in found.reason
    assert len(device.calls) == 1


def test_inputs_travel_as_a_block_of_rows():
    device = _Device(RELU, _right)
    _large(device)
    ((arguments, _, rows, _),) = device.calls
    (x,) = arguments
    assert x.shape[0] == rows.total
    assert x.shape[0] * x.shape[1] > 2**31
    assert len(x.block) < 2**22


def test_rows_beyond_2_31_elements_that_are_wrong_are_a_hazard():
    found = _large(_Device(RELU, _int32))
    assert found.status == "broken"
    assert "more than 2^31 elements" in found.reason
    assert "right at" in found.reason
    assert "more than 2^31 bytes" in found.reason.partition("right at")[2]
    assert found.hazard[LARGE].startswith("wrong at large sizes: ")


def test_the_smaller_size_is_named_if_both_are_wrong():
    device = _Device(RELU, _int32_bytes)
    found = _large(device)
    assert found.status == "broken"
    assert "more than 2^31 bytes" in found.reason
    assert "right at" not in found.reason
    assert len(device.calls) == 2


def test_a_reduction_of_each_row_is_judged_by_its_rows():
    found = _large(_Device(SUM, lambda at, x: x.sum(-1)))
    assert found.status == "held"


def test_less_memory_means_a_call_in_half_precision_if_the_candidate_takes_it():
    held = {"dtypes.float16": ProfileEntry(status="held", promised=True)}
    found = _large(_Device(RELU, _right, free=20 * GIB), profile=held)
    assert found.status == "held"
    assert "float16" in found.reason
    assert "more than 2^31 elements" in found.reason


def test_least_memory_means_a_call_beyond_2_31_bytes():
    found = _large(_Device(RELU, _right, free=8 * GIB))
    assert found.status == "held"
    assert "more than 2^31 bytes" in found.reason


def test_no_memory_means_that_nothing_is_tried():
    found = _large(_Device(RELU, _right, free=GIB))
    assert found.status == "not_tried"
    assert found.reason.startswith(MEMORY_LACKS)


def test_a_candidate_that_allocates_too_much_is_not_to_blame():
    spent = Observation(ended="raised", error="OutOfMemoryError", message="CUDA out of memory")
    found = _large(_Device(RELU, lambda at, x: spent))
    assert found.status == "not_tried"


def test_a_slow_kernel_is_not_to_blame():
    found = _large(_Device(RELU, lambda at, x: Observation(ended="timeout")))
    assert found.status == "not_tried"
    assert "did not return within 5 s" in found.reason


def test_a_refusal_is_one():
    refusal = Observation(ended="raised", error="ValueError", message="at most 2^31 elements")
    found = _large(_Device(RELU, lambda at, x: refusal))
    assert found.status == "refused"
    assert found.reason.startswith("refused: ValueError: at most 2^31 elements at M=")


def test_a_kernel_that_leaves_its_memory_is_broken():
    words = "CUDA error: an illegal memory access was encountered"
    strayed = Observation(ended="raised", error="AcceleratorError", message=words, dirty=True)
    assert _large(_Device(RELU, lambda at, x: strayed)).status == "broken"


def test_another_number_of_rows_is_broken():
    short = OtherResult(type="Tensor", text="a tensor of the shape [5, 257]")
    returned = Observation(ended="returned", results=(short,))
    found = _large(_Device(RELU, lambda at, x: returned))
    assert found.status == "broken"
    assert found.reason.startswith("returned a tensor of the shape [5, 257] at M=")


def test_a_cpu_is_named_as_the_reason():
    device = _Device(RELU, _right, device="cpu")
    found = _large(device)
    assert (found.status, found.reason) == ("not_tried", NEEDS_GPU)
    assert not device.calls


def test_it_is_tried_only_where_all_that_decides_holds():
    device = _Device(RELU, _right)
    found = _large(device, Failed(kind="value", detail="wrong"))
    assert (found.status, found.reason) == ("not_tried", NOT_PASSED)
    assert not device.calls


def test_chosen_strategies_leave_it_out():
    device = _Device(RELU, _right)
    assert _large(device, plan=Plan(strategies=("default",))).status == "not_tried"
    assert not device.calls


def test_operators_that_are_not_row_by_row_have_no_such_entry():
    over_rows = declare("f(x[M, N])", lambda x: x - x.mean(0))
    assert _large(_Device(MATMUL, _right)) is None
    assert _large(_Device(over_rows, _right)) is None


def _shapes(**more):
    return {"shapes": ProfileEntry(status="held", promised=True, cases=4, **more)}


def test_shapes_say_where_they_held_beyond_2_31_elements():
    (entry,) = _large(_Device(RELU, _right)).noted(_shapes()).values()
    assert entry.reason.startswith("also right at M=")
    assert entry.untried == {}


def test_shapes_name_what_was_not_tried_beside_other_kinds():
    found = _large(_Device(RELU, _right, device="cpu"))
    (entry,) = found.noted(_shapes(untried={"N=65": "no turn"})).values()
    assert entry.untried == {"N=65": "no turn", KIND: NEEDS_GPU}
    assert found.hazard == {}


def test_broken_shapes_stay_as_they_are():
    broken = {"shapes": ProfileEntry(status="broken", promised=True)}
    assert _large(_Device(RELU, _right)).noted(broken) == {}


def test_a_judged_candidate_says_that_a_cpu_is_too_small():
    session = session_of(RELU, lambda call: call.tensors["x"].clamp(min=0))
    *_, ended = judge_cases(session, Plan(cases=12, large=True))
    assert ended.attempt.profile["shapes"].untried[KIND] == NEEDS_GPU
