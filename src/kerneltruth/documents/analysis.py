"""The JSON of `analyze` and `report`: tables of shares, speedups, deviance and rounds.

`analysis` makes these models, and `report` shows them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType, field

from kerneltruth.documents.effects import DevianceTables, PortabilityTables, RefinementTables
from kerneltruth.documents.model import Model
from kerneltruth.documents.rates import (
    AuditedKernels,
    EfficiencyRow,
    FastShare,
    IllusionTables,
    PassAtK,
    RateTables,
    SpeedupRow,
    SpendingRow,
    UnsolvedTables,
)
from kerneltruth.documents.survival import IllusionPlaces, SurvivalTables


class AnalyzedRun(Model, frozen=True, kw_only=True):
    """A run's description of itself.

    Attributes:
        command: the command that made it: run, check or audit.
        ended: null where the run was stopped or goes on.
    """

    path: str
    command: str
    device: str
    version: str
    suite_hash: str
    seed: int
    started: str
    ended: str | None
    attempts: int


class TorchOnlyCount(Model, frozen=True, kw_only=True):
    """Answers without a kernel of their own, and how many of them are right."""

    answers: int
    right: int = field(name="pass")


class AnalyzeDocument(Model, frozen=True, kw_only=True):
    """`analyze --json`; `bibtex` is there where it was asked for."""

    schema: Literal[1] = 1
    runs: tuple[AnalyzedRun, ...]
    devices: tuple[str, ...]
    attempts: int
    distinct: int
    answers: int
    torch_only: TorchOnlyCount
    kept: Literal["best", "last"]
    notes: tuple[str, ...]
    rates: RateTables
    unsolved: UnsolvedTables
    pass_at_k: tuple[PassAtK, ...]
    spending: tuple[SpendingRow, ...]
    fast_p: tuple[FastShare, ...]
    speedups: tuple[SpeedupRow, ...]
    efficiency: tuple[EfficiencyRow, ...]
    audit: AuditedKernels | None
    illusions: IllusionTables
    survival: SurvivalTables
    illusion_places: tuple[IllusionPlaces, ...]
    deviance: DevianceTables
    trajectories: RefinementTables
    portability: PortabilityTables | None
    exports: tuple[str, ...]
    missing: tuple[str, ...]
    bibtex: str | UnsetType = UNSET


class ReportDocument(Model, frozen=True, kw_only=True):
    """`report --json`: the page that was written, and what it holds."""

    schema: Literal[1] = 1
    out: str
    bytes: int
    kind: str
    title: str
    runs: int
    attempts: int
    distinct: int
    answers: int
    tasks: int
    categories: int
    methods: int
    findings: int
    corpus: bool
    notes: tuple[str, ...]
