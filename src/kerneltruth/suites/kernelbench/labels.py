"""Name sets of constants in cases: by the file's variables, or by the shapes that follow."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kerneltruth.suites.kernelbench.constants import Constants
from kerneltruth.suites.kernelbench.schema import ConstantChoice, Outline, Schema

# More tensors are not named: a list may have dozens.
_MOST_TENSORS = 6


def label(constants: Constants, outline: Outline) -> str:
    """Name a set: `batch_size=3 dim=257`, or `x[3, 257]` where the file has sizes without names.

    Args:
        constants: of the set.
        outline: of the problem for them.
    """
    named = {n: v for n, v in constants.items() if ":" not in n}
    words = [*(() if len(named) == len(constants) else _tensors(outline)), *_named(named)]
    return " ".join(words) or "as in the file"


def _tensors(outline: Outline) -> list[str]:
    """Return each tensor of a call with its dims."""
    names = [*outline.names, *(f"input_{i}" for i in range(len(outline.names), 99))]
    pairs = zip(names, outline.inputs, strict=False)
    found = [
        f"{name}{list(i.shape)!r}".replace(" ", "") for name, i in pairs if i.dtype is not None
    ]
    more = [f"{len(found) - _MOST_TENSORS} more"] if len(found) > _MOST_TENSORS else []
    return [*found[:_MOST_TENSORS], *more]


def _named(constants: Constants) -> list[str]:
    names = (n.rpartition(".")[2].replace(":", " ") for n in constants)
    return [f"{n}={_short(v)}" for n, v in zip(names, constants.values(), strict=True)]


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 3 and len(set(value)) == 1:
        return f"[{value[0]}]*{len(value)}"
    return repr(value).replace(" ", "")


def told_apart(schema: Schema) -> Schema:
    """Return the schema with more words in labels that several sets of constants have."""
    every = [*schema.choices, *schema.long, *schema.smaller, *schema.whole]
    every += [c for c in (schema.first, schema.timed) if c is not None]
    sets: dict[str, set[str]] = {}
    for choice in every:
        sets.setdefault(choice.label, set()).add(choice.constants)

    def clear(choice: ConstantChoice) -> ConstantChoice:
        if len(sets[choice.label]) == 1:
            return choice
        changed = " ".join(_named(ast.literal_eval(choice.constants))) or "its own numbers"
        return replace(choice, label=f"{choice.label} with {changed}")

    def all_clear(choices: Iterable[ConstantChoice]) -> tuple[ConstantChoice, ...]:
        return tuple(map(clear, choices))

    return replace(
        schema,
        choices=all_clear(schema.choices),
        long=all_clear(schema.long),
        smaller=all_clear(schema.smaller),
        whole=all_clear(schema.whole),
        first=schema.first and clear(schema.first),
        timed=schema.timed and clear(schema.timed),
    )
