"""Seed what a candidate may draw from."""

from __future__ import annotations

import random

import numpy as np
import torch


def seed(draw: int = 0) -> None:
    """Seed the generators of Python, NumPy and PyTorch."""
    random.seed(draw)
    np.random.seed(draw)  # noqa: NPY002 - it is the candidate's choice which generator it uses
    torch.default_generator.manual_seed(draw)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(draw)
