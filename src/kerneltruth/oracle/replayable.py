"""Judgements with what a replay compares: digests of inputs, reference and outputs."""

from __future__ import annotations

from msgspec.structs import replace

from kerneltruth.documents.records import Judgement
from kerneltruth.documents.verdict import Failed
from kerneltruth.oracle.expectation import Expectation, tensors_digest
from kerneltruth.oracle.judge import Ruling


def with_digests(judgement: Judgement, expectation: Expectation, ruling: Ruling) -> Judgement:
    """Return the judgement of one call with its digests."""
    return replace(
        judgement,
        digests=expectation.inputs.digests(),
        reference_digest=expectation.digest(),
        output_digest=tensors_digest(ruling.outputs) if ruling.outputs else None,
    )


def of_several_calls(expectation: Expectation, verdict: Failed) -> Judgement:
    """Return a judgement on calls that are wrong together: no output is that of all."""
    return Judgement(
        case=expectation.case,
        verdict=verdict,
        digests=expectation.inputs.digests(),
        reference_digest=expectation.digest(),
    )
