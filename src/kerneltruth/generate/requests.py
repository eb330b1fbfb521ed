"""The request of a generation. Light to import: no torch here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kerneltruth.generate.account import Prices, SpendingLimits
from kerneltruth.generate.chat import Sampling

IMPORT = "import"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling:
    """How the endpoint is called.

    Attributes:
        url: None means OPENAI_BASE_URL, else OpenAI's own.
        cache: a folder of answers by content; None keeps none.
    """

    url: str | None = None
    key_variable: str = "OPENAI_API_KEY"
    stream: bool = False
    per_minute: float | None = None
    concurrency: int = 8
    retries: int = 6
    timeout_s: float = 600.0
    cache: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSelection:
    """Which tasks and prompts are requested.

    Attributes:
        tasks: names; empty means all of the suite (of a recording: all that it has).
        gpu: whose facts are shown: a key of `gpus.GPUS`, or `here`.
        language: in which kernels are asked for.
        shots: how many worked kernels of other operators are shown.
    """

    tasks: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    templates: Path | None = None
    show_reference: bool = False
    show_example: bool = True
    language: str = "triton"
    shots: int = 0
    gpu: str | None = None

    @property
    def restricts(self) -> bool:
        """Return whether it names tasks or categories."""
        return bool(self.tasks or self.categories)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateRequest:
    """The options of the command line.

    Attributes:
        model: a name that the endpoint knows, or `replay:FILE`.
        source: the path that `--method import` reads.
        cases: judged per round of `refine` and `geak`; None as for `run`.
        contract: by which these two judge.
        kernels: whether they profile right kernels for the share of the device's time of each.
        require_kernel: whether they ask that a right result be the work of own kernels.
    """

    suite: str
    method: str
    model: str | None = None
    samples: int | None = None
    rounds: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    calling: Calling = field(default_factory=Calling)
    asking: TaskSelection = field(default_factory=TaskSelection)
    limits: SpendingLimits = field(default_factory=SpendingLimits)
    prices: Prices | None = None
    source: Path | None = None
    device: str = "auto"
    seed: int = 0
    out: Path | None = None
    workers: int | None = None
    deadline_s: float = 20.0
    cases: int | None = None
    contract: str = "core"
    require_kernel: bool = False
    kernels: bool = False
    targets: tuple[str, ...] = ("sm_90",)
