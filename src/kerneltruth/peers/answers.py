"""Reduce a candidate's observation to the answer that a peer's check would see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from kerneltruth.oracle.interface import tensor_of
from kerneltruth.runner.observation import Observation, OtherResult, TensorResult

Ending = Literal["raised", "died", "timeout", "unsupported"]

_ENDED: dict[str, Ending] = {
    "raised": "raised",
    "load_failed": "raised",
    "compile_failed": "raised",
    "died": "died",
    "flooded": "died",
    "timeout": "timeout",
    "unsupported": "unsupported",
    "lost": "unsupported",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """The candidate returned no tensors: how it ended, and the reason in one line."""

    ended: Ending
    detail: str


Answer = tuple[torch.Tensor, ...] | NoAnswer


def answer(observation: Observation, mutated: Sequence[torch.Tensor] = ()) -> Answer:
    """Turn an observation into an answer.

    Guards and input digests are ignored, as by every peer. `mutated` are the inputs of an in-place
    task after the call, used as outputs if the entry returned none.
    """
    if observation.ended != "returned":
        lines = (observation.message or "").strip().splitlines()
        words = [w for w in (observation.error, lines[0] if lines else None) if w]
        detail = ": ".join(words) or observation.ended
        return NoAnswer(ended=_ENDED.get(observation.ended, "unsupported"), detail=detail)
    others = [r for r in observation.results if isinstance(r, OtherResult)]
    if others:
        return NoAnswer(ended="raised", detail=f"returned {others[0].noun}, not a tensor")
    tensors = tuple(tensor_of(r) for r in observation.results if isinstance(r, TensorResult))
    return tensors or tuple(mutated)
