"""The contracts in words: what each asks of a kernel, why, and who says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kerneltruth.documents.model import Model
from kerneltruth.errors import UserError

ContractName = Literal["published", "core", "torch"]


class ContractText(Model, frozen=True, kw_only=True):
    """A named set of obligations that decide a verdict, in words.

    Attributes:
        name: as users choose it.
        asks: what a kernel has to keep, in a sentence.
        reason: why that.
        source: what says so.
    """

    name: ContractName
    asks: str
    reason: str
    source: str


TEXTS: Mapping[ContractName, ContractText] = {
    "published": ContractText(
        name="published",
        asks="the benchmark's own sizes, values, dtype and mode",
        reason="what the benchmark itself checks, and nothing else: it suits a kernel that is "
        "written for one size",
        source="the benchmark's own tests",
    ),
    "core": ContractText(
        name="core",
        asks="the published inputs, other sizes, finite values, the form of results, memory, equal "
        "results from equal calls, and what else the prompt promises",
        reason="attributes, dtypes, layouts and gradients count where a sentence of the prompt "
        "promises them; that other sizes and finite values count is this project's choice, not "
        "the benchmark's",
        source="the sentences of the task's published prompt, and this project",
    ),
    "torch": ContractText(
        name="torch",
        asks="all inputs that PyTorch's operator takes",
        reason="PyTorch's own function does; gradients count where the prompt promises them, since "
        "they are tried nowhere else",
        source="PyTorch's operator itself, which is called on every case",
    ),
}


def contract_name(said: str) -> ContractName:
    """Return the name of a contract as the options say it.

    Raises:
        UserError: there is none of this name.
    """
    for known in TEXTS:
        if said == known:
            return known
    raise UserError(f"--contract {said!r}: must be one of {', '.join(TEXTS)}")
