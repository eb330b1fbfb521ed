"""Printing a view: as wide as the terminal, or unwrapped lines in a pipe."""

from __future__ import annotations

import sys

from rich.console import Console, RenderableType

PIPE_WIDTH = 160


def show(view: RenderableType) -> None:
    """Print a view on standard output."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    Console(width=width, highlight=False, markup=False).print(view, soft_wrap=False)
