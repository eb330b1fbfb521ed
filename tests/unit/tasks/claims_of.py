"""The claims of a task that given outputs break, with bounds as the judge makes them."""

import torch

from kerneltruth.cases.materialize import Inputs
from kerneltruth.documents.case import Case
from kerneltruth.oracle.claims import broken_claims
from kerneltruth.oracle.expectation import Expectation, ExpectedOutput


def broken_by(task, inputs, outputs, scalars, *, reference=None, dtype="float32"):
    """The names of the claims that do not hold; without a reference it is of zeros."""
    reference = reference or [torch.zeros(o.shape, dtype=torch.float64) for o in outputs]
    case = Case(task=task.key, dims=sizes_of(task, inputs), seed=3, dtype=dtype)
    given = Inputs(order=tuple(inputs), tensors=dict(inputs), scalars=dict(scalars))
    expected = tuple(
        ExpectedOutput(
            spec=spec, dtype=dtype, promised_dtype=dtype, reference=r, rounded=r.float(), bound=None
        )
        for spec, r in zip(task.outputs, reference, strict=False)
    )
    expectation = Expectation(case=case, inputs=given, outputs=expected)
    return [claim.name for claim in broken_claims(task, expectation, outputs, inputs)]


def sizes_of(task, inputs):
    """The size of each dim that a tensor has as one of its own; 1 for others."""
    sizes = {d.symbol: 1 for d in task.dims}
    for spec in task.tensors:
        shape = () if inputs.get(spec.name) is None else tuple(inputs[spec.name].shape)
        for symbol, size in zip(reversed(spec.dims), reversed(shape), strict=False):
            if symbol in sizes:
                sizes[symbol] = size
    return tuple(sizes.items())
