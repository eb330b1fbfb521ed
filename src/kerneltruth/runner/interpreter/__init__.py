"""Makes Triton's interpreter compute what the GPU computes.

`install()` replaces the parts of `triton.runtime.interpreter` that do not. Importing this
package imports neither Triton nor torch.
"""

from __future__ import annotations

from kerneltruth.runner.interpreter.settings import set_dot_precision
from kerneltruth.runner.interpreter.unsupported import UnsupportedHere

__all__ = ["UnsupportedHere", "install", "set_dot_precision"]


def install() -> None:
    """Make the interpreter of this process faithful; a second call changes nothing.

    Call it after `TRITON_INTERPRET=1` was set and before any kernel is imported.
    """
    from kerneltruth.runner.interpreter import installation

    installation.install()
