"""Define the files of a run that say what it was and what it found: manifest and findings."""

from __future__ import annotations

import re

from kerneltruth import __version__
from kerneltruth.documents.case import Case
from kerneltruth.documents.model import SCHEMA, Model, Stored
from kerneltruth.documents.records import CandidateRef, ErrorMap, ErrorStats, QuantizationFault
from kerneltruth.documents.verdict import Verdict

Environment = dict[str, str | None]
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Digests(Model, frozen=True, kw_only=True):
    """Sha256 over logical elements in row-major order: by input, and of all outputs in order."""

    inputs: dict[str, str]
    reference: str | None
    output: str | None

    def __post_init__(self) -> None:
        named = {**self.inputs, "reference": self.reference, "output": self.output}
        for name, digest in named.items():
            if digest is not None and not _SHA256.fullmatch(digest):
                raise ValueError(f"the digest of {name} is not 64 hex digits: {digest!r:.80}")


class Finding(Stored, frozen=True, kw_only=True):
    """A file of `findings/`: a failing verdict with everything needed to replay it.

    Attributes:
        config: which configuration the autotuned kernels took, modulo their number.
        poison_seed: the pattern of the case that filled uninitialized memory.
        bounds: which method gave the bounds.
        tf32: whether they admit TF32.
        error_map: where the output is wrong; None where there was none of the right form.
        shown: the smallest case in a line, with the expected and the returned values.
        obligations: that it breaks, or in which it is a refusal; empty where an earlier version
            judged.
        quantization: which rule of a quantized task it departs from; None where nothing proves one.
    """

    id: str
    task: str
    candidate: CandidateRef
    case: Case
    verdict: Verdict
    stats: ErrorStats | None
    digests: Digests
    minimal: Case | None
    explanation: str
    environment: Environment
    config: int = 0
    poison_seed: int = 0
    bounds: str = "spread"
    tf32: bool = True
    error_map: ErrorMap | None = None
    shown: str = ""
    obligations: tuple[str, ...] = ()
    quantization: QuantizationFault | None = None
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        if self.case.task != self.task:
            raise ValueError(
                f"the case is of task {self.case.task!r}, the finding of {self.task!r}"
            )


class Manifest(Stored, frozen=True, kw_only=True):
    """A run's description, `run.json`.

    Times are ISO 8601 in UTC; `ended` is None while it lasts.
    """

    arguments: tuple[str, ...]
    seed: int
    suite_hash: str
    environment: Environment
    started: str
    ended: str | None = None
    version: str = __version__
    schema: int = SCHEMA
