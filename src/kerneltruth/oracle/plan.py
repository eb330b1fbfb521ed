"""Plans: what to try of a candidate, by which contract, and when to stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kerneltruth.documents.case import Case, Domain
from kerneltruth.documents.contracts import ContractName
from kerneltruth.oracle.contract import DEFAULT_CONTRACT, Contract, contract_with

CALLS_IN_BUDGET = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to try, and when to stop.

    Attributes:
        cases: how many cases to judge, the published inputs among them.
        whole: whether more are judged, if it takes more to try once all that decides.
        promises: the same, to try each of the task's promises once.
        dtypes: restriction of the dtypes; None means the task's.
        domain: "core" judges the core only.
        contract: whose obligations decide.
        demands: obligations that decide besides, by the rules of the task's benchmark.
        budget_s: wall time allowed for the whole candidate; None means ten such calls.
        stop_at_first: whether an obligation ends at its first failing case.
        require_kernel: whether a right result must be the work of the candidate's own kernels.
        twice: the share of right candidates that are judged in a second round.
        repeat: whether calls of right cases are repeated, to show state that calls leave behind.
        forgiving: whether right cases suffice, though others were not answered or not tried; only
            an audit of exploits shows what that would let pass.
        compile: whether every launch is also compiled for the runner's targets.
        large: whether a right kernel is called once beyond 2^31 elements, on a GPU. The call takes
            the device's memory for itself, which many candidates at once cannot spare.
    """

    seed: int = 0
    strategies: tuple[str, ...] = ()
    cases: int = 48
    whole: bool = False
    promises: bool = False
    dtypes: tuple[str, ...] | None = None
    domain: Domain = "extended"
    contract: ContractName = DEFAULT_CONTRACT
    demands: tuple[str, ...] = ()
    deadline_s: float = 20.0
    budget_s: float | None = None
    stop_at_first: bool = True
    require_kernel: bool = False
    twice: float = 0.0
    repeat: bool = True
    forgiving: bool = False
    compile: bool = True
    large: bool = False

    @property
    def contract_with_demands(self) -> Contract:
        """The contract itself, in which what `demands` names decides too."""
        return contract_with(self.contract, self.demands)

    @property
    def seconds(self) -> float:
        """Time allowed for all of the candidate's calls, with loading and compiling."""
        return CALLS_IN_BUDGET * self.deadline_s if self.budget_s is None else self.budget_s

    @property
    def grows(self) -> bool:
        """Whether more cases than planned are judged if it takes more."""
        return self.whole or self.promises

    @property
    def is_narrowed(self) -> bool:
        """Whether it leaves out some of what the task has."""
        return bool(self.strategies) or self.dtypes is not None

    def asks(self, published: Case) -> bool:
        """Whether the published inputs are among what is to be tried."""
        return self.tries_published(published.dtype)

    def tries_published(self, dtype: str) -> bool:
        """Whether the published inputs, which have this dtype, are among what is to be tried."""
        dtypes = self.dtypes is None or dtype in self.dtypes
        return dtypes and (not self.strategies or "default" in self.strategies)

    def chosen(self) -> dict[str, Any]:
        """The arguments of `generate` that choose the cases."""
        return {
            "strategies": self.strategies,
            "seed": self.seed,
            "dtypes": self.dtypes,
            "domain": self.domain,
        }
