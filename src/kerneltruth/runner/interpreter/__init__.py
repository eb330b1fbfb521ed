"""Makes Triton's interpreter compute what the GPU computes.

`install()` replaces the parts of `triton.runtime.interpreter` that do not. Importing this
package imports neither Triton nor torch.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata

from kerneltruth.runner.interpreter.settings import set_dot_precision
from kerneltruth.runner.interpreter.versions import LAST_TESTED, WINDOW, number
from kerneltruth.runner.unsupported import UnsupportedError

__all__ = ["UnsupportedError", "install", "load", "prepare", "refusal", "set_dot_precision"]

_refusal: str | None = None


def install() -> None:
    """Make the interpreter of this process faithful; a second call changes nothing.

    Call it after `TRITON_INTERPRET=1` was set and before any kernel is imported.

    Raises:
        UnsupportedError: the installed Triton is not one that this fits.
    """
    import triton

    try:
        from kerneltruth.runner.interpreter import installation

        installation.install()
        if number(triton.__version__) > LAST_TESTED:
            from kerneltruth.runner.interpreter import probe

            probe.check()
    except Exception as error:
        # Whatever an unknown version changes is no fault of the kernels that it would run.
        raise UnsupportedError(_reason(error)) from error


def load() -> None:
    """Import Triton; where its interpreter is missing, so that it interprets nothing."""
    global _refusal
    try:
        import triton.language  # noqa: F401
    except Exception as error:
        _refusal = _reason(error)
        # Triton's own functions would be interpreted ones, too, and could not be made. What has
        # loaded so far refers to what has not; its library in C++ loads only once.
        os.environ.pop("TRITON_INTERPRET", None)
        for name in [n for n in sys.modules if n == "triton" or n.startswith("triton.")]:
            if not name.startswith("triton._C."):
                del sys.modules[name]


def prepare() -> None:
    """Install as `install` does, but leave a Triton that does not fit to `refusal`."""
    global _refusal
    if _refusal is not None:
        return
    try:
        install()
    except UnsupportedError as error:
        _refusal = str(error)


def _reason(error: Exception) -> str:
    try:
        installed = metadata.version("triton")
    except metadata.PackageNotFoundError:
        installed = "a build of its own"
    reason = str(error) if isinstance(error, UnsupportedError) else repr(error)
    return f"kernels run without a GPU with Triton {WINDOW}, this is {installed}: {reason}"


def refusal() -> str | None:
    """Return why `prepare` could not make this process interpret kernels; None if it could."""
    return _refusal
