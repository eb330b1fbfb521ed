"""Contracts: which obligations decide whether a kernel passes, each set with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from kerneltruth.errors import UserError
from kerneltruth.oracle.obligations import Departure

ContractName = Literal["published", "core", "torch"]
DEFAULT_CONTRACT: ContractName = "core"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A named set of obligations that decide a verdict.

    Attributes:
        name: as users choose it.
        asks: what a kernel has to keep, in a sentence.
        reason: why that.
        source: what says so.
        decides: whether it decides by an obligation, or by this part of one.
    """

    name: ContractName
    asks: str
    reason: str
    source: str
    decides: Callable[[Departure], bool]


def _takes_part_in_torch(departure: Departure) -> bool:
    return departure.promised or departure.obligation != "gradients"


CONTRACTS: Mapping[ContractName, Contract] = {
    "published": Contract(
        name="published",
        asks="the benchmark's own sizes, values, dtype and mode",
        reason="what the benchmark itself checks, and nothing else: it suits a kernel that is "
        "written for one size",
        source="the benchmark's own tests",
        decides=lambda departure: departure.obligation == "published",
    ),
    "core": Contract(
        name="core",
        asks="the published inputs, other sizes, finite values, the form of results, memory, equal "
        "results from equal calls, and what else the prompt promises",
        reason="attributes, dtypes, layouts and gradients count where a sentence of the prompt "
        "promises them; that other sizes and finite values count is this project's choice, not "
        "the benchmark's",
        source="the sentences of the task's published prompt, and this project",
        decides=lambda departure: departure.promised,
    ),
    "torch": Contract(
        name="torch",
        asks="all inputs that PyTorch's operator takes",
        reason="PyTorch's own function does; gradients count where the prompt promises them, since "
        "they are tried nowhere else",
        source="PyTorch's operator itself, which is called on every case",
        decides=_takes_part_in_torch,
    ),
}


def contract_named(name: str) -> Contract:
    """The contract of this name.

    Raises:
        UserError: there is none.
    """
    for known, contract in CONTRACTS.items():
        if name == known:
            return contract
    raise UserError(f"--contract {name!r}: must be one of {', '.join(CONTRACTS)}")
