"""How a candidate's C++ and CUDA are built; all that the rest of the program may import.

`building` interposes on PyTorch's builds in a child; `headers` has what they need precompiled.
"""

from __future__ import annotations

from kerneltruth.runner.extensions.building import install, lean
from kerneltruth.runner.extensions.headers import kit_folder, precompile_ahead

__all__ = ["install", "kit_folder", "lean", "precompile_ahead"]
