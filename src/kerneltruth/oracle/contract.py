"""Contracts: which obligations decide whether a kernel passes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from kerneltruth.documents.contracts import TEXTS, ContractName, ContractText, contract_name
from kerneltruth.oracle.obligations import ONLY_WHERE_PROMISED, Departure

DEFAULT_CONTRACT: ContractName = "core"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A named set of obligations that decide a verdict.

    Attributes:
        text: its demand in words.
        decides: whether an obligation, or this part of one, decides.
    """

    text: ContractText
    decides: Callable[[Departure], bool]

    @property
    def name(self) -> ContractName:
        """The name by which users choose it."""
        return self.text.name


def _takes_part_in_torch(departure: Departure) -> bool:
    return departure.promised or departure.key not in ONLY_WHERE_PROMISED


CONTRACTS: Mapping[ContractName, Contract] = {
    "published": Contract(
        text=TEXTS["published"], decides=lambda departure: departure.obligation == "published"
    ),
    "core": Contract(text=TEXTS["core"], decides=lambda departure: departure.promised),
    "torch": Contract(text=TEXTS["torch"], decides=_takes_part_in_torch),
}


def contract_named(name: str) -> Contract:
    """The contract of this name.

    Raises:
        UserError: there is none.
    """
    return CONTRACTS[contract_name(name)]


def contract_with(name: ContractName, demands: Collection[str]) -> Contract:
    """The contract of this name, in which all parts of some further obligations decide too."""
    plain = CONTRACTS[name]
    return replace(plain, decides=lambda d: d.obligation in demands or plain.decides(d))
