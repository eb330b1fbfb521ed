"""Build a candidate's C++ and CUDA; other code imports only this module.

`building` intercepts PyTorch's builds in a child; `headers` precompiles what they need.
"""

from __future__ import annotations

from kerneltruth.runner.extensions.building import install, lean
from kerneltruth.runner.extensions.headers import kit_folder, precompile_ahead

__all__ = ["install", "kit_folder", "lean", "precompile_ahead"]
