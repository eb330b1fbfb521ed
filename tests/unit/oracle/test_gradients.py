"""What is expected of a gradient."""

import torch

from kerneltruth.cases.published import published_case
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import expect
from kerneltruth.tasks.model import BACKWARD, CALL
from kerneltruth.tasks.registry import find


def test_a_gradient_has_its_inputs_dtype_whichever_the_result_has():
    task = find("kernelbenchx/fused_repeat_interleave_log_softmax")
    published = published_case(task, seed=0, device="cpu")
    case = published.with_attributes(**{CALL: BACKWARD, "dtype": "torch.float64"})
    (output,) = expect(task, case, Policy()).outputs
    assert (output.dtype, output.promised_dtype) == ("float32", "float32")
    # PyTorch computes in float64 and rounds once.
    assert not output.rejects(output.reference.to(torch.float32))
