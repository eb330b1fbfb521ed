"""In which languages candidates are written, and what these need. Pure."""

from __future__ import annotations

from typing import Literal

# Gluon ships inside Triton and shares its launcher, but Triton's interpreter does not run it.
Language = Literal["triton", "gluon", "cuda", "torch", "numpy"]
# On other devices kernels in these languages are interpreted, or do not run at all.
NEEDS_A_GPU: tuple[Language, ...] = ("triton", "gluon", "cuda")
# Triton compiles and launches kernels in these.
TRITON_COMPILES: tuple[Language, ...] = ("triton", "gluon")
