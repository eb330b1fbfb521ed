"""Tables of `analyze` by obligation: which certified kernels remain, and where illusions break."""

from __future__ import annotations

from kerneltruth.documents.estimates import GroupRecord, RateRecord
from kerneltruth.documents.model import Model
from kerneltruth.documents.records import Obligation


class SurvivalStep(Model, frozen=True, kw_only=True):
    """Certified kernels after this obligation and those before it; the three counts add up.

    Attributes:
        at_risk: those with a profile that no obligation before this one has lost.
        remain: those that were tried and lost at none so far, of all with a profile.
        remain_most: likewise, with those that some obligation so far was not tried on.
        lost: whose first loss is this obligation.
        lost_so_far: the sum of `lost` up to here.
        not_tried: those not lost so far that some obligation so far was not tried on.
        refused: those that refuse this obligation, and are not lost by it.
    """

    obligation: Obligation
    at_risk: int
    remain: RateRecord
    remain_most: RateRecord
    lost: int
    lost_so_far: int
    not_tried: int
    refused: int


class SurvivalCurve(GroupRecord, frozen=True, kw_only=True):
    """The certified kernels of one peer check that remain after each obligation.

    Attributes:
        certified: all kernels that the check certifies.
        no_profile: those that an earlier version judged; they are in no step.
        torch_only: those in the steps that have no kernel of their own.
    """

    check: str
    certified: int
    no_profile: int
    torch_only: int
    steps: tuple[SurvivalStep, ...]


class SurvivalCurvesBy(Model, frozen=True, kw_only=True):
    """One break-down of survival."""

    by: tuple[str, ...]
    rows: tuple[SurvivalCurve, ...]


class SurvivalTables(Model, frozen=True, kw_only=True):
    """All survival curves, of the distinct kernels."""

    overall: tuple[SurvivalCurve, ...]
    by: tuple[SurvivalCurvesBy, ...]


class IllusionPlaces(Model, frozen=True, kw_only=True):
    """Where the kernels that a peer check certifies are wrong; each kernel counts once.

    Attributes:
        contract: whose obligations decided.
        certified: all kernels that the check certifies.
        published: wrong on the benchmark's own inputs.
        core: else wrong, or refusing, in what the prompt promises or the contract `core` asks.
        beyond: else silently wrong in what neither asks.
        unknown: rejected by the judge without such an obligation, such as by an earlier version.
    """

    check: str
    contract: str
    certified: int
    published: RateRecord
    core: RateRecord
    beyond: RateRecord
    unknown: RateRecord
